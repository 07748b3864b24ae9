"""Biases of positions, learned while boosting: clicks at the top say less than clicks further down.

A document that was shown at position p is scored with s + b[p] where gradients are computed, and with s everywhere
else: in selections, metrics and predictions. After every tree b takes a Newton step, as in LightGBM (`position`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksieve.errors import RanksieveWarning, caller_level
from ranksieve.kernels import position_sums as kernel
from ranksieve.text_formats import AUTO, read_numbers

if TYPE_CHECKING:
    from ranksieve.boosting.loop import State
    from ranksieve.data.lists import Lists
    from ranksieve.params import Params

SMALLEST_CURVATURE = 0.001  # as in LightGBM: positions with few gradients move slowly
INFO = "position_biases"  # where a model stores them


class BiasedLists(Protocol):
    """Training lists whose gradients depend on biases, here or on workers."""

    def set_biases(self, biases: np.ndarray) -> None: ...


@dataclass(frozen=True)
class PositionBiases:
    """Learns the biases of positions; `lists` use them for the gradients of the next tree."""

    lists: BiasedLists
    n_positions: int
    rate: float
    l2: float
    given: tuple[float, ...] = ()

    @classmethod
    def of(cls, lists: BiasedLists, n_positions: int, params: Params) -> PositionBiases | None:
        """None where there are no positions, or no biases of them."""
        given = read_numbers(params.position_biases)
        rate = params.position_rate * params.learning_rate
        if not n_positions or not (rate or given):
            return None
        if n_positions == 1:
            warnings.warn(
                RanksieveWarning(
                    "the positions of all documents are 0, which stands for documents that were not shown; no biases "
                    "of positions are learned; if documents were shown, give ranks from 1"
                ),
                stacklevel=caller_level(),
            )
            return None
        return cls(lists, n_positions, rate, params.position_l2, given)

    def begin(self, state: State[Any, Any], init: Any) -> None:
        """Start at the biases given, else at those of the model that boosting starts from, else at 0."""
        first = np.zeros(self.n_positions)
        known = (0.0, *self.given) if self.given else getattr(init, "info", {}).get(INFO, ())
        if known:
            last = len(known) - 1  # lower ranks have its bias
            first[:] = np.asarray(known, dtype=np.float64)[np.minimum(np.arange(self.n_positions), last)]
        state.biases = [first]
        self.lists.set_biases(first)

    def resume(self, state: State[Any, Any]) -> None:
        """Continue with the biases of a checkpoint."""
        for biases in state.biases[1:]:
            self.lists.set_biases(biases)

    def __call__(self, state: State[Any, Any], target: Any) -> None:
        """Add the biases for the next tree to the state; `target` has the gradients of the last one."""
        grad, hess, count = totals(target.position_sums)
        last = state.biases[-1]
        first = grad - self.l2 * count * last
        second = hess + self.l2 * count
        new = last + self.rate * first / (np.abs(second) + SMALLEST_CURVATURE)
        new[0] = 0.0  # documents that were not shown
        state.biases.append(new)
        self.lists.set_biases(new)


def uses_biases(lists: Lists, params: Params) -> bool:
    """Whether training on these lists uses biases."""
    return lists.positions is not None and (params.position_rate > 0 or params.position_biases != AUTO)


def count_positions(positions: np.ndarray | None) -> int:
    """How many biases there are: one for each position up to the highest, and 0 for documents that were not shown."""
    return 0 if positions is None else int(positions.max(initial=0)) + 1


def sums_by_position(grad: np.ndarray, hess: np.ndarray, positions: np.ndarray, n_positions: int) -> np.ndarray:
    """Integer sums of gradients, second derivatives and counts; those of parts of the rows add up exactly."""
    sums = np.zeros((n_positions, 5), np.int64)
    kernel.position_sums(grad, hess, positions, sums)
    return sums


def totals(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums as numbers: gradients, second derivatives, counts."""

    def joined(high: int, low: int) -> np.ndarray:
        whole = [(int(a) << kernel.LOW_BITS) + int(b) for a, b in sums[:, [high, low]]]
        return np.array([one / 2**kernel.EXPONENT for one in whole])

    return (
        joined(kernel.GRAD, kernel.GRAD_LOW),
        joined(kernel.HESS, kernel.HESS_LOW),
        sums[:, kernel.COUNT].astype(np.float64),
    )


def learned_biases(biases: Sequence[np.ndarray], n_trees: int) -> dict[str, Any]:
    """What a model of the first trees stores."""
    return {INFO: biases[n_trees].tolist()} if biases else {}
