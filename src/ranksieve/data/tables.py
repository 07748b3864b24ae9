"""Tables with one column per feature: pandas, polars, Arrow and NumPy in memory, and what files share with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from ranksieve.data.categories import Categorical, Encoder, is_number, kind_text
from ranksieve.data.feature_columns import FeatureColumns
from ranksieve.data.features import order_by_number, to_float
from ranksieve.data.list_columns import ListColumns, count_values, is_list
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParamName, param

QID = "qid"
NONE = Categorical()


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


def split_table(
    X: Any, wanted: Sequence[str] | None = None, categorical: Categorical = NONE, dtype: Any = FEATURE
) -> Table:
    """Features, their names, the query ids, and the categories of a table.

    Parameters
    ----------
    X
        A 2-D array (kept as it is), a scipy sparse matrix (as CSR), a pandas or polars DataFrame, or an Arrow Table or
        RecordBatch (all as `dtype` without their column `qid`), or nested lists.
    wanted
        Names of the features of a model. If a table has all of them, these columns are taken, in this order.
    categorical
        Which columns of a table hold categories.
    dtype
        Type of the numbers of a table: float32 or float64.

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
        return _split_columns(arrow_columns(X), len(X), wanted, categorical, dtype)
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


def arrow_columns(table: Any) -> dict[str, Any]:
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
    """A pandas column as an Arrow array; NaN is null. A column of NaN alone has no type: it may lack texts or lists."""
    try:
        column = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be used ({error}); expected numbers") from error
    return pa.nulls(len(column)) if column.null_count == len(column) else column


def _split_columns(
    columns: dict[str, Any], n_rows: int, wanted: Sequence[str] | None, categorical: Categorical, dtype: Any
) -> Table:
    """Columns of a table as one C-ordered array, without the query ids."""
    qid = columns.pop(QID, None)
    lists = list_columns(columns, categorical, wanted or ())
    if any(lists.values.values()):
        table = lists.expand(pa.table(columns))
        columns = dict(zip(table.schema.names, table.columns, strict=True))
    if wanted is not None and set(wanted) <= set(columns):
        columns = {name: columns[name] for name in wanted}
    elif wanted is not None and (by_number := order_by_number(list(columns), wanted)) is not None:
        columns = {name: columns[name] for name in np.array(list(columns))[by_number].tolist()}
    if n_rows == 0 or not columns:
        raise DataError(
            f"the table has {n_rows} rows and {len(columns)} feature columns; expected at least one of each"
        )
    encoders = categorical.of({name: column.type for name, column in columns.items()}, "the table")
    for name, column in columns.items():
        if encoders.get(name) is None:
            check_numeric(name, column.type, in_memory=True)
    features = to_columns(columns, encoders, dtype).to_matrix()
    for name, encoder in encoders.items():
        if encoder is not None:
            encoder.warn_of_unknown(name, "the table")
    if qid is not None and qid.null_count:
        raise DataError(f"the column {QID!r} has {qid.null_count} nulls; every row needs a query id")
    return Table(features, tuple(columns), None if qid is None else _to_numpy(plain(qid)), names_of(encoders))


def list_columns(columns: Mapping[str, Any], categorical: Categorical, wanted: Sequence[str]) -> ListColumns:
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
        advice = [*leave_out, ", or use its categories, ", param("categorical", name)]
        raise DataError(
            f"{place}column {name!r} holds {kind_text(kind)}; expected numbers; ",
            *(encode_role(role) if role else advice),
        )


def encode_role(role: str) -> list[str | ParamName]:
    """What to do with a column of texts that holds labels, weights or positions."""
    values = {"label": "labels as numbers, such as 0 for not relevant and 1 for relevant"}
    return [f"write {values.get(role, f'{role}s as numbers')}, or name another column, ", param(role, "NAME")]


def _to_numpy(column: Any) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def to_numbers(column: Any, dtype: Any = FEATURE) -> np.ndarray:
    """An Arrow column as floats: null is NaN, and finite numbers beyond the type's range stop at its largest."""
    column = plain(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return to_float(_to_numpy(column), dtype)


def names_of(encoders: Mapping[str, Encoder | None]) -> dict[str, Sequence[str]]:
    """The names of the categories of each categorical column; they grow while the table is read."""
    return {name: [] if encoder is None else encoder.names for name, encoder in encoders.items()}


def to_columns(
    columns: Mapping[str, Any], encoders: Mapping[str, Encoder | None], dtype: Any = FEATURE
) -> FeatureColumns:
    """Arrow columns as features: numbers, and the numbers of categories."""
    arrays = []
    for name, column in columns.items():
        encoder = encoders.get(name)
        arrays.append(to_numbers(column, dtype) if encoder is None else encoder.numbers(column))
    return FeatureColumns(arrays, dtype)
