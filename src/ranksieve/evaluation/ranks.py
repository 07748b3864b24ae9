"""Ranks within lists, and which first-stage ranks a selection chose how often (Lucchese et al. 2018, Fig. 7 and 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError


def list_ranks(values: Any, offsets: Any) -> np.ndarray:
    """The rank of every document in its list, from 1, by falling value; equal values by row, NaN last.

    Examples
    --------
    >>> list_ranks([0.1, 0.9, 0.9, 5.0, 7.0], [0, 3, 5]).tolist()
    [3, 1, 2, 2, 1]
    """
    values, offsets = np.asarray(values, dtype=np.float64), np.asarray(offsets, dtype=np.int64)
    if offsets[-1] != len(values):
        raise DataError(f"the offsets end at {offsets[-1]} but there are {len(values)} values; give one per document")
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-values, query))
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
    return ranks


def rank_heat_map(
    queries: Any, ranks: Any, counts: Any, sizes: Any, *, shape: tuple[int, int] = (200, 500), most: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often negatives were selected, by query and first-stage rank, on a grid.

    Parameters
    ----------
    queries, ranks, counts : arrays
        For each negative that was ever selected: its query's number, its first-stage rank from 1, and how often.
    sizes : array
        Documents of each query.
    shape : (rows, columns)
        Largest grid: queries in the order of their sizes, some to a row; ranks, some to a column.
    most : int
        Counts above this count as this (the paper: 10).

    Returns
    -------
    heat, row_sizes, column_ranks
        The mean count of the documents of each cell, NaN where no list reaches; the largest list of each row; the
        first rank of each column.

    Examples
    --------
    >>> heat, _, _ = rank_heat_map([0, 0, 1], [1, 2, 1], [4, 99, 2], [3, 2])
    >>> heat.tolist()
    [[2.0, 0.0, nan], [4.0, 10.0, 0.0]]
    """
    queries, ranks, counts, sizes = (np.asarray(a, dtype=np.int64) for a in (queries, ranks, counts, sizes))
    if not len(sizes):
        raise DataError("got no queries; there is nothing to draw")
    place = np.empty(len(sizes), np.int64)  # of a query when ordered by size
    place[np.argsort(sizes, kind="stable")] = np.arange(len(sizes))
    n_rows, n_columns = min(shape[0], len(sizes)), min(shape[1], int(sizes.max()))
    row_of = place * n_rows // len(sizes)
    column_of = np.arange(sizes.max()) * n_columns // int(sizes.max())  # of a rank
    total = np.zeros((n_rows, n_columns))
    np.add.at(total, (row_of[queries], column_of[ranks - 1]), np.minimum(counts, most))
    first = np.searchsorted(column_of, np.arange(n_columns))
    last = np.append(first[1:], sizes.max())
    documents = np.zeros((n_rows, n_columns))
    np.add.at(documents, row_of, np.clip(sizes[:, None], first, last) - first)
    with np.errstate(invalid="ignore", divide="ignore"):
        heat = np.where(documents > 0, total / documents, np.nan)
    row_sizes = np.zeros(n_rows, np.int64)
    np.maximum.at(row_sizes, row_of, sizes)
    return heat, row_sizes, first + 1


def rank_distribution(ranks: Any, counts: Any, n_ranks: int | None = None) -> np.ndarray:
    """Which share of all selections fell on first-stage ranks up to 1, 2, …: a cumulative distribution.

    Examples
    --------
    >>> rank_distribution([1, 1, 4], [3, 3, 2]).tolist()
    [0.75, 0.75, 0.75, 1.0]
    """
    ranks, counts = np.asarray(ranks, dtype=np.int64), np.asarray(counts, dtype=np.float64)
    if not counts.sum() > 0:
        raise DataError("no negative was ever selected; there is no distribution")
    most = int(ranks.max()) if n_ranks is None else n_ranks
    if most < ranks.max():
        raise ParameterError(f"n_ranks is {n_ranks}, but rank {ranks.max()} was selected; give at least that")
    return np.cumsum(np.bincount(ranks, weights=counts, minlength=most + 1)[1:]) / counts.sum()
