"""`CategoryTests`: the categorical splits of a forest as kernels evaluate them, by bytes or as columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.kernels.quantize import Categories
from ranksieve.kernels.set_tests import BYTES, SetTests, expand_tests

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest

MOST_CLASSES = BYTES - 2  # most classes of categories in some set; 0 is for all others, 255 for missing values


class CategoryTests:
    """The tests of a forest's categorical splits.

    Categories that are in the same sets are one class. A feature has a column of bytes, the classes of its documents,
    or several where there are more than 254 classes, each for some of the splits.

    Attributes
    ----------
    categories : Categories
        The columns: which feature each one holds, and the class of each category.
    column : int32 array
        Per categorical split, its column.
    goes_left : bool array, (n_splits, 256)
        Per categorical split, the classes that go left.
    """

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        splits = np.flatnonzero(forest.categorical)
        self.column = np.empty(len(splits), np.int32)
        self.goes_left = np.zeros((len(splits), BYTES), np.bool_)
        self.goes_left[:, -1] = forest.default_left[splits]
        features: list[int] = []
        pieces: list[np.ndarray] = []
        for feature in np.unique(forest.feature[splits]).tolist():
            mine = np.flatnonzero(forest.feature[splits] == feature)
            for chosen, classes, left in _columns(forest, splits[mine]):
                self.column[mine[chosen]] = len(features)
                self.goes_left[mine[chosen], : left.shape[1]] |= left
                features.append(feature)
                pieces.append(classes)
        starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
        classes = np.concatenate([np.empty(0, np.uint8), *pieces])
        self.categories = Categories(np.array(features, np.int32), starts, classes)

    @cached_property
    def _tests(self) -> tuple[SetTests, np.ndarray]:
        return set_tests(self.column, self.goes_left)

    def numerical(self) -> Forest:
        """The same trees on documents that `expand` makes, all of whose splits compare with a threshold."""
        forest, (tests, numbers) = self._forest, self._tests
        feature, threshold = forest.feature.copy(), forest.threshold.copy()
        feature[forest.categorical], threshold[forest.categorical] = forest.n_features + numbers, 0.5
        names = (f"test {number}" for number in range(tests.starts[-1]))
        return replace(
            forest,
            feature=feature,
            threshold=threshold,
            feature_names=(*forest.feature_names, *names),
            categorical=np.zeros(len(feature), np.bool_),
            set_offsets=np.zeros(len(feature) + 1, np.int64),
            set_codes=forest.set_codes[:0],
        )

    def expand(self, rows: np.ndarray) -> np.ndarray:
        """Documents with a column more for every test of a set: 0 where they go left, 1 where they go right."""
        tests, _ = self._tests
        n_features = self._forest.n_features
        out = np.empty((len(rows), n_features + int(tests.starts[-1])), rows.dtype)
        out[:, :n_features] = rows
        expand_tests(out, n_features, self.categories, tests)
        return out


def _columns(forest: Forest, splits: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Columns for splits on one feature: which of them, the class of each category, and the classes that go left."""
    pending = [np.arange(len(splits))]
    while pending:
        chosen = pending.pop()
        sets = [forest.set_of(split) for split in splits[chosen].tolist()]
        n_codes = max((int(codes.max(initial=-1)) + 1 for codes in sets), default=0)
        member = np.zeros((n_codes + 1, len(sets)), np.bool_)  # the last category is in no set
        for number, codes in enumerate(sets):
            member[codes, number] = True
        # of equal rows, that of no set is the first
        _, first, classes = np.unique(np.packbits(member, axis=1), axis=0, return_index=True, return_inverse=True)
        if len(first) > MOST_CLASSES + 1:
            pending += [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]]
            continue
        yield chosen, classes.reshape(-1)[:-1].astype(np.uint8), member[first].T


def set_tests(column: np.ndarray, goes_left: np.ndarray) -> tuple[SetTests, np.ndarray]:
    """The distinct tests among some, and the number of each.

    Parameters
    ----------
    column : int32 array
        Per test, the column whose byte it asks for.
    goes_left : bool array, (n_tests, 256)
        The bytes that go left.

    Examples
    --------
    >>> left = np.zeros((3, 256), bool)
    >>> left[1, 7] = True
    >>> tests, numbers = set_tests(np.array([4, 2, 4], np.int32), left)
    >>> tests.columns.tolist(), tests.starts.tolist(), numbers.tolist()
    ([2, 4], [0, 1, 2], [1, 0, 1])
    """
    keys = np.empty((len(column), 4 + BYTES // 8), np.uint8)  # big-endian, so that they sort by column
    keys[:, :4] = column.astype(">i4").view(np.uint8).reshape(-1, 4)
    keys[:, 4:] = np.packbits(goes_left, axis=1)
    _, first, numbers = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    column, goes_right = column[first], ~goes_left[first]
    columns, starts = np.unique(column, return_index=True)
    starts = np.append(starts, len(column)).astype(np.int64)
    tables = []
    for a, b in pairwise(starts):
        bits = np.zeros((BYTES, -(-(b - a) // 64) * 64), np.bool_)
        bits[:, : b - a] = goes_right[a:b].T
        tables.append(np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel())
    word_starts = np.cumsum([0, *map(len, tables)]).astype(np.int64)
    tests = SetTests(columns.astype(np.int32), starts, np.concatenate(tables), word_starts)
    return tests, numbers.reshape(-1).astype(np.int32)
