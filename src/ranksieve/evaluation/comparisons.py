"""Comparisons of systems beyond one mean: by list size, and how little data reaches how much of the quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError


@dataclass(frozen=True)
class SizeBuckets:
    """Queries put together by the size of their lists: bucket b holds sizes from `edges[b]` to below `edges[b + 1]`."""

    edges: np.ndarray
    n_queries: np.ndarray
    differences: np.ndarray  # mean of a minus b; NaN where a bucket has no query
    errors: np.ndarray  # standard error of that mean; NaN where a bucket has fewer than two queries


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
    if width < 1:
        raise ParameterError(f"width is {width}; expected a whole number from 1")
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
        One share for each target; None where no share reaches it.

    Examples
    --------
    >>> smallest_shares([0.05, 0.2, 0.1], [0.30, 0.40, 0.37], 0.40)
    [0.1, 0.2, 0.2]
    """
    shares, values = np.asarray(shares, np.float64), np.asarray(values, np.float64)
    if shares.shape != values.shape or shares.ndim != 1:
        raise DataError(f"got {shares.shape} shares and {values.shape} values; give one value per share")
    # a model exactly at the target reaches it, whatever binary fractions say
    reached = [shares[values >= target * full - 1e-12 * abs(full)] for target in targets]
    return [float(found.min()) if len(found) else None for found in reached]
