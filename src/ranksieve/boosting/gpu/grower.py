"""`GpuGrower`: the trees of `Grower`, grown on a GPU from gradients that are there."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting import fixed_point
from ranksieve.boosting.collapse import GrownTree, collapse
from ranksieve.boosting.fixed_point import Scale, Scales, SumLimits, fits_one_integer
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.cuda import tree_tables as places
from ranksieve.cuda.growth import Growth, SearchedNodes, TreeSpace
from ranksieve.cuda.tree_tables import EXPONENTS, MOST_LEAVES, NOISE
from ranksieve.data.binned import Binned
from ranksieve.errors import DeviceError, ParameterError, param
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.growing import new_state
from ranksieve.kernels.searched_tree import grow_searched
from ranksieve.params import Params


class GpuGrower(Grower):
    """Best-first trees on histograms; the same trees as `Grower` for the same gradients."""

    def __init__(self, data: Binned, params: Params, *, threads: int = 1) -> None:
        super().__init__(data, params, threads=1)
        self._data, self._threads = data, threads
        self._separate_hess = False  # whether second derivatives have a histogram of their own, see `Scale.packed`
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
        """Allocate nothing: histograms are on the device."""

    def grow(self, target: TreeSpace | TreeTarget, rng: np.random.Generator) -> tuple[Tree, None]:
        """A tree fitted to the gradients of a `TreeSpace`; a tree for gradients on the host is grown on the CPU."""
        if isinstance(target, TreeTarget):
            return Grower(self._data, self._params, threads=self._threads).grow(target, rng)[0], None
        allowed = np.zeros(self._growth.n_columns, np.bool_)
        allowed[self._columns] = self._choose_columns(rng).allowed[: len(self._columns)]
        key = self._draw_key(rng)
        nodes = self._run(target, allowed, key)
        if self._with_hess and (nodes.numbers[NOISE] > fixed_point.MOST_NOISE) != self._separate_hess:
            self._separate_hess = not self._separate_hess  # as `Scale.packed` decides; it seldom changes between trees
            nodes = self._run(target, allowed, key)
        scales = self._scales_of(nodes, target.n_rows, key)
        grown, sums = self._grown(nodes, self._rules(scales.split))
        sums[0] = (sums[0] << scales.exact.count_bits) + (grown.bounds[:, 1] - grown.bounds[:, 0])
        if self._params.collapse > 0:
            grown, sums = _collapsed(grown, sums, self._params.collapse)
        return self._tree(scales, grown, sums), None

    def _run(self, space: TreeSpace, allowed: np.ndarray, key: int) -> SearchedNodes:
        """The nodes of a tree, from one histogram of packed sums or from two histograms."""
        limits, p = SumLimits.of(space.n_rows), self._params
        is_packed = self._with_hess and not self._separate_hess
        numbers = {
            places.COUNT_BITS: limits.count_bits,
            places.HESS_BITS: limits.hess_bits if is_packed else 0,
            places.MIN_DOCS: p.min_docs,
            places.NEWTON: self._newton,
            places.MAX_DEPTH: p.max_depth,
            places.KEY: key,
            places.N_ROWS: space.n_rows,
            places.N_SIGNS: self._growth.n_signs,
            places.EXACT_ROOM: limits.exact,
            places.GRAD_ROOM: limits.grad,
            places.HESS_ROOM: limits.hess,
            places.WITH_HESS: self._with_hess,
        }
        return self._growth.run(space, allowed, numbers, {places.MIN_HESS: p.min_hessian, places.L2: p.l2})

    def _scales_of(self, nodes: SearchedNodes, n_rows: int, key: int) -> Scales:
        """The scales that the GPU has computed; the same as those of `Scales.of`."""
        grad, hess, exact_grad, exact_hess = nodes.numbers[EXPONENTS : EXPONENTS + 4].tolist()
        limits = SumLimits.of(n_rows)
        exact = Scale(limits.count_bits, exact_grad, exact_hess)
        if not self._with_hess or self._separate_hess:
            return Scales(exact, exact, 1 + self._separate_hess, key)
        return Scales(exact, Scale(limits.count_bits, grad, hess, limits.hess_bits), 1, key)

    def _grown(self, nodes: SearchedNodes, rules: SplitRules) -> tuple[GrownTree, np.ndarray]:
        """The tree that `next_split` builds from nodes searched on the device, and the exact sums of its leaves."""
        splits, gains, limits, leaves = grow_searched(
            nodes.found, nodes.cuts, nodes.children, (nodes.totals[0], nodes.hess_totals[0]), self._all_signs, rules,
            nodes.sums, new_state(self._most_leaves()),
        )  # fmt: skip
        if not len(leaves):
            raise DeviceError("a node that the tree splits was not searched on the GPU; please report this bug")
        splits[:, 0] = self._places[splits[:, 0]]
        sums = nodes.sums[leaves].T.copy()
        return GrownTree(splits, gains, nodes.bounds[leaves, :2], sums[0], limits), sums


def _collapsed(grown: GrownTree, sums: np.ndarray, tolerance: float) -> tuple[GrownTree, np.ndarray]:
    """The tree, and the exact sums of its leaves, after its deepest leaves are merged."""
    merged = collapse(grown, tolerance)
    owner = np.searchsorted(np.sort(merged.bounds[:, 0]), grown.bounds[:, 0], side="right") - 1
    owner = np.argsort(merged.bounds[:, 0], kind="stable")[owner]
    out = np.zeros((2, len(merged.bounds)), np.int64)
    for row, values in zip(out, sums, strict=True):
        np.add.at(row, owner, values)
    return merged, out
