"""What the boosting loop uses in place of lists, scores and grower when those are on workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import defined_mean
from ranksieve.boosting.fixed_point import Extent
from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.lessons import NOBODY, Sample
from ranksieve.boosting.loop import State
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.messages import SelectedRows
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.dtypes import BIN, ROW
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric


@dataclass(frozen=True)
class RemoteScores:
    """Scores that workers keep: a new tree is told to them when somebody next asks."""

    pool: WorkerPool

    def add(self, tree: Tree, leaves: Leaves | None = None) -> None:
        self.pool.trees.append(tree)


@dataclass(frozen=True)
class RemoteValidationSet:
    """A validation set that lies on workers."""

    name: str
    pool: WorkerPool
    weights: np.ndarray | None  # of its queries
    n_trees: int  # asked for

    def measure(self, state: State, metric: Metric) -> float:
        reports = self.pool.reports(with_gradients=len(state.trees) < self.n_trees)
        values = [report.values[self.name] for report in reports if self.name in report.values]
        return defined_mean(np.concatenate(values), self.weights, metric, self.name)


@dataclass(frozen=True)
class RemoteRows:
    """Rows that stay on the workers; the coordinator sees their sums."""

    extent: Extent


@dataclass(frozen=True)
class RemoteLesson:
    """A lesson whose rows are bins sent by the workers, or stay where they are."""

    sample: Sample
    rows: np.ndarray | RemoteRows
    grad: np.ndarray
    hess: np.ndarray


@dataclass
class RemoteLessons:
    """Puts the lesson together from what the workers report."""

    pool: WorkerPool
    sample: Sample  # of no documents: nothing of them is here
    _caches: dict[int, _Cache] = field(default_factory=dict)

    def lesson(self, sample: Sample, scores: Any, step: int) -> RemoteLesson:
        reports = self.pool.reports(with_gradients=True)
        extent = Extent.joined(report.extent for report in reports if report.extent is not None)
        if extent.n == 0:
            raise ParameterError(NOBODY)
        parts = [report.rows for report in reports if report.rows is not None]
        caches = [self._caches.setdefault(i, _Cache()) for i in range(len(reports))]
        for cache, report in zip(caches, reports, strict=True):
            if report.rows is not None:
                cache.keep(report.rows)
        if len(parts) < len(reports):  # one of them has too many
            return RemoteLesson(self.sample, RemoteRows(extent), np.empty(0), np.empty(0))
        bins = np.empty((extent.n, parts[0].new.shape[1]), BIN)
        stop = 0
        for cache, rows in zip(caches, parts, strict=True):
            start, stop = stop, stop + len(rows.grad)
            cache.take(bins[start:stop])
        return RemoteLesson(
            self.sample,
            bins,
            np.concatenate([rows.grad for rows in parts]),
            np.concatenate([rows.hess for rows in parts]),
        )


class _Cache:
    """The bins of the rows that one worker has sent."""

    def __init__(self) -> None:
        self._bins = np.empty((0, 0), BIN)
        self._places = np.empty(0, ROW)

    def keep(self, rows: SelectedRows) -> None:
        """Keep new rows, and note which teach now."""
        stop = rows.first + len(rows.new)
        if stop > len(self._bins):
            longer = np.empty((stop + stop // 4, rows.new.shape[1]), BIN)
            if rows.first:
                longer[: rows.first] = self._bins[: rows.first]
            self._bins = longer
        if len(rows.new):
            self._bins[rows.first : stop] = rows.new
        if rows.places is not None:
            self._places = rows.places

    def take(self, out: np.ndarray) -> None:
        """Write the bins of the rows that teach now."""
        if len(out):
            np.take(self._bins, self._places, axis=0, out=out, mode="clip")  # other modes would copy once more
