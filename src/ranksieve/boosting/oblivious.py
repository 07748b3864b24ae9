"""Oblivious trees: one test per level (Ωλ-MART)."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.collapse import GrownTree
from ranksieve.boosting.fixed_point import Scale, Scales
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.dtypes import FIXED
from ranksieve.errors import ParameterError, param
from ranksieve.kernels import oblivious as kernels
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.histograms import BY_SET, Columns, TreeRows
from ranksieve.params import Params


class ObliviousGrower(Grower):
    """Balanced trees: all nodes of a level share one test.

    As deep as `max_depth` says, or as `leaves` allow where it is 0. A leaf with fewer than `min_docs` documents has
    the value of the nearest node above it that has enough.
    """

    def __init__(self, data: Binned, params: Params, *, threads: int) -> None:
        super().__init__(data, params, threads=threads)
        if len(self._signs):
            raise ParameterError(
                param("algo", params.algo), " does not support ", param("monotone"), "; leave it out, or use "
                "lambdamart or mart",
            )  # fmt: skip
        if (self._kinds == BY_SET).any():
            raise ParameterError(
                param("algo", params.algo), " does not support categorical features; leave them out, ",
                param("features", "!NAME"), ", or use lambdamart or mart",
            )  # fmt: skip

    @property
    def depth(self) -> int:
        by_leaves = self._params.leaves.bit_length() - 1
        return min(by_leaves, self._params.max_depth or by_leaves)

    def _most_leaves(self) -> int:
        return 1 << self.depth

    def _split(self, rows: TreeRows, columns: Columns, rules: SplitRules) -> GrownTree:
        cuts = np.empty((self.depth, 3), np.int64)
        bounds, totals = np.zeros((1 << self.depth, 2), np.int64), np.zeros(1 << self.depth, FIXED)
        n_levels = kernels.grow_oblivious(rows, columns, rules, self._hist, self._spare, cuts, bounds, totals)
        n = 1 << n_levels
        limits = np.tile([-np.inf, np.inf], (n, 1))
        return GrownTree(_splits(cuts[:n_levels]), np.zeros(n - 1), bounds[:n], totals[:n], limits)

    def _tree(self, scales: Scales, grown: GrownTree, leaf_sums: np.ndarray) -> Tree:
        """The tree of the splits; small leaves have the value of the nearest large enough node above them."""
        scale, split_ints, split_gain = scales.exact, grown.splits, grown.gains
        levels = [(leaf_sums[0], leaf_sums[1])]  # the sums of every level's nodes, root first
        while len(levels[0][0]) > 1:
            levels.insert(0, (levels[0][0].reshape(-1, 2).sum(axis=1), levels[0][1].reshape(-1, 2).sum(axis=1)))
        enough = [scale.count(sums) >= self._params.min_docs for sums, _ in levels]
        values = self._values(scale, *levels[0])
        for (sums, hess_sums), fine in zip(levels[1:], enough[1:], strict=True):
            values = np.where(fine, self._values(scale, sums, hess_sums), np.repeat(values, 2))
        for level, (sums, hess_sums) in enumerate(levels[:-1]):
            first, n = (1 << level) - 1, 1 << level
            below = self._gains(scale, *levels[level + 1]).reshape(-1, 2).sum(axis=1)
            divided = enough[level + 1].reshape(-1, 2).all(axis=1)
            # a level gains as a whole; a node of it may lose
            gains = np.maximum(below - self._gains(scale, sums, hess_sums), 0.0)
            split_gain[first : first + n] = np.where(divided, gains, 0.0)
            split_ints[first : first + n, 5] = scale.count(sums)
        tree = super()._tree(scales._replace(split=scale), grown, leaf_sums)  # gains are of exact sums here
        tree.leaf_values[:] = values
        return tree

    def _gains(self, scale: Scale, totals: np.ndarray, hess_totals: np.ndarray) -> np.ndarray:
        """What nodes contribute to the gain, gradients in fixed point."""
        gains = np.empty(len(totals))
        kernels.leaf_gains(totals, hess_totals, self._rules(scale), gains)
        return gains


def _splits(cuts: np.ndarray) -> np.ndarray:
    """The full tree of the levels' tests: node i of level l is split number 2^l - 1 + i; counts are still to come."""
    rows = []
    for level, cut in enumerate(cuts):
        children = np.arange(2 << level).reshape(-1, 2)
        children = ~children if level + 1 == len(cuts) else children + (2 << level) - 1
        count = np.zeros((1 << level, 1), np.int64)
        rows.append(np.concatenate([np.tile(cut, (1 << level, 1)), children, count], axis=1))
    return np.concatenate(rows) if rows else np.empty((0, 6), np.int64)
