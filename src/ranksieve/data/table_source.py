"""`TableSource`: tables with one column per feature, read in blocks; what all kinds of files have in common."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranksieve.data.blocks import Block, give_back_memory
from ranksieve.data.data_file import NEEDED, USUAL, find_columns
from ranksieve.data.dataset import BLOCK_ROWS, _feature_number
from ranksieve.data.tables import check_numeric, fill_rows, plain, to_numbers
from ranksieve.dtypes import FEATURE, LABEL, OFFSET
from ranksieve.errors import DataError

GIVE_BACK_EVERY = 16  # blocks; after each one it costs a quarter of the time of reading


class TableSource(ABC):
    """A table: `label`, `qid`, `docid` (or `doc_id`) and `weight` by name, and every other column a feature.

    Parameters
    ----------
    path
        The file.
    schema
        Its columns.
    columns
        Names of the columns that hold `label`, `qid`, `docid` and `weight`, where they are called otherwise; columns of
        these names are no features then either.
    first_stage
        The feature that holds the first stage's score, by number from 0 or name.
    n_docs
        The number of rows, where it is known.
    needed
        Which columns must be there. Without labels all are 0, without query ids all documents are of one query.
    """

    absent = float("nan")
    candidates = ""

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        columns: Mapping[str, str],
        first_stage: int | str | None,
        n_docs: int | None = None,
        needed: Sequence[str] = NEEDED,
    ) -> None:
        self.path = path
        self.n_docs = n_docs
        self.fraction_read = 0.0
        self._columns = find_columns(schema.names, columns, path, needed)
        self._check_schema(schema)
        sides = {*self._columns.values(), *itertools.chain(*USUAL.values())}  # a second column `label` would tell all
        names = tuple(name for name in schema.names if name not in sides)
        self.feature_names: tuple[str, ...] | None = names
        self.n_features: int | None = len(names)
        if self.n_docs == 0 or not names:
            raise DataError(
                f"{path}: has {self.n_docs} rows and {self.n_features} feature columns; expected at least one of each"
            )
        for name in names:
            check_numeric(name, schema.field(name).type, place=f"{path}: ")
        self.first_stage = _feature_number(first_stage, names)

    @abstractmethod
    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in file order, at most so many at a time; sets `fraction_read`."""

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The documents in file order, at most `rows` at a time."""
        done = 0
        for n_read, batch in enumerate(self._batches(rows), start=1):
            if batch.num_rows:
                yield self._block(batch, done)
            done += batch.num_rows
            del batch
            if n_read % GIVE_BACK_EVERY == 0:
                give_back_memory()

    def _check_schema(self, schema: pa.Schema) -> None:
        if len(set(schema.names)) < len(schema.names):
            raise DataError(f"{self.path}: two columns have the same name; column names must be unique")
        for role in ("label", "weight"):
            if role in self._columns:
                name = self._columns[role]
                check_numeric(name, schema.field(name).type, place=f"{self.path}: ")
        qid = self._columns.get("qid")
        if qid is None:
            return
        kind = schema.field(qid).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(kind):
            raise DataError(f"{self.path}: column {qid!r} holds {kind} values; expected whole numbers or texts")

    def _block(self, batch: pa.RecordBatch, done: int) -> Block:
        names = self.feature_names or ()
        features = np.empty((batch.num_rows, len(names)), dtype=FEATURE)
        fill_rows([batch.column(name) for name in names], features)
        infinite = np.isinf(features)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"{self.path}: feature {names[column]!r} of row {done + row} is infinite; "
                "write null for an unknown value or a large finite number"
            )
        columns = self._columns
        labels = np.zeros(batch.num_rows, LABEL)
        if "label" in columns:
            labels = self._grades(batch, columns["label"], done, LABEL)
        runs: tuple[list[Any], np.ndarray] = [0], np.array([batch.num_rows], OFFSET)
        if "qid" in columns:
            runs = self._runs(self._whole(batch, columns["qid"], done))
        doc_ids = None
        if "docid" in columns:
            doc_ids = np.array(plain(batch.column(columns["docid"])).cast(pa.string()).to_pylist(), dtype=object)
        return Block(
            features,
            labels,
            *runs,
            doc_ids=doc_ids,
            weights=self._grades(batch, columns["weight"], done, np.float64) if "weight" in columns else None,
        )

    def _whole(self, batch: pa.RecordBatch, name: str, done: int) -> pa.Array:
        column = batch.column(name)
        if column.null_count:
            row = done + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"{self.path}: column {name!r} of row {row} is null; every row needs a value there")
        return column

    def _grades(self, batch: pa.RecordBatch, name: str, done: int, dtype: Any) -> np.ndarray:
        """Labels or weights: finite and not negative."""
        values = to_numbers(self._whole(batch, name, done), dtype)
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{self.path}: column {name!r} of row {done + row} is {values[row]}; "
                "expected finite numbers from 0 upwards"
            )
        return values

    def _runs(self, qid: pa.Array) -> tuple[list[Any], np.ndarray]:
        runs = pc.run_end_encode(plain(qid))
        ends = runs.run_ends.to_numpy(zero_copy_only=False).astype(OFFSET)
        return runs.values.to_pylist(), np.diff(ends, prepend=0)
