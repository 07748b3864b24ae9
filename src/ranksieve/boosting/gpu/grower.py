"""`GpuGrower`: the trees of `Grower`, grown on a GPU from gradients that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.boosting.collapse import Grown, collapse
from ranksieve.boosting.fixed_point import Extent, Scales, factors_of, fits_one_integer
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.tree import Tree
from ranksieve.cuda.growth import MOST_LEAVES, Growth, TreeSettings, TreeSpace
from ranksieve.cuda.growth import Grown as DeviceGrown
from ranksieve.data.binned import Binned
from ranksieve.errors import DeviceError, ParameterError, param
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
        places = np.zeros(n_columns, np.int64)
        places[self._columns] = np.arange(len(self._columns))
        signs = np.zeros(n_columns if len(self._signs) else 0, np.int8)
        if len(self._signs):
            signs[self._columns] = self._signs[: len(self._columns)]
        self._growth = Growth(data.binning.n_bins.astype(np.int64), places, signs, self._most_leaves())

    def _take_bins(self, data: Binned) -> np.ndarray:
        return data.bins  # no column is left out on the device

    def _allocate_histograms(self, n_planes: int) -> None:
        """They are on the device."""

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, None]:
        """A tree fitted to the gradients of a `TreeSpace`."""
        allowed = np.zeros(self._growth.n_columns, np.bool_)
        allowed[self._columns] = self._choose_columns(rng).allowed[: len(self._columns)]
        scales = self._scales(*self._extent(target), self._draw_key(rng))
        grown = self._growth.run(target, allowed, self._settings(target, scales))
        sums = grown.sums.T.copy()
        counts = grown.bounds[:, 1] - grown.bounds[:, 0]
        sums[0] = (sums[0] << scales.exact.count_bits) + counts
        host, sums = self._collapsed(grown, sums)
        return self._tree(scales, host, sums), None

    def _collapsed(self, grown: DeviceGrown, sums: np.ndarray) -> tuple[Grown, np.ndarray]:
        """The tree, and the exact sums of its leaves, after its deepest leaves are merged where that is asked for."""
        bounds = grown.bounds[:, :2]
        host = Grown(grown.splits, grown.gains, bounds, np.zeros(len(bounds), np.int64), grown.limits)
        if not self._params.collapse > 0:
            return host, sums
        merged = collapse(host, self._params.collapse)
        owner = np.searchsorted(np.sort(merged.bounds[:, 0]), bounds[:, 0], side="right") - 1
        owner = np.argsort(merged.bounds[:, 0], kind="stable")[owner]
        out = np.zeros((2, len(merged.bounds)), np.int64)
        for row, values in zip(out, sums, strict=True):
            np.add.at(row, owner, values)
        return merged, out

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
