"""Selections that find for each query how many negatives it needs (Lucchese et al. 2018, §6, future work)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.boosting.selections.fields import Margin, Share, union_rows
from ranksieve.rules import SELECTIONS, Traits

if TYPE_CHECKING:
    from ranksieve.boosting.views import View
    from ranksieve.data.negatives import Negatives

STEP = 1.25  # how much longer, or shorter, a query's list may get from one selection to the next


@SELECTIONS.register("adaptive")
@dataclass(frozen=True)
class NearPositives(Margin):
    """All positives, and the negatives scored above the query's lowest positive minus `margin`.

    At least `min_negatives` negatives, and at most the share `max_negatives` of them; the best-scored ones.
    """

    def __call__(self, view: View) -> np.ndarray:
        return self._best(view, *self.bounds(view.negatives), self._thresholds(view))

    def bounds(self, negatives: Negatives) -> tuple[np.ndarray, np.ndarray]:
        """The fewest and the most negatives that each query may keep."""
        lows = negatives.counts(0.0, self.min_negatives)
        return lows, np.maximum(negatives.counts(self.max_negatives, 1), lows)

    def _thresholds(self, view: View) -> np.ndarray:
        """The score of each query's lowest positive minus the margin; infinity where it has none."""
        offsets = np.searchsorted(view.negatives.positives, view.lists.offsets)
        scores = np.append(view.scores.at(view.negatives.positives), np.inf)
        lowest = np.minimum.reduceat(scores, offsets[:-1])
        return np.where(np.diff(offsets) > 0, lowest, np.inf) - self.margin

    def _best(
        self, view: View, lows: np.ndarray, highs: np.ndarray, thresholds: np.ndarray | None = None
    ) -> np.ndarray:
        last = view.cache.get(self)  # makes this selection faster and does not change it
        view.cache[self] = view.scores.choose(lows, highs, thresholds, last, labels=view.negatives.marks)
        return union_rows(view.negatives.positives, view.cache[self].rows)


@SELECTIONS.register("progress")
@dataclass(frozen=True)
class ByProgress(NearPositives, Share):
    """All positives, and the best-scored negatives; their number depends on the query's recent progress.

    A query starts with the share `negatives`. A negative selected last time is learned when it scores below the lowest
    positive minus the margin. Where most are learned, the next list is a fifth shorter, elsewhere a quarter longer,
    within the bounds. The rule depends on the last selection alone, so a resumed run continues with the same lists.
    """

    traits: ClassVar[Traits] = Traits(needs_last_selection=True)

    def __call__(self, view: View) -> np.ndarray:
        if view.last is None:
            counts = view.negatives.counts(self.negatives, self.min_negatives)
        else:
            counts = next_counts(*_learned(view, self._thresholds(view)))
        counts = np.clip(counts, *self.bounds(view.negatives))
        return self._best(view, counts, counts)


def next_counts(learned: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """How many negatives of each query to select after so many of the selected ones were learned."""
    return np.where(2 * learned > selected, selected // STEP, np.ceil(selected * STEP)).astype(np.int64)


def _learned(view: View, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query: negatives selected last that now score below the threshold, and all that were selected."""
    assert view.last is not None
    selected = view.last[view.lists.stored_labels[view.last] == 0]
    query = np.searchsorted(view.lists.offsets, selected, side="right") - 1
    below = view.scores.at(selected) < thresholds[query]
    n = view.lists.n_queries
    return np.bincount(query[below], minlength=n), np.bincount(query, minlength=n)
