"""Growing a tree on histograms that are summed elsewhere: on the workers of a cluster, or over blocks of a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.boosting.collapse import GrownTree
from ranksieve.boosting.fixed_point import Extent, Scales, Sums
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.category_splits import SET, fill_goes_left
from ranksieve.kernels.gain import SplitRules, count_of
from ranksieve.kernels.histograms import LANES, Columns
from ranksieve.kernels.splitting import NO_SPLIT


@dataclass(frozen=True)
class SplitPoint:
    """The test that splits a leaf."""

    column: int
    split_bin: int
    missing_left: bool
    words: tuple[int, ...] = (0, 0, 0, 0)  # words of the set, if it splits by categories

    @cached_property
    def goes_left(self) -> np.ndarray:
        """Whether each bin goes left."""
        table = np.empty(256, np.bool_)
        fill_goes_left(self.split_bin, self.missing_left, np.array(self.words, np.int64), table)
        return table


@dataclass(frozen=True)
class LeafSplit:
    """Leaf `leaf` is split; its right side becomes leaf `new`."""

    leaf: int
    new: int
    cut: SplitPoint


@dataclass(frozen=True)
class HistogramRequest:
    """The histogram of a leaf; with `cut`, that of one side of a leaf that will probably be split there."""

    leaf: int
    cut: SplitPoint | None = None
    left: bool = False


@dataclass(frozen=True)
class RootHistogram:
    """Fixed-point sums of the training rows, and their histogram: the existing bins, one after the other."""

    total: int
    hess_total: int
    bins: np.ndarray


class ExternalGrower(Grower):
    """Grows a tree whose rows are elsewhere; `_call` runs a function there."""

    n_prefetched = 1  # leaves whose sides are requested together with what is needed

    @abstractmethod
    def _call(self, request: str, *arguments: Any) -> list[Any]:
        """The answers to "sums", "root", "split" and "finish", one of each part of the rows; see `LeafSums`."""

    def _allocate_histograms(self, n_planes: int) -> None:
        super()._allocate_histograms(n_planes)
        self._existing = existing_bins(self._n_bins, n_planes)
        self._hist.fill(0)  # only existing bins are sent

    def _grow_on_sums(self, extent: Extent, columns: Columns, key: int) -> Tree:
        """Like `kernels.growing.grow_tree`, where the rows are elsewhere."""
        call = self._call
        scales = self._scales(extent, Sums.joined(call("sums", extent)), key)
        self._prepare_histograms(scales.n_planes)
        rules, state = self._rules(scales.split), kernels.new_state(len(self._hist))
        roots = call("root", scales)
        histogram = np.sum([root.bins for root in roots], axis=0)
        kernels.start_tree(state, rules, sum(root.total for root in roots), sum(root.hess_total for root in roots))
        leaf = -1
        unsent: list[LeafSplit] = []
        prefetched: dict[int, np.ndarray] = {}  # histograms of the smaller sides that leaves will have
        while True:
            if state.searched.any():
                if leaf in prefetched:
                    histogram = prefetched.pop(leaf)
                elif leaf >= 0:
                    requests = [HistogramRequest(int(state.pair[0])), *self._likely_next(state, rules, prefetched)]
                    histogram, *others = np.sum(call("split", unsent, requests), axis=0)
                    unsent = []
                    prefetched.update(zip((request.leaf for request in requests[1:]), others, strict=True))
                self._hist[state.slots[state.pair[0]]].reshape(-1)[self._existing] = histogram
                kernels.search_sums(state, columns, rules, self._hist)
            leaf = kernels.next_split(state, columns, rules)
            if leaf < 0:
                break
            new = int(state.n_leaves[0]) - 1
            unsent.append(LeafSplit(leaf, new, _cut(state.splits[new - 1], 1 + SET)))
        return self._finish(scales, state, np.sum(call("finish", unsent), axis=0))

    def _finish(self, scales: Scales, state: kernels.GrowState, leaf_sums: np.ndarray) -> Tree:
        """The tree of the splits and the leaves' exact sums."""
        nowhere = np.empty((0, 2), np.int64)  # the rows are elsewhere
        return self._tree(scales, GrownTree.of(state, nowhere), leaf_sums)

    def _likely_next(
        self, state: kernels.GrowState, rules: SplitRules, known: Collection[int]
    ) -> list[HistogramRequest]:
        """Requests for the leaves with the largest gains, unless their sides need no search or are known.

        They are split next, or probably later if a side of the present leaf has a larger gain.
        """
        n_leaves = int(state.n_leaves[0])
        left_over = len(state.gains) - 1 - n_leaves - len(known)  # the last split needs no histogram
        able = [leaf for leaf in range(n_leaves) if state.cuts[leaf, 0] != NO_SPLIT and leaf not in known]
        able.sort(key=lambda leaf: -state.gains[leaf])
        found = (self._request(state, rules, leaf) for leaf in able[: max(min(self.n_prefetched, left_over), 0)])
        return [request for request in found if request is not None]

    def _request(self, state: kernels.GrowState, rules: SplitRules, leaf: int) -> HistogramRequest | None:
        """A request for the smaller side that a leaf will have; None where neither side can be split."""
        left = count_of(state.cuts[leaf, 3], rules)
        right = count_of(state.totals[leaf], rules) - left
        if not kernels.may_split(max(left, right), state.depths[leaf] + 1, rules):
            return None
        return HistogramRequest(leaf, _cut(state.cuts[leaf], SET), bool(left <= right))


def _cut(found: np.ndarray, words: int) -> SplitPoint:
    """The split in the first integers of a row; the words of its set begin at `words`."""
    column, split_bin, missing_left = found[:3].tolist()
    return SplitPoint(column, split_bin, missing_left == 1, tuple(found[words:].tolist()))


def existing_bins(n_bins: np.ndarray, planes: int) -> np.ndarray:
    """The places of existing bins, and of the one for missing values, in a leaf's flat histogram."""
    columns = n_bins.reshape(-1, 1, 1, LANES)
    bins = np.arange(256)[:, None]
    live = (bins < columns) | (bins == MISSING_BIN)
    return np.flatnonzero(np.broadcast_to(live, (len(columns), planes, 256, LANES)))
