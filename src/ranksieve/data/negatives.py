"""`Negatives`: the positive and negative rows of each query, and selections among them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranksieve.data.lists import Lists, share_of, starts_of
from ranksieve.dtypes import GRADE, ROW
from ranksieve.kernels.counter_random import draw_per_query
from ranksieve.kernels.offsets import largest_per_query

PART_ROWS = 1 << 18  # labels that are worked on at a time


class Negatives:
    """The positive and negative rows of each query, counted once.

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> lists = rs.Dataset.from_arrays(np.zeros((5, 1)), [1, 0, 0, 2, 0], group=[3, 2]).lists
    >>> negatives = Negatives(lists)
    >>> negatives.positives.tolist(), negatives.rows.tolist(), negatives.offsets.tolist()
    ([0, 3], [1, 2, 4], [0, 2, 3])
    >>> negatives.largest(np.array([9.0, 1.0, 2.0, 9.0, 3.0]), negatives.counts(0.5, 1)).tolist()
    [2, 4]
    """

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    @cached_property
    def positives(self) -> np.ndarray:
        """The rows of the positives, ascending."""
        return np.flatnonzero(self._lists.stored_labels).astype(ROW)

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows of the negatives, ascending."""
        grades = self._lists.stored_labels
        rows, end = np.empty(len(grades) - np.count_nonzero(grades), ROW), 0
        for start in range(0, len(grades), PART_ROWS):  # of 64-bit numbers there are never many
            found = np.flatnonzero(grades[start : start + PART_ROWS] == 0)
            rows[end : end + len(found)] = found + start
            end += len(found)
        return rows

    @cached_property
    def marks(self) -> np.ndarray:
        """A byte for each document, 0 for negatives; the labels themselves where they are as small."""
        return marks_of(self._lists.stored_labels)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Query q owns the negatives `rows[offsets[q]:offsets[q + 1]]`."""
        offsets = self._lists.offsets
        return offsets - np.searchsorted(self.positives, offsets.astype(ROW))  # others are cast

    def rows_at(self, places: np.ndarray) -> np.ndarray:
        """`rows[places]`, without the array of all rows."""
        before = self.positives - np.arange(len(self.positives), dtype=ROW)  # negatives before each positive
        return (places + np.searchsorted(before, places.astype(ROW), side="right")).astype(ROW)

    def places_of(self, rows: np.ndarray) -> np.ndarray:
        """Where some negatives are among `rows`, without that array."""
        return rows - np.searchsorted(self.positives, rows)

    def counts(self, share: float, at_least: int) -> np.ndarray:
        """`ceil(share · n)` of each query's n negatives, at least `at_least`, at most all."""
        n = np.diff(self.offsets)
        return np.asarray(np.minimum(np.maximum(share_of(n, share), at_least), n))

    def largest(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The `counts[q]` negatives of each query with the largest values (one a document), ties by row; ascending."""
        return largest_rows(values, self.rows, self.offsets, counts)

    def draw(self, counts: np.ndarray, rng: np.random.Generator, *, first_query: int = 0) -> np.ndarray:
        """`counts[q]` random negatives of each query, ascending."""
        places = draw_places(np.diff(self.offsets), counts, rng, first_query=first_query)
        return self.rows_at(places + np.repeat(self.offsets[:-1], counts))


def marks_of(labels: np.ndarray) -> np.ndarray:
    """A byte for each label, 0 where it is 0; the labels themselves where they are as small."""
    return labels if labels.dtype == GRADE else (labels != 0).view(GRADE)


def largest_rows(values: np.ndarray, candidates: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The `counts[q]` of query q's candidate rows with the largest values, ties by row; ascending."""
    starts = starts_of(counts)
    chosen = np.empty(starts[-1], ROW)
    largest_per_query(np.asarray(values, dtype=np.float64), candidates, offsets, counts, starts, chosen)
    return chosen


def draw_places(sizes: np.ndarray, counts: np.ndarray, rng: np.random.Generator, *, first_query: int = 0) -> np.ndarray:
    """For each query `counts[q]` random places of `sizes[q]`, without repetition, ascending, one after the other.

    The places of a query depend only on its number; `first_query` is the number of the first one.
    """
    starts = starts_of(counts)
    places = np.empty(starts[-1], np.int64)
    draw_per_query(sizes, counts, starts, rng.integers(2**63), first_query, places)
    return places
