"""Growing one tree on the rows that it is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.boosting.collapse import GrownTree, collapse
from ranksieve.boosting.fixed_point import Extent, FixedPoint, Scale, Scales, Sums, to_fixed_point
from ranksieve.boosting.tree import NO_SETS, Tree, to_sets
from ranksieve.data.binned import Binned
from ranksieve.data.features import choose_features, monotone_signs
from ranksieve.dtypes import FIXED, ROW
from ranksieve.errors import ParameterError, param
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.category_splits import A_SET, SET
from ranksieve.kernels.copy_bytes import take_rows
from ranksieve.kernels.gain import SMALLEST_WEIGHT, SplitRules
from ranksieve.kernels.histograms import BY_BIN, BY_SET, LANES, Columns, TreeRows, sum_sparse_rows
from ranksieve.kernels.leaf_values import add_leaf_values, sum_leaves
from ranksieve.kernels.rounding import MANY_ROWS
from ranksieve.params import Params

if TYPE_CHECKING:
    from ranksieve.boosting.training_rows import TreeTarget

GATHER_SHARE = 0.25  # up to this share of the rows, a compact copy of them is faster than working in place
COPIED_ROWS = 65_536  # at a time, where only some columns are taken
PART_ROWS = 1 << 18  # rows of data whose bins are in a file that are worked on at a time


@dataclass(frozen=True)
class Leaves:
    """Which training rows ended in which leaf: leaf l holds `rows[bounds[l, 0]:bounds[l, 1]]`."""

    rows: np.ndarray
    bounds: np.ndarray

    def add_to(self, scores: np.ndarray, leaf_values: np.ndarray) -> None:
        """Add each leaf's value to the scores of its rows."""
        add_leaf_values(self.rows, self.bounds, leaf_values, scores)


@dataclass(frozen=True)
class LeafNumbers:
    """The leaf number of every row of the training set."""

    numbers: np.ndarray

    def add_to(self, scores: np.ndarray, leaf_values: np.ndarray) -> None:
        """Add each leaf's value to the scores of its rows."""
        for start in range(0, len(scores), PART_ROWS):
            part = slice(start, start + PART_ROWS)
            scores[part] += leaf_values[self.numbers[part]]


KnownLeaves = Leaves | LeafNumbers


class Grower:
    """Best-first trees on histograms; holds the work space that all trees share, a histogram for each leaf."""

    def __init__(self, data: Binned, params: Params, *, threads: int) -> None:
        self._columns = np.flatnonzero(
            np.isin(data.binning.features, choose_features(params.features, data.feature_names))
        )
        self._bins = self._take_bins(data)
        width = -(-len(self._columns) // LANES) * LANES
        self._params = params
        self._newton = params.newton_gain
        signs = monotone_signs(params.monotone, data.feature_names)
        self._signs = np.zeros(0 if signs is None else width, np.int8)
        if signs is not None:
            self._signs[: len(self._columns)] = signs[data.binning.features[self._columns]]
        self._with_hess = self._newton or params.min_hessian > 0 or signs is not None
        self._n_bins = np.ones(width, np.int64)
        self._n_bins[: len(self._columns)] = data.binning.n_bins[self._columns]
        self._kinds = np.zeros(width, np.int8)
        self._kinds[: len(self._columns)] = np.where(data.binning.categorical[self._columns], BY_SET, BY_BIN)
        if len(self._signs) and (self._signs[self._kinds == BY_SET] != 0).any():
            first = self._columns[np.argmax((self._kinds == BY_SET) & (self._signs != 0))]
            name = data.feature_names[data.binning.features[first]]
            raise ParameterError(param("monotone"), f" names {name!r}, which is categorical; its values have no order")
        self._borders = _borders(self._n_bins, threads)
        self._bin_counts: np.ndarray | None = None
        self._allocate_histograms(1)

    def _take_bins(self, data: Binned) -> np.ndarray:
        """The bins of the columns that trees may split on."""
        return only_columns(data.bins, self._columns, data.binning.n_features)

    def _allocate_histograms(self, n_planes: int) -> None:
        """The histograms of a tree; kept from tree to tree."""
        self._hist = np.empty((self._most_leaves(), len(self._n_bins) // LANES, n_planes, 256, LANES), FIXED)
        self._spare = np.empty((len(self._borders) - 2, *self._hist.shape[1:]), FIXED)
        blocks = len(self._borders) - 1, kernels.BLOCK // LANES, *self._hist.shape[2:]
        self._leaf_blocks = np.empty(blocks, FIXED)

    def grow(self, target: TreeTarget, rng: np.random.Generator) -> tuple[Tree, KnownLeaves | None]:
        """A tree fitted to the gradients of some rows (None: all), and the leaves of these rows."""
        columns = self._choose_columns(rng)
        extent = Extent.of(target.grad, target.hess)
        scales = self._scales(extent, self._sums(extent, target), self._draw_key(rng))
        self._prepare_histograms(scales.n_planes)
        tree_rows = self._tree_rows(target, scales)
        grown = self._split(tree_rows, columns, self._rules(scales.split))
        grown = collapse(grown, self._params.collapse) if self._params.collapse > 0 else grown
        leaves = self._leaves(target, tree_rows, grown.bounds)
        return self._tree(scales, grown, self._leaf_sums(target, tree_rows, grown.bounds, scales.exact)), leaves

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, len(self._bins) // self._params.min_docs))

    def _sums(self, extent: Extent, target: TreeTarget) -> Sums:
        """The sums that the scales follow from; of second derivatives only where splits depend on them."""
        return extent.sums(target.grad, target.hess if self._with_hess else target.hess[:0])

    def _draw_key(self, rng: np.random.Generator) -> int:
        """The key of a tree's random rounding."""
        return int(rng.integers(1 << 63)) if self._with_hess else 0

    def _scales(self, extent: Extent, sums: Sums, key: int) -> Scales:
        return Scales.of(extent, sums, with_hess=self._with_hess, key=key)

    def _prepare_histograms(self, n_planes: int) -> None:
        """Histograms with so many planes."""
        if self._hist.shape[2] != n_planes:
            self._allocate_histograms(n_planes)

    def _split(self, rows: TreeRows, columns: Columns, rules: SplitRules) -> GrownTree:
        """The splits and leaves of a tree; sums, gains and limits are on the scale of the rules."""
        state = kernels.new_state(len(self._hist))
        bounds = np.zeros((len(self._hist), 2), np.int64)
        is_sparse = self._is_sparse(rows, rules)
        if is_sparse:
            sum_sparse_rows(rows, columns, self._counts(rows, columns), self._hist[0], self._spare)
        kernels.grow_tree(
            rows,
            columns,
            rules,
            kernels.Histograms(self._hist, self._spare, self._leaf_blocks),
            bounds,
            state,
            is_sparse,
        )
        return GrownTree.of(state, bounds)

    def _is_sparse(self, rows: TreeRows, rules: SplitRules) -> bool:
        """Whether these are all rows, and the derivatives of most of them round to 0."""
        if rules.hess_bits == 0 or rows.bins is not self._bins or len(rows.members) < max(len(rows.bins), MANY_ROWS):
            return False
        return bool(np.count_nonzero(rows.packed != 1) <= len(rows.packed) // 2)

    def _counts(self, rows: TreeRows, columns: Columns) -> np.ndarray:
        """How many of all rows there are in each bin: the same for all trees."""
        if self._bin_counts is None:
            twos = rows._replace(packed=np.full(len(rows.packed), 2, FIXED))  # 1 more than a row that is not summed
            nothing = np.zeros_like(self._hist[0])
            sum_sparse_rows(twos, columns, nothing, self._hist[0], self._spare)
            self._bin_counts = self._hist[0].copy()
        return self._bin_counts

    def _rules(self, scale: Scale) -> SplitRules:
        p = self._params  # values get the types that kernels are compiled for
        return SplitRules(
            count_bits=scale.count_bits,
            hess_bits=scale.hess_bits,
            hess_unit=2.0**-scale.hess_exponent,
            min_docs=int(p.min_docs),
            min_hess=float(p.min_hessian),
            l2=float(p.l2),
            newton=bool(self._newton),
            max_depth=int(p.max_depth),
        )

    def _tree(self, scales: Scales, grown: GrownTree, leaf_sums: np.ndarray) -> Tree:
        """The tree of the splits, its leaves' values from their exact sums and within their limits."""
        scale, (totals, hess_totals) = scales.exact, leaf_sums
        splits = grown.splits[:, :5].astype(np.int32)
        splits[:, 0] = self._columns[splits[:, 0]]
        by_set, sets = splits[:, 1] == A_SET, NO_SETS
        if by_set.any():
            splits[by_set, 1] = ~np.arange(by_set.sum())
            sets = to_sets(grown.splits[by_set, 1 + SET :])
        values = self._values(scale, totals, hess_totals, self._set_l2(grown.splits, len(totals)))
        if len(self._signs):
            values = np.clip(values, *np.ldexp(grown.limits, -scales.split.grad_exponent).T)
        return Tree(
            splits=splits,
            gains=np.ldexp(grown.gains, -2 * scales.split.grad_exponent),
            counts=grown.splits[:, 5].copy(),
            leaf_values=values,
            leaf_counts=scale.count(totals),
            leaf_weights=scale.hess_sum(hess_totals),
            sets=sets,
        )

    def _set_l2(self, splits: np.ndarray, n_leaves: int) -> np.ndarray:
        """What is added to `l2` for each leaf: `cat_l2` for the two of a split by a set of several categories."""
        several = (splits[:, 1] == A_SET) & (self._n_bins[splits[:, 0]] > self._params.max_cat_to_onehot)
        children = splits[several, 3:5]
        added = np.zeros(n_leaves)
        added[~children[children < 0]] = self._params.cat_l2
        return added

    def _values(
        self, scale: Scale, totals: np.ndarray, hess_totals: np.ndarray, added_l2: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """The values of nodes with these sums."""
        used = scale.hess_sum(hess_totals) + self._params.l2 + added_l2
        return np.divide(scale.grad_sum(totals), used, out=np.zeros(len(totals)), where=used > SMALLEST_WEIGHT)

    def _tree_rows(self, target: TreeTarget, scales: Scales) -> TreeRows:
        """The rows for the kernels, where few of all in a copy."""
        bins, rows = self._bins, target.rows
        fixed = to_fixed_point(target.grad, target.hess, scales, rows, target.first_row)
        if rows is None:
            return self._all_of(bins, fixed)
        if len(rows) <= GATHER_SHARE * len(bins):
            return self._all_of(take_rows(bins, rows), fixed)
        members = rows.astype(ROW)
        packed, hess = (_by_row(values, target, len(bins)) for values in (fixed.packed, fixed.hess))
        return TreeRows(bins, members, np.empty_like(members), packed, hess)

    def _all_of(self, bins: np.ndarray, fixed: FixedPoint) -> TreeRows:
        """All rows of a matrix of bins."""
        members = np.arange(len(bins), dtype=ROW)
        return TreeRows(bins, members, np.empty_like(members), fixed.packed, fixed.hess)

    def _leaves(self, target: TreeTarget, tree_rows: TreeRows, bounds: np.ndarray) -> Leaves | None:
        """The training rows of each leaf."""
        rows = tree_rows.members
        if target.rows is not None and len(tree_rows.bins) == len(target.rows):  # a copy of these rows alone
            rows = target.rows[rows]
        return Leaves(rows, bounds)

    def _leaf_sums(self, target: TreeTarget, rows: TreeRows, bounds: np.ndarray, scale: Scale) -> np.ndarray:
        """The exact sums of each leaf: gradients with counts, and second derivatives."""
        grad, hess = (_by_row(values, target, len(rows.bins)) for values in (target.grad, target.hess))
        sums = sum_leaves(rows.members, bounds, grad, hess, scale.factors)
        sums[0] = (sums[0] << scale.count_bits) + (bounds[:, 1] - bounds[:, 0])
        return sums

    def _choose_columns(self, rng: np.random.Generator) -> Columns:
        """The columns that a tree may split on."""
        n_features = len(self._columns)
        fraction = self._params.feature_fraction
        if fraction == 1.0:
            return self._columns_of(self._kinds)
        allowed = np.zeros(len(self._n_bins), np.int8)
        chosen = rng.choice(n_features, max(1, round(fraction * n_features)), replace=False)
        allowed[chosen] = self._kinds[chosen]
        return self._columns_of(allowed)

    def _columns_of(self, allowed: np.ndarray) -> Columns:
        p = self._params
        return Columns(
            self._n_bins, allowed, self._signs, self._borders, smooth=float(p.cat_smooth), set_l2=float(p.cat_l2),
            most=int(p.max_cat_threshold), one_hot=int(p.max_cat_to_onehot), group=int(p.min_docs_per_group),
        )  # fmt: skip


def _by_row(values: np.ndarray, target: TreeTarget, n_rows: int) -> np.ndarray:
    """Values of training rows as an array over all rows, 0 for the others; unchanged if all rows are training rows."""
    if len(values) in (0, n_rows):
        return values
    out = np.zeros(n_rows, values.dtype)
    out[target.rows] = values
    return out


def only_columns(bins: np.ndarray, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """The bins of some columns, padded with zeros to whole lanes; the bins themselves where all are wanted."""
    if len(columns) == n_columns:
        return bins
    out = np.zeros((len(bins), -(-len(columns) // LANES) * LANES), bins.dtype)
    for start in range(0, len(bins), COPIED_ROWS):
        out[start : start + COPIED_ROWS, : len(columns)] = bins[start : start + COPIED_ROWS, columns]
    return out


def _borders(n_bins: np.ndarray, threads: int) -> np.ndarray:
    """Where each thread's columns begin and end: whole lanes, about equal work.

    The work of a lane is its bins (to zero, subtract and search) plus a constant for summing the rows of a leaf of
    medium size.
    """
    work = np.cumsum(n_bins.reshape(-1, LANES).max(axis=1) + 128)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, threads) / threads) + 1
    return LANES * np.unique(np.concatenate([[0], cuts, [len(work)]])).astype(np.int64)
