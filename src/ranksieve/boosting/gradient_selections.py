"""Selections that look at the gradients of the full lists."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.selections import Selected, Selection, View, merge_rows
from ranksieve.data.negatives import Negatives, share_of
from ranksieve.dtypes import ROW


def steepest_negatives(*, share: float, at_least: int = 1) -> Selection:
    """All positives and the share of each query's negatives with the largest |λ| (Lucchese et al. 2018, §6)."""
    negatives: Negatives | None = None

    def select(view: View) -> np.ndarray:
        nonlocal negatives
        negatives = negatives or Negatives(view.lists)
        steepest = negatives.largest(np.abs(view.gradients[0]), negatives.counts(share, at_least))
        return merge_rows(negatives.positives, steepest)

    return select


def goss(*, share: float, rest: float) -> Selection:
    """The share of all rows with the largest gradients, and a random share `rest` of all rows from the others.

    Gradient-based one-side sampling (Ke et al. 2017): whatever query and label a row has. The random rows stand for
    all that were not taken, so they weigh (1 - share) / rest, and gradients are those of the full lists.
    """

    def select(view: View) -> Selected:
        n = view.lists.n_docs
        top = _largest(np.abs(view.gradients[0]), share_of(n, share))
        others = np.flatnonzero(~top)
        n_rest = min(share_of(n, rest), len(others))
        drawn = view.rng.choice(others, n_rest, replace=False)
        weights = top.astype(np.float64)
        weights[drawn] = len(others) / max(n_rest, 1)
        rows = np.flatnonzero(weights).astype(ROW)
        return Selected(rows, weights[rows], full_lists=True)

    return select


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Marks of the n largest values, equal ones by place."""
    bar = np.partition(values, len(values) - n)[len(values) - n]
    marks = values > bar
    marks[np.flatnonzero(values == bar)[: n - np.count_nonzero(marks)]] = True
    return marks
