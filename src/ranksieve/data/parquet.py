"""Parquet files with one column per feature: reading them in blocks, and writing them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.blocks import Block, Source, blocks_of
from ranksieve.data.data_file import ReadOptions
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.list_columns import count_values
from ranksieve.data.lists import Lists, id_array, starts_of
from ranksieve.data.pipes import permanent_paths
from ranksieve.data.sampled_rows import is_sampled
from ranksieve.data.table_source import TableSource
from ranksieve.dtypes import FEATURE, POSITION
from ranksieve.errors import DataError
from ranksieve.files import atomic_path

COLUMNS = ("label", "qid", "docid", "weight", "position")  # columns of a packed file besides its features
CATEGORY = pa.dictionary(pa.int32(), pa.string())
OPTIONAL = {"docid": pa.string(), "weight": pa.float64(), "position": pa.int16()}
FORMAT_KEY = b"ranksieve"
FORMAT_VERSION = 1
GROUP_ROWS = 16_384  # 14 MB of 220 features: a reader holds a group, compressed and not
PAGE_BYTES = 1 << 16  # a reader holds one page of every column
BUFFER_BYTES = 1 << 16  # bytes of the buffer of each column


class ParquetSource(TableSource):
    """A Parquet file; the first stage is the one given, else the one noted in the file."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self._file, self.info = path, FeatureInfo(source=str(path), absent=float("nan"))
        self.files = permanent_paths(path)
        with self._open() as file:
            schema = self._checked_read(lambda: file.schema_arrow)
            n_docs = file.metadata.num_rows
        note = self._note(schema)
        candidates, categorical = note.get("candidates"), note.get("categorical")
        info = FeatureInfo(
            (), None, str(path), float("nan"), candidates if isinstance(candidates, dict) else None,
            {str(name): [] for name in categorical} if isinstance(categorical, list) else {},
        )  # fmt: skip
        super().__init__(info, schema, options, n_docs, self._noted_first_stage(note, schema.names))

    def _count_values(self, name: str) -> Counter[str]:
        with self._open() as file:
            found: Counter[str] = self._checked_read(
                lambda: count_values(batch.column(name) for batch in file.iter_batches(columns=[name]))
            )
            return found

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        done, n_docs = 0, self.n_docs or 1
        with self._open() as file:
            for batch in self._read_batches(file, rows):
                done += batch.num_rows
                self.fraction_read = done / n_docs
                yield batch

    def _read_batches(self, file: pq.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows; where thresholds are learned, without features in row groups that are not needed for these."""
        for groups, columns in self._group_runs(file.metadata):
            options = {"row_groups": groups, "columns": columns, "use_threads": self.use_threads}
            batches = self._checked_read(partial(file.iter_batches, rows, **options))
            while (batch := self._checked_read(partial(next, batches, None))) is not None:
                yield batch

    def _group_runs(self, metadata: pq.FileMetaData) -> list[tuple[list[int] | None, list[str] | None]]:
        """Row groups that are read together, and which of their columns; None: all."""
        others = list(self._columns.values())
        if self.sampled_from is None or self.info.categories or any(self._lists.values.values()) or not others:
            return [(None, None)]
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        firsts = starts_of(sizes)[:-1] + self.sampled_from
        needed = [is_sampled(*group) for group in zip(firsts.tolist(), sizes, strict=True)]
        return [
            ([group for group, _ in run], None if is_needed else others)
            for is_needed, run in groupby(enumerate(needed), key=itemgetter(1))
        ]

    def _block(self, batch: pa.RecordBatch, done: int) -> Block:
        block: Block = self._checked_read(lambda: super(ParquetSource, self)._block(batch, done))
        return block

    def _open(self) -> pq.ParquetFile:
        # So a pass holds one block and a page of each column; pre-buffering would hold the whole file.
        return self._checked_read(lambda: pq.ParquetFile(self._file, pre_buffer=False, buffer_size=BUFFER_BYTES))

    def _checked_read(self, read: Callable[[], Any]) -> Any:
        """What a function reads from the file, or a `DataError` that names the problem with the file."""
        try:
            return read()
        except DataError:
            raise
        except MemoryError as error:
            raise DataError(
                f"{self.path}: reading it needs more memory than is free ({_first_line(error)}); free some memory, or "
                "write the file again with smaller row groups"
            ) from error
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise DataError(
                f"{self.path}: the Parquet data is damaged or cut short ({_first_line(error)}); fetch or write it again"
            ) from error

    def _note(self, schema: pa.Schema) -> dict[str, Any]:
        """What `write_parquet` noted in the file; nothing for files of others."""
        try:
            note: dict[str, Any] = json.loads((schema.metadata or {}).get(FORMAT_KEY, b"{}"))
            version = int(note.get("format", FORMAT_VERSION))
            if not isinstance(note.get("first_stage"), int | str | None):
                raise TypeError
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{self.path}: the note of ranksieve in it is damaged; pack the file again") from error
        if version > FORMAT_VERSION:
            raise DataError(
                f"{self.path}: was packed in format {version}, this version reads up to {FORMAT_VERSION}; "
                "upgrade with: pip install -U ranksieve"
            )
        return note

    def _noted_first_stage(self, note: dict[str, Any], columns: Sequence[str]) -> str | None:
        """The name of the first stage's score: it is noted by name, or by its number among the features."""
        noted = note.get("first_stage")
        if not isinstance(noted, int):
            return noted
        features = [name for name in columns if name not in COLUMNS]
        if not 0 <= noted < len(features):
            raise DataError(f"{self.path}: feature {noted} does not exist; the file has {len(features)}; pack it again")
        return features[noted]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def write_parquet(
    data: Dataset | Source, path: str | os.PathLike[str], *, progress: Callable[[float], None] | None = None
) -> None:
    """Write a data set, or a file as it is read, to one Parquet file: what the command `pack` does.

    Columns are `label` and `qid`, then `docid`, `weight` and `position` where there are any, then one float32 column
    per feature. Rows keep their order. A source is read twice: for what it holds, and for writing; one row group at a
    time is in memory. `progress` is called with the share of a source that is written.

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
    schema = _schema(data)  # a pass over a source, which finds its categories
    _write(path, schema, _reported(data, progress), absent, data.categories)


def _reported(data: Dataset | Source, progress: Callable[[float], None] | None) -> Iterator[Block]:
    for block in blocks_of(data):
        yield block
        if progress is not None and not isinstance(data, Dataset):
            progress(data.fraction_read)


def write_blocks(
    blocks: Iterable[Block], path: str | os.PathLike[str], info: FeatureInfo, *, query_ids: Iterable[Any]
) -> None:
    """Write blocks that have document ids and no weights to a Parquet file in one pass; `query_ids` are all of them."""
    schema = _make_schema(info, id_array(list(query_ids)), {"docid"})
    _write(path, schema, blocks, 0.0)


def _write(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    blocks: Iterable[Block],
    absent: float,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> None:
    features = [name for name in schema.names if name not in COLUMNS]
    encoded = [name for name in features if pa.types.is_dictionary(schema.field(name).type)]
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            compression="snappy",  # read back faster than zstd, which saves a sixth of the size
            use_dictionary=[*(name for name in COLUMNS if name in schema.names), *encoded],
            use_byte_stream_split=[name for name in features if name not in encoded],
            write_statistics=False,
            data_page_size=PAGE_BYTES,
        ) as writer,
    ):
        for group in _groups(_tables(blocks, schema, features, categories, absent)):
            writer.write_table(group, row_group_size=GROUP_ROWS)


def _schema(data: Dataset | Source) -> pa.Schema:
    if isinstance(data, Dataset):
        lists = data.lists
        return _make_schema(data.info, lists.query_ids, _optional(lists))
    seen: dict[Any, None] = {}
    found: set[str] = set()
    for block in data.blocks():
        seen.update(dict.fromkeys(block.run_ids))
        found |= _optional(block)
    info = data.info.with_names(data.n_features or 0)
    return _make_schema(info, id_array(list(seen)), found)


def _optional(data: Block | Lists) -> set[str]:
    """The columns that are there besides labels and query ids."""
    columns = {"docid": data.doc_ids, "weight": data.weights, "position": data.positions}
    return {name for name, column in columns.items() if column is not None}


def _make_schema(info: FeatureInfo, ids: np.ndarray, optional: Set[str]) -> pa.Schema:
    names = info.feature_names
    taken = [name for name in names if name in COLUMNS]
    if taken:
        raise DataError(f"a feature is named {taken[0]!r}, which Parquet files use for other things; rename it")
    fields = [
        ("label", pa.float32()),
        ("qid", pa.int64() if ids.dtype == np.int64 else pa.string()),
        *((name, kind) for name, kind in OPTIONAL.items() if name in optional),
        *(_feature_field(name, bool(info.categories.get(name))) for name in names),
    ]
    note: dict[str, Any] = {
        "format": FORMAT_VERSION, "first_stage": info.first_stage, "candidates": info.candidates
    }  # fmt: skip
    numbered = [name for name in names if name in info.categories and not info.categories[name]]
    note |= {"categorical": numbered} if numbered else {}
    return pa.schema(fields, metadata={FORMAT_KEY: json.dumps(note).encode()})


def _feature_field(name: str, is_named: bool) -> pa.Field:
    """A column of categories by name, or of numbers; these have NaN and no nulls, which are read faster."""
    return pa.field(name, CATEGORY) if is_named else pa.field(name, pa.float32(), nullable=False)


def _tables(
    blocks: Iterable[Block],
    schema: pa.Schema,
    features: list[str],
    categories: Mapping[str, Sequence[str]] | None,
    absent: float,
) -> Iterator[pa.Table]:
    named = {name: pa.array(names, pa.string()) for name, names in (categories or {}).items() if names}
    for block in blocks:
        columns = _side_columns(block, schema)
        by_feature = np.full((len(features), block.n_docs), absent, dtype=FEATURE)
        by_feature[: block.features.shape[1]] = block.features.T
        columns += [_feature_column(values, named.get(name)) for name, values in zip(features, by_feature, strict=True)]
        yield pa.table(columns, schema=schema)


def _feature_column(values: np.ndarray, names: pa.Array | None) -> pa.Array:
    """A feature: its values, or its categories by name."""
    if names is None:
        return pa.array(values)
    missing = np.isnan(values)
    numbers = pa.array(np.where(missing, 0, values).astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(numbers, names)


def _side_columns(block: Block, schema: pa.Schema) -> list[pa.Array]:
    kind = schema.field("qid").type
    cast = int if pa.types.is_integer(kind) else str
    qid = pa.array([cast(run_id) for run_id in block.run_ids], type=kind)
    columns = [pa.array(block.labels), qid.take(pa.array(np.repeat(np.arange(len(block.run_ids)), block.run_lengths)))]
    if "docid" in schema.names:
        doc_ids = [None] * block.n_docs if block.doc_ids is None else block.doc_ids
        columns.append(pa.array([None if doc_id is None else str(doc_id) for doc_id in doc_ids], type=pa.string()))
    if "weight" in schema.names:
        columns.append(pa.array(np.ones(block.n_docs) if block.weights is None else block.weights))
    if "position" in schema.names:
        columns.append(pa.array(np.zeros(block.n_docs, POSITION) if block.positions is None else block.positions))
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
