"""Selections by the gradients of the full lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.boosting.selections.fields import Minimum, Rest, Share, union_rows
from ranksieve.data.lists import share_of
from ranksieve.dtypes import ROW
from ranksieve.rules import SELECTIONS, Selected, Traits

if TYPE_CHECKING:
    from ranksieve.boosting.views import View


@SELECTIONS.register("gradient")
@dataclass(frozen=True)
class LargestGradients(Minimum, Share):
    """All positives and the share of each query's negatives with the largest |λ| (Lucchese et al. 2018, §6)."""

    def __call__(self, view: View) -> np.ndarray:
        counts = view.negatives.counts(self.negatives, self.min_negatives)
        largest = view.negatives.largest(np.abs(view.gradients[0]), counts)
        return union_rows(view.negatives.positives, largest)


@SELECTIONS.register("goss")
@dataclass(frozen=True)
class Goss(Rest, Share):
    """The share `negatives` of all rows with the largest gradients, and a random share `rest` from the others.

    Gradient-based one-side sampling (Ke et al. 2017); queries and labels of rows are ignored. The random rows represent
    all rows that were not selected, so their weight is (1 - negatives) / rest, and gradients are those of the full
    lists.
    """

    traits: ClassVar[Traits] = Traits(needs_last_selection=False, needs_all_queries=True)

    def __call__(self, view: View) -> Selected:
        n = view.lists.n_docs
        top = _largest(np.abs(view.gradients[0]), share_of(n, self.negatives))
        others = np.flatnonzero(~top)
        n_rest = min(share_of(n, self.rest), len(others))
        drawn = view.rng.choice(others, n_rest, replace=False)
        weights = top.astype(np.float64)
        weights[drawn] = len(others) / max(n_rest, 1)
        rows = np.flatnonzero(weights).astype(ROW)
        return Selected(rows, weights[rows], full_lists=True)


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Marks of the n largest values, equal ones by place."""
    bar = np.partition(values, len(values) - n)[len(values) - n]
    marks = values > bar
    marks[np.flatnonzero(values == bar)[: n - np.count_nonzero(marks)]] = True
    return marks
