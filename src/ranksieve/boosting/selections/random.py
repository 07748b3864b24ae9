"""All rows, and random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.boosting.selections.fields import Minimum, Periodic, Share, union_rows
from ranksieve.data.lists import share_of
from ranksieve.dtypes import ROW
from ranksieve.rules import SELECTIONS, Traits

if TYPE_CHECKING:
    from ranksieve.boosting.views import View


@SELECTIONS.register("everything")
@dataclass(frozen=True)
class Everything:
    """All rows: λ-MART."""

    traits: ClassVar[Traits] = Traits(is_periodic=False, needs_last_selection=False)

    def __call__(self, view: View) -> None:
        return None


@SELECTIONS.register("random")
@dataclass(frozen=True)
class RandomNegatives(Minimum, Share):
    """All positives and a new random share `negatives` of each query's negatives: NegSGB."""

    def __call__(self, view: View) -> np.ndarray:
        counts = view.negatives.counts(self.negatives, self.min_negatives)
        drawn = view.negatives.draw(counts, view.rng, first_query=view.training.portion.first_query)
        return union_rows(view.negatives.positives, drawn)


@SELECTIONS.register("rows")
@dataclass(frozen=True)
class RandomRows(Share, Periodic):
    """A new random share `negatives` of all rows; queries and labels are ignored. SGB (Friedman 2002)."""

    def __call__(self, view: View) -> np.ndarray:
        first, n_here = view.training.portion.first_row, view.lists.n_docs
        n = view.training.portion.n_docs or n_here
        rows = np.sort(view.rng.choice(n, share_of(n, self.negatives), replace=False))
        return (rows[slice(*np.searchsorted(rows, [first, first + n_here]))] - first).astype(ROW)
