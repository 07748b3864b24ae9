"""The coordinator's part of growing a tree: it adds the workers' histograms and chooses the splits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ranksieve.boosting.collapse import Grown
from ranksieve.boosting.fixed_point import Extent, Scales, to_fixed_point
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.leaf_sums import live_places
from ranksieve.cluster.messages import HistogramRequest, LeafSplit, SplitPoint
from ranksieve.cluster.worker_pool import Restart, WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.gain import SplitRules, count_of
from ranksieve.kernels.histograms import Columns, TreeRows
from ranksieve.kernels.splitting import NO_SPLIT
from ranksieve.params import Params


class RemoteGrower(Grower):
    """Grows a tree on rows that the workers have sent, or on sums of their histograms."""

    def __init__(self, data: Binned, params: Params, pool: WorkerPool, *, threads: int, n_docs: int) -> None:
        self._n_docs = n_docs
        super().__init__(data, params, threads=threads)
        self._pool = pool

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, self._n_docs // self._params.min_docs))

    def _allocate_histograms(self, n_planes: int) -> None:
        super()._allocate_histograms(n_planes)
        self._live = live_places(self._n_bins, n_planes)
        self._hist.fill(0)  # only existing bins are sent

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, None]:
        """The tree of one machine, fitted to a `RemoteTarget`."""
        if target.bins is not None:
            return super().grow(target, rng)[0], None
        columns, key = self._choose_columns(rng), self._draw_key(rng)
        while True:
            try:
                return self._grow_on_sums(target.extent, columns, key), None
            except Restart:
                continue

    def _place(self, target: Any, scales: Scales) -> TreeRows:
        fixed = to_fixed_point(target.grad, target.hess, scales, target.row_numbers)
        return self._all_of(target.bins, fixed)

    def _grow_on_sums(self, extent: Extent, columns: Columns, key: int) -> Tree:
        """Like `kernels.growing.grow_tree`, where the rows are the workers'."""
        call = self._pool.call_or_restart
        grads, hesses = zip(*call("sums", extent), strict=True)
        scales = self._scales(extent, (sum(grads), sum(hesses)), key)
        self._prepare_histograms(scales.n_planes)
        rules, state = self._rules(scales.split), kernels.new_state(len(self._hist))
        roots = call("root", scales)
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
                    requests = [HistogramRequest(int(state.pair[0])), *self._likely_next(state, rules, ahead)]
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
        leaf_sums = np.sum(call("finish", unsent), axis=0)
        nowhere = np.empty((0, 2), np.int64)  # the workers have the rows
        return self._tree(scales, Grown.of(state, nowhere), leaf_sums)

    def _likely_next(
        self, state: kernels.GrowState, rules: SplitRules, known: Collection[int]
    ) -> list[HistogramRequest]:
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
        left = count_of(state.cuts[leaf, 3], rules)
        right = count_of(state.totals[leaf], rules) - left
        least, deepest = 2 * self._params.min_docs, self._params.max_depth
        if max(left, right) < least or 0 < deepest <= state.depths[leaf] + 1:
            return []
        return [HistogramRequest(leaf, _cut(state.cuts[leaf]), bool(left <= right))]


def _cut(found: np.ndarray) -> SplitPoint:
    """The split in the first integers of a row."""
    column, split_bin, missing_left = found[:3].tolist()
    return SplitPoint(column, split_bin, missing_left == 1)
