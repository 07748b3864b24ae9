"""`CategoryTests`: the categorical splits of a forest as kernels evaluate them, by bytes or as columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.kernels.quantize import Categories
from ranksieve.kernels.set_tests import BYTES, SetTests, expand_tests, set_tests

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest

MOST_CLASSES = BYTES - 2  # of categories that are in some set; 0 is for all others, 255 for missing ones


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
