"""`GpuGrower`: the trees of `Grower`, grown on a GPU from gradients that are there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ranksieve.boosting.collapse import Grown, collapse
from ranksieve.boosting.fixed_point import MOST_NOISE, Rooms, Scale, Scales, fits_one_integer
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.cuda.growth import Growth, SearchedNodes
from ranksieve.cuda.tree_tables import EXPONENTS, MOST_LEAVES, NOISE
from ranksieve.data.binned import Binned
from ranksieve.errors import DeviceError, ParameterError, RanksieveWarning, param
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.searched_tree import grow_searched
from ranksieve.params import Params


class GpuGrower(Grower):
    """Best-first trees on histograms; the same trees as `Grower` for the same gradients.

    There is one histogram. Where rounding is too noisy for that, see `Scale.packed`, `Grower` has two; here a warning
    says so once.
    """

    def __init__(self, data: Binned, params: Params, *, threads: int = 1) -> None:
        super().__init__(data, params, threads=1)
        self._data, self._threads = data, threads
        self._warned = False
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
        """A tree fitted to the gradients of a `TreeSpace`; or, if they are on the host, a tree that is grown there."""
        if isinstance(target, TreeTarget):
            return Grower(self._data, self._params, threads=self._threads).grow(target, rng)[0], None
        allowed = np.zeros(self._growth.n_columns, np.bool_)
        allowed[self._columns] = self._choose_columns(rng).allowed[: len(self._columns)]
        rooms, key, p = Rooms.of(target.n_rows), self._draw_key(rng), self._params
        hess_bits = rooms.hess_bits if self._with_hess else 0
        nodes = self._growth.run(
            target, allowed,
            (rooms.count_bits, hess_bits, p.min_docs, self._newton, p.max_depth, key, target.n_rows,
             self._growth.n_signs, rooms.exact, rooms.grad if hess_bits else rooms.exact, rooms.hess),
            (p.min_hessian, p.l2),
        )  # fmt: skip
        self._warn_of_noise(int(nodes.numbers[NOISE]) if hess_bits else MOST_NOISE, target.n_rows)
        scales = _scales(rooms.count_bits, hess_bits, nodes.numbers[EXPONENTS : EXPONENTS + 4].tolist(), key)
        grown, sums = self._grown(nodes, self._rules(scales.split))
        sums[0] = (sums[0] << scales.exact.count_bits) + (grown.bounds[:, 1] - grown.bounds[:, 0])
        if self._params.collapse > 0:
            grown, sums = _collapsed(grown, sums, self._params.collapse)
        return self._tree(scales, grown, sums), None

    def _warn_of_noise(self, noise: int, n_rows: int) -> None:
        """Warn once if the noise of rounding, given by its log2 at most, is larger than on a CPU."""
        if noise > MOST_NOISE and not self._warned:
            self._warned = True
            warnings.warn(
                RanksieveWarning(
                    f"the sums of {n_rows:,} rows are rounded on a GPU: splits are chosen as by up to "
                    f"{1 + 2.0**noise:.3g} times fewer rows; ", param("device", "cpu"), " rounds less",
                ),
                stacklevel=2,
            )  # fmt: skip

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


def _scales(count_bits: int, hess_bits: int, exponents: list[int], key: int) -> Scales:
    """The scales that the GPU has found, as in `Scales.of`."""
    grad, hess, exact_grad, exact_hess = exponents
    exact = Scale(count_bits, exact_grad, exact_hess)
    return Scales(exact, Scale(count_bits, grad, hess, hess_bits) if hess_bits else exact, 1, key)


def _collapsed(grown: Grown, sums: np.ndarray, tolerance: float) -> tuple[Grown, np.ndarray]:
    """The tree, and the exact sums of its leaves, after its deepest leaves are merged."""
    merged = collapse(grown, tolerance)
    owner = np.searchsorted(np.sort(merged.bounds[:, 0]), grown.bounds[:, 0], side="right") - 1
    owner = np.argsort(merged.bounds[:, 0], kind="stable")[owner]
    out = np.zeros((2, len(merged.bounds)), np.int64)
    for row, values in zip(out, sums, strict=True):
        np.add.at(row, owner, values)
    return merged, out
