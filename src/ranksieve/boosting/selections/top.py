"""The best-scored negatives: SelGB, alone and together with random ones or with the lowest ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.boosting.selections.fields import Minimum, Rest, Share, merge_rows
from ranksieve.boosting.training_rows import View
from ranksieve.data.negatives import draw_places
from ranksieve.rules import SELECTIONS


@SELECTIONS.register("top")
@dataclass(frozen=True)
class TopNegatives(Minimum, Share):
    """All positives and the best-scored share `negatives` of each query's negatives: SelGB."""

    def __call__(self, view: View) -> np.ndarray:
        return merge_rows(view.negatives.positives, self.best(view))

    def best(self, view: View) -> np.ndarray:
        """The best-scored negatives alone."""
        negatives = view.negatives
        counts = negatives.counts(self.negatives, self.min_negatives)
        last = view.cache.get(self)  # makes this selection faster and does not change it
        lists = view.lists
        view.cache[self] = view.scores.top(None, lists.offsets, counts, last, labels=negatives.marks)
        return view.cache[self]


@SELECTIONS.register("top+random")
@dataclass(frozen=True)
class TopAndRandom(Rest, TopNegatives):
    """As `top`, and a new random share `rest` of each query's negatives among the others."""

    def __call__(self, view: View) -> np.ndarray:
        negatives, best = view.negatives, self.best(view)
        counts = negatives.counts(self.negatives, self.min_negatives)
        n_others = np.diff(negatives.offsets) - counts
        n_drawn = np.minimum(negatives.counts(self.rest, 0), n_others)
        drawn = draw_places(n_others, n_drawn, view.rng, first_query=view.portion.first_query)
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
        chosen = merge_rows(best, negatives.rows_at(np.concatenate(others)))
        return merge_rows(negatives.positives, chosen)


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
        negatives, key = view.negatives, (self, "lowest")
        counts = negatives.counts(self.rest, 0)
        view.cache[key] = view.scores.choose(
            None, view.lists.offsets, np.full(len(counts), np.inf), counts, counts, view.cache.get(key),
            labels=negatives.marks, lowest=True,
        )  # fmt: skip
        return np.union1d(super().__call__(view), view.cache[key].rows)
