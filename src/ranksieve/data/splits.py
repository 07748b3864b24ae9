"""Splits by query into training, validation and test data, and into folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError, param


def split(data: Dataset, shares: Sequence[float] = (0.6, 0.2, 0.2), *, seed: int = 0) -> list[Dataset]:
    """Split a data set by query into parts of the given shares; a seed always gives the same queries.

    Examples
    --------
    >>> import ranksieve as rs
    >>> [part.n_queries for part in split(rs.synth.cubic(10))]
    [6, 2, 2]
    """
    return [data.take_queries(part) for part in split_queries(data.n_queries, shares, seed=seed)]


def split_queries(n_queries: int, shares: Sequence[float] = (0.6, 0.2, 0.2), *, seed: int = 0) -> list[np.ndarray]:
    """The numbers of the queries of each part, ascending."""
    given = np.asarray(shares, dtype=np.float64)
    if given.ndim != 1 or not len(given) or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise ParameterError(param("shares"), f" are {list(shares)}; expected positive numbers that add up to 1")
    borders = np.round(np.cumsum(given) * n_queries).astype(int)
    parts = np.split(np.random.default_rng(seed).permutation(n_queries), borders[:-1])
    if min(map(len, parts)) == 0:
        raise DataError(f"{n_queries} queries cannot be split {list(shares)}; every part needs at least one")
    return [np.sort(part) for part in parts]


def fold_queries(n_queries: int, n_folds: int = 5, *, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Training, validation and test queries of each fold; every query is a test query once.

    Examples
    --------
    >>> [test.tolist() for _, _, test in fold_queries(6, 3)]
    [[4, 5], [0, 1], [2, 3]]
    """
    if n_folds < 3:
        raise ParameterError(
            param("folds"),
            f" is {n_folds}; expected at least 3: one for testing, one for validation, others for training",
        )
    if n_queries < n_folds:
        raise DataError(f"{n_queries} queries cannot be split into {n_folds} folds; every fold needs at least one")
    parts = np.array_split(np.random.default_rng(seed).permutation(n_queries), n_folds)
    for fold in range(n_folds):
        valid, test = parts[fold], parts[(fold + 1) % n_folds]
        rest = [parts[i] for i in range(n_folds) if i not in (fold, (fold + 1) % n_folds)]
        yield np.sort(np.concatenate(rest)), np.sort(valid), np.sort(test)
