"""`Dataset`: documents of queries with a feature matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ranksieve.data.categories import Categorical, columns_text, other_categories, recoding, warn_of_unknown
from ranksieve.data.data_file import DataFile
from ranksieve.data.features import (
    Described,
    FeatureInfo,
    choose_features,
    default_names,
    feature_number,
    order_by_number,
    same_features,
    to_float,
)
from ranksieve.data.lists import Lists, id_array, id_column, list_facts, lists_from_runs, number_ids, runs_of
from ranksieve.dtypes import FEATURE, OFFSET
from ranksieve.errors import DataError, MissingQueriesError, ParameterError, param
from ranksieve.html_tables import html_facts
from ranksieve.text_formats import category_counts, counted

IDS = {"qid": "query", "doc_ids": "document"}  # arguments that hold ids, and of what
BLOCK_ROWS = 8_192  # 7 MB of 220 float32 features: large enough to amortise calls, small beside any data set


@dataclass(frozen=True, repr=False)
class Dataset(Described):
    """Documents of queries with their features.

    Features stay as the user gave them (an array or a scipy sparse matrix), in the user's row order. `blocks` returns
    them as float32 rows in the order of `lists`, so that there is no second copy of them.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "a", "b"])
    >>> data.n_docs, data.n_queries, data.n_features
    (3, 2, 1)
    """

    features: Any
    lists: Lists
    info: FeatureInfo

    def __new__(cls, *given: Any, **named: Any) -> Dataset:
        """Refuse arrays, which are for `from_arrays`, with a clear message."""
        lists = given[1] if len(given) > 1 else named.get("lists")
        if (given or named) and not isinstance(lists, Lists):  # neither: a copy is being made
            raise DataError(
                "Dataset(...) is made of features and Lists; for arrays or a DataFrame call "
                "Dataset.from_arrays(X, y, qid)"
            )
        return super().__new__(cls)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        group: Any = None,
        weights: Any = None,
        positions: Any = None,
        doc_ids: Any = None,
    ) -> Dataset:
        """A data set from a feature matrix, labels, and query ids per row (`qid`) or query sizes (`group`).

        `with_features` names the features of an array; those of a table have the names of its columns.

        Parameters
        ----------
        X
            An array, a scipy sparse matrix, or a pandas, polars or Arrow table. Columns of a categorical type hold
            categories; `DataFile(table, categorical="brand")` names others that do, and `DataFile(table, ignore="url")`
            columns that are not features.
        y
            The label of each document.
        qid, group
            The query id of each document, or the number of documents of each query. A table may have a column `qid`.
        weights
            One per document, or one per query in the order of the queries' first rows.
        positions
            Where labels are clicks, the ranks from 1 at which documents were shown; 0 for documents that were not.
        doc_ids
            The id of each document.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_arrays(np.eye(3), [1, 0, 2], qid=["a", "b", "a"])
        >>> data.lists.offsets.tolist(), data.lists.labels.tolist()
        ([0, 2, 3], [1.0, 2.0, 0.0])
        """
        from ranksieve.data.tables import split_table

        file = DataFile(X)
        if others := sorted(file.given.keys() - {"categorical", "ignore"}):
            raise ParameterError(
                param(others[0]), " is not used here; give y, qid and the others as arguments, or read the table with "
                "rs.read",
            )  # fmt: skip
        X, names, qid_column, categories = split_table(
            file.path, categorical=Categorical(columns_text(file.categorical)), ignore=columns_text(file.ignore)
        )
        if qid is None and group is None:
            qid = qid_column
        n_docs = X.shape[0]
        labels = _column(y, "y", n_docs)
        if names and "label" in names and np.array_equal(X[:, names.index("label")], labels.astype(FEATURE)):
            raise DataError("the column 'label' holds the labels y and would be a feature; drop it")
        if (qid is None) == (group is None):
            raise MissingQueriesError(
                "give exactly one of qid (one query id per row) and group (one size per query), or a DataFrame with a "
                "'qid' column"
            )
        if qid is not None:
            run_ids, run_lengths = runs_of(id_array(_column(qid, "qid", n_docs)))
        else:
            run_lengths = _sizes(group)
            run_ids = np.arange(len(run_lengths))
        lists = lists_from_runs(
            labels,
            run_ids,
            run_lengths,
            doc_ids=None if doc_ids is None else _column(doc_ids, "doc_ids", n_docs).astype(object),
            weights=None if weights is None else _weights(weights, run_ids, run_lengths),
            positions=None if positions is None else _column(positions, "positions", n_docs),
        )
        data = cls(X, lists, FeatureInfo(names or default_names(X.shape[1]), categories=categories))
        return data.with_features(categorical=file.categorical) if names is None else data

    def with_features(
        self,
        names: Sequence[str] | None = None,
        *,
        first_stage: int | str | None = None,
        categorical: str | Sequence[str] | None = None,
    ) -> Dataset:
        """The same data with the features described: for arrays, which have no names.

        Parameters
        ----------
        names
            One name per feature; None keeps the names.
        first_stage
            The feature with the first stage's score, by number from 0 or name.
        categorical
            More features that hold categories, as integers from 0: names or globs, separated by commas or in a list.

        Examples
        --------
        >>> data = Dataset.from_arrays([[0.5, 2], [0.1, 0]], [1, 0], group=[2])
        >>> data = data.with_features(["bm25", "brand"], first_stage="bm25", categorical="brand")
        >>> data.feature_names, data.first_stage, list(data.categories)
        (('bm25', 'brand'), 0, ['brand'])
        """
        old, new = self.feature_names, self.feature_names if names is None else tuple(names)
        if len(new) != len(old):
            raise DataError(f"got {len(new)} feature names for {len(old)} features; give one name per column")
        if len(set(new)) < len(new):
            raise DataError("two features have the same name; feature names must be unique")
        renamed = dict(zip(old, new, strict=True))
        categories = {renamed[name]: kept for name, kept in self.categories.items()}
        if chosen := columns_text(categorical):
            categories = {**{new[number]: [] for number in choose_features(chosen, new)}, **categories}
        number = self.first_stage if first_stage is None else feature_number(first_stage, new)
        info = replace(self.info, feature_names=new, first_stage=number, categories=categories)
        return replace(self, info=info)

    def __repr__(self) -> str:
        return f"Dataset({counted(query=self.n_queries, document=self.n_docs, feature=self.n_features)})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        categories = [("categorical", category_counts(self.info.categories))] if self.info.categories else []
        return html_facts("Dataset", [*list_facts(self.lists, self.n_features), *categories])

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.info.feature_names

    @property
    def labels(self) -> np.ndarray:
        return self.lists.labels

    @property
    def offsets(self) -> np.ndarray:
        return self.lists.offsets

    @property
    def query_ids(self) -> np.ndarray:
        return self.lists.query_ids

    @property
    def n_docs(self) -> int:
        return self.lists.n_docs

    @property
    def n_queries(self) -> int:
        return self.lists.n_queries

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows start:stop of the lists as a C-ordered float32 array; a view if the features are of this kind."""
        order = self.lists.order
        return self._dense(slice(start, stop) if order is None else order[start:stop])

    def _dense(self, rows: slice | np.ndarray) -> np.ndarray:
        chosen = self.features[rows]
        if scipy.sparse.issparse(chosen):
            chosen = chosen.toarray()
        return np.ascontiguousarray(to_float(chosen))

    def blocks(self, size: int = BLOCK_ROWS, *, in_user_order: bool = False) -> Iterator[np.ndarray]:
        """The feature rows in blocks, in the order of `lists` or in that of the user."""
        for start in range(0, self.n_docs, size):
            stop = min(start + size, self.n_docs)
            yield self._dense(slice(start, stop)) if in_user_order else self.rows(start, stop)

    def column(self, feature: int | str) -> np.ndarray:
        """One feature of all documents, in the order of `lists`."""
        number = feature_number(feature, self.feature_names)
        column = self.features[:, [number]]
        column = column.toarray() if scipy.sparse.issparse(column) else column
        return self.lists.ordered(to_float(np.asarray(column)).ravel())

    def take_queries(self, queries: Any) -> Dataset:
        """The data set of some queries, by number, in the given order."""
        lists, rows = self.lists.take_queries(np.asarray(queries, dtype=OFFSET))
        return self.with_rows(lists, rows)

    def take_rows(self, rows: np.ndarray) -> Dataset:
        """The data set of some documents, in list order, without queries that have none of them."""
        rows = np.sort(np.asarray(rows))
        return self.with_rows(self.lists.take_rows(rows), rows)

    def in_order(self, names: Sequence[str], categories: Mapping[str, Sequence[str]]) -> Dataset:
        """The data set with its features in the order of the names, and the numbers of `categories`.

        A data set with other features is returned unchanged.
        """
        data = self._reordered(names)
        return data._recoded(names, categories) if same_features(data.feature_names, names) else data

    def _recoded(self, names: Sequence[str], categories: Mapping[str, Sequence[str]]) -> Dataset:
        """The data set with the numbers of a model's categories; those that the model does not have are missing."""
        tables: dict[int, np.ndarray] = {}
        for number, (name, expected) in enumerate(zip(self.feature_names, names, strict=True)):
            if name in self.categories and expected not in categories:
                raise DataError(f"{self.source}: feature {name!r} is categorical here, but was not in training")
            ours, theirs = self.categories.get(name, ()), categories.get(expected, ())
            if bool(ours) != bool(theirs) and not np.isnan(self.column(number)).all():
                held = f"texts such as {ours[0]!r}" if ours else "numbers"
                raise other_categories(f"{self.source}: feature {name!r} holds {held}", theirs)
            table = recoding(ours, theirs)
            if table is not None:
                tables[number] = table
        if not tables:
            return self
        features = np.array(self.features, FEATURE)
        for number, table in tables.items():
            codes = np.nan_to_num(features[:, number], nan=len(table) - 1).astype(np.int64)
            features[:, number] = table[codes]
            if any(categories[names[number]]):  # the empty text alone: no tree uses the feature
                self._warn_of_unknown(self.feature_names[number], np.isnan(table[:-1]), codes)
        info = replace(self.info, feature_names=tuple(names), categories=categories)
        return replace(self, features=features, info=info)

    def _warn_of_unknown(self, name: str, unknown: np.ndarray, codes: np.ndarray) -> None:
        """Warn where most of the categories are those that a model does not have."""
        counts = np.bincount(codes, minlength=len(unknown) + 1)[:-1]
        met = np.flatnonzero(unknown & (counts > 0))
        names = [self.categories[name][number] for number in met.tolist()]
        warn_of_unknown(name, self.source, names, (int(counts[met].sum()), int(counts.sum())))

    def _reordered(self, names: Sequence[str]) -> Dataset:
        if set(self.feature_names) == set(names):
            numbers = {name: number for number, name in enumerate(self.feature_names)}
            columns = [numbers[name] for name in names]
        elif (by_number := order_by_number(self.feature_names, names)) is not None:
            columns = by_number.tolist()
        else:
            return self
        if columns == list(range(self.n_features)):
            return self
        first = None if self.first_stage is None else columns.index(self.first_stage)
        ordered = tuple(self.feature_names[number] for number in columns)
        info = replace(self.info, feature_names=ordered, first_stage=first)
        return replace(self, features=self.features[:, columns], info=info)

    def with_rows(self, lists: Lists, rows: np.ndarray) -> Dataset:
        """Other lists of these documents; `rows` are their rows in the lists of this data set."""
        order = self.lists.order
        return replace(self, features=self.features[rows if order is None else order[rows]], lists=lists)


def _column(values: Any, name: str, n_docs: int) -> np.ndarray:
    array = id_column(values, IDS[name]) if name in IDS else np.asarray(values).ravel()
    if len(array) != n_docs:
        raise DataError(f"{name} has {len(array)} values for {n_docs} rows; give one per row")
    if name in IDS:
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} holds values that are not numbers ({error}); expected numbers") from error


def _weights(weights: Any, run_ids: np.ndarray, run_lengths: np.ndarray) -> np.ndarray:
    """Weights of the documents, given per document or per query."""
    n_given, n_docs = np.size(weights), int(run_lengths.sum())
    queries, ids = number_ids(run_ids.tolist())
    if n_given not in (n_docs, len(ids)):
        raise DataError(
            f"got {n_given} weights for {n_docs} documents of {len(ids)} queries; give one per document or one per "
            "query"
        )
    given = _column(weights, "weights", n_given)
    return given if n_given == n_docs else np.repeat(given[queries], run_lengths)


def _sizes(group: Any) -> np.ndarray:
    sizes = np.asarray(group).ravel()
    if sizes.dtype.kind not in "iuf" or (sizes != np.floor(sizes)).any():
        raise DataError("group holds values that are not integers; give the number of documents of each query")
    return sizes.astype(OFFSET)
