"""The parts of the boosting loop whose data is on the workers: scores, validation sets, training lists, the grower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import defined_mean
from ranksieve.boosting.external_grower import ExternalGrower
from ranksieve.boosting.fixed_point import Extent, Scales, to_fixed_point
from ranksieve.boosting.grower import KnownLeaves
from ranksieve.boosting.loop import State
from ranksieve.boosting.training_rows import NO_ROWS, TrainingRows, TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.messages import SelectedRows, ShardReport
from ranksieve.cluster.worker_pool import Restart, WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.dtypes import BIN, OFFSET, ROW
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels.histograms import TreeRows
from ranksieve.params import Params
from ranksieve.rules import AUTO

NOTHING = np.empty(0)


@dataclass(frozen=True)
class RemoteScores:
    """Scores on the workers. A new tree is sent to them with the next call."""

    pool: WorkerPool

    def add(self, tree: Tree, leaves: KnownLeaves | None = None) -> None:
        self.pool.trees.append(tree)


@dataclass(frozen=True)
class RemoteValidationSet:
    """A validation set on the workers."""

    name: str
    pool: WorkerPool
    weights: np.ndarray | None  # one for each query
    n_trees: int  # trees of the whole training; the last one needs no gradients

    def measure(self, state: State[Any, Any], metric: Metric) -> float:
        reports = self.pool.reports(with_gradients=len(state.trees) < self.n_trees)
        values = [report.values[self.name] for report in reports if self.name in report.values]
        return defined_mean(np.concatenate(values), self.weights, metric, self.name)

    def keep_scores(self) -> None:
        """See `ValidationSet.keep_scores`; the workers keep them when they get the next tree."""
        self.pool.kept_set = self.name

    def measure_again(self, trees: Sequence[Tree], metrics: Sequence[Metric]) -> list[np.ndarray]:
        """See `ValidationSet.measure_again`; the workers have the trees."""
        answers = self.pool.measure_again(self.name, len(trees), metrics)
        return [np.concatenate(values) for values in zip(*filter(None, answers), strict=True)]


@dataclass(frozen=True, kw_only=True)
class RemoteTarget(TreeTarget):
    """The gradients of all rows of `bins`. Without `bins`, the rows and their gradients stay on the workers."""

    extent: Extent
    bins: np.ndarray | None = None
    row_numbers: np.ndarray | None = None  # in the whole training set


@dataclass
class RemoteLists:
    """Training lists on the workers, which select the rows and compute the gradients."""

    pool: WorkerPool
    _caches: dict[int, _RowCache] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pool.keep_rows = self._keep  # called for every report, because workers send the bins of a row once

    def _keep(self, reports: list[ShardReport]) -> None:
        for number, report in enumerate(reports):
            if report.rows is not None:
                self._caches.setdefault(number, _RowCache()).keep(report.rows)

    def set_biases(self, biases: np.ndarray) -> None:
        """Set the biases of positions for the next tree; they are sent together with the last tree."""
        self.pool.biases.append(biases)

    def select_rows(
        self, last: TrainingRows, scores: RemoteScores, step: int, rng: np.random.Generator
    ) -> TrainingRows:
        """The workers select rows and compute gradients when they get the last tree; the rows stay there."""
        if not any(report.extent.n for report in self.pool.reports(with_gradients=True) if report.extent is not None):
            raise ParameterError(NO_ROWS)
        return last

    def gradients(self, rows: TrainingRows, scores: RemoteScores, step: int, rng: np.random.Generator) -> RemoteTarget:
        """The gradients that the workers report; with the bins of the rows if all workers have sent theirs."""
        reports = self.pool.reports(with_gradients=True)
        extent = Extent.joined(report.extent for report in reports if report.extent is not None)
        parts = [report.rows for report in reports if report.rows is not None]
        sums: Any = [report.position_sums for report in reports if report.position_sums is not None]
        sums = np.sum(sums, axis=0) if sums else None
        if len(parts) < len(reports):  # a worker has too many rows to send
            return RemoteTarget(None, NOTHING, NOTHING, position_sums=sums, extent=extent)
        bins, numbers = np.empty((extent.n, parts[0].new_bins.shape[1]), BIN), np.empty(extent.n, OFFSET)
        stop = 0
        for number, sent in enumerate(parts):
            start, stop = stop, stop + len(sent.grad)
            self._caches[number].take(bins[start:stop], numbers[start:stop])
        grad, hess = (np.concatenate([getattr(sent, name) for sent in parts]) for name in ("grad", "hess"))
        return RemoteTarget(None, grad, hess, position_sums=sums, extent=extent, bins=bins, row_numbers=numbers)


class _RowCache:
    """The rows that one worker has sent: bins and numbers in the whole training set."""

    def __init__(self) -> None:
        self._bins = np.empty((0, 0), BIN)
        self._numbers = np.empty(0, OFFSET)
        self._places = np.empty(0, ROW)

    def keep(self, rows: SelectedRows) -> None:
        """Keep new rows, and the places of the current training rows."""
        stop = rows.first + len(rows.new_bins)
        if stop > len(self._bins):
            longer, numbers = (
                np.empty((stop + stop // 4, rows.new_bins.shape[1]), BIN),
                np.empty(stop + stop // 4, OFFSET),
            )
            if rows.first:
                longer[: rows.first], numbers[: rows.first] = self._bins[: rows.first], self._numbers[: rows.first]
            self._bins, self._numbers = longer, numbers
        if len(rows.new_bins):
            self._bins[rows.first : stop], self._numbers[rows.first : stop] = rows.new_bins, rows.new_row_numbers
        if rows.places is not None:
            self._places = rows.places

    def take(self, bins: np.ndarray, numbers: np.ndarray) -> None:
        """Write the bins and numbers of the current training rows."""
        if len(bins):
            np.take(self._bins, self._places, axis=0, out=bins, mode="clip")  # other modes make one more copy
            numbers[:] = self._numbers[self._places]


class RemoteGrower(ExternalGrower):
    """Grows a tree on rows that the workers have sent, or on sums of their histograms.

    The histograms of one leaf are requested ahead. More of them hardly save messages, because new leaves mostly have
    the largest gains. But they save passes over the files of workers, so those that read files get more requests ahead.
    """

    def __init__(self, data: Binned, params: Params, pool: WorkerPool, *, threads: int, n_docs: int) -> None:
        self._n_docs = n_docs
        super().__init__(data, params, threads=threads)
        self._pool = pool

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, self._n_docs // self._params.min_docs))

    def _call(self, request: str, *arguments: Any) -> list[Any]:
        return self._pool.call_or_restart(request, *arguments)

    def grow(  # type: ignore[override]  # its lists make no other targets
        self, target: RemoteTarget, rng: np.random.Generator
    ) -> tuple[Tree, None]:
        """The same tree as on one machine."""
        if target.bins is not None:
            return super().grow(target, rng)[0], None
        columns, key = self._choose_columns(rng), self._draw_key(rng)
        reads_files = self._params.memory != AUTO and target.extent.n == self._n_docs
        self.n_prefetched = self._params.leaves if reads_files else 1
        while True:
            try:
                return self._grow_on_sums(target.extent, columns, key), None
            except Restart:
                continue

    def _leaves(self, target: TreeTarget, tree_rows: TreeRows, bounds: np.ndarray) -> None:
        """None: the workers score their own rows."""

    def _tree_rows(self, target: TreeTarget, scales: Scales) -> TreeRows:
        assert isinstance(target, RemoteTarget) and target.bins is not None
        fixed = to_fixed_point(target.grad, target.hess, scales, target.row_numbers)
        return self._all_of(target.bins, fixed)
