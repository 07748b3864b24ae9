"""Growing one tree on the rows that teach it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.boosting.fixed_point import Scale, to_fixed_point
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.dtypes import FIXED, ROW
from ranksieve.kernels import growing as kernels
from ranksieve.kernels.splitting import LANES
from ranksieve.params import Params

GATHER_SHARE = 0.25  # up to this share of the rows, a compact copy of them is faster than working in place
SMALLEST_WEIGHT = 1e-12  # a leaf with a smaller sum of second derivatives has nothing to say


@dataclass(frozen=True)
class Leaves:
    """Which rows ended in which leaf: leaf l holds `rows[bounds[l, 0]:bounds[l, 1]]`."""

    rows: np.ndarray
    bounds: np.ndarray


class Grower:
    """Best-first trees on histograms; holds the work space that all trees share."""

    def __init__(self, data: Binned, params: Params, *, threads: int) -> None:
        width = data.bins.shape[1]
        self._data = data
        self._params = params
        self._newton = params.gain == "newton"
        self._planes = 2 if self._newton or params.min_hessian > 0 else 1
        self._n_bins = np.ones(width, np.int64)
        self._n_bins[: data.binning.n_features] = data.binning.n_bins
        self._borders = _borders(self._n_bins, threads)
        most_leaves = max(1, min(params.leaves, data.lists.n_docs // params.min_docs))
        self._hist = np.empty((most_leaves, width // LANES, self._planes, 256, LANES), FIXED)
        self._spare = np.empty((len(self._borders) - 2, *self._hist.shape[1:]), FIXED)

    def grow(
        self, rows: np.ndarray | None, grad: np.ndarray, hess: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tree, Leaves | None]:
        """A tree fitted to the gradients of `rows` (None: all); also its leaves where every row took part."""
        p = self._params
        fixed = to_fixed_point(grad, hess)
        bins, packed, fixed_hess, members = self._place(rows, fixed.packed, fixed.hess)
        max_leaves = len(self._hist)
        split_ints = np.empty((max_leaves - 1, 6), np.int64)
        split_gain = np.empty(max_leaves - 1)
        bounds = np.zeros((max_leaves, 2), np.int64)
        totals = np.zeros(max_leaves, FIXED)
        n_leaves = kernels.grow_tree(
            bins, members, np.empty_like(members), packed, fixed_hess if self._planes == 2 else fixed_hess[:0],
            self._n_bins, self._allowed(rng), self._hist, self._spare, self._borders, fixed.scale.count_bits,
            2.0**-fixed.scale.hess_exponent, p.min_docs, p.min_hessian, p.l2, self._newton, p.max_depth,
            split_ints, split_gain, bounds, totals,
        )  # fmt: skip
        bounds = bounds[:n_leaves]
        hess_totals = np.empty(n_leaves, FIXED)
        kernels.sum_leaves(members, bounds, fixed_hess, hess_totals)
        tree = self._tree(fixed.scale, split_ints, split_gain, totals[:n_leaves], hess_totals)
        return tree, Leaves(members, bounds) if rows is None else None

    def _tree(
        self,
        scale: Scale,
        split_ints: np.ndarray,
        split_gain: np.ndarray,
        totals: np.ndarray,
        hess_totals: np.ndarray,
    ) -> Tree:
        """The tree of the splits, its leaves' values from their sums."""
        n_leaves = len(totals)
        weights = scale.hess_sum(hess_totals)
        used = weights + self._params.l2
        return Tree(
            splits=split_ints[: n_leaves - 1, :5].astype(np.int32),
            gains=np.ldexp(split_gain[: n_leaves - 1], -2 * scale.grad_exponent),
            counts=split_ints[: n_leaves - 1, 5].copy(),
            leaf_values=np.divide(scale.grad_sum(totals), used, out=np.zeros(n_leaves), where=used > SMALLEST_WEIGHT),
            leaf_counts=scale.count(totals),
            leaf_weights=weights,
        )

    def _place(
        self, rows: np.ndarray | None, packed: np.ndarray, hess: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where the kernel finds the rows: the bins, the gradients by row of those bins, and the rows."""
        bins = self._data.bins
        if rows is None:
            return bins, packed, hess, np.arange(len(bins), dtype=ROW)
        if len(rows) <= GATHER_SHARE * len(bins):
            return bins[rows], packed, hess, np.arange(len(rows), dtype=ROW)
        all_packed, all_hess = np.zeros(len(bins), FIXED), np.zeros(len(bins), FIXED)
        all_packed[rows], all_hess[rows] = packed, hess
        return bins, all_packed, all_hess, rows.astype(ROW)

    def _allowed(self, rng: np.random.Generator) -> np.ndarray:
        n_features = self._data.binning.n_features
        allowed = np.zeros(len(self._n_bins), np.bool_)
        fraction = self._params.feature_fraction
        if fraction < 1.0:
            allowed[rng.choice(n_features, max(1, round(fraction * n_features)), replace=False)] = True
        else:
            allowed[:n_features] = True
        return allowed


def _borders(n_bins: np.ndarray, threads: int) -> np.ndarray:
    """Where each thread's columns begin and end: whole lanes, about equal work.

    A lane's work is its bins, to zero, subtract and search, and the rows to sum, the same for all lanes; the constant
    stands for the rows of a middling leaf.
    """
    work = np.cumsum(n_bins.reshape(-1, LANES).max(axis=1) + 128)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, threads) / threads) + 1
    return LANES * np.unique(np.concatenate([[0], cuts, [len(work)]])).astype(np.int64)
