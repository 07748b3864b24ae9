"""Growing a tree on bins in a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from ranksieve.boosting.collapse import GrownTree, collapse
from ranksieve.boosting.external_grower import ExternalGrower, HistogramRequest, LeafSplit, RootHistogram, SplitPoint
from ranksieve.boosting.fixed_point import Extent, FixedPoint, Scales, to_fixed_point
from ranksieve.boosting.grower import PART_ROWS, KnownLeaves, LeafNumbers, only_columns
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.data.bin_store import Listener
from ranksieve.data.binned import Binned
from ranksieve.dtypes import FIXED, ROW
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.histograms import TreeRows, sum_leaf
from ranksieve.kernels.leaf_values import sum_leaves
from ranksieve.params import Params


class SmallLeaves:
    """The rows of leaves that are small enough to be in memory; leaves that these are split into are there, too."""

    def __init__(self, space: np.ndarray, width: int) -> None:
        self._bins = space.reshape(-1)[: len(space) * width].reshape(len(space), width)
        self._rows = np.empty(len(space), np.int64)  # as training rows
        self._numbers = np.empty(len(space), np.uint16)  # numbers of the rows' leaves
        self._n = 0
        self._fixed: FixedPoint | None = None
        self.leaves: set[int] = set()

    @property
    def room(self) -> int:
        return len(self._rows) - self._n

    @property
    def rows(self) -> np.ndarray:
        return self._rows[: self._n]

    @property
    def numbers(self) -> np.ndarray:
        return self._numbers[: self._n]

    def add(self, rows: np.ndarray, numbers: np.ndarray, bins: np.ndarray) -> None:
        """Add rows of leaves, whose numbers are added to `leaves` when all of their rows are there."""
        end = self._n + len(rows)
        self._rows[self._n : end], self._numbers[self._n : end], self._bins[self._n : end] = rows, numbers, bins
        self._n, self._fixed = end, None

    def split(self, split: LeafSplit) -> None:
        """Split one of the leaves."""
        _move(self.numbers, self._bins, [split])
        self.leaves.add(split.new)

    def members(self, leaf: int, to_fixed: Callable[[np.ndarray], FixedPoint]) -> TreeRows:
        """The rows of one of the leaves."""
        if self._fixed is None:
            self._fixed = to_fixed(self.rows)
        members = np.flatnonzero(self.numbers == leaf).astype(ROW)
        return TreeRows(self._bins, members, members, self._fixed.packed, self._fixed.hess)


class DiskGrower(ExternalGrower):
    """The trees of `Grower`, bit for bit, for bins in a file.

    Training rows that fit into memory are taken there. Otherwise the file is read a few times for a tree. In one pass
    all leaves are split that can be, the histograms of the smaller sides are summed, and leaves that have become small
    are taken into memory; mostly it is small leaves that are split again.
    """

    def __init__(self, data: Binned, params: Params, listener: Listener | None = None, *, threads: int) -> None:
        assert data.disk is not None
        super().__init__(data, params, threads=threads)
        self._listener = listener  # None once it was noted that selections are too large
        self.n_prefetched, self._disk, self._n_columns = params.leaves, data.disk, data.binning.n_features
        self._all_columns = self._columns_of(np.ones(len(self._n_bins), np.int8))

    def _take_bins(self, data: Binned) -> np.ndarray:
        return data.bins  # for their number; columns are chosen when rows are read

    def _allocate_histograms(self, n_planes: int) -> None:
        super()._allocate_histograms(n_planes)
        self._block_sums = np.zeros((1, *self._hist.shape[1:]), FIXED)

    def grow(self, target: TreeTarget, rng: np.random.Generator) -> tuple[Tree, KnownLeaves | None]:
        """A tree fitted to the gradients of some rows (None: all); also the leaves of these rows, if known."""
        if target.rows is not None and self._disk.fits(len(target.rows)):
            return super().grow(target, rng)
        self._report_size(target)
        columns, key = self._choose_columns(rng), self._draw_key(rng)
        self._start(target)
        tree = self._grow_on_sums(Extent.of(target.grad, target.hess), columns, key)
        leaves = LeafNumbers(self._numbers) if target.rows is None else None
        self._end()
        return tree, leaves

    def _start(self, target: TreeTarget) -> None:
        """All training rows in one leaf."""
        self._target, self._numbers, self._n_leaves = target, np.zeros(len(target.grad), np.uint16), 1
        self._small = SmallLeaves(self._disk.buffer(), len(self._n_bins))
        self._waiting: list[LeafSplit] = []  # splits of leaves that are not in memory
        self._sizes: np.ndarray = np.zeros(0, np.int64)

    def _end(self) -> None:
        del self._target, self._numbers, self._small

    def _report_size(self, target: TreeTarget) -> None:
        """Say once that a selection does not fit into memory."""
        if target.rows is not None and self._listener is not None:
            self._listener.note(
                f"the {len(target.rows):,} training rows of a tree do not fit into memory, which has room for "
                f"{self._disk.room:,}; the file is read several times for each tree; more memory or a smaller "
                "selection makes this faster"
            )
            self._listener = None

    def _tree_rows(self, target: TreeTarget, scales: Scales) -> TreeRows:
        assert target.rows is not None
        fixed = to_fixed_point(target.grad, target.hess, scales, target.rows, target.first_row)
        bins = only_columns(self._disk.take(target.rows), self._columns, self._n_columns)
        return self._all_of(bins, fixed)

    def _likely_next(
        self, state: kernels.GrowState, rules: SplitRules, known: Collection[int]
    ) -> list[HistogramRequest]:
        """As in `ExternalGrower`, for leaves that are not in memory, if the file has to be read anyway."""
        self._sizes = state.totals[: state.n_leaves[0]] & ((1 << rules.count_bits) - 1)
        if not self._small.leaves.isdisjoint(state.pair.tolist()):
            return []
        return super()._likely_next(state, rules, {*known, *self._small.leaves})

    def _call(self, request: str, *arguments: Any) -> list[Any]:
        answers: dict[str, Callable[..., Any]] = {
            "sums": lambda extent: self._sums(extent, self._target), "root": self._root, "split": self._sum_sides,
            "finish": self._leaves_of,
        }  # fmt: skip
        return [answers[request](*arguments)]

    def _root(self, scales: Scales) -> RootHistogram:
        """The sums of all training rows."""
        self._scales_now = scales
        total = hess_total = 0
        for part in range(0, len(self._numbers), PART_ROWS):
            fixed = self._fixed(part, min(part + PART_ROWS, len(self._numbers)))
            total, hess_total = total + int(fixed.packed.sum()), hess_total + int(fixed.hess.sum())
        return RootHistogram(total, hess_total, self._sum_sides([], [HistogramRequest(0)])[0])

    def _fixed(self, low: int, high: int) -> FixedPoint:
        """Training rows low:high as integers."""
        target = self._target
        rows = None if target.rows is None else target.rows[low:high]
        first = target.first_row + (low if rows is None else 0)
        return to_fixed_point(target.grad[low:high], target.hess[low:high], self._scales_now, rows, first)

    def _fixed_at(self, places: np.ndarray) -> FixedPoint:
        """Some training rows as integers."""
        target = self._target
        rows = places if target.rows is None else target.rows[places]
        return to_fixed_point(target.grad[places], target.hess[places], self._scales_now, rows, target.first_row)

    def _sum_sides(self, splits: Sequence[LeafSplit], requests: Sequence[HistogramRequest]) -> np.ndarray:
        """Split leaves, and sum the histograms that are requested: in memory, or in one pass over the file."""
        for split in splits:
            if split.leaf in self._small.leaves:
                self._small.split(split)
            else:
                self._waiting.append(split)
            self._n_leaves = split.new + 1
        sums = np.zeros((len(requests), *self._hist.shape[1:]), FIXED)
        if all(request.leaf in self._small.leaves for request in requests):
            for out, request in zip(sums, requests, strict=True):
                self._add_sums(self._small.members(request.leaf, self._fixed_at), request, out)
        else:
            self._pass(requests, sums)
        return sums.reshape(len(requests), self._block_sums.size)[:, self._existing]

    def _add_sums(self, rows: TreeRows, request: HistogramRequest, out: np.ndarray) -> None:
        """Add the histogram of rows of a leaf, or of those on one side of a cut."""
        if request.cut is not None:
            rows = rows._replace(members=rows.members[_go_left(rows.bins, rows.members, request.cut) == request.left])
        if len(rows.members):
            sum_leaf(rows, self._all_columns, 0, len(rows.members), self._block_sums, self._spare, 0, -1)
            out += self._block_sums[0]

    def _pass(self, requests: Sequence[HistogramRequest], sums: np.ndarray) -> None:
        """Read the file: make the splits that wait, sum histograms, and take small leaves into memory."""
        self._numbers[self._small.rows] = self._small.numbers
        taken = self._leaves_to_take() if requests else []
        is_taken = np.isin(np.arange(self._n_leaves), taken)
        for low, high, bins in self._blocks():
            numbers = self._numbers[low:high]
            _move(numbers, bins, self._waiting)
            fixed = self._fixed(low, high) if requests else None
            for out, request in zip(sums, requests, strict=True):
                assert fixed is not None
                members = np.flatnonzero(numbers == request.leaf).astype(ROW)
                self._add_sums(TreeRows(bins, members, members, fixed.packed, fixed.hess), request, out)
            if len(taken):
                inside = np.flatnonzero(is_taken[numbers])
                self._small.add(low + inside, numbers[inside], bins[inside])
        self._waiting.clear()
        self._small.leaves.update(taken)

    def _leaves_to_take(self) -> list[int]:
        """The smallest leaves that are not in memory yet, as far as there is room."""
        others = [leaf for leaf in np.argsort(self._sizes).tolist() if leaf not in self._small.leaves]
        n_fit = int(np.searchsorted(np.cumsum(self._sizes[others]), self._small.room, side="right")) if others else 0
        return others[:n_fit]

    def _blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """The bins of training rows low:high, for all of them."""
        rows = self._target.rows
        for first, bins in self._disk.file.blocks():
            low, high = first, first + len(bins)
            if rows is not None:
                low, high = map(int, np.searchsorted(rows, np.array([low, high], rows.dtype)))  # another would be cast
                bins = bins[rows[low:high] - first]
            if low < high:
                yield low, high, only_columns(bins, self._columns, self._n_columns)

    def _leaves_of(self, splits: Sequence[LeafSplit]) -> np.ndarray:
        """Split leaves; returns the exact sums of every leaf."""
        self._sum_sides(splits, [])
        if self._waiting:
            self._pass([], np.zeros(0))
        self._numbers[self._small.rows] = self._small.numbers
        target, scale, n_leaves = self._target, self._scales_now.exact, self._n_leaves
        sums, counts = np.zeros((2, n_leaves), FIXED), np.zeros(n_leaves, FIXED)
        for low in range(0, len(self._numbers), PART_ROWS):
            part = slice(low, low + PART_ROWS)
            members = np.argsort(self._numbers[part], kind="stable").astype(ROW)
            ends = np.searchsorted(self._numbers[part][members], np.arange(n_leaves + 1))
            bounds = np.stack([ends[:-1], ends[1:]], axis=1)
            counts += np.diff(ends)
            sums += sum_leaves(members, bounds, target.grad[part], target.hess[part], scale.factors)
        sums[0] = (sums[0] << scale.count_bits) + counts
        return sums

    def _finish(self, scales: Scales, state: kernels.GrowState, leaf_sums: np.ndarray) -> Tree:
        if self._params.collapse <= 0:
            return super()._finish(scales, state, leaf_sums)
        places, order = _in_order(state)
        grown = collapse(GrownTree.of(state, np.stack([places, places + 1], axis=1)), self._params.collapse)
        merged = np.stack([leaf_sums[:, order[low:high]].sum(axis=1) for low, high in grown.bounds], axis=1)
        owner = np.empty(len(order), np.uint16)
        for leaf, (low, high) in enumerate(grown.bounds):
            owner[order[low:high]] = leaf
        self._numbers = owner[self._numbers]
        return self._tree(scales, grown, merged)


def _go_left(bins: np.ndarray, rows: np.ndarray, cut: SplitPoint) -> np.ndarray:
    return cut.goes_left[bins[rows, cut.column]]


def _move(numbers: np.ndarray, bins: np.ndarray, splits: Sequence[LeafSplit]) -> None:
    """Give rows the numbers of their leaves after some splits, in this order."""
    for split in splits:
        rows = np.flatnonzero(numbers == split.leaf)
        numbers[rows[~_go_left(bins, rows, split.cut)]] = split.new


def _in_order(state: kernels.GrowState) -> tuple[np.ndarray, np.ndarray]:
    """The place of each leaf from left to right, and the leaf at each place."""
    n_leaves = int(state.n_leaves[0])
    order, open_nodes = [], [0 if n_leaves > 1 else ~0]
    while open_nodes:
        node = open_nodes.pop()
        if node < 0:
            order.append(~node)
        else:
            open_nodes += [int(state.splits[node, 4]), int(state.splits[node, 3])]
    found = np.array(order)
    return np.argsort(found), found
