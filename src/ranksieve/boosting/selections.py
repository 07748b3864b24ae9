"""Selections: who teaches the next tree. A selection is a function of a `View` that returns rows, or None for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksieve.boosting.scores import Scores
from ranksieve.data.dataset import Lists
from ranksieve.dtypes import ROW
from ranksieve.params import Params


@dataclass(frozen=True)
class View:
    """What a selection sees: the lists, the current scores, how many trees there are, and a generator."""

    lists: Lists
    scores: Scores
    step: int
    rng: np.random.Generator


Selection = Callable[[View], "np.ndarray | None"]


class Negatives:
    """The positive and negative rows of each query, counted once."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    @cached_property
    def positives(self) -> np.ndarray:
        return np.flatnonzero(self._lists.labels).astype(ROW)

    @cached_property
    def rows(self) -> np.ndarray:
        return np.flatnonzero(self._lists.labels == 0).astype(ROW)

    @cached_property
    def offsets(self) -> np.ndarray:
        return np.searchsorted(self.rows, self._lists.offsets).astype(np.int64)

    def counts(self, share: float, at_least: int) -> np.ndarray:
        """`ceil(share · n)` of each query's n negatives, at least `at_least` where there are so many."""
        n = np.diff(self.offsets)
        # 0.1 · 30 is 3.0000000000000004 in binary: a hair above a whole number is that number
        wanted = np.ceil(share * n - 1e-9 * n).astype(np.int64)
        return np.minimum(np.maximum(wanted, at_least), n)


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
        counts, offsets = negatives.counts(share, at_least), negatives.offsets
        chosen = [
            negatives.rows[start + view.rng.choice(stop - start, count, replace=False)]
            for start, stop, count in zip(offsets[:-1], offsets[1:], counts, strict=True)
        ]
        return merge_rows(negatives.positives, np.sort(np.concatenate(chosen)))

    return select


def random_rows(*, share: float) -> Selection:
    """A fresh random share of all rows, whatever their query and label: SGB (Friedman 2002)."""

    def select(view: View) -> np.ndarray:
        n = view.lists.n_docs
        return np.sort(view.rng.choice(n, int(np.ceil(share * n - 1e-9 * n)), replace=False)).astype(ROW)

    return select


def merge_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two sorted sets of rows as one."""
    both = np.concatenate([a, b])
    both.sort(kind="stable")
    return both


SELECTIONS: dict[str, Callable[[Params], Selection]] = {
    "everything": lambda params: everything,
    "top": lambda params: top_negatives(share=params.negatives, at_least=params.min_negatives),
    "random": lambda params: random_negatives(share=params.negatives, at_least=params.min_negatives),
    "rows": lambda params: random_rows(share=params.negatives),
}
