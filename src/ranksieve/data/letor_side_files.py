"""LightGBM's side files of `train.txt`: query sizes in `train.txt.query`, and one number per line in others.

These are `train.txt.weight` with weights and `train.txt.position` with the ranks at which documents were shown. If
query sizes are used, weights may also be one per query, as for XGBoost.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from ranksieve.data.lists import EXPECTED_POSITION
from ranksieve.dtypes import MAX_POSITION, OFFSET, POSITION
from ranksieve.errors import DataError

ENDINGS = (".query", ".weight", ".position")


class SideFiles:
    """The side files of a text file. Query sizes are used only if its lines have no query ids."""

    def __init__(self, path: str):
        self.path = path
        self.sized = False
        self._ends: np.ndarray | None = None
        self._per_query = False  # whether the weights are those of queries
        self.weights = _read_weights(f"{path}.weight") if os.path.isfile(f"{path}.weight") else None
        self.positions = _read_positions(f"{path}.position") if os.path.isfile(f"{path}.position") else None

    def choose(self, *, lines_have_ids: bool) -> None:
        """Read the query sizes if the first line has no query id."""
        if not lines_have_ids and os.path.isfile(f"{self.path}.query"):
            sizes = _read_sizes(f"{self.path}.query")
            self._ends = np.cumsum(sizes)
            self.sized = True
            self._per_query = self.weights is not None and len(self.weights) == len(sizes) < self._ends[-1]

    def runs(self, start: int, stop: int) -> tuple[list[Any], np.ndarray]:
        """Query numbers, from 1, and run lengths of the rows start:stop."""
        assert self._ends is not None
        if stop > self._ends[-1]:
            raise self._wrong_sizes(f"more than {self._ends[-1]}")
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        edges = np.concatenate([[start], self._ends[first:last], [stop]])
        return list(range(int(first) + 1, int(last) + 2)), np.diff(edges).astype(OFFSET)

    def weights_of(self, start: int, stop: int) -> np.ndarray | None:
        """The weights of the rows start:stop."""
        if self.weights is None:
            return None
        if self._per_query:
            queries, lengths = self.runs(start, stop)
            return np.repeat(self.weights[queries[0] - 1 : queries[-1]], lengths)
        return self._part(self.weights, "weight", start, stop)

    def positions_of(self, start: int, stop: int) -> np.ndarray | None:
        """The positions of the rows start:stop."""
        return None if self.positions is None else self._part(self.positions, "position", start, stop)

    def _part(self, values: np.ndarray, name: str, start: int, stop: int) -> np.ndarray:
        if stop > len(values):
            raise self._wrong_number(name, len(values), "more")
        return values[start:stop]

    def check_end(self, n_docs: int) -> None:
        """Raise `DataError` if the side files have more entries than there are rows."""
        if self.sized and self._ends is not None and self._ends[-1] != n_docs:
            raise self._wrong_sizes(str(n_docs))
        if self.weights is not None and not self._per_query and len(self.weights) != n_docs:
            raise self._wrong_number("weight", len(self.weights), str(n_docs))
        if self.positions is not None and len(self.positions) != n_docs:
            raise self._wrong_number("position", len(self.positions), str(n_docs))

    def _wrong_number(self, name: str, number: int, n_docs: str) -> DataError:
        return DataError(
            f"{self.path}.{name}: has {number} {name}s but {self.path} has {n_docs} lines; "
            f"give one {name} per line, or remove the file if it belongs to other data"
        )

    def _wrong_sizes(self, n_docs: str) -> DataError:
        assert self._ends is not None
        return DataError(
            f"{self.path}.query: the query sizes add up to {self._ends[-1]} but {self.path} has {n_docs} lines; "
            "the sizes must cover every line exactly once"
        )


def _read_numbers(path: str, expected: str, is_valid: Callable[[float], bool]) -> np.ndarray:
    """The numbers of a file with one per line; blank lines are skipped."""
    values = array("d")  # a large file has tens of millions of lines
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                text = line.strip()
                if text:
                    values.append(_to_number(text))
                    if not is_valid(values[-1]):
                        raise DataError(f"{path}:{number}: {text[:40]!r} is not valid; expected {expected}")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    if not values:
        raise DataError(f"{path}: the file is empty; expected {expected}")
    return np.array(values)


def _to_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_sizes(path: str) -> np.ndarray:
    expected = "the size of one query per line, an integer from 1"
    return _read_numbers(path, expected, lambda n: 1 <= n < 2**31 and n == math.floor(n)).astype(OFFSET)


def _read_weights(path: str) -> np.ndarray:
    expected = "one weight per line, finite and not negative"
    return _read_numbers(path, expected, lambda n: 0 <= n < math.inf)


def _read_positions(path: str) -> np.ndarray:
    expected = f"one position per line, {EXPECTED_POSITION}"
    return _read_numbers(path, expected, lambda n: 0 <= n <= MAX_POSITION and n == math.floor(n)).astype(POSITION)
