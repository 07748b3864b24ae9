"""`open_data` opens data of any kind, to be read in blocks; `read` reads all of it into memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from ranksieve.data.blocks import ListsBuilder, Source, check_narrow, widened
from ranksieve.data.categories import Categorical, Encoder, check_same_codes, columns_text
from ranksieve.data.compression import PARQUET_MAGIC, first_bytes
from ranksieve.data.csv import CsvSource, check_names, is_csv
from ranksieve.data.data_file import COLUMN_PARAMETERS, NEEDED, DataFile, ReadOptions
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import Described, check_feature_names
from ranksieve.data.letor import TextSource
from ranksieve.data.other_files import INDEX_HEADER, other_file, starts_like_model
from ranksieve.data.parquet import ParquetSource
from ranksieve.data.pipes import spool_pipe
from ranksieve.data.tables import MemoryTable, is_table
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError, check_choice, did_you_mean, param

if TYPE_CHECKING:
    from ranksieve.data.binned import Binned

MISSING = {"zero": 0.0, "nan": float("nan")}  # the values of a feature that a line of text does not name
READ_ROWS = 4_096  # at a time: besides the data set, `read` should need next to nothing
MOVED_ROWS = 4_096  # at a time, where rows get wider in place


def check_missing(missing: Any) -> float:
    """The value that stands for features that a line of text does not name."""
    check_choice("missing", missing, MISSING)
    return MISSING[missing]


@overload
def open_data(given: str | os.PathLike[str], **options: Any) -> Source: ...


@overload
def open_data(given: Any, **options: Any) -> Dataset | Binned | Source: ...


def open_data(  # type: ignore[misc]  # the signatures above leave the options out
    given: Any,
    *,
    missing: str = "zero",
    first_stage: int | str | None = None,
    needed: Sequence[str] = NEEDED,
    wanted: Sequence[str] = (),
    categories: Mapping[str, Sequence[str]] | None = None,
    encoders: dict[str, Encoder] | None = None,
) -> Dataset | Binned | Source:
    """Open data of any kind. Files and tables are read in blocks; what is open already is returned as it is.

    A file is Parquet, or LETOR text or CSV that may be compressed with gzip, xz or zstd; this is detected by its first
    bytes, not its name. CSV has the names of columns in its first line, and may have tabs or semicolons in place of
    commas; empty cells are missing, as nulls of Parquet are. A pipe is stored in a temporary file first.

    Parameters
    ----------
    given
        A file name, a `DataFile`, a pandas, polars or Arrow table with columns `label` and `qid`, a `Dataset`, a
        `Binned` or a `Source`.
    missing
        The value of a feature that a line of text does not name: "zero" or "nan".
    first_stage
        The feature with the first stage's score, by number from 0 or name.
    needed
        Columns that must exist; for scoring neither `label` nor `qid` is needed.
    wanted
        The features of a model: a table that has all of them is read in their order, without other columns. A
        `Dataset` with the same features in another order is reordered.
    categories
        The categorical features of a model and the names of their categories. Other categories are missing then.
    encoders
        The common numbers of categories of parts that are read as one.
    """
    absent = check_missing(missing)
    if isinstance(given, Dataset) and wanted:
        return given.in_order(wanted, categories or {})
    if isinstance(given, Described):
        return given  # type: ignore[return-value]
    file = DataFile(given)
    chosen = Categorical(
        columns_text(file.categorical), categories if wanted else None, {} if encoders is None else encoders
    )
    options = ReadOptions(file.columns, columns_text(file.ignore), chosen, first_stage, needed, wanted, absent)
    if is_table(file.path):
        return MemoryTable(file.path, options)
    if not isinstance(file.path, str | os.PathLike):
        raise DataError(
            f"the data is {type(file.path).__name__}; give a file name, a DataFrame with columns 'label' and 'qid', or "
            "arrays as Dataset.from_arrays(X, y, qid)"
        )
    # Arrow's other allocators keep what was freed; training needs that memory.
    pa.set_memory_pool(pa.system_memory_pool())
    return _open_file(spool_pipe(file.path), options)


def _open_file(path: str, options: ReadOptions) -> Source:
    if os.path.isfile(os.path.join(path, INDEX_HEADER)):
        raise DataError(
            f"{path}: is an index, not data; make data of it with: ranksieve features {path} QUERIES --qrels QRELS "
            "--out data.parquet"
        )
    head = first_bytes(path)
    if head.startswith(PARQUET_MAGIC):
        return ParquetSource(path, options)
    if (other := other_file(path)) is not None:
        raise DataError(f"{path}: {other.refusal('data')}")
    if starts_like_model(head):
        raise DataError(f"{path}: is a model, not data; give labels and features as LETOR, CSV or Parquet")
    if is_csv(path, options.columns):
        return CsvSource(path, options)
    check_names(path)
    if options.columns or options.ignore:
        raise DataError(
            f"{path}: is LETOR text, or has no names of columns in its first line; leave out ",
            param(next(iter(options.columns), "ignore")),
            ", or give Parquet or CSV",
        )
    return TextSource(path, options)


def open_values(given: Any, **options: Any) -> Dataset | Source:
    """As `open_data`, but for use of the feature values: bins are refused."""
    data = open_data(given, **options)
    if not isinstance(data, Dataset | Source):
        raise DataError(f"{data.source}: has bins and no feature values; give a Dataset or a file name")
    return data


def read(data: Any, *, missing: str = "zero", first_stage: int | str | None = None, **columns: Any) -> Dataset:
    """Read data of any kind into memory as float32.

    Parameters
    ----------
    data
        A file name, a pandas, polars or Arrow table with columns `label` and `qid`, or a `Dataset`, which is returned.
    missing : "zero" or "nan"
        The value of a feature that is absent from a LETOR line.
    first_stage
        The feature with the first stage's score, by number from 0 or name.
    **columns
        As for `DataFile`: names of the columns `label`, `qid`, `docid`, `weight` and `position`, columns to `ignore`,
        and `categorical` ones.

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
    for name in columns:
        if name not in COLUMN_PARAMETERS:
            known = ("missing", "first_stage", *COLUMN_PARAMETERS)
            raise ParameterError(
                f"read has no parameter {name!r}; {did_you_mean(name, known)}expected {', '.join(known)}"
            )
    opened = open_values(DataFile(data, **columns) if columns else data, missing=missing, first_stage=first_stage)
    return opened if isinstance(opened, Dataset) else read_source(opened)


def read_like(given: Any, train_set: Dataset, *, missing: str = "zero") -> Dataset:
    """Validation or test data of any kind in memory, with the features of the training set.

    Tables are matched by name. Text may leave out the last features.
    """
    opened = open_values(given, missing=missing, wanted=train_set.feature_names, categories=train_set.categories)
    data = opened if isinstance(opened, Dataset) else read_source(opened)
    if isinstance(opened, Source) and opened.feature_names is None and data.n_features < train_set.n_features:
        check_narrow(opened, data.n_features, train_set.n_features)
        features = widened(data.features, train_set.n_features, data.absent)
        data = replace(data, features=features, info=replace(data.info, feature_names=train_set.feature_names))
    check_feature_names(data.feature_names, train_set.feature_names, data.source)
    check_same_codes(data.info, train_set.info)
    return data


def read_source(source: Source, *, query: Any = None) -> Dataset:
    """All documents of a source, or those of one query, which is given by its id."""
    try:
        return _read_source(source, query)
    except MemoryError as error:
        raise DataError(
            f"{source.path}: its feature values do not fit into memory ({error}); train on the file, which is "
            "read in blocks then, or free some memory"
        ) from error


def _read_source(source: Source, query: Any) -> Dataset:
    rows = _GrowingRows(source)
    growing = ListsBuilder(source.path, doc_ids=True)
    for block in source.blocks(READ_ROWS):
        if query is not None:
            block = block.take_runs(np.array([str(run_id) == str(query) for run_id in block.run_ids], dtype=bool))
        if query is None or block.n_docs:
            rows.append(block.features)
            growing.append(block)
    if query is not None and not growing.n_docs:
        raise DataError(f"{source.path}: no query has the id {str(query)!r}; give an id as in the file")
    features = rows.finish()
    return Dataset(features, growing.finish(), source.info.with_names(features.shape[1]))


class _GrowingRows:
    """A matrix to which rows, and sometimes columns, are added in place: there is never a second copy of it.

    Large arrays grow by `realloc`, which moves pages and not bytes. Rows are widened from the last to the first:

        | a a | b b | c c |                        two columns
        | a a . | b b . | c c . |                  three: c moves first, so nothing is overwritten before it is moved
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
        """Allocate n_rows, and as many more as the file seems to have."""
        expected = self._source.n_docs
        if expected is None:
            # The estimate improves along the file; it may reserve at most four times the rows read so far.
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
