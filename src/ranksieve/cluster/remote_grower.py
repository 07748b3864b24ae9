"""The coordinator's part of growing a tree: it adds the workers' histograms and chooses the splits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ranksieve.boosting.collapse import Grown
from ranksieve.boosting.fixed_point import Extent, FixedPoint, Scale
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.leaf_sums import live_places
from ranksieve.cluster.messages import HistogramRequest, LeafSplit, SplitPoint
from ranksieve.cluster.worker_pool import Restart, WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.histograms import Columns, TreeRows
from ranksieve.kernels.splitting import NO_SPLIT
from ranksieve.params import Params


class RemoteGrower(Grower):
    """Grows a tree on rows that the workers have sent, or on sums of their histograms."""

    def __init__(self, data: Binned, params: Params, pool: WorkerPool, *, threads: int, n_docs: int) -> None:
        self._n_docs = n_docs
        super().__init__(data, params, threads=threads)
        self._pool = pool
        self._live = live_places(self._n_bins, self._planes)
        self._hist.fill(0)  # only existing bins are sent

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, self._n_docs // self._params.min_docs))

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, None]:
        """The tree of one machine, fitted to a `RemoteTarget`."""
        if target.bins is not None:
            return super().grow(target, rng)[0], None
        columns = self._choose_columns(rng)
        while True:
            try:
                return self._grow_on_sums(target.extent, columns), None
            except Restart:
                continue

    def _place(self, target: Any, fixed: FixedPoint) -> tuple[TreeRows, np.ndarray]:
        return self._all_of(target.bins, fixed)

    def _grow_on_sums(self, extent: Extent, columns: Columns) -> Tree:
        """Like `kernels.growing.grow_tree`, where the rows are the workers'."""
        call = self._pool.call_or_restart
        scale = Scale.of(extent, sum(call("absolute", extent)))
        rules, state = self._rules(scale), kernels.new_state(len(self._hist))
        roots = call("root", scale)
        histogram = np.sum([root.bins for root in roots], axis=0)
        kernels.start_tree(state, rules, sum(root.total for root in roots), sum(root.hess_total for root in roots))
        leaf = -1
        unsent: list[LeafSplit] = []
        ahead: dict[int, np.ndarray] = {}  # histograms of the smaller sides that leaves will have
        while True:
            if state.searched.any():
                if leaf in ahead:
                    histogram = ahead.pop(leaf)
                elif leaf >= 0:
                    requests = [HistogramRequest(int(state.pair[0])), *self._likely_next(state, scale, ahead)]
                    histogram, *others = np.sum(call("split", unsent, requests), axis=0)
                    unsent = []
                    ahead.update(zip((request.leaf for request in requests[1:]), others, strict=True))
                self._hist[state.slots[state.pair[0]]].reshape(-1)[self._live] = histogram
                kernels.search_sums(state, columns, rules, self._hist)
            leaf = kernels.next_split(state, columns, rules)
            if leaf < 0:
                break
            new = int(state.n_leaves[0]) - 1
            unsent.append(LeafSplit(leaf, new, _cut(state.splits[new - 1])))
        weights = np.sum(call("finish", unsent), axis=0)
        nowhere = np.empty((0, 2), np.int64)  # the workers have the rows
        return self._tree(scale, Grown.of(state, nowhere), weights)

    def _likely_next(self, state: kernels.GrowState, scale: Scale, known: Collection[int]) -> list[HistogramRequest]:
        """A request for the leaf with the largest gain, unless its sides need no search or are known.

        It is split next, or probably later if a side of the present leaf has a larger gain. Requests for more than one
        leaf save hardly any message, because new leaves mostly have the largest gains.
        """
        n_leaves = int(state.n_leaves[0])
        if n_leaves + 1 + len(known) >= len(state.gains):  # the last split needs no histogram
            return []
        able = [leaf for leaf in range(n_leaves) if state.cuts[leaf, 0] != NO_SPLIT and leaf not in known]
        if not able:
            return []
        leaf = max(able, key=lambda leaf: state.gains[leaf])
        left = scale.count(state.cuts[leaf, 3])
        right = scale.count(state.totals[leaf]) - left
        least, deepest = 2 * self._params.min_docs, self._params.max_depth
        if max(left, right) < least or 0 < deepest <= state.depths[leaf] + 1:
            return []
        return [HistogramRequest(leaf, _cut(state.cuts[leaf]), bool(left <= right))]


def _cut(found: np.ndarray) -> SplitPoint:
    """The split in the first integers of a row."""
    column, split_bin, missing_left = found[:3].tolist()
    return SplitPoint(column, split_bin, missing_left == 1)
