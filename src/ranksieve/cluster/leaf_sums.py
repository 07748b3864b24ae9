"""A worker's part of growing a tree on sums: it moves its rows to leaves and makes the histograms of leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve.boosting.fixed_point import Extent, Scales
from ranksieve.boosting.grower import Grower, Leaves
from ranksieve.boosting.sum_grower import HistogramRequest, LeafSplit, RootHistogram, SplitPoint, live_places
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.binned import Binned
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.divide_rows import divide_rows
from ranksieve.kernels.histograms import sum_leaf
from ranksieve.params import Params


class LeafSums(Grower):
    """The rows of the leaves of one growing tree, and their histograms."""

    def __init__(self, data: Binned, params: Params, threads: int) -> None:
        super().__init__(data, params, threads=threads)
        self._all_columns = self._columns_of(np.ones(len(self._n_bins), np.int8))
        self._bounds = np.empty((0, 2), np.int64)
        self._n_leaves = 0
        self._ahead: dict[
            int, int
        ] = {}  # where the right side begins, in leaves whose rows are already ordered by their next split
        self._complete = False

    def _most_leaves(self) -> int:
        return 1  # the coordinator keeps the histograms

    def _allocate_histograms(self, n_planes: int) -> None:
        super()._allocate_histograms(n_planes)
        self._live = live_places(self._n_bins, n_planes)

    @property
    def bins(self) -> np.ndarray:
        """Bins of all documents, the columns that trees may use."""
        return self._bins

    def sums(self, extent: Extent, target: TreeTarget) -> tuple[int, int]:
        """What the rows here add to the sums that the scales follow from."""
        return self._sums(extent, target)

    def begin(self, target: TreeTarget, scales: Scales) -> RootHistogram:
        """All training rows in one leaf."""
        self._target, self._scales_now = target, scales
        self._prepare_histograms(scales.n_planes)
        self._rows = self._place(target, scales)
        self._bounds = np.zeros((self._params.leaves, 2), np.int64)
        self._bounds[0, 1] = len(self._rows.members)
        self._n_leaves, self._complete = 1, target.rows is None
        self._ahead.clear()
        total, hess_total = kernels.sum_members(self._rows, 0, len(self._rows.members))
        return RootHistogram(total, hess_total, self.of(HistogramRequest(0)))

    def divide(self, splits: Sequence[LeafSplit]) -> None:
        """Split leaves, in this order."""
        for split in splits:
            border, stop = self._border(split.leaf, split.cut), self._bounds[split.leaf, 1]
            del self._ahead[split.leaf]
            self._bounds[split.leaf, 1], self._bounds[split.new] = border, (border, stop)
            self._n_leaves = split.new + 1

    def _border(self, leaf: int, cut: SplitPoint) -> int:
        """Move the rows of a leaf's left side to its front; returns where the right side begins.

        The split of a leaf does not change until it is made, so this is done once.
        """
        if leaf not in self._ahead:
            bins, members, scratch = self._rows.bins, self._rows.members, self._rows.scratch
            start, stop = self._bounds[leaf]
            self._ahead[leaf] = divide_rows(bins, members, scratch, start, stop, cut.column, cut.goes_left)
        return self._ahead[leaf]

    def of(self, request: HistogramRequest) -> np.ndarray:
        """The histogram of a leaf or of one side of it: the existing bins, one after the other."""
        start, stop = self._bounds[request.leaf]
        if request.cut is not None:
            border = self._border(request.leaf, request.cut)
            start, stop = (start, border) if request.left else (border, stop)
        sum_leaf(self._rows, self._all_columns, start, stop, self._hist, self._spare, 0, -1)
        return self._hist.reshape(-1)[self._live]

    def leaf_sums(self) -> np.ndarray:
        """The exact sums of each leaf."""
        return self._leaf_sums(self._target, self._rows, self._bounds[: self._n_leaves], self._scales_now.exact)

    def leaves(self) -> Leaves | None:
        """The leaf of every document, if all were training rows."""
        return Leaves(self._rows.members, self._bounds[: self._n_leaves]) if self._complete else None

    def discard_leaves(self) -> None:
        """Discard the leaves: the tree has been added to the scores."""
        self._complete = False
