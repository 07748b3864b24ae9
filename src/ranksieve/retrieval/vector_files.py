"""Vectors as users give them: arrays and `.npy` files, with ids or in the order of documents, and their checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError, param
from ranksieve.retrieval.corpus import text_lines
from ranksieve.text_formats import counted, some_of

LARGEST_NORM = 1e18  # products of two vectors must fit into single precision
ID_LINES = "one id per line, in the order of the vectors"


@dataclass(frozen=True)
class VectorTable:
    """Rows of one or several arrays, one below the other; float16 if all of them are, else float32.

    Examples
    --------
    >>> table = VectorTable.of([np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)])
    >>> table.n_rows, table.dimension, table.take(np.array([2, 0])).tolist()
    (3, 3, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    """

    parts: tuple[np.ndarray, ...]
    names: tuple[str, ...]  # names of the parts, for messages

    @classmethod
    def of(cls, given: Any, what: str = "vectors") -> VectorTable:
        """Vectors given as an array, a `.npy` file, or several of them; `what` names arrays in messages."""
        several = given if isinstance(given, list | tuple) and any(map(_is_table, given)) else [given]
        if not len(several):
            raise DataError(f"{what}: got no vectors; give an array, or a file that numpy.save has written")
        parts, names = [], []
        for one in several:
            name = os.fspath(one) if isinstance(one, str | os.PathLike) else what
            parts.append(_checked(_read(name) if isinstance(one, str | os.PathLike) else np.asarray(one), str(name)))
            names.append(str(name))
            if parts[-1].shape[1] != parts[0].shape[1]:
                raise DataError(
                    f"{name}: has vectors of dimension {parts[-1].shape[1]}, and {names[0]} of {parts[0].shape[1]}; "
                    "expected one dimension for all"
                )
        return cls(tuple(parts), tuple(names))

    @property
    def n_rows(self) -> int:
        return sum(map(len, self.parts))

    @property
    def dimension(self) -> int:
        return int(self.parts[0].shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("<f2" if all(part.dtype.itemsize == 2 for part in self.parts) else "<f4")

    def place(self, row: int) -> str:
        """Where a row stands, for messages."""
        for part, name in zip(self.parts, self.names, strict=True):
            if row < len(part):
                return f"{name}: row {row}"
            row -= len(part)
        raise IndexError(row)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, checked: finite, and not too large for single precision."""
        found, start = np.empty((len(rows), self.dimension), self.dtype), 0
        with np.errstate(over="ignore"):  # from double precision; what becomes infinite is refused below
            for part in self.parts:
                here = np.flatnonzero((rows >= start) & (rows < start + len(part)))
                found[here] = part[rows[here] - start]
                start += len(part)
        check_finite(found, lambda number: self.place(int(rows[number])))
        return found


def check_finite(vectors: np.ndarray, place: Any) -> None:
    """Refuse vectors with a value that is not finite, or too long for products in single precision."""
    with np.errstate(invalid="ignore"):
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    bad = np.flatnonzero(~(norms < LARGEST_NORM))
    if len(bad):
        row = vectors[bad[0]]
        column = int(np.flatnonzero(~np.isfinite(row))[0]) if not np.isfinite(row).all() else None
        what = f"a vector of length {norms[bad[0]]:g}" if column is None else f"{row[column]} in column {column}"
        raise DataError(
            f"{place(int(bad[0]))} has {what}; expected finite numbers, and a length below {LARGEST_NORM:g}"
        )


def _is_table(one: Any) -> bool:
    return isinstance(one, str | os.PathLike) or (isinstance(one, np.ndarray) and one.ndim == 2)


def _read(path: str) -> Any:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); give a file of numpy.save") from error
    except Exception as error:  # NumPy parses the header, and fails in many ways
        raise DataError(f"{path}: is not an array that numpy.save has written ({error})") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path}: holds several arrays; expected one, as numpy.save writes it")
    return found


def _checked(array: np.ndarray, name: str) -> np.ndarray:
    if array.ndim != 2 or not array.shape[1]:
        raise DataError(f"{name}: has the shape {array.shape}; expected one row per vector, as (1000, 384)")
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise DataError(f"{name}: holds {array.dtype}; expected float32 or float16 (float64 is stored as float32)")
    return array


def as_ids(ids: Any) -> list[str] | None:
    """Ids of vectors given in Python, or a file with one per line; each once."""
    if ids is None:
        return None
    given: Iterable[tuple[str, str]]
    if isinstance(ids, str | os.PathLike):
        name = os.fspath(ids)
        given = ((f"{name}:{number}", line.strip()) for number, line in text_lines(str(name), ID_LINES))
    elif isinstance(ids, Iterable):
        given = ((f"id {number} of the vectors", str(id)) for number, id in enumerate(ids))
    else:
        raise ParameterError(param("vector_ids"), f" are {ids!r}; expected a file with {ID_LINES}, or a list of ids")
    found: dict[str, None] = {}
    for place, id in given:
        if id in found:
            raise DataError(f"{place}: the id {id!r} occurs twice; expected one vector for each")
        found[id] = None
    return list(found)


def row_of_ids(table: VectorTable, ids: Sequence[str], given: list[str] | None, kind: str) -> tuple[np.ndarray, list]:
    """The row of each document or query, and the ids of rows that belong to none of them.

    Without ids, rows are in the order of the documents or queries.
    """
    if given is None:
        if table.n_rows != len(ids):
            raise DataError(
                f"{', '.join(table.names)}: {counted(vector=table.n_rows)} for {counted(**{kind: len(ids)})}; expected "
                f"one row for each, in the same order, or their ids"
            )
        return np.arange(len(ids)), []
    if len(given) != table.n_rows:
        raise DataError(
            f"{', '.join(table.names)}: {counted(vector=table.n_rows)}, but {counted(id=len(given))}; expected one id "
            "for each row"
        )
    row_of = {id: row for row, id in enumerate(given)}
    missing = [id for id in ids if id not in row_of]
    if missing:
        raise DataError(
            f"{', '.join(table.names)}: {counted(**{kind: len(missing)})} of {len(ids):,} without a vector "
            f"({some_of(missing, 3)}); expected one for each"
        )
    known = set(ids)
    return np.array([row_of[id] for id in ids], dtype=np.int64), [id for id in given if id not in known]
