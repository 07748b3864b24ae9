"""`FeatureColumns`: features of rows with an array for each, as tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksieve.dtypes import FEATURE

SLAB_ROWS = 2_048  # rows that are copied column by column at a time


class FeatureColumns:
    """Features of rows, used like a matrix of float32, or of another `dtype`; the arrays of a table are not copied.

    Examples
    --------
    >>> block = FeatureColumns([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    >>> block.shape, block[1:].tolist(), block[:, 1].tolist()
    ((3, 2), [[2.0, 5.0], [3.0, 6.0]], [4.0, 5.0, 6.0])
    """

    def __init__(self, columns: Sequence[np.ndarray], dtype: Any = FEATURE) -> None:
        self.columns = [np.ascontiguousarray(column, dtype) for column in columns]
        self.shape = len(self.columns[0]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: slice | tuple[slice, int]) -> np.ndarray:
        """Some rows, as a matrix in Fortran order, or a feature of them."""
        if isinstance(key, tuple):
            return self.columns[key[1]][key[0]]
        return np.stack([column[key] for column in self.columns]).T

    def take(self, wanted: np.ndarray) -> FeatureColumns:
        """The rows that a mask selects."""
        return FeatureColumns([column[wanted] for column in self.columns], self.columns[0].dtype)

    def to_matrix(self) -> np.ndarray:
        """All rows, one after the other; a slab of them at a time, which stays in the cache."""
        matrix = np.empty(self.shape, self.columns[0].dtype)
        for start in range(0, len(self), SLAB_ROWS):
            part = slice(start, start + SLAB_ROWS)
            for feature, column in enumerate(self.columns):
                matrix[part, feature] = column[part]
        return matrix

    @property
    def addresses(self) -> np.ndarray:
        """Where the columns are in memory, for kernels."""
        return np.array([column.ctypes.data for column in self.columns], np.int64)

    def find_infinite(self) -> tuple[int, int] | None:
        """The row and the feature of an infinite value."""
        for feature, column in enumerate(self.columns):
            infinite = np.isinf(column)
            if infinite.any():
                return int(np.argmax(infinite)), feature
        return None


Rows = np.ndarray | FeatureColumns  # features of rows
