"""Tables in memory: pandas, polars and Arrow, read as files are; and features in any form that Python has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from ranksieve.data.categories import Categorical
from ranksieve.data.data_file import ReadOptions
from ranksieve.data.features import FeatureInfo
from ranksieve.data.list_columns import count_values
from ranksieve.data.table_source import TableSource, encode_columns
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError, param

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
    X: Any,
    wanted: Sequence[str] | None = None,
    categorical: Categorical = NONE,
    dtype: Any = FEATURE,
    ignore: str = "",
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
    ignore
        Columns of a table that are not features: names or globs, separated by commas.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = split_table(pa.table({"qid": [4, 4], "bm25": [1.5, None]}))
    >>> table.features.tolist(), table.names, table.qid.tolist()
    ([[1.5], [nan]], ('bm25',), [4, 4])
    """
    if ignore and not is_table(X):
        raise ParameterError(
            param("ignore"), f" is {ignore!r}, but X is no table, so its columns have no names; leave them out of X"
        )
    if scipy.sparse.issparse(X):
        _check_shape(X)
        _check_kind(X.dtype)
        return Table(X.tocsr())
    if is_table(X):
        options = ReadOptions(
            ignore=ignore, categorical=categorical, needed=(), wanted=wanted or (), features_only=True
        )
        table = MemoryTable(X, options)
        return Table(table.to_matrix(dtype), table.info.feature_names, table.query_ids, table.info.categories)
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


class MemoryTable(TableSource):
    """A pandas, polars or Arrow table, read without a second copy of it."""

    def __init__(self, table: Any, options: ReadOptions) -> None:
        self._table = _to_arrow(table)
        info = FeatureInfo(source=f"the {type(table).__name__}")
        super().__init__(info, self._table.schema, options, self._table.num_rows)

    def _count_values(self, name: str) -> Counter[str]:
        return count_values([self._table.column(name)])

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        yield from self._table.to_batches(max_chunksize=rows)

    def to_matrix(self, dtype: Any) -> np.ndarray:
        """The features as one C-ordered array."""
        table = self._lists.expand(self._table)
        columns = {name: table.column(name) for name in self.info.feature_names}
        matrix = encode_columns(columns, self._encoders, dtype).to_matrix()
        self._warn_of_unknown()
        return matrix

    @property
    def query_ids(self) -> np.ndarray | None:
        """The query id of each row; None where the table has no such column."""
        return np.asarray(self._query_ids(self._table, 0)) if "qid" in self._columns else None


def _to_arrow(table: Any) -> pa.Table:
    if hasattr(table, "to_arrow"):  # polars
        table = table.to_arrow()
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    names = [str(name) for name in table.columns]
    columns = [_pandas_column(table.iloc[:, number], name) for number, name in enumerate(names)]
    return pa.Table.from_arrays(columns, names)


def _pandas_column(series: Any, name: str) -> Any:
    """A pandas column as an Arrow array; NaN is null. A column of NaN alone has no type: it may lack texts or lists."""
    try:
        column = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be used ({error}); expected numbers") from error
    return pa.nulls(len(column)) if column.null_count == len(column) else column
