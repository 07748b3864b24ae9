"""LightGBM's side files: `train.txt.query` with the query sizes and `train.txt.weight` with a weight per line.

If query sizes are used, weights may also be one per query, as for XGBoost.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ranksieve.dtypes import OFFSET
from ranksieve.errors import DataError


class SideFiles:
    """The side files of a text file. Query sizes are used only if its lines have no query ids."""

    def __init__(self, path: str):
        self.path = path
        self.sized = False
        self._ends: np.ndarray | None = None
        self.weights = _read_weights(f"{path}.weight") if os.path.isfile(f"{path}.weight") else None

    def choose(self, *, lines_have_ids: bool) -> None:
        """Read the query sizes if the first line has no query id."""
        if not lines_have_ids and os.path.isfile(f"{self.path}.query"):
            sizes = _read_sizes(f"{self.path}.query")
            self._ends = np.cumsum(sizes)
            self.sized = True
            if self.weights is not None and len(self.weights) == len(sizes) < self._ends[-1]:
                self.weights = np.repeat(self.weights, sizes)

    def runs(self, start: int, stop: int) -> tuple[list[Any], np.ndarray]:
        """Query numbers, from 1, and run lengths of the rows start:stop."""
        assert self._ends is not None
        if stop > self._ends[-1]:
            raise self._mismatch(f"more than {self._ends[-1]}")
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        edges = np.concatenate([[start], self._ends[first:last], [stop]])
        return list(range(int(first) + 1, int(last) + 2)), np.diff(edges).astype(OFFSET)

    def weights_of(self, start: int, stop: int) -> np.ndarray | None:
        if self.weights is None:
            return None
        if stop > len(self.weights):
            raise DataError(
                f"{self.path}.weight: holds {len(self.weights)} weights but {self.path} has more lines; "
                "give one weight per line, or remove the file if it belongs to other data"
            )
        return self.weights[start:stop]

    def check_end(self, n_docs: int) -> None:
        """Raise `DataError` if the side files have more entries than there are rows."""
        if self.sized and self._ends is not None and self._ends[-1] != n_docs:
            raise self._mismatch(str(n_docs))
        if self.weights is not None and len(self.weights) != n_docs:
            raise DataError(
                f"{self.path}.weight: holds {len(self.weights)} weights but {self.path} has {n_docs} lines; "
                "give one weight per line, or remove the file if it belongs to other data"
            )

    def _mismatch(self, n_docs: str) -> DataError:
        assert self._ends is not None
        return DataError(
            f"{self.path}.query: the query sizes add up to {self._ends[-1]} but {self.path} has {n_docs} lines; "
            "the sizes must cover every line exactly once"
        )


def _numbers(path: str, expected: str) -> list[tuple[int, float]]:
    """Line number and value of every line that is not blank."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [(number, line.strip()) for number, line in enumerate(file, 1)]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    values = []
    for number, text in lines:
        if not text:
            continue
        try:
            values.append((number, float(text)))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {text[:40]!r} is not a number; expected {expected}") from error
    if not values:
        raise DataError(f"{path}: the file is empty; expected {expected}")
    return values


def _read_sizes(path: str) -> np.ndarray:
    expected = "the size of one query per line, a whole number from 1"
    values = _numbers(path, expected)
    for number, value in values:
        if not (1 <= value < 2**53 and value == math.floor(value)):
            raise DataError(f"{path}:{number}: {value:g} is not the size of a query; expected {expected}")
    return np.array([value for _, value in values], dtype=OFFSET)


def _read_weights(path: str) -> np.ndarray:
    expected = "one weight per line, finite and not negative"
    values = _numbers(path, expected)
    for number, value in values:
        if not (math.isfinite(value) and value >= 0):
            raise DataError(f"{path}:{number}: {value:g} is not a weight; expected {expected}")
    return np.array([value for _, value in values], dtype=np.float64)
