"""Columns of lists, such as the genres of a film: one column of 0 and 1 for each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ranksieve.data.categories import Categorical, most_frequent
from ranksieve.dtypes import MAX_BINS

IS = "="  # between the name of a column and a value of it: genres=war


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists."""
    return any(check(kind) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


@dataclass(frozen=True)
class ListColumns:
    """The values of columns that hold lists.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"genres": pa.array([["war", "drama"], None, ["war"]]), "year": pa.array([1, 2, 3])})
    >>> lists = ListColumns.of(batch.schema, Categorical("genres"), (), lambda name: count_values([batch.column(name)]))
    >>> lists.expand(batch).to_pydict()
    {'year': [1, 2, 3], 'genres=war': [1.0, 0.0, 1.0], 'genres=drama': [1.0, 0.0, 0.0]}
    """

    values: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls, schema: pa.Schema, categorical: Categorical, wanted: Sequence[str], count: Callable[[str], Counter[str]]
    ) -> ListColumns:
        """The columns of lists that are categorical; of each, the most frequent values or those of a model.

        `count` returns how often each value of a column occurs.
        """
        lists = [field.name for field in schema if is_list(field.type)]
        if wanted:
            known = [name.partition(IS) for name in wanted]
            lists += [field.name for field in schema if pa.types.is_null(field.type)]  # may lack lists
            return cls({name: [value for first, _, value in known if first == name and value] for name in lists})
        found = {}
        for name in lists if categorical.chosen else ():
            if categorical.matches(name):
                found[name] = most_frequent(count(name), MAX_BINS)
        return cls(found)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a table after `expand`."""
        kept = [field for field in schema if not self.values.get(field.name)]
        made = [pa.field(name, pa.float32()) for name in self._names()]
        return pa.schema([*kept, *made], metadata=schema.metadata)

    def _names(self) -> list[str]:
        return [f"{name}{IS}{value}" for name, values in self.values.items() for value in values]

    def expand(self, batch: Any) -> Any:
        """A record batch or a table with columns of 0 and 1 in place of those of lists; no list is an empty one."""
        if not any(self.values.values()):
            return batch
        names = [name for name in batch.schema.names if not self.values.get(name)]
        columns = [batch.column(name) for name in names]
        for name, values in self.values.items():
            columns += map(pa.array, _members(batch.column(name), values) if values else ())
        return type(batch).from_arrays(columns, names=[*names, *self._names()])


def count_values(columns: Iterable[Any]) -> Counter[str]:
    """How often each value occurs in columns of lists."""
    counts: Counter[str] = Counter()
    for column in columns:
        counts.update(value for value in _as_array(column).flatten().cast(pa.string()).to_pylist() if value)
    return counts


def _as_array(column: Any) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _members(column: Any, values: Sequence[str]) -> np.ndarray:
    """Per value, whether each list has it."""
    column = _as_array(column)
    if pa.types.is_null(column.type):
        column = column.cast(pa.list_(pa.string()))
    sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    places = {value: number for number, value in enumerate(values)}
    found = column.flatten().cast(pa.string()).to_pylist()
    rows = np.repeat(np.arange(len(column)), sizes)
    numbers = np.array([places.get(value, -1) for value in found], np.int64)
    members = np.zeros((len(values), len(column)), np.float32)
    members[numbers[numbers >= 0], rows[numbers >= 0]] = 1.0
    return members
