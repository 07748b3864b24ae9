"""What the boosting loop uses in place of lists, scores and grower when those are on workers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import defined_mean
from ranksieve.boosting.collapse import Grown
from ranksieve.boosting.fixed_point import Extent, Scale
from ranksieve.boosting.grower import Grower, Leaves
from ranksieve.boosting.lessons import NOBODY, Sample
from ranksieve.boosting.loop import State
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.growing import live_places
from ranksieve.cluster.messages import HistogramRequest, LeafSplit, SelectedRows, SplitPoint
from ranksieve.cluster.worker_pool import Restart, WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.dtypes import BIN, FIXED, ROW
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.splitting import NO_SPLIT
from ranksieve.params import Params


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


class RemoteGrower(Grower):
    """Grows a tree on rows that were sent, or together with the workers on sums of their histograms."""

    def __init__(self, data: Binned, params: Params, pool: WorkerPool, *, threads: int, n_docs: int) -> None:
        self._n_docs = n_docs
        super().__init__(data, params, threads=threads)
        self._pool = pool
        self._live = live_places(self._n_bins, self._planes)
        self._hist.fill(0)  # bins that do not exist are never sent

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, self._n_docs // self._params.min_docs))

    def grow(self, rows: Any, grad: np.ndarray, hess: np.ndarray, rng: np.random.Generator) -> tuple[Tree, None]:
        """The tree of one machine."""
        if not isinstance(rows, RemoteRows):
            return super().grow(rows, grad, hess, rng)[0], None
        allowed = self._allowed(rng)
        while True:
            try:
                return self._grow_together(rows.extent, allowed), None
            except Restart:
                continue

    def _place(
        self, rows: np.ndarray | None, packed: np.ndarray, hess: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert rows is not None
        return rows, packed, hess, np.arange(len(rows), dtype=ROW)

    def _grow_together(self, extent: Extent, allowed: np.ndarray) -> Tree:
        """`kernels.grow_tree`, where rows and histograms are the workers'."""
        p, ask = self._params, self._pool.call_or_restart
        scale = Scale.of(extent, sum(ask("absolute", extent)))
        least = (p.min_docs, p.min_hessian, p.l2, self._newton)
        units = (scale.count_bits, 2.0**-scale.hess_exponent)
        n = len(self._hist)
        gain, cut = np.zeros(n), np.full((n, 5), NO_SPLIT, np.int64)
        depth, parent, slots = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
        totals, hess_totals = np.zeros(n, FIXED), np.zeros(n, FIXED)
        split_ints, split_gain = np.empty((n - 1, 6), np.int64), np.empty(n - 1)
        limits = np.tile([-np.inf, np.inf], (n, 1))
        pair, searched = np.zeros(2, np.int64), np.zeros(2, np.bool_)
        floats, ints = np.zeros(2), np.zeros((2, 5), np.int64)

        roots = ask("root", scale)
        totals[0], hess_totals[0] = sum(root.total for root in roots), sum(root.hess_total for root in roots)
        histogram = np.sum([root.bins for root in roots], axis=0)
        searched[0] = n > 1 and scale.count(totals[0]) >= 2 * p.min_docs
        n_leaves, sibling, old = 1, -1, -1
        splits: list[LeafSplit] = []  # not told yet
        ahead: dict[int, np.ndarray] = {}  # histograms of the smaller sides that leaves will have
        while True:
            if searched.any():
                if old in ahead:
                    histogram = ahead.pop(old)
                elif n_leaves > 1:
                    requests = [
                        HistogramRequest(int(pair[0])),
                        *self._likely_next(n_leaves, scale, gain, cut, depth, totals, ahead),
                    ]
                    histogram, *others = np.sum(ask("split", splits, requests), axis=0)
                    splits = []
                    ahead.update(zip((request.leaf for request in requests[1:]), others, strict=True))
                slot = slots[pair[0]]
                self._hist[slot].reshape(-1)[self._live] = histogram
                kernels.search_sums(
                    self._n_bins, allowed, self._hist, slot, sibling, totals[pair], hess_totals[pair], searched,
                    self._borders, *units, *least, self._signs, limits[pair], floats, ints,
                )  # fmt: skip
                kernels.note_cuts(
                    pair, searched, floats, ints, totals, hess_totals, *units, p.l2, self._newton, self._signs, limits,
                    gain, cut,
                )  # fmt: skip
            old = -1 if n_leaves == n else kernels.split_best_leaf(
                n_leaves, *units, p.min_docs, p.l2, p.max_depth, self._signs, limits, gain, cut, depth, parent, slots,
                totals, hess_totals, split_ints, split_gain, pair, searched,
            )  # fmt: skip
            if old < 0:
                break
            splits.append(LeafSplit(old, n_leaves, _cut(split_ints[n_leaves - 1])))
            n_leaves += 1
            sibling = slots[pair[1]]
        weights = np.sum(ask("finish", splits), axis=0)
        nowhere = np.empty((0, 2), np.int64)  # the workers know where the rows are
        grown = Grown(
            split_ints[: n_leaves - 1], split_gain[: n_leaves - 1], nowhere, totals[:n_leaves], limits[:n_leaves]
        )
        return self._tree(scale, grown, weights)

    def _likely_next(
        self, n_leaves: int, scale: Scale, gain: np.ndarray, cut: np.ndarray, depth: np.ndarray, totals: np.ndarray,
        known: Collection[int],
    ) -> list[HistogramRequest]:  # fmt: skip
        """The leaf with the largest gain now, if its sides will have to be searched, and are not known yet.

        It is divided next unless a side of the present one gains more, and then it probably is later. More than one
        leaf ahead saves hardly a message, as gains are mostly the largest in leaves that are new.
        """
        if n_leaves + 1 + len(known) >= len(gain):  # the last division asks for no histogram
            return []
        able = [leaf for leaf in range(n_leaves) if cut[leaf, 0] != NO_SPLIT and leaf not in known]
        if not able:
            return []
        leaf = max(able, key=lambda leaf: gain[leaf])
        left = scale.count(cut[leaf, 3])
        right = scale.count(totals[leaf]) - left
        least, deepest = 2 * self._params.min_docs, self._params.max_depth
        if max(left, right) < least or 0 < deepest <= depth[leaf] + 1:
            return []
        return [HistogramRequest(leaf, _cut(cut[leaf]), bool(left <= right))]


def _cut(found: np.ndarray) -> SplitPoint:
    """The cut in a row of integers that begins with it."""
    column, split_bin, missing_left = found[:3].tolist()
    return SplitPoint(column, split_bin, missing_left == 1)
