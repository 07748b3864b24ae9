"""Feature tables of other libraries (NumPy, SciPy, pandas, polars, Arrow), and writing Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from ranksieve.data.blocks import Block, Source, blocks_of, candidates_of
from ranksieve.data.dataset import Dataset, default_names
from ranksieve.data.lists import id_array
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError
from ranksieve.files import atomic_path

QID = "qid"
COLUMNS = ("label", "qid", "docid", "weight")  # what a packed file has besides its features
FORMAT_KEY = b"ranksieve"
FORMAT_VERSION = 1
GROUP_ROWS = 16_384  # 14 MB of 220 features: a reader holds a group, compressed and not
PAGE_BYTES = 1 << 16  # a reader holds one page of every column
SLAB_ROWS = 2_048  # rows written column by column at a time, so that they stay in the cache
LARGEST = np.finfo(FEATURE).max


def split_table(X: Any) -> tuple[Any, tuple[str, ...] | None, np.ndarray | None]:
    """Features, their names, and the query ids of a table.

    Parameters
    ----------
    X
        A 2-D array (kept as it is), a scipy sparse matrix (as CSR), a pandas or polars DataFrame, or an Arrow Table or
        RecordBatch (all as float32 without their column `qid`), or nested lists.

    Returns
    -------
    tuple
        The features; the column names, None for arrays; the column `qid`, None where there is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> features, names, qid = split_table(pa.table({"qid": [4, 4], "bm25": [1.5, None]}))
    >>> features.tolist(), names, qid.tolist()
    ([[1.5], [nan]], ('bm25',), [4, 4])
    """
    library = type(X).__module__.partition(".")[0]
    if scipy.sparse.issparse(X):
        _check_shape(X)
        _check_kind(X.dtype)
        return X.tocsr(), None, None
    if isinstance(X, (pa.Table, pa.RecordBatch)):
        return _from_columns(X.schema.names, X.columns, X.num_rows)
    if library == "polars" and hasattr(X, "to_arrow"):
        return split_table(X.to_arrow())
    if library == "pandas" and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        columns = [pandas_column(X.iloc[:, number], str(name)) for number, name in enumerate(X.columns)]
        return _from_columns([str(name) for name in X.columns], columns, len(X))
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise DataError(f"X is not a table ({error}); expected rows of equal length") from error
    _check_shape(array)
    _check_kind(array.dtype)
    return array, None, None


def _check_shape(X: Any) -> None:
    if X.ndim != 2:
        raise DataError(
            f"X has {X.ndim} dimension(s), shape {X.shape}; expected 2: one row per document, one column per feature"
        )
    if 0 in X.shape:
        raise DataError(f"X has shape {X.shape}; expected at least one row and one column")


def _check_kind(dtype: np.dtype) -> None:
    if dtype.kind not in "fiub":
        raise DataError(f"X holds {dtype} values; expected numbers, so encode texts and categories as numbers first")


def pandas_column(series: Any, name: str) -> Any:
    """A pandas column as an Arrow array where it has one type, as `from_pandas` sees it (NaN is null)."""
    try:
        column = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"column {name!r} cannot be used ({error}); expected numbers") from error
    return column


def _from_columns(
    names: list[str], columns: Iterable[Any], n_rows: int
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray | None]:
    """Columns of a frame as one C-ordered float32 array, less the query ids."""
    by_name = dict(zip(names, columns, strict=True))
    if len(by_name) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are named {twice!r}; column names must be unique")
    qid = by_name.pop(QID, None)
    if n_rows == 0 or not by_name:
        raise DataError(
            f"the table has {n_rows} rows and {len(by_name)} feature columns; expected at least one of each"
        )
    for name, column in by_name.items():
        check_numeric(name, column.type)
    features = np.empty((n_rows, len(by_name)), dtype=FEATURE)
    fill_rows(list(by_name.values()), features)
    return features, tuple(by_name), None if qid is None else _query_ids(qid)


def _query_ids(column: Any) -> np.ndarray:
    if column.null_count:
        raise DataError(f"the column {QID!r} has {column.null_count} nulls; every row needs a query id")
    column = plain(column)
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def plain(column: Any) -> Any:
    """The column without dictionary encoding, which categories of other libraries arrive in."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def check_numeric(name: str, kind: pa.DataType, *, place: str = "") -> None:
    """Complain about a column that holds no numbers."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{place}column {name!r} holds {kind} values; expected numbers, so drop the column or encode it as numbers"
        )


def to_numbers(column: Any, dtype: Any = FEATURE) -> np.ndarray:
    """An Arrow column as floats: null is NaN, and finite numbers beyond the type's range stop at its largest."""
    values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore"):
        numbers = values.astype(dtype)
    if values.dtype == np.float64:
        over = np.isinf(numbers) & np.isfinite(values)
        if over.any():
            numbers[over] = np.copysign(LARGEST, values[over])
    return numbers


def fill_rows(columns: list[Any], features: np.ndarray) -> None:
    """Columns into the columns of a C-ordered array, a slab of rows at a time."""
    arrays = [to_numbers(column) for column in columns]
    for start in range(0, len(features), SLAB_ROWS):
        slab = features[start : start + SLAB_ROWS]
        for number, array in enumerate(arrays):
            slab[:, number] = array[start : start + SLAB_ROWS]


def write_parquet(data: Dataset | Source, path: str | os.PathLike[str]) -> None:
    """Write a data set, or a file as it is read, to one Parquet file: what the command `pack` does.

    Columns are `label`, `qid`, `docid` and `weight` where there are any, then one float32 column per feature. Rows keep
    their order. A source is read twice: for what it holds, and for writing; one row group at a time is in memory.

    Examples
    --------
    >>> import tempfile, ranksieve
    >>> data = ranksieve.Dataset.from_arrays([[0.5, 0.0], [0.1, 2.0]], [1, 0], qid=[7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(data, f"{folder}/tiny.parquet")
    ...     ranksieve.read(f"{folder}/tiny.parquet").query_ids.tolist()
    [7]
    """
    absent = 0.0 if isinstance(data, Dataset) else data.absent
    _write(path, _schema(data), blocks_of(data), absent)


def write_blocks(
    blocks: Iterable[Block],
    path: str | os.PathLike[str],
    *,
    query_ids: Iterable[Any],
    feature_names: Iterable[str],
    first_stage: int | None = None,
    candidates: str = "",
) -> None:
    """Write blocks that have document ids and no weights to a Parquet file in one pass; `query_ids` are all of them."""
    ids = id_array(list(query_ids))
    _write(path, _make_schema(feature_names, ids, True, False, first_stage, candidates), blocks, 0.0)


def _write(path: str | os.PathLike[str], schema: pa.Schema, blocks: Iterable[Block], absent: float) -> None:
    features = [name for name in schema.names if name not in COLUMNS]
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            compression="snappy",  # read back faster than zstd, which saves a sixth of the size
            use_dictionary=[name for name in COLUMNS if name in schema.names],
            use_byte_stream_split=features,
            write_statistics=False,
            data_page_size=PAGE_BYTES,
        ) as writer,
    ):
        for group in _groups(_tables(blocks, schema, len(features), absent)):
            writer.write_table(group, row_group_size=GROUP_ROWS)


def _schema(data: Dataset | Source) -> pa.Schema:
    if isinstance(data, Dataset):
        names, lists = data.feature_names, data.lists
        ids, has_docs, has_weights = lists.query_ids, lists.doc_ids is not None, lists.weights is not None
    else:
        seen: dict[Any, None] = {}
        has_docs = has_weights = False
        for block in data.blocks():
            seen.update(dict.fromkeys(block.run_ids))
            has_docs |= block.doc_ids is not None
            has_weights |= block.weights is not None
        names = data.feature_names or default_names(data.n_features or 0)
        ids = id_array(list(seen))
    return _make_schema(names, ids, has_docs, has_weights, data.first_stage, candidates_of(data))


def _make_schema(
    names: Iterable[str],
    ids: np.ndarray,
    has_docs: bool,
    has_weights: bool,
    first_stage: int | None,
    candidates: str,
) -> pa.Schema:
    names = tuple(names)
    taken = [name for name in names if name in COLUMNS]
    if taken:
        raise DataError(f"a feature is named {taken[0]!r}, which Parquet files use for other things; rename it")
    fields = [
        ("label", pa.float32()),
        ("qid", pa.int64() if ids.dtype == np.int64 else pa.string()),
        *([("docid", pa.string())] if has_docs else []),
        *([("weight", pa.float64())] if has_weights else []),
        *((name, pa.float32()) for name in names),
    ]
    note = {"format": FORMAT_VERSION, "first_stage": first_stage, "candidates": candidates}
    return pa.schema(fields, metadata={FORMAT_KEY: json.dumps(note).encode()})


def _tables(blocks: Iterable[Block], schema: pa.Schema, n_features: int, absent: float) -> Iterator[pa.Table]:
    for block in blocks:
        columns = _side_columns(block, schema)
        by_feature = np.full((n_features, block.n_docs), absent, dtype=FEATURE)
        by_feature[: block.features.shape[1]] = block.features.T
        yield pa.table([*columns, *(pa.array(column) for column in by_feature)], schema=schema)


def _side_columns(block: Block, schema: pa.Schema) -> list[pa.Array]:
    kind = schema.field("qid").type
    cast = int if pa.types.is_integer(kind) else str
    qid = pa.array([cast(run_id) for run_id in block.run_ids], type=kind)
    columns = [
        pa.array(block.labels),
        qid.take(pa.array(np.repeat(np.arange(len(block.run_ids)), block.run_lengths))),
    ]
    if "docid" in schema.names:
        doc_ids = [None] * block.n_docs if block.doc_ids is None else block.doc_ids
        columns.append(pa.array([None if doc_id is None else str(doc_id) for doc_id in doc_ids], type=pa.string()))
    if "weight" in schema.names:
        columns.append(pa.array(np.ones(block.n_docs) if block.weights is None else block.weights))
    return columns


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables joined to row groups of GROUP_ROWS rows."""
    waiting: list[pa.Table] = []
    n_rows = 0
    for table in tables:
        waiting.append(table)
        n_rows += table.num_rows
        while n_rows >= GROUP_ROWS:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, GROUP_ROWS)
            waiting = [joined.slice(GROUP_ROWS)]
            n_rows -= GROUP_ROWS
    if n_rows:
        yield pa.concat_tables(waiting)
