"""Which categories each feature of a CatBoost model has; the file only stores the names of all features together.

The hash of a combination is the sum of its elements times powers of an odd number, modulo 2^64. All elements but one
and the sum give that one, and it is a category only if it has 32 bits: among the possible sums of the others, sorted,
hardly ever more than one leaves so little. What the others can be is in the table of a combination with one category
less, from which CatBoost made the longer one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve.forest.ctr_statistics import MULTIPLIER
from ranksieve.forest.formats.catboost_statistics import HALF, Statistic, signed

MODULUS = 1 << 64


def categories_in(statistics: Sequence[Statistic], known: Sequence[int]) -> dict[int, set[int]] | None:
    """The categories of each feature in tables of statistics, by the hash of their texts; None if not all are known."""
    categories = np.unique(signed(known))
    found: dict[tuple[int, ...], np.ndarray] = {}
    different = {(one.elements, one.keys.tobytes()): one for one in statistics}  # many have the same combinations
    for one in sorted(different.values(), key=lambda one: len(one.features)):
        rows = _elements_of(one, categories, found)
        if rows is None:
            return None
        features = tuple(sorted(one.features))
        rows = np.concatenate([rows[:, np.argsort(one.features)], found.get(features, rows[:0])])
        _, first = np.unique(_sums(rows, _factors(len(features))), return_index=True)
        found[features] = rows[first]
    result: dict[int, set[int]] = {}
    for features, rows in found.items():
        for feature, column in zip(features, rows.T, strict=True):
            result.setdefault(feature, set()).update((np.unique(column) & (2 * HALF - 1)).tolist())
    return result


def _elements_of(one: Statistic, categories: np.ndarray, found: dict[tuple[int, ...], np.ndarray]) -> np.ndarray | None:
    """The categories that each hash of a statistic is made of, a column for each feature; None if not all are found."""
    for last in range(len(one.features)):
        others = [feature for number, feature in enumerate(one.features) if number != last]
        if not others:
            rows: np.ndarray | None = np.empty((1, 0), np.int64)
        elif len(others) == 1:
            rows = categories[:, None]
        elif (rows := found.get(tuple(sorted(others)))) is not None:
            rows = rows[:, np.argsort(np.argsort(others))]
        if rows is not None and len(rows):
            return _solved(one, last, rows, categories)
    return None


def _solved(one: Statistic, last: int, rows: np.ndarray, categories: np.ndarray) -> np.ndarray | None:
    """The same, where `rows` are the possible categories of all features but number `last`."""
    n_categories, n_tests = len(one.features), len(one.above) + len(one.equal)
    n_elements = n_categories + n_tests
    factors = _factors(n_elements)
    inverse = np.uint64(pow(int(factors[last]), -1, MODULUS))
    outcomes = np.arange(1 << n_tests)[:, None] >> np.arange(n_tests) & 1
    of_tests = _sums(outcomes, factors[n_categories:])
    of_rows = _sums(rows, np.delete(factors[:n_categories], last))
    sums = (of_rows[:, None] + of_tests).reshape(-1) * inverse
    order = np.argsort(sums)
    wanted = one.keys[:-1] * inverse
    start = np.searchsorted(sums[order], wanted - np.uint64(HALF - 1))
    result = np.zeros((len(wanted), n_categories), np.int64)
    missing = np.ones(len(wanted), np.bool_)
    for step in range(len(sums)):
        places = order[(start + step) % len(sums)]
        rest = (wanted - sums[places]).view(np.int64)
        if not (near := missing & (rest >= -HALF) & (rest < HALF)).any():
            break
        hits = near & np.isin(rest, categories)
        result[hits] = np.insert(rows[places[hits] // len(of_tests)], last, rest[hits], axis=1)
        missing &= ~hits
    return None if missing.any() else result


def _factors(n_elements: int) -> np.ndarray:
    """What the elements of a combination are multiplied by in its hash."""
    return np.array([pow(int(MULTIPLIER), n_elements - i + 1, MODULUS) for i in range(n_elements)], np.uint64)


def _sums(rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The sum of each row's numbers times their factors, modulo 2^64."""
    return np.asarray((rows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64))
