"""Selections: who teaches the next tree. A selection is a function of a `View` that returns rows, or None for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksieve.boosting.objectives import Objective
from ranksieve.boosting.scores import Scores
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives, share_of
from ranksieve.dtypes import ROW


@dataclass(frozen=True)
class Portion:
    """Which part of the training set some lists are."""

    first_query: int = 0
    first_row: int = 0
    n_docs: int | None = None  # of the whole set; None: these lists are the whole


WHOLE = Portion()


@dataclass(frozen=True)
class View:
    """What a selection sees.

    The lists, the current scores (`scores.all()`, `scores.at(rows)`), how many trees there are, a generator that
    depends on the seed and the step alone, the objective, and the rows chosen last time (None: everybody). Where
    training is spread over machines, each of them has a `portion` of the lists.
    """

    lists: Lists
    scores: Scores
    step: int
    rng: np.random.Generator
    objective: Objective
    last: np.ndarray | None = None
    portion: Portion = WHOLE

    @cached_property
    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and second derivatives of every document, of the full lists under the current scores."""
        return self.objective(self.lists.labels, self.scores.all(), self.lists.offsets)


@dataclass(frozen=True)
class Selected:
    """What a selection may return besides plain rows: rows with weights, or rows taught by the full lists.

    A tree normally learns from lists of the selected rows alone: their ranks, their gradients. With `full_lists` the
    gradients are those of the full lists, and the rows only a sample of them.
    """

    rows: np.ndarray
    weights: np.ndarray | None = None
    full_lists: bool = False


Selection = Callable[[View], "np.ndarray | Selected | None"]


def everything(view: View) -> None:
    """All rows: λ-MART."""
    return


def top_negatives(*, share: float, at_least: int = 1) -> Selection:
    """All positives and the best-scored share of each query's negatives: SelGB."""
    negatives: Negatives | None = None
    last: np.ndarray | None = None

    def select(view: View) -> np.ndarray:
        nonlocal negatives, last
        negatives = negatives or Negatives(view.lists)
        last = view.scores.top(negatives.rows, negatives.offsets, negatives.counts(share, at_least), last)
        return merge_rows(negatives.positives, last)

    return select


def random_negatives(*, share: float, at_least: int = 1) -> Selection:
    """All positives and a fresh random share of each query's negatives: NegSGB."""
    negatives: Negatives | None = None

    def select(view: View) -> np.ndarray:
        nonlocal negatives
        negatives = negatives or Negatives(view.lists)
        counts = negatives.counts(share, at_least)
        chosen = negatives.draw(counts, view.rng, first_query=view.portion.first_query)
        return merge_rows(negatives.positives, chosen)

    return select


def random_rows(*, share: float) -> Selection:
    """A fresh random share of all rows, whatever their query and label: SGB (Friedman 2002)."""

    def select(view: View) -> np.ndarray:
        first, n_here = view.portion.first_row, view.lists.n_docs
        n = view.portion.n_docs or n_here
        rows = np.sort(view.rng.choice(n, share_of(n, share), replace=False))
        return (rows[slice(*np.searchsorted(rows, [first, first + n_here]))] - first).astype(ROW)

    return select


def merge_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two sorted sets of rows as one."""
    both = np.concatenate([a, b])
    both.sort(kind="stable")
    return both
