"""Selections that find for each query how many negatives it needs (Lucchese et al. 2018, §6, future work)."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.scores import Choice
from ranksieve.boosting.selections import Selection, View, merge_rows
from ranksieve.data.negatives import Negatives

STEP = 1.25  # how much longer, or shorter, a query's list may get from one selection to the next


class _Bounds:
    """How many negatives each query may keep, and where its lowest positive stands."""

    def __init__(self, view: View, at_least: int, at_most: float) -> None:
        self.negatives = Negatives(view.lists)
        self.lows = self.negatives.counts(0.0, at_least)
        self.highs = np.maximum(self.negatives.counts(at_most, 1), self.lows)
        self._offsets = np.searchsorted(self.negatives.positives, view.lists.offsets)

    def lowest_positives(self, view: View) -> np.ndarray:
        """The score of each query's lowest positive; infinity where it has none."""
        scores = np.append(view.scores.at(self.negatives.positives), np.inf)
        lowest = np.minimum.reduceat(scores, self._offsets[:-1])
        return np.where(np.diff(self._offsets) > 0, lowest, np.inf)


def near_positives(*, margin: float, at_least: int = 20, at_most: float = 0.25) -> Selection:
    """All positives, and the negatives scored above the query's lowest positive minus a margin.

    At least `at_least` negatives, and at most the share `at_most` of them; the best-scored where that decides.
    """
    bounds: _Bounds | None = None
    last: Choice | None = None

    def select(view: View) -> np.ndarray:
        nonlocal bounds, last
        bounds = bounds or _Bounds(view, at_least, at_most)
        negatives = bounds.negatives
        thresholds = bounds.lowest_positives(view) - margin
        last = view.scores.choose(negatives.rows, negatives.offsets, thresholds, bounds.lows, bounds.highs, last)
        return merge_rows(negatives.positives, last.rows)

    return select


def by_progress(*, share: float, margin: float, at_least: int = 20, at_most: float = 0.25) -> Selection:
    """All positives, and the best-scored negatives, as many as the query's recent progress asks for.

    A query starts with `share` of its negatives. Those it was taught last are learned when they score below the lowest
    positive minus the margin: where most are, the next list is a fifth shorter, elsewhere a quarter longer, within the
    bounds. All it needs to remember is the last selection, so a resumed run goes on with the same lists.
    """
    bounds: _Bounds | None = None
    choice: Choice | None = None

    def select(view: View) -> np.ndarray:
        nonlocal bounds, choice
        bounds = bounds or _Bounds(view, at_least, at_most)
        negatives = bounds.negatives
        if view.last is None:
            counts = negatives.counts(share, at_least)
        else:
            learned, taught = _learned(view, bounds.lowest_positives(view) - margin)
            counts = np.where(2 * learned > taught, taught // STEP, np.ceil(taught * STEP)).astype(np.int64)
        counts = np.clip(counts, bounds.lows, bounds.highs)
        anywhere = np.full(len(counts), np.inf)
        choice = view.scores.choose(negatives.rows, negatives.offsets, anywhere, counts, counts, choice)
        return merge_rows(negatives.positives, choice.rows)

    return select


def _learned(view: View, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query: negatives taught last that now score below the threshold, and all that were taught."""
    assert view.last is not None
    taught = view.last[view.lists.labels[view.last] == 0]
    query = np.searchsorted(view.lists.offsets, taught, side="right") - 1
    below = view.scores.at(taught) < thresholds[query]
    n = view.lists.n_queries
    return np.bincount(query[below], minlength=n), np.bincount(query, minlength=n)
