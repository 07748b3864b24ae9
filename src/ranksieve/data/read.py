"""Reading data files: `open_source` for one pass or many in little memory, `read` for all of it at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source, candidates_of
from ranksieve.data.compression import first_bytes
from ranksieve.data.csv import CsvSource, is_csv
from ranksieve.data.data_file import NEEDED, columns_of, spool_pipe
from ranksieve.data.dataset import BLOCK_ROWS, Dataset, default_names
from ranksieve.data.letor import TextSource
from ranksieve.data.list_builder import GrowingLists
from ranksieve.data.parquet import MAGIC, ParquetSource
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError

__all__ = ["BLOCK_ROWS", "Block", "Source", "open_source", "read", "read_source"]

MISSING = {"zero": 0.0, "nan": float("nan")}  # what a feature that a line of text does not mention is
READ_ROWS = 4_096  # at a time: besides the data set, `read` should need next to nothing
MOVED_ROWS = 4_096  # at a time, where rows get wider in place


def open_source(
    path: str | os.PathLike[str],
    *,
    missing: str = "zero",
    first_stage: int | str | None = None,
    label: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    weight: str | None = None,
    needed: Sequence[str] = NEEDED,
) -> Source:
    """A file to be read in blocks: Parquet, or LETOR text or CSV that may be compressed with gzip, xz or zstd.

    What a file is shows in its first bytes; its name does not matter. CSV has the names of columns in its first line,
    and may have tabs or semicolons in place of commas; empty cells are missing, as nulls of Parquet are.

    Parameters
    ----------
    path
        The file.
    missing
        What a feature that a line of text does not mention is: "zero" or "nan".
    first_stage
        The feature that holds the first stage's score, by number from 0 or name.
    label, qid, docid, weight
        Names of the columns in Parquet and CSV that hold labels, query ids, document ids and weights, where they are
        called otherwise; document ids may be called `doc_id`, too.
    needed
        Columns that must be there; for scoring alone neither `label` nor `qid` is needed.
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"the data is {type(path).__name__}; give the name of one file")
    given = {"label": label, "qid": qid, "docid": docid, "weight": weight}
    columns = columns_of(path) | {role: column for role, column in given.items() if column is not None}
    name = spool_pipe(path)
    head = first_bytes(name)
    if missing not in MISSING:
        raise ParameterError(f"--missing is {missing!r}; expected one of {', '.join(map(repr, MISSING))}")
    if head.startswith((b"tree\n", b"tree\r\n")):
        raise DataError(f"{name}: holds a model, not data; give a file of documents here")
    if head.startswith(MAGIC):
        return ParquetSource(name, columns=columns, first_stage=first_stage, needed=needed)
    if is_csv(name, columns):
        return CsvSource(name, columns=columns, first_stage=first_stage, needed=needed)
    if columns:
        raise DataError(
            f"{name}: is LETOR text, or has no names of columns in its first line; leave --{next(iter(columns))} out, "
            "or give Parquet or CSV"
        )
    return TextSource(name, absent=MISSING[missing], first_stage=first_stage)


def read(
    path: str | os.PathLike[str],
    *,
    missing: str = "zero",
    first_stage: int | str | None = None,
    label: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    weight: str | None = None,
) -> Dataset:
    """Read a file into memory as float32; the parameters are those of `open_source`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tiny.txt")
    ...     _ = file.write_text("2 qid:10 1:0.5 3:1 # docid = a\\n0 qid:10 2:4\\n")
    ...     data = read(file)
    >>> data.features.tolist(), data.labels.tolist(), data.query_ids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], [10])
    """
    return read_source(
        open_source(path, missing=missing, first_stage=first_stage, label=label, qid=qid, docid=docid, weight=weight)
    )


def read_source(source: Source, *, query: Any = None) -> Dataset:
    """All documents of a source, or those of one query alone, by its id or a text that spells it."""
    rows = _GrowingRows(source)
    growing = GrowingLists(source.path, doc_ids=True)
    for block in source.blocks(READ_ROWS):
        if query is not None:
            block = block.take_runs(np.array([str(run_id) == str(query) for run_id in block.run_ids], dtype=bool))
        if query is None or block.n_docs:
            rows.append(block.features)
            growing.append(block)
    if query is not None and not growing.n_docs:
        raise DataError(f"{source.path}: no query is called {str(query)!r}; give an id as it stands in the file")
    features = rows.finish()
    lists = growing.finish()
    names = source.feature_names or default_names(features.shape[1])
    return Dataset(features, lists, names, source.first_stage, source.path, source.absent, candidates_of(source))


class _GrowingRows:
    """A matrix that gets rows, and now and then columns, added in place, so that no second copy of it is ever held.

    Large arrays grow by `realloc`, which moves pages and not bytes. Rows get wider from the last to the first:

        | a a | b b | c c |                        two columns
        | a a . | b b . | c c . |                  three: c moves first, so nothing is overwritten that is still needed
    """

    def __init__(self, source: Source):
        self._source = source
        self._flat = np.empty(0, dtype=FEATURE)
        self._n_rows = self._capacity = self._width = 0

    def append(self, rows: np.ndarray) -> None:
        n_rows = self._n_rows + len(rows)
        if rows.shape[1] > self._width:
            self._widen(rows.shape[1])
        if n_rows > self._capacity:
            self._reserve(n_rows)
        target = self._rows(self._width)[self._n_rows : n_rows]
        target[:, : rows.shape[1]] = rows
        target[:, rows.shape[1] :] = self._source.absent
        self._n_rows = n_rows

    def finish(self) -> np.ndarray:
        self._flat.resize(self._n_rows * self._width, refcheck=False)
        self._capacity = self._n_rows
        return self._rows(self._width)

    def _rows(self, width: int) -> np.ndarray:
        return self._flat[: self._capacity * width].reshape(self._capacity, width)

    def _reserve(self, n_rows: int) -> None:
        """Room for n_rows, and for as many more as the file seems to hold."""
        expected = self._source.n_docs
        if expected is None:
            # The estimate gets better along the file; until then at most four times what is there is trusted to it.
            expected = min(int(n_rows / max(self._source.fraction_read, 1e-9) * 1.01), 4 * n_rows)
        self._capacity = max(expected, n_rows + n_rows // 32)
        if self._n_rows == 0:
            self._flat = np.empty(self._capacity * self._width, dtype=FEATURE)
        else:
            self._flat.resize(self._capacity * self._width, refcheck=False)

    def _widen(self, width: int) -> None:
        if self._n_rows:
            self._flat.resize(self._capacity * width, refcheck=False)
            narrow, wide = self._rows(self._width), self._rows(width)
            for stop in range(self._n_rows, 0, -MOVED_ROWS):
                part = slice(max(stop - MOVED_ROWS, 0), stop)
                moved = narrow[part].copy()
                wide[part, : self._width] = moved
                wide[part, self._width :] = self._source.absent
        self._width = width
