"""`Lists`: labels, queries, document ids, weights and positions of documents, without features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.dtypes import GRADE, LABEL, MAX_POSITION, OFFSET, POSITION
from ranksieve.errors import DataError

BLOCK_DOCS = 65_536  # documents of whole queries that are worked on together
EXPECTED_POSITION = f"a rank from 1 to {MAX_POSITION}, or 0 for documents that were not shown"


@dataclass(frozen=True)
class Lists:
    """The documents of queries without their features: query q owns rows `offsets[q]:offsets[q + 1]`.

    Attributes
    ----------
    stored_labels
        The label of each document as it is kept, which `small` lists do in one byte each. Code that only compares
        labels reads these, and needs no copy. `labels` are the same numbers as float32.
    offsets
        The first row of each query, and the number of rows.
    query_ids
        The ids of the queries.
    doc_ids, weights
        Id and weight of each document, or None.
    order
        If rows had to be regrouped by query, `order[i]` is the user's row of row i; else None.
    positions
        The ranks, from 1, at which documents were shown where labels are clicks; 0 for documents that were not shown.

    Examples
    --------
    >>> import ranksieve as rs
    >>> lists = rs.Dataset.from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "a", "b"]).lists
    >>> lists.labels.tolist(), lists.offsets.tolist(), lists.sizes.tolist()
    ([1.0, 0.0, 2.0], [0, 2, 3], [2, 1])
    """

    stored_labels: np.ndarray
    offsets: np.ndarray
    query_ids: np.ndarray
    doc_ids: np.ndarray | None = None
    weights: np.ndarray | None = None
    order: np.ndarray | None = None
    positions: np.ndarray | None = None

    @property
    def labels(self) -> np.ndarray:
        """The label of each document as float32; a new array where lists are small."""
        return self.stored_labels.astype(LABEL, copy=False)

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.stored_labels)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    def ordered(self, values: np.ndarray) -> np.ndarray:
        """Values of the user's rows in the order of the lists' rows."""
        return values if self.order is None else values[self.order]

    @property
    def query_weights(self) -> np.ndarray | None:
        """Weight of each query: the mean weight of its documents, as in LightGBM."""
        if self.weights is None:
            return None
        return np.asarray(np.add.reduceat(self.weights, self.offsets[:-1]) / self.sizes)

    def query_blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of whole queries that have about `BLOCK_DOCS` documents, at least one query each."""
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + BLOCK_DOCS, side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last

    def small(self) -> Lists:
        """The same lists in less memory, if all labels are integers up to 255."""
        if self.stored_labels.max(initial=0) > np.iinfo(GRADE).max:
            return self
        grades = self.stored_labels.astype(GRADE)
        return replace(self, stored_labels=grades) if np.array_equal(grades, self.stored_labels) else self

    def to_user_order(self, values: np.ndarray) -> np.ndarray:
        """Values of the rows, in the order in which the user gave the rows."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    def take_rows(self, rows: np.ndarray) -> Lists:
        """The lists of some documents, given by ascending rows, without queries that have none of them."""
        queries, sizes = np.unique(np.searchsorted(self.offsets, rows, side="right") - 1, return_counts=True)
        return self._subset(rows, queries, starts_of(sizes))

    def take_queries(self, queries: np.ndarray) -> tuple[Lists, np.ndarray]:
        """The lists of some queries, in the given order, and their rows in these lists."""
        rows, offsets = pieces_of(self.offsets, queries)
        return self._subset(rows, queries, offsets), rows

    def _subset(self, rows: np.ndarray, queries: np.ndarray, offsets: np.ndarray) -> Lists:
        return Lists(
            stored_labels=self.stored_labels[rows],
            offsets=offsets,
            query_ids=self.query_ids[queries],
            **document_columns(self, lambda column: column[rows]),
        )


def pieces_of(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of the pieces into which `offsets` cut an array, one after the other: their places, and new offsets."""
    sizes = np.diff(offsets)[chosen]
    starts = starts_of(sizes)
    return np.repeat(offsets[chosen] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def document_columns(data: Any, take: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """What `take` returns for document ids, weights and positions of `Lists` or a `Block`; None where it has none."""
    columns = {name: getattr(data, name) for name in ("doc_ids", "weights", "positions")}
    return {name: None if column is None else take(column) for name, column in columns.items()}


def share_of(n: Any, share: float) -> Any:
    """`ceil(share · n)` of a number or of several."""
    # 0.1 · 30 is 3.0000000000000004 in binary: slightly above an integer is that number
    count = np.ceil(share * n - 1e-9 * n).astype(np.int64)
    return count if isinstance(n, np.ndarray) else int(count)


def starts_of(sizes: Any) -> np.ndarray:
    """The first rows of runs of the given sizes, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)


def lists_from_runs(
    labels: np.ndarray,
    run_ids: Sequence[Any] | np.ndarray,
    run_lengths: np.ndarray,
    *,
    doc_ids: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    positions: np.ndarray | None = None,
) -> Lists:
    """Lists from runs of equal query ids; runs of the same query are joined stably.

    Queries are in the order of their first rows. If rows had to be moved, `Lists.order` is the permutation.
    """
    labels = np.ascontiguousarray(labels, dtype=LABEL)
    run_lengths = np.asarray(run_lengths, dtype=OFFSET)
    if len(labels) == 0:
        raise DataError("the data holds no documents; expected at least one row")
    if run_lengths.sum() != len(labels):
        raise DataError(
            f"the query sizes add up to {run_lengths.sum()} but there are {len(labels)} rows; "
            "group sizes must cover every row exactly once"
        )
    if (run_lengths <= 0).any():
        raise DataError(
            f"query number {int(np.argmax(run_lengths <= 0))} has no documents; leave empty queries out of the sizes"
        )
    _check_labels(labels)
    if weights is not None:
        weights = _check_weights(weights, len(labels))
    if positions is not None:
        positions = check_positions(positions, len(labels))
    run_query, query_ids = number_ids(run_ids)
    order = None
    if (np.diff(run_query) < 0).any():
        order = np.argsort(np.repeat(run_query, run_lengths), kind="stable")
        labels = labels[order]
        doc_ids, weights, positions = (
            None if column is None else column[order] for column in (doc_ids, weights, positions)
        )
    sizes = np.bincount(run_query, weights=run_lengths)
    return Lists(labels, starts_of(sizes), id_array(query_ids), doc_ids, weights, order, positions)


def number_ids(ids: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    """The number of each id, counted from 0 in the order of first occurrence, and the ids by number.

    Examples
    --------
    >>> numbers, ids = number_ids(["b", "a", "b"])
    >>> numbers.tolist(), ids
    ([0, 1, 0], ['b', 'a'])
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(id, len(numbers)) for id in ids], dtype=OFFSET), list(numbers)


def runs_of(qid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run-length encoding of a query-id column: the id and the length of every run of equal neighbours."""
    starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))
    return qid[starts], np.diff(np.append(starts, len(qid)))


def id_array(ids: Any) -> np.ndarray:
    """Query ids as int64 if all are integers without leading zeros, else as strings."""
    array = np.asarray(ids)
    if array.dtype.kind in "iu" and (array.dtype.kind == "i" or array.max(initial=0) < 2**63):
        return array.astype(np.int64)
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        return array.astype(np.int64)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise DataError("a query id is missing (NaN); every row needs one")
    texts = array.astype(object)
    if any(value is None or (isinstance(value, float) and value != value) for value in texts):
        raise DataError("a query id is missing (None or NaN); every row needs one")
    texts = np.array([str(value) for value in texts], dtype=object)
    if all(text.isascii() and text.isdigit() and len(text) < 18 and (text[0] != "0" or text == "0") for text in texts):
        return texts.astype(np.int64)
    return texts


def check_id(id: object, kind: str, place: str = "") -> None:
    """Refuse an id that files and arrays cannot hold.

    Arrays of text drop NUL characters at the end of an id, and then it equals another one. Half of a surrogate pair,
    which JSON can escape, is not UTF-8.
    """
    if not isinstance(id, str):
        return
    if "\0" in id:
        raise DataError(f"{place}the {kind} id {str(id)!r} has a NUL character; expected text without any; remove it")
    try:
        if not id.isascii():
            id.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{place}the {kind} id {str(id)!r} cannot be written as UTF-8 ({error.reason}); correct it"
        ) from error


def id_column(ids: Any, kind: str) -> np.ndarray:
    """Ids of rows, given in Python, as an array."""
    array = np.asarray(ids).ravel()
    if array.dtype.kind in "UO":
        for row, id in enumerate(array if array.dtype == object else ids):
            check_id(id, kind, f"row {row}: ")
    return array


def _check_labels(labels: np.ndarray) -> None:
    bad = ~np.isfinite(labels)
    if bad.any():
        raise DataError(f"the label of row {int(np.argmax(bad))} is {labels[np.argmax(bad)]}; labels must be finite")
    if (labels < 0).any():
        row = int(np.argmax(labels < 0))
        raise DataError(f"the label of row {row} is {labels[row]}; labels are grades from 0 (not relevant) upwards")


def _check_weights(weights: np.ndarray, n_docs: int) -> np.ndarray:
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if len(weights) != n_docs:
        raise DataError(f"got {len(weights)} weights for {n_docs} rows; give one per row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise DataError("weights must be finite, not negative, and not all zero")
    return weights


def check_positions(positions: np.ndarray, n_docs: int) -> np.ndarray:
    """Positions in their dtype, or `DataError`."""
    positions = np.asarray(positions)
    if len(positions) != n_docs:
        raise DataError(f"got {len(positions)} positions for {n_docs} rows; give one per row")
    fine = are_positions(positions)
    if not fine.all():
        row = int(np.argmin(fine))
        raise DataError(f"the position of row {row} is {positions[row]}; expected {EXPECTED_POSITION}")
    return np.ascontiguousarray(positions, dtype=POSITION)


def are_positions(values: np.ndarray) -> np.ndarray:
    """Which values are positions."""
    return np.asarray((values >= 0) & (values <= MAX_POSITION) & (values == np.floor(values)))


def list_facts(lists: Lists, n_features: int) -> list[tuple[str, str]]:
    """The size of a data set, in words."""
    if not lists.n_docs:
        return [("documents", "0"), ("features", f"{n_features:,}")]
    sizes, positives = lists.sizes, np.add.reduceat(lists.stored_labels > 0, lists.offsets[:-1])
    return [
        ("documents", f"{lists.n_docs:,}"),
        ("queries", f"{lists.n_queries:,}, {np.count_nonzero(positives == 0):,} of them without positives"),
        ("features", f"{n_features:,}"),
        ("documents per query", f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():,.1f}"),
        ("positives per query", f"{positives.min():,} to {positives.max():,}, mean {positives.mean():,.1f}"),
    ]
