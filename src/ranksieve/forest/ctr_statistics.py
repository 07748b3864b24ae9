"""`Statistics`: numbers that are looked up by categories and combinations of features (CatBoost's ctrs).

A statistic has a value for each combination of some categories, and of tests such as `price > 3`, in the training data,
and one for all other combinations. It is found by a hash of the combination, which is CatBoost's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

KINDS = CATEGORY, ABOVE, EQUAL = "category", "above", "equal"  # kinds of elements
MULTIPLIER = np.uint64(0x4906BA494954CB65)  # multiplier of CatBoost's hash
NO_HASH = np.uint64((1 << 64) - 1)  # no combination has it


class Element(NamedTuple):
    """One part of a combination: a category, whether a number is above a threshold, or whether a category is another.

    Attributes
    ----------
    kind : str
        `category`, `above` or `equal`.
    feature : int
        The feature, by number.
    value : float
        The threshold, or the number of the category to compare with.
    missing : bool
        Whether a missing number is above the threshold.
    """

    kind: str
    feature: int
    value: float = 0.0
    missing: bool = False


class StatisticTable(NamedTuple):
    """The statistics of the combinations of some elements."""

    elements: tuple[Element, ...]
    keys: np.ndarray  # uint64, ascending: hashes of the combinations in the training data, then NO_HASH
    values: np.ndarray  # float32, (n_statistics, n_keys); the last is of all other combinations

    @property
    def features(self) -> tuple[int, ...]:
        """The features of the combinations, ascending."""
        return tuple(sorted({element.feature for element in self.elements}))


def combined_hash(before: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The hash of combinations with one element more; 0 is the hash of no elements."""
    return np.asarray(MULTIPLIER * (before + MULTIPLIER * numbers))


def find(keys: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The places of hashes among the keys of a table; the last where they are not among them."""
    places = np.searchsorted(keys, hashes)
    return np.where(keys[places] == hashes, places, len(keys) - 1)


class Statistics(NamedTuple):
    """All statistics of a model, and the hashes of categories, by feature and by number, from which they are found."""

    hashes: Mapping[int, np.ndarray]  # uint64
    tables: tuple[StatisticTable, ...]

    @property
    def n_columns(self) -> int:
        return sum(len(table.values) for table in self.tables)

    def expand(self, rows: np.ndarray) -> np.ndarray:
        """Documents with a column more for every statistic."""
        n_docs, column = rows.shape
        columns = np.empty((column + self.n_columns, n_docs), rows.dtype)
        columns[:column] = rows.T
        made: dict[tuple[Element, ...], tuple[np.ndarray, np.ndarray]] = {}
        for table in self.tables:
            hashes, known = self._hashes(rows, table.elements, made)
            places = find(table.keys, np.where(known, hashes, NO_HASH))
            columns[column : column + len(table.values)] = table.values[:, places]
            column += len(table.values)
        return columns.T

    def _hashes(self, rows: np.ndarray, elements: tuple[Element, ...], made: dict[Any, Any]) -> tuple[Any, Any]:
        """The hash of each document, and whether all its categories are known; `made` has those of first elements."""
        if not elements:
            return np.zeros(len(rows), np.uint64), np.ones(len(rows), np.bool_)
        if elements not in made:
            hashes, known = self._hashes(rows, elements[:-1], made)
            numbers, valid = self._numbers(rows, elements[-1])
            made[elements] = combined_hash(hashes, numbers), known & valid
        return made[elements]

    def _numbers(self, rows: np.ndarray, element: Element) -> tuple[np.ndarray, Any]:
        """What an element adds to the hash of each document, and whether it is known."""
        values = rows[:, element.feature]
        if element.kind == CATEGORY:
            hashes = self.hashes[element.feature]
            valid = (values > -1) & (values < len(hashes))  # a number is cut off to a whole one, as in splits by sets
            return np.append(hashes, NO_HASH)[np.where(valid, values, len(hashes)).astype(np.int64)], valid
        if element.kind == EQUAL:
            return (np.trunc(values) == element.value).astype(np.uint64), True
        above = values > element.value
        return (above | np.isnan(values) if element.missing else above).astype(np.uint64), True
