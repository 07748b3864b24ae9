"""Selections of two shares: the best-scored negatives and some random ones, or some of the worst."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.scores import Choice
from ranksieve.boosting.selections import Selection, View, merge_rows, top_negatives
from ranksieve.data.negatives import Negatives, draw_places


def top_and_random(*, share: float, rest: float, at_least: int = 1) -> Selection:
    """SelGB's rows, and a fresh random share `rest` of each query's negatives among the others."""
    negatives: Negatives | None = None
    best: np.ndarray | None = None

    def select(view: View) -> np.ndarray:
        nonlocal negatives, best
        negatives = negatives or Negatives(view.lists)
        counts = negatives.counts(share, at_least)
        best = view.scores.top(negatives.rows, negatives.offsets, counts, best)
        n_others = np.diff(negatives.offsets) - counts
        n_drawn = np.minimum(negatives.counts(rest, 0), n_others)
        drawn = draw_places(n_others, n_drawn, view.rng, first_query=view.portion.first_query)
        places = np.searchsorted(negatives.rows, best) - np.repeat(negatives.offsets[:-1], counts)
        others = [
            start + skip(places_drawn, taken)
            for start, places_drawn, taken in zip(
                negatives.offsets[:-1],
                np.split(drawn, np.cumsum(n_drawn)[:-1]),
                np.split(places, np.cumsum(counts)[:-1]),
                strict=True,
            )
        ]
        chosen = merge_rows(best, negatives.rows[np.concatenate(others)])
        return merge_rows(negatives.positives, chosen)

    return select


def skip(places: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Places counted without the taken ones (ascending), counted with them.

    >>> skip(np.array([0, 1, 2]), np.array([1, 2])).tolist()
    [0, 3, 4]
    """
    return places + np.searchsorted(taken - np.arange(len(taken)), places, side="right")


def top_and_bottom(*, share: float, rest: float, at_least: int = 1) -> Selection:
    """SelGB's rows, and the lowest-scored share `rest` of each query's negatives (High_Low_Sampl, 2023)."""
    top = top_negatives(share=share, at_least=at_least)
    negatives: Negatives | None = None
    last: Choice | None = None

    def select(view: View) -> np.ndarray:
        nonlocal negatives, last
        negatives = negatives or Negatives(view.lists)
        counts = negatives.counts(rest, 0)
        last = view.scores.choose(
            negatives.rows, negatives.offsets, np.full(len(counts), np.inf), counts, counts, last, lowest=True
        )
        return np.union1d(np.asarray(top(view)), last.rows)

    return select
