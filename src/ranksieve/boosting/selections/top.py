"""The best-scored negatives: SelGB, alone and together with random ones or with the lowest ones."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.boosting.selections.fields import Minimum, Rest, Share, union_rows
from ranksieve.rules import SELECTIONS

if TYPE_CHECKING:
    from ranksieve.boosting.views import View


@SELECTIONS.register("top")
@dataclass(frozen=True)
class TopNegatives(Minimum, Share):
    """All positives and the best-scored share `negatives` of each query's negatives: SelGB."""

    def __call__(self, view: View) -> np.ndarray:
        return union_rows(view.negatives.positives, self.best(view))

    def best(self, view: View) -> np.ndarray:
        """The best-scored negatives alone."""
        return best_scored(view, self, view.negatives.counts(self.negatives, self.min_negatives))


@SELECTIONS.register("top+random")
@dataclass(frozen=True)
class TopAndRandom(Rest, TopNegatives):
    """As `top`, and a new random share `rest` of each query's negatives among the others."""

    def __call__(self, view: View) -> np.ndarray:
        from ranksieve.data.negatives import draw_places

        negatives, best = view.negatives, self.best(view)
        counts = negatives.counts(self.negatives, self.min_negatives)
        n_others = np.diff(negatives.offsets) - counts
        n_drawn = np.minimum(negatives.counts(self.rest, 0), n_others)
        drawn = draw_places(n_others, n_drawn, view.rng, first_query=view.training.portion.first_query)
        places = negatives.places_of(best) - np.repeat(negatives.offsets[:-1], counts)
        others = [
            start + skip(places_drawn, taken)
            for start, places_drawn, taken in zip(
                negatives.offsets[:-1],
                np.split(drawn, np.cumsum(n_drawn)[:-1]),
                np.split(places, np.cumsum(counts)[:-1]),
                strict=True,
            )
        ]
        chosen = union_rows(best, negatives.rows_at(np.concatenate(others)))
        return union_rows(negatives.positives, chosen)


def skip(places: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Places counted without the taken ones (ascending), counted with them.

    >>> skip(np.array([0, 1, 2]), np.array([1, 2])).tolist()
    [0, 3, 4]
    """
    return places + np.searchsorted(taken - np.arange(len(taken)), places, side="right")


@SELECTIONS.register("top+bottom")
@dataclass(frozen=True)
class TopAndBottom(Rest, TopNegatives):
    """As `top`, and the lowest-scored share `rest` of each query's negatives (High_Low_Sampl, 2023)."""

    def __call__(self, view: View) -> np.ndarray:
        lowest = best_scored(view, (self, "lowest"), view.negatives.counts(self.rest, 0), lowest=True)
        return np.union1d(super().__call__(view), lowest)


def best_scored(view: View, key: Hashable, counts: np.ndarray, *, lowest: bool = False) -> np.ndarray:
    """The `counts[q]` best-scored (or lowest-scored) negatives of each query."""
    last = view.cache.get(key)  # makes this selection faster and does not change it
    view.cache[key] = view.scores.choose(counts, counts, last=last, labels=view.negatives.marks, lowest=lowest)
    rows: np.ndarray = view.cache[key].rows
    return rows
