"""Tables with one column per feature: pandas, polars, Arrow and NumPy in memory, and what files share with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from ranksieve.data.blocks import Block, Source, give_back_memory
from ranksieve.data.categories import Categorical, Encoder, is_number, kind_text
from ranksieve.data.data_file import ReadOptions
from ranksieve.data.dataset import BLOCK_ROWS
from ranksieve.data.features import FeatureInfo, feature_number, to_float
from ranksieve.data.list_columns import ListColumns, count_values, is_list
from ranksieve.data.lists import EXPECTED_POSITION, are_positions
from ranksieve.dtypes import FEATURE, LABEL, OFFSET, POSITION
from ranksieve.errors import DataError, ParamName, param

QID = "qid"
NONE = Categorical()
NUMBERS = ("label", "weight", "position")  # roles of columns that hold numbers
SLAB_ROWS = 2_048  # rows written column by column at a time, so that they stay in the cache
GIVE_BACK_EVERY = 16  # blocks; after each one it costs a quarter of the time of reading


def is_table(given: Any) -> bool:
    """Whether something is a pandas or polars DataFrame, or an Arrow Table or RecordBatch."""
    library = type(given).__module__.partition(".")[0]
    is_pandas, is_polars = library == "pandas" and getattr(given, "ndim", 0) == 2, library == "polars"
    return isinstance(given, pa.Table | pa.RecordBatch) or is_pandas or (is_polars and hasattr(given, "to_arrow"))


class Table(NamedTuple):
    """The features of a table, the rest by name."""

    features: Any
    names: tuple[str, ...] | None = None  # None for arrays
    qid: np.ndarray | None = None  # None where there are none
    categories: Mapping[str, Sequence[str]] = {}


def split_table(X: Any, wanted: Sequence[str] | None = None, categorical: Categorical = NONE) -> Table:
    """Features, their names, the query ids, and the categories of a table.

    Parameters
    ----------
    X
        A 2-D array (kept as it is), a scipy sparse matrix (as CSR), a pandas or polars DataFrame, or an Arrow Table or
        RecordBatch (all as float32 without their column `qid`), or nested lists.
    wanted
        Names of the features of a model. If a table has all of them, these columns are taken, in this order.
    categorical
        Which columns of a table hold categories.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = split_table(pa.table({"qid": [4, 4], "bm25": [1.5, None]}))
    >>> table.features.tolist(), table.names, table.qid.tolist()
    ([[1.5], [nan]], ('bm25',), [4, 4])
    """
    if scipy.sparse.issparse(X):
        _check_shape(X)
        _check_kind(X.dtype)
        return Table(X.tocsr())
    if is_table(X):
        return _split_columns(_columns(X), len(X), wanted, categorical)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise DataError(f"X is not a table ({error}); expected rows of equal length") from error
    _check_shape(array)
    _check_kind(array.dtype)
    return Table(array)


def _check_shape(X: Any) -> None:
    if X.ndim != 2:
        raise DataError(
            f"X has {X.ndim} dimension(s), shape {X.shape}; expected 2: one row per document, one column per feature"
        )
    if 0 in X.shape:
        raise DataError(f"X has shape {X.shape}; expected at least one row and one column")


def _check_kind(dtype: np.dtype) -> None:
    if dtype.kind not in "fiub":
        raise DataError(f"X holds {dtype} values; expected numbers, so give texts and categories as columns of a table")


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as Arrow arrays, by name."""
    if hasattr(table, "to_arrow"):  # polars
        table = table.to_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        names, columns = list(table.schema.names), list(table.columns)
    else:
        names = [str(name) for name in table.columns]
        columns = [_pandas_column(table.iloc[:, number], name) for number, name in enumerate(names)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are named {twice!r}; column names must be unique")
    return dict(zip(names, columns, strict=True))


def _pandas_column(series: Any, name: str) -> Any:
    """A pandas column as an Arrow array; NaN is null."""
    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be used ({error}); expected numbers") from error


def _split_columns(
    columns: dict[str, Any], n_rows: int, wanted: Sequence[str] | None, categorical: Categorical
) -> Table:
    """Columns of a table as one C-ordered float32 array, without the query ids."""
    qid = columns.pop(QID, None)
    lists = _list_columns(columns, categorical, wanted or ())
    if any(lists.values.values()):
        table = lists.expand(pa.table(columns))
        columns = dict(zip(table.schema.names, table.columns, strict=True))
    if wanted is not None and set(wanted) <= set(columns):
        columns = {name: columns[name] for name in wanted}
    if n_rows == 0 or not columns:
        raise DataError(
            f"the table has {n_rows} rows and {len(columns)} feature columns; expected at least one of each"
        )
    encoders = categorical.of({name: column.type for name, column in columns.items()}, "the table")
    for name, column in columns.items():
        if encoders.get(name) is None:
            check_numeric(name, column.type, in_memory=True)
    features = np.empty((n_rows, len(columns)), dtype=FEATURE)
    fill_rows(columns, encoders, features)
    if qid is not None and qid.null_count:
        raise DataError(f"the column {QID!r} has {qid.null_count} nulls; every row needs a query id")
    return Table(features, tuple(columns), None if qid is None else _to_numpy(plain(qid)), names_of(encoders))


def _list_columns(columns: Mapping[str, Any], categorical: Categorical, wanted: Sequence[str]) -> ListColumns:
    """The columns of lists of a table in memory."""
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    return ListColumns.of(schema, categorical, wanted, lambda name: count_values([columns[name]]))


def plain(column: Any) -> Any:
    """The column without dictionary encoding, in which categories of other libraries arrive."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def check_numeric(name: str, kind: pa.DataType, *, place: str = "", role: str = "", in_memory: bool = False) -> None:
    """Raise `DataError` for a column that does not hold numbers; booleans are numbers.

    Where a table is given `in_memory`, there is no parameter that leaves out columns.
    """
    if not is_number(kind.value_type if pa.types.is_dictionary(kind) else kind):
        leave_out = ["drop it"] if in_memory else ["leave it out, ", param("ignore", name)]
        if is_list(kind) and not role:
            raise DataError(
                f"{place}column {name!r} holds lists; ", *leave_out, ", or use a feature of 0 and 1 for each value in "
                "them, ", param("categorical", name),
            )  # fmt: skip
        remedy: list[str | ParamName] = ["name the column to use, ", param(role, "NAME"), ", or encode it as numbers"]
        if not role:
            remedy = [*leave_out, ", or use its categories, ", param("categorical", name)]
        raise DataError(f"{place}column {name!r} holds {kind_text(kind)}; expected numbers; ", *remedy)


def _to_numpy(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def to_numbers(column: Any, dtype: Any = FEATURE) -> np.ndarray:
    """An Arrow column as floats: null is NaN, and finite numbers beyond the type's range stop at its largest."""
    column = plain(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return to_float(_to_numpy(column), dtype)


def names_of(encoders: Mapping[str, Encoder | None]) -> dict[str, Sequence[str]]:
    """The names of the categories of each categorical column; they grow while the table is read."""
    return {name: [] if encoder is None else encoder.names for name, encoder in encoders.items()}


def fill_rows(columns: Mapping[str, Any], encoders: Mapping[str, Encoder | None], features: np.ndarray) -> None:
    """Columns into the columns of an array; where rows lie in memory one after the other, a slab of them at a time."""
    arrays = []
    for name, column in columns.items():
        encoder = encoders.get(name)
        arrays.append(to_numbers(column) if encoder is None else encoder.numbers(column))
    n_rows = len(features) if features.flags.f_contiguous else SLAB_ROWS
    for start in range(0, len(features), n_rows):
        slab = features[start : start + n_rows]
        for number, array in enumerate(arrays):
            slab[:, number] = array[start : start + n_rows]


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
    """

    reads_in_threads = True

    def __init__(self, info: FeatureInfo, schema: pa.Schema, options: ReadOptions, n_docs: int | None = None) -> None:
        place = info.source
        if len(set(schema.names)) < len(schema.names):
            raise DataError(f"{place}: two columns have the same name; column names must be unique")
        self._columns = options.find_columns(schema.names, place)
        names = options.find_features(schema.names, self._columns, place)
        self.n_docs, self.n_features = n_docs, len(names)
        if n_docs == 0 or not names:
            raise DataError(
                f"{place}: has {n_docs} rows and {len(names)} feature columns; expected at least one of each"
            )
        self._encoders = options.categorical.of({name: schema.field(name).type for name in names}, place)
        for name in names:
            if self._encoders.get(name) is None:
                check_numeric(name, schema.field(name).type, place=f"{place}: ")
        self._check_schema(schema, place)
        first_stage = info.first_stage if options.first_stage is None else options.first_stage
        found = {**info.categories, **names_of(self._encoders)}
        categories = {name: found[name] for name in names if name in found}
        self.info = FeatureInfo(
            names, feature_number(first_stage, names), place, info.absent, info.candidates, categories
        )

    def fingerprint(self) -> list[Any] | None:
        """Also the columns that are not features."""
        found = super().fingerprint()
        return None if found is None else [*found, sorted(self._columns.items())]

    def _check_schema(self, schema: pa.Schema, place: str) -> None:
        """Raise `DataError` unless labels, weights and positions are numbers, and ids can be written as text."""
        for role, name in self._columns.items():
            kind = schema.field(name).type
            if role in NUMBERS:
                check_numeric(name, kind, place=f"{place}: ", role=role)
                continue
            try:
                plain(pa.array([], kind)).cast(pa.string())
            except (pa.ArrowException, TypeError) as error:
                raise DataError(
                    f"{place}: column {name!r} holds {kind_text(kind)}; expected whole numbers or texts"
                ) from error

    @abstractmethod
    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, at most so many at a time; sets `fraction_read`."""

    def _place(self, row: int) -> str:
        """A row, counted from 0, as messages name it."""
        return f"{self.path}: row {row}"

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The documents in order, at most `rows` at a time."""
        done = 0
        self._spaces = [np.empty(0, FEATURE)] * 2
        for n_read, batch in enumerate(self._batches(rows), start=1):
            if batch.num_rows:
                yield self._block(batch, done)
            done += batch.num_rows
            del batch
            if n_read % GIVE_BACK_EVERY == 0:
                give_back_memory()
        self._spaces.clear()

    def _space(self, n_rows: int) -> np.ndarray:
        """Memory for the features of a block; by column, that of the block before the last: new memory takes time."""
        n_features = len(self.info.feature_names)
        if not self.by_column:
            return np.empty((n_rows, n_features), FEATURE)
        self._spaces.reverse()
        if self._spaces[0].size < n_rows * n_features:
            self._spaces[0] = np.empty(n_rows * n_features, FEATURE)
        return self._spaces[0][: n_rows * n_features].reshape(n_features, n_rows).T

    def _block(self, batch: pa.RecordBatch, done: int) -> Block:
        names = self.info.feature_names
        features = self._space(batch.num_rows)
        fill_rows({name: batch.column(name) for name in names}, self._encoders, features)
        infinite = np.isinf(features)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                f"{self._place(done + row)}: feature {names[column]!r} is infinite; "
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
            doc_ids = np.array(self._texts(batch.column(columns["docid"]), "docid").to_pylist(), dtype=object)
        return Block(
            features,
            labels,
            *runs,
            doc_ids=doc_ids,
            weights=self._grades(batch, columns["weight"], done, np.float64) if "weight" in columns else None,
            positions=self._positions(batch, columns["position"], done) if "position" in columns else None,
        )

    def _whole(self, batch: pa.RecordBatch, name: str, done: int) -> pa.Array:
        column = batch.column(name)
        if column.null_count:
            row = done + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"{self._place(row)}: column {name!r} is null; every row needs a value there")
        return column

    def _grades(self, batch: pa.RecordBatch, name: str, done: int, dtype: Any) -> np.ndarray:
        """Labels or weights: finite and not negative."""
        values = to_numbers(self._whole(batch, name, done), dtype)
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{self._place(done + row)}: column {name!r} is {values[row]}; expected finite numbers from 0 upwards"
            )
        return values

    def _positions(self, batch: pa.RecordBatch, name: str, done: int) -> np.ndarray:
        values = to_numbers(self._whole(batch, name, done), np.float64)
        fine = are_positions(values)
        if not fine.all():
            row = int(np.argmin(fine))
            raise DataError(
                f"{self._place(done + row)}: column {name!r} is {values[row]:g}; expected {EXPECTED_POSITION}"
            )
        return values.astype(POSITION)

    def _texts(self, column: pa.Array, role: str) -> pa.Array:
        column = plain(column)
        if isinstance(column.type, pa.BaseExtensionType):  # such as uuid
            return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
        try:
            texts = column.cast(pa.string())
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self.path}: column {self._columns[role]!r} has text that is not UTF-8; write the file as UTF-8"
            ) from error
        return texts

    def _runs(self, qid: pa.Array) -> tuple[list[Any], np.ndarray]:
        ids = plain(qid)
        if not (pa.types.is_integer(ids.type) or pa.types.is_floating(ids.type)):
            ids = self._texts(ids, "qid")
        runs = pc.run_end_encode(ids)
        ends = runs.run_ends.to_numpy(zero_copy_only=False).astype(OFFSET)
        return runs.values.to_pylist(), np.diff(ends, prepend=0)


class MemoryTable(TableSource):
    """A pandas, polars or Arrow table, read without a second copy of it."""

    def __init__(self, table: Any, options: ReadOptions) -> None:
        columns = _columns(table)
        lists = _list_columns(columns, options.categorical, options.wanted)
        self._table = lists.expand(pa.table(columns))
        info = FeatureInfo(source=f"the {type(table).__name__}")
        super().__init__(info, self._table.schema, options, self._table.num_rows)

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        yield from self._table.to_batches(max_chunksize=rows)
