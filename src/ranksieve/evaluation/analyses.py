"""Analyses of results beyond one mean: by list size, by training data, by first-stage rank, by shared leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError, check_whole, param
from ranksieve.kernels.similarity import count_pairs

QUERIES_AT_ONCE = 256  # queries that `shared_leaves` counts at a time; each has a row of counts


@dataclass(frozen=True)
class SizeBuckets:
    """Queries put together by the size of their lists, as `difference_by_size` returns them.

    Attributes
    ----------
    edges
        Bucket b holds sizes from `edges[b]` to below `edges[b + 1]`.
    n_queries
        The number of queries of each bucket.
    differences
        Mean of a minus b; NaN where a bucket has no query.
    errors
        Standard error of that mean; NaN where a bucket has fewer than two queries.

    Examples
    --------
    >>> buckets = difference_by_size([0.5, 0.7, 0.9], [0.25, 0.7, 0.5], [120, 40, 199])
    >>> buckets.n_queries.tolist(), buckets.errors.round(3).tolist()
    ([1, 2], [nan, 0.075])
    """

    edges: np.ndarray
    n_queries: np.ndarray
    differences: np.ndarray
    errors: np.ndarray


def difference_by_size(a: Any, b: Any, sizes: Any, *, width: int = 100) -> SizeBuckets:
    """Mean difference of two systems' per-query values by list size (Lucchese et al. 2018, Fig. 6).

    Parameters
    ----------
    a, b : arrays
        One value per query; queries that are NaN in either are left out.
    sizes : array
        Documents of each query.
    width : int
        Sizes put together in one bucket.

    Examples
    --------
    >>> buckets = difference_by_size([0.5, 0.75, 1.0], [0.25, 0.75, 0.5], [120, 40, 199])
    >>> buckets.edges.tolist(), buckets.n_queries.tolist(), buckets.differences.tolist()
    ([0, 100, 200], [1, 2], [0.0, 0.375])
    """
    a, b, sizes = np.asarray(a, np.float64), np.asarray(b, np.float64), np.asarray(sizes, np.int64)
    if not a.shape == b.shape == sizes.shape or a.ndim != 1:
        raise DataError(f"got values of shapes {a.shape} and {b.shape} for {sizes.shape} sizes; give one per query")
    check_whole("width", width)
    counted = ~(np.isnan(a) | np.isnan(b))
    if not counted.any():
        raise DataError("no query has a value in both systems; there is nothing to compare")
    bucket, gaps = sizes[counted] // width, (a - b)[counted]
    n_buckets = int(bucket.max()) + 1
    n_queries = np.bincount(bucket, minlength=n_buckets)
    with np.errstate(invalid="ignore", divide="ignore"):  # of buckets that have no, or one, query
        differences = np.bincount(bucket, weights=gaps, minlength=n_buckets) / n_queries
        squares = np.bincount(bucket, weights=(gaps - differences[bucket]) ** 2, minlength=n_buckets)
        errors = np.where(n_queries > 1, np.sqrt(squares / (n_queries - 1) / n_queries), np.nan)
    return SizeBuckets(np.arange(n_buckets + 1) * width, n_queries, differences, errors)


def smallest_shares(
    shares: Any, values: Any, full: float, targets: Sequence[float] = (0.90, 0.95, 0.98)
) -> list[float | None]:
    """The smallest share of the training set whose model reaches each part of the full set's quality.

    Parameters
    ----------
    shares, values : arrays
        Shares of the training set, and the metric of the models trained on them.
    full : float
        The metric of the model trained on everything.
    targets : numbers
        Parts of `full` to reach (Ibrahim and Carman 2014, Table 1: 90%, 95%, 98%).

    Returns
    -------
    list
        One share for each target; None if no share reaches it.

    Examples
    --------
    >>> smallest_shares([0.05, 0.2, 0.1], [0.30, 0.40, 0.37], 0.40)
    [0.1, 0.2, 0.2]
    """
    shares, values = np.asarray(shares, np.float64), np.asarray(values, np.float64)
    if shares.shape != values.shape or shares.ndim != 1:
        raise DataError(f"got {shares.shape} shares and {values.shape} values; give one value per share")
    # a model exactly at the target reaches it in spite of rounding
    reached = [shares[values >= target * full - 1e-12 * abs(full)] for target in targets]
    return [float(found.min()) if len(found) else None for found in reached]


def list_ranks(values: Any, offsets: Any) -> np.ndarray:
    """The rank of every document in its list, from 1, by descending value; equal values by row, NaN last.

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
        raise ParameterError(
            param("n_ranks"), f" is {n_ranks}, but rank {ranks.max()} was selected; give at least that"
        )
    return np.asarray(np.cumsum(np.bincount(ranks, weights=counts, minlength=most + 1)[1:]) / counts.sum())


def shared_leaves(leaves: Any, offsets: Any) -> np.ndarray:
    """The number of pairs of documents, both of one list, by the number of trees in which they end in the same leaf.

    Parameters
    ----------
    leaves : array, documents × trees
        Leaf numbers, as `Forest.predict_leaves` returns them.
    offsets : array
        Query q owns the documents `offsets[q]:offsets[q + 1]`.

    Returns
    -------
    numpy.ndarray
        int64, one more than there are trees: entry s counts the pairs that share s leaves. Exact: every pair counts.

    Examples
    --------
    >>> shared_leaves([[0, 1], [0, 1], [0, 2], [5, 5], [6, 5]], [0, 3, 5]).tolist()
    [0, 3, 1]
    """
    leaves, offsets = np.asarray(leaves), np.asarray(offsets, dtype=np.int64)
    if leaves.ndim != 2 or leaves.dtype.kind not in "iu":
        raise DataError(f"got leaves of shape {leaves.shape} and type {leaves.dtype}; expected documents × trees")
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(leaves) or (np.diff(offsets) < 0).any():
        raise DataError(f"the offsets do not cut {len(leaves)} documents into lists; expected 0, …, {len(leaves)}")
    small = leaves.max(initial=0) < 256
    by_tree = np.ascontiguousarray(leaves.T, dtype=np.uint8 if small else np.int32)
    total = np.zeros(leaves.shape[1] + 1, np.int64)
    for start in range(0, len(offsets) - 1, QUERIES_AT_ONCE):
        part = offsets[start : start + QUERIES_AT_ONCE + 1]
        counts = np.zeros((len(part) - 1, len(total)), np.int64)
        count_pairs(by_tree, part, counts)
        total += counts.sum(axis=0)
    return total
