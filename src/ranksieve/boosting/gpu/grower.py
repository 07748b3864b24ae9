"""`GpuGrower`: the trees of `Grower`, grown on a GPU from gradients that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.boosting.collapse import Grown, collapse
from ranksieve.boosting.fixed_point import Extent, Scales, factors_of, fits_one_integer
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.cuda.growth import Growth, SearchedNodes, TreeSettings, TreeSpace
from ranksieve.cuda.tree_tables import MOST_LEAVES
from ranksieve.data.binned import Binned
from ranksieve.errors import DeviceError, ParameterError, param
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.searched_tree import grow_searched
from ranksieve.params import Params


class GpuGrower(Grower):
    """Best-first trees on histograms; the same trees as `Grower` for the same gradients."""

    def __init__(self, data: Binned, params: Params) -> None:
        super().__init__(data, params, threads=1)
        if params.leaves > MOST_LEAVES:
            raise ParameterError(
                param("leaves"), f" is {params.leaves}; a tree has at most {MOST_LEAVES} leaves with ",
                param("device", "cuda"),
            )  # fmt: skip
        if not fits_one_integer(data.lists.n_docs):
            raise DeviceError(f"{data.lists.n_docs:,} documents are too many for a GPU, which takes 2^28 - 1")
        n_columns = data.binning.n_features
        self._places = np.zeros(n_columns, np.int64)
        self._places[self._columns] = np.arange(len(self._columns))
        self._all_signs = np.zeros(n_columns if len(self._signs) else 0, np.int8)
        if len(self._signs):
            self._all_signs[self._columns] = self._signs[: len(self._columns)]
        n_bins = data.binning.n_bins.astype(np.int64)
        self._growth = Growth(n_bins, self._places, self._all_signs, self._most_leaves())

    def _take_bins(self, data: Binned) -> np.ndarray:
        return data.bins  # no column is left out on the device

    def _allocate_histograms(self, n_planes: int) -> None:
        """They are on the device."""

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, None]:
        """A tree fitted to the gradients of a `TreeSpace`."""
        allowed = np.zeros(self._growth.n_columns, np.bool_)
        allowed[self._columns] = self._choose_columns(rng).allowed[: len(self._columns)]
        scales = self._scales(*self._extent(target), self._draw_key(rng))
        nodes = self._growth.run(target, allowed, self._settings(target, scales))
        grown, sums = self._grown(nodes, self._rules(scales.split))
        sums[0] = (sums[0] << scales.exact.count_bits) + (grown.bounds[:, 1] - grown.bounds[:, 0])
        if self._params.collapse > 0:
            grown, sums = _collapsed(grown, sums, self._params.collapse)
        return self._tree(scales, grown, sums), None

    def _grown(self, nodes: SearchedNodes, rules: SplitRules) -> tuple[Grown, np.ndarray]:
        """The tree that `next_split` makes of nodes searched on the device, and the exact sums of its leaves."""
        splits, gains, limits, leaves = grow_searched(
            nodes.found, nodes.cuts, nodes.children, nodes.totals[0], self._all_signs, rules, self._most_leaves(),
            nodes.sums,
        )  # fmt: skip
        if not len(leaves):
            raise DeviceError("a node that the tree splits was not searched on the GPU: a bug, please report it")
        splits[:, 0] = self._places[splits[:, 0]]
        sums = nodes.sums[leaves].T.copy()
        return Grown(splits, gains, nodes.bounds[leaves, :2], sums[0], limits), sums

    def _extent(self, target: TreeSpace) -> tuple[Extent, tuple[int, int]]:
        """How large the gradients are, and the sums that the scales follow from."""
        largest, (grads, hesses) = self._growth.extent(target)
        return Extent(target.n_rows, *largest), (grads, hesses if self._with_hess else 0)

    def _settings(self, target: TreeSpace, scales: Scales) -> TreeSettings:
        """The numbers of a tree, in the order of `cuda.tree_tables`."""
        rules, split, exact = self._rules(scales.split), scales.split, scales.exact
        return TreeSettings(
            numbers=(
                rules.count_bits, rules.hess_bits, rules.min_docs, int(rules.newton), rules.max_depth, scales.key,
                target.n_rows, self._growth.n_signs,
            ),
            floats=(
                rules.hess_unit, rules.min_hess, rules.l2, *factors_of(split.grad_exponent),
                *factors_of(split.hess_exponent), *factors_of(exact.grad_exponent), *factors_of(exact.hess_exponent),
            ),
        )  # fmt: skip


def _collapsed(grown: Grown, sums: np.ndarray, tolerance: float) -> tuple[Grown, np.ndarray]:
    """The tree, and the exact sums of its leaves, after its deepest leaves are merged."""
    merged = collapse(grown, tolerance)
    owner = np.searchsorted(np.sort(merged.bounds[:, 0]), grown.bounds[:, 0], side="right") - 1
    owner = np.argsort(merged.bounds[:, 0], kind="stable")[owner]
    out = np.zeros((2, len(merged.bounds)), np.int64)
    for row, values in zip(out, sums, strict=True):
        np.add.at(row, owner, values)
    return merged, out
