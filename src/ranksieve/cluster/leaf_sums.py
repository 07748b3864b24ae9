"""Histograms of leaves on a worker: it divides its rows between leaves, and sums their gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve.boosting.disk_grower import DiskGrower
from ranksieve.boosting.external_grower import HistogramRequest, LeafSplit, RootHistogram, SplitPoint, existing_bins
from ranksieve.boosting.fixed_point import Extent, Scales, Sums, to_fixed_point
from ranksieve.boosting.grower import Grower, LeafNumbers, Leaves, only_columns
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.binned import Binned
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.divide_rows import divide_rows
from ranksieve.kernels.histograms import TreeRows, sum_leaf
from ranksieve.params import Params


class LeafSums(Grower):
    """The rows of the leaves of one growing tree, and their histograms."""

    def __init__(self, data: Binned, params: Params, threads: int) -> None:
        super().__init__(data, params, threads=threads)
        self._all_columns = self._columns_of(np.ones(len(self._n_bins), np.int8))
        self._bounds = np.empty((0, 2), np.int64)
        self._n_leaves = 0
        self._right_starts: dict[int, int] = {}  # where the right side begins, in leaves whose rows are already divided
        self._has_all_rows = False

    def _most_leaves(self) -> int:
        return 1  # the coordinator keeps the histograms

    def _allocate_histograms(self, n_planes: int) -> None:
        super()._allocate_histograms(n_planes)
        self._existing = existing_bins(self._n_bins, n_planes)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The bins of some documents, in the columns that trees may use."""
        return self._bins[rows]

    def fits(self, n_rows: int) -> bool:
        """Whether the bins of so many rows fit into memory."""
        return True

    def of_tree(self, target: TreeTarget) -> LeafSums | FileLeafSums:
        """What holds the leaves of a tree with these gradients."""
        return self

    def sums(self, extent: Extent, target: TreeTarget) -> Sums:
        """The sums of the gradients here, from which the scales of fixed-point numbers are computed."""
        return self._sums(extent, target)

    def begin(self, target: TreeTarget, scales: Scales) -> RootHistogram:
        """All training rows in one leaf."""
        self._target, self._scales_now = target, scales
        self._prepare_histograms(scales.n_planes)
        self._rows = self._tree_rows(target, scales)
        self._bounds = np.zeros((self._params.leaves, 2), np.int64)
        self._bounds[0, 1] = len(self._rows.members)
        self._n_leaves, self._has_all_rows = 1, target.rows is None
        self._right_starts.clear()
        total, hess_total = kernels.sum_members(self._rows, 0, len(self._rows.members))
        return RootHistogram(total, hess_total, self._histogram(HistogramRequest(0)))

    def split(self, splits: Sequence[LeafSplit], requests: Sequence[HistogramRequest]) -> np.ndarray:
        """Split leaves, in this order; returns the requested histograms, one per row."""
        self._divide(splits)
        return np.stack([self._histogram(request) for request in requests])

    def finish(self, splits: Sequence[LeafSplit]) -> np.ndarray:
        """Split leaves; returns the exact sums of every leaf."""
        self._divide(splits)
        return self._leaf_sums(self._target, self._rows, self._bounds[: self._n_leaves], self._scales_now.exact)

    def _divide(self, splits: Sequence[LeafSplit]) -> None:
        for split in splits:
            border, stop = self._border(split.leaf, split.cut), self._bounds[split.leaf, 1]
            del self._right_starts[split.leaf]
            self._bounds[split.leaf, 1], self._bounds[split.new] = border, (border, stop)
            self._n_leaves = split.new + 1

    def _border(self, leaf: int, cut: SplitPoint) -> int:
        """Move the rows of a leaf's left side to its front; returns where the right side begins.

        The best split of a leaf does not change, so this is done once for each leaf.
        """
        if leaf not in self._right_starts:
            bins, members, scratch = self._rows.bins, self._rows.members, self._rows.scratch
            start, stop = self._bounds[leaf]
            self._right_starts[leaf] = divide_rows(bins, members, scratch, start, stop, cut.column, cut.goes_left)
        return self._right_starts[leaf]

    def _histogram(self, request: HistogramRequest) -> np.ndarray:
        """The histogram of a leaf or of one side of it: the existing bins, one after the other."""
        start, stop = self._bounds[request.leaf]
        if request.cut is not None:
            border = self._border(request.leaf, request.cut)
            start, stop = (start, border) if request.left else (border, stop)
        sum_leaf(self._rows, self._all_columns, start, stop, self._hist, self._spare, 0, -1)
        return self._hist.reshape(-1)[self._existing]

    def leaves(self) -> Leaves | None:
        """The leaf of every document, if all were training rows."""
        return Leaves(self._rows.members, self._bounds[: self._n_leaves]) if self._has_all_rows else None

    def discard_leaves(self) -> None:
        """Discard the leaves: the tree has been added to the scores."""
        self._has_all_rows = False


class FileLeafSums(DiskGrower):
    """Histograms of rows that do not fit into memory: the file is read for them."""

    def _most_leaves(self) -> int:
        return 1  # the coordinator keeps the histograms

    def begin(self, target: TreeTarget, scales: Scales) -> RootHistogram:
        self._prepare_histograms(scales.n_planes)
        self._start(target)
        return self._root(scales)

    def split(self, splits: Sequence[LeafSplit], requests: Sequence[HistogramRequest]) -> np.ndarray:
        return self._sum_sides(splits, requests)

    def finish(self, splits: Sequence[LeafSplit]) -> np.ndarray:
        return self._leaves_of(splits)

    def leaves(self) -> LeafNumbers | None:
        return LeafNumbers(self._numbers) if self._target.rows is None else None

    def discard_leaves(self) -> None:
        self._end()

    def _leaves_to_take(self) -> list[int]:
        """As in `DiskGrower`. The sizes of sides are known after the pass only, so a leaf is taken with both sides."""
        part_of = list(range(self._n_leaves))
        for split in self._waiting:
            part_of[split.new] = part_of[split.leaf]
        self._sizes = np.bincount(self._numbers, minlength=self._n_leaves)
        taken = {leaf for leaf in super()._leaves_to_take() if part_of[leaf] == leaf}
        return [leaf for leaf, whole in enumerate(part_of) if whole in taken]


class DiskLeafSums(LeafSums):
    """`LeafSums` for bins in a file: of a selection, which is read into memory, or of rows in the file."""

    def __init__(self, data: Binned, params: Params, threads: int) -> None:
        assert data.disk is not None
        self._disk, self._n_columns = data.disk, data.binning.n_features
        super().__init__(data, params, threads)
        self._in_file = FileLeafSums(data, params, threads=threads)

    def fits(self, n_rows: int) -> bool:
        return self._disk.fits(n_rows)

    def of_tree(self, target: TreeTarget) -> LeafSums | FileLeafSums:
        return self if target.rows is not None and self.fits(len(target.rows)) else self._in_file

    def _take_bins(self, data: Binned) -> np.ndarray:
        return data.bins  # for their number

    def take(self, rows: np.ndarray) -> np.ndarray:
        return only_columns(self._disk.take(rows), self._columns, self._n_columns)

    def _tree_rows(self, target: TreeTarget, scales: Scales) -> TreeRows:
        assert target.rows is not None
        fixed = to_fixed_point(target.grad, target.hess, scales, target.rows, target.first_row)
        return self._all_of(self.take(target.rows), fixed)
