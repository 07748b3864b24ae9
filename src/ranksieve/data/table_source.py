"""`TableSource`: a table with one column per feature that is read in blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranksieve.data.blocks import Block, Source, give_back_memory
from ranksieve.data.categories import Encoder, is_number, kind_text
from ranksieve.data.data_file import ReadOptions
from ranksieve.data.dataset import BLOCK_ROWS
from ranksieve.data.feature_columns import FeatureColumns
from ranksieve.data.features import FeatureInfo, feature_number, to_float
from ranksieve.data.list_columns import ListColumns, is_list
from ranksieve.data.lists import EXPECTED_POSITION, are_positions, check_id
from ranksieve.dtypes import FEATURE, LABEL, OFFSET, POSITION
from ranksieve.errors import DataError, ParamName, param
from ranksieve.text_formats import without_comma

NUMBERS = ("label", "weight", "position")  # roles of columns that hold numbers
ID_OF = {"qid": "query", "docid": "document"}  # roles of columns that hold ids
GIVE_BACK_EVERY = 16  # blocks; after each one it costs a quarter of the time of reading


class TableSource(Source):
    """A table: `label`, `qid`, `docid` (or `doc_id`) and `weight` by name, and every other column a feature.

    Parameters
    ----------
    info
        Its name in messages, and what else is known; names and first stage are filled in.
    schema
        Its columns.
    options
        Which columns hold what.
    n_docs
        The number of rows, where it is known.
    noted_first_stage
        The column that the file notes as the first stage's score; `options` take precedence. It may be left out.
    """

    can_read_ahead = True

    def __init__(
        self,
        info: FeatureInfo,
        schema: pa.Schema,
        options: ReadOptions,
        n_docs: int | None = None,
        noted_first_stage: str | None = None,
    ) -> None:
        place = info.source
        twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
        if twice is not None:
            raise DataError(f"{place}: two columns are named {twice!r}; column names must be unique")
        self._lists = ListColumns.of(schema, options.categorical, options.wanted, self._count_values)
        schema = self._lists.schema(schema)
        self._columns = options.find_columns(schema.names, place)
        names = options.find_features(schema.names, self._columns, place)
        self.n_docs, self.n_features = n_docs, len(names)
        if n_docs == 0 or not names:
            raise DataError(
                f"{place}: has {n_docs} rows and {len(names)} feature columns; expected at least one of each"
            )
        self._encoders = options.categorical.encoders_of({name: schema.field(name).type for name in names}, place)
        for name in names:
            if self._encoders.get(name) is None:
                _check_numbers(schema.field(name), place, features_only=options.features_only)
        self._check_roles(schema, place)
        first_stage, self.noted_first_stage = options.first_stage, noted_first_stage
        if first_stage is None and noted_first_stage in names:
            first_stage = noted_first_stage
        try:
            number = feature_number(first_stage, names)
        except DataError as error:
            raise error.with_prefix(f"{place}: ") from None
        found = {**info.categories, **category_names(self._encoders)}
        categories = {name: found[name] for name in names if name in found}
        features = set(names)
        left_out = options.reasons([name for name in schema.names if name not in features], self._columns)
        self.info = FeatureInfo(names, number, place, info.absent, info.candidates, categories, left_out)

    def fingerprint(self) -> list[Any] | None:
        """Also the columns that are not features."""
        found = super().fingerprint()
        return None if found is None else [*found, sorted(self._columns.items())]

    def _check_roles(self, schema: pa.Schema, place: str) -> None:
        """Raise `DataError` unless labels, weights and positions are numbers, and ids can be written as text."""
        for role, name in self._columns.items():
            kind = schema.field(name).type
            if role in NUMBERS:
                _check_numbers(schema.field(name), place, role)
                continue
            try:
                without_dictionary(pa.array([], kind)).cast(pa.string())
            except (pa.ArrowException, TypeError) as error:
                raise DataError(
                    f"{place}: column {name!r} holds {kind_text(kind)}; expected integers or texts"
                ) from error

    def _count_values(self, name: str) -> Counter[str]:
        """How often each value of a column of lists occurs; for tables that can have such columns."""
        raise NotImplementedError

    @abstractmethod
    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, a limited number at a time; sets `fraction_read`."""

    def _row_name(self, row: int) -> str:
        """A row, counted from 0, as messages name it."""
        return f"{self.path}: row {row}"

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The documents in order, at most `rows` at a time."""
        done = n_read = 0
        for batch in self._batches(rows):
            block = self._block(self._lists.expand(batch), done) if batch.num_rows else None
            done, n_read = done + batch.num_rows, n_read + 1
            del batch
            if block is not None:
                yield block
                del block  # before the next one is read
            if n_read % GIVE_BACK_EVERY == 0:
                give_back_memory()
        self._warn_of_unknown()

    def _warn_of_unknown(self) -> None:
        for name, encoder in self._encoders.items():
            if encoder is not None:
                encoder.warn_of_unknown(name, self.info.source)

    def _block(self, batch: pa.RecordBatch, done: int) -> Block:
        rows, features = self._read_features(batch, done), np.empty((batch.num_rows, 0), FEATURE)
        if rows is not None and not self.by_column:
            features, rows = rows.to_matrix(), None
        columns = self._columns
        labels = np.zeros(batch.num_rows, LABEL)
        if "label" in columns:
            labels = self._non_negative(batch, columns["label"], done, LABEL)
        runs: tuple[list[Any], np.ndarray] = [0], np.array([batch.num_rows], OFFSET)
        if "qid" in columns:
            runs = _runs(self._query_ids(batch, done))
        doc_ids = None
        if "docid" in columns:
            doc_ids = np.array(self._texts(batch.column(columns["docid"]), "docid", done).to_pylist(), dtype=object)
        return Block(
            features,
            labels,
            *runs,
            doc_ids=doc_ids,
            weights=self._non_negative(batch, columns["weight"], done, np.float64) if "weight" in columns else None,
            positions=self._positions(batch, columns["position"], done) if "position" in columns else None,
            columns=rows,
        )

    def _read_features(self, batch: pa.RecordBatch, done: int) -> FeatureColumns | None:
        """The features; None if the batch has none."""
        names = self.info.feature_names
        if names[0] not in batch.schema.names:
            return None
        rows = encode_columns({name: batch.column(name) for name in names}, self._encoders)
        if (found := rows.find_infinite()) is not None:
            raise DataError(
                f"{self._row_name(done + found[0])}: feature {names[found[1]]!r} is infinite; "
                "write null for an unknown value or a large finite number"
            )
        return rows

    def _without_nulls(self, batch: Any, name: str, done: int) -> Any:
        """A column of a batch or a table without nulls."""
        column = batch.column(name)
        if column.null_count:
            row = done + int(np.argmax(_to_numpy(column.is_null())))
            raise DataError(f"{self._row_name(row)}: column {name!r} is null; every row needs a value there")
        return column

    def _non_negative(self, batch: pa.RecordBatch, name: str, done: int, dtype: Any) -> np.ndarray:
        """Labels or weights: finite and not negative."""
        values = to_numbers(self._without_nulls(batch, name, done), dtype)
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{self._row_name(done + row)}: column {name!r} is {values[row]}; expected a finite number from 0"
            )
        return values

    def _positions(self, batch: pa.RecordBatch, name: str, done: int) -> np.ndarray:
        values = to_numbers(self._without_nulls(batch, name, done), np.float64)
        fine = are_positions(values)
        if not fine.all():
            row = int(np.argmin(fine))
            raise DataError(
                f"{self._row_name(done + row)}: column {name!r} is {values[row]:g}; expected {EXPECTED_POSITION}"
            )
        return values.astype(POSITION)

    def _query_ids(self, batch: Any, done: int) -> Any:
        """Query ids as numbers or texts."""
        ids = without_dictionary(self._without_nulls(batch, self._columns["qid"], done))
        is_plain = pa.types.is_integer(ids.type) or pa.types.is_floating(ids.type)
        return ids if is_plain else self._texts(ids, "qid", done)

    def _texts(self, column: Any, role: str, done: int) -> Any:
        """Ids as texts."""
        column = without_dictionary(column)
        if isinstance(column.type, pa.BaseExtensionType):  # such as uuid
            return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
        try:
            texts = column.cast(pa.string())
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self.path}: column {self._columns[role]!r} has text that is not UTF-8; write the file as UTF-8"
            ) from error
        row = pc.index(pc.match_substring(texts, "\0"), True).as_py()
        if row >= 0:
            check_id(texts[row].as_py(), ID_OF[role], f"{self._row_name(done + row)}: ")
        return texts


def _runs(ids: pa.Array) -> tuple[list[Any], np.ndarray]:
    runs = pc.run_end_encode(ids)
    ends = runs.run_ends.to_numpy(zero_copy_only=False).astype(OFFSET)
    return runs.values.to_pylist(), np.diff(ends, prepend=0)


def _check_numbers(column: pa.Field, place: str, role: str = "", *, features_only: bool = False) -> None:
    """Raise `DataError` for a column that does not hold numbers; booleans are numbers."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_number(kind):
        raise DataError(
            f"{place}: column {column.name!r} holds {kind_text(column.type)}; expected numbers; ",
            *not_numbers(column.name, role, of_lists=is_list(kind), features_only=features_only),
        )


def without_dictionary(column: Any) -> Any:
    """The column without dictionary encoding, in which categories of other libraries arrive."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def not_numbers(
    name: str, role: str = "", *, of_lists: bool = False, features_only: bool = False
) -> list[str | ParamName]:
    """What to do with a column that holds no numbers; `features_only` is that of `ReadOptions`."""
    if role:
        values = {"label": "labels as numbers, such as 0 for not relevant and 1 for relevant"}
        return [f"write {values.get(role, f'{role}s as numbers')}, or name another column with ", param(role, "NAME")]
    use = "a feature of 0 and 1 for each value in them" if of_lists else "its categories"
    name = without_comma(name)
    if features_only:
        return [f"drop it, or use {use} with ", param("categorical", name), " of Ranker.fit or of DataFile(table, …)"]
    return ["leave it out with ", param("ignore", name), f", or use {use} with ", param("categorical", name)]


def _to_numpy(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def to_numbers(column: Any, dtype: Any = FEATURE) -> np.ndarray:
    """An Arrow column as floats: null is NaN, and finite numbers beyond the type's range stop at its largest."""
    column = without_dictionary(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return to_float(_to_numpy(column), dtype)


def category_names(encoders: Mapping[str, Encoder | None]) -> dict[str, Sequence[str]]:
    """The names of the categories of each categorical column; they grow while the table is read."""
    return {name: [] if encoder is None else encoder.names for name, encoder in encoders.items()}


def encode_columns(
    columns: Mapping[str, Any], encoders: Mapping[str, Encoder | None], dtype: Any = FEATURE
) -> FeatureColumns:
    """Arrow columns as features: numbers, and the numbers of categories."""
    arrays = []
    for name, column in columns.items():
        encoder = encoders.get(name)
        arrays.append(to_numbers(column, dtype) if encoder is None else encoder.encode(column))
    return FeatureColumns(arrays, dtype)
