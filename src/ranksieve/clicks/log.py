"""`ClickLog`: result pages and the clicks on them, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.data.lists import id_column, pieces_of, starts_of
from ranksieve.dtypes import OFFSET, ROW
from ranksieve.errors import DataError, ParameterError, check_choice, param
from ranksieve.retrieval.notes import Notes
from ranksieve.text_formats import counted

NO_TEAM = -1  # team of a document that both rankings of an interleaved page agree on
PARTS = ("page", "query", "session", "time")  # what `ClickLog.split` splits by
BY_ROW = ("documents", "clicks", "dwell", "teams")  # columns with one value per row
BY_PAGE = ("queries", "times", "sessions", "swaps")  # columns with one value per page


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog:
    """Result pages: page p shows the rows `offsets[p]:offsets[p + 1]`, from the top.

    Texts are stored once: a page has the number of its query, a row that of its document.

    Attributes
    ----------
    offsets
        First row of each page, and the number of rows.
    queries
        Number of each page's query; `query_ids` has the text.
    documents
        Number of each row's document; `doc_ids` has the text.
    clicks
        Whether each row was clicked.
    dwell
        Seconds after the click on each row, NaN without; None if the log has none.
    times
        Time of each page in seconds; None if the log has none.
    sessions
        Number of each page's session or user; None if the log has none.
    swaps
        Two places per page, from 0, whose documents were exchanged with probability one half; -1 for pages without.
    teams
        For interleaved pages: 0 for rows of ranking A, 1 for B, -1 for neither.
    notes
        What was left out while reading, counted.

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 8)
    >>> log.n_pages, log.n_clicks
    (8, 8)
    """

    offsets: np.ndarray
    queries: np.ndarray
    documents: np.ndarray
    clicks: np.ndarray
    query_ids: np.ndarray
    doc_ids: np.ndarray
    dwell: np.ndarray | None = None
    times: np.ndarray | None = None
    sessions: np.ndarray | None = None
    swaps: np.ndarray | None = None
    teams: np.ndarray | None = None
    notes: Notes = field(default_factory=Notes)

    @classmethod
    def from_arrays(cls, queries: Any, documents: Any, clicks: Any, sizes: Any, **columns: Any) -> ClickLog:
        """A log from one query per page, and the documents and clicks of all pages one after the other.

        Parameters
        ----------
        queries
            Query of each page, a number or text.
        documents, clicks
            Document of each row, and whether it was clicked.
        sizes
            Documents of each page.
        **columns
            Other attributes, such as `times`.

        Examples
        --------
        >>> ClickLog.from_arrays(["wine"], ["d1", "d2"], [0, 1], [2])
        ClickLog(1 page, 1 query, 2 documents, 1 click)
        """
        sizes = np.asarray(sizes, dtype=OFFSET)
        query_ids, query_numbers = np.unique(id_column(queries, "query"), return_inverse=True)
        doc_ids, doc_numbers = np.unique(id_column(documents, "document"), return_inverse=True)
        if (sizes < 1).any():
            raise DataError("a page has no documents; leave such pages out")
        if len(sizes) != len(query_numbers) or not sizes.sum() == len(doc_numbers) == len(np.asarray(clicks)):
            raise DataError(
                f"got {len(query_numbers)} queries and {len(sizes)} sizes of pages, which add up to {sizes.sum()}, for "
                f"{len(doc_numbers)} documents and {len(np.asarray(clicks))} clicks; give one size per page, and one "
                "click per document"
            )
        return cls(
            starts_of(sizes),
            query_numbers.astype(ROW).ravel(),
            doc_numbers.astype(ROW).ravel(),
            np.asarray(clicks).astype(bool),
            query_ids.astype(str).astype(object),
            doc_ids.astype(str).astype(object),
            **columns,
        )

    def __repr__(self) -> str:
        facts = {"page": self.n_pages, "query": self.n_queries, "document": self.n_documents, "click": self.n_clicks}
        return f"ClickLog({counted(**facts)})"

    @property
    def n_pages(self) -> int:
        return len(self.queries)

    @property
    def n_queries(self) -> int:
        """Different queries."""
        return int(np.count_nonzero(np.bincount(self.queries)))

    @property
    def n_documents(self) -> int:
        """Different documents."""
        return int(np.count_nonzero(np.bincount(self.documents)))

    @property
    def n_clicks(self) -> int:
        return int(self.clicks.sum())

    @property
    def n_places(self) -> int:
        """Documents of the longest page."""
        return int(self.sizes.max(initial=0))

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    @cached_property
    def places(self) -> np.ndarray:
        """The place of each row on its page, from 0."""
        return np.asarray((np.arange(len(self.documents)) - np.repeat(self.offsets[:-1], self.sizes)).astype(ROW))

    @cached_property
    def pair_keys(self) -> np.ndarray:
        """One number per row for its query and document."""
        return np.asarray(np.repeat(self.queries.astype(OFFSET), self.sizes) * len(self.doc_ids) + self.documents)

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of a query and a document that were shown."""
        keys, numbers = np.unique(self.pair_keys, return_inverse=True)
        return Pairs(keys, numbers.astype(ROW).ravel(), len(self.doc_ids))

    def by_place(self) -> tuple[np.ndarray, np.ndarray]:
        """How many rows each place has, and how many of them were clicked."""
        n = self.n_places
        return np.bincount(self.places, minlength=n), np.bincount(self.places[self.clicks], minlength=n)

    def take_pages(self, pages: Any) -> ClickLog:
        """The log of some pages, by number."""
        pages = np.asarray(pages)
        rows, offsets = pieces_of(self.offsets, pages)
        places = dict.fromkeys(BY_ROW, rows) | dict.fromkeys(BY_PAGE, pages)
        columns = {name: getattr(self, name) for name in places}
        taken: dict[str, Any] = {
            name: None if column is None else column[places[name]] for name, column in columns.items()
        }
        return replace(self, offsets=offsets, **taken)

    def split(self, share: float = 0.5, *, by: str = "page", seed: int = 0) -> tuple[ClickLog, ClickLog]:
        """The pages in two parts; `share` is that of the first.

        Parameters
        ----------
        share
            Share of the pages, queries or sessions.
        by
            "page"; "query" or "session", whose pages stay together; "time": the oldest pages come first.
        seed
            Random seed; not used with "time".

        Examples
        --------
        >>> log = ClickLog.from_arrays(["a", "b"], ["d1", "d2", "d1"], [0, 1, 1], [2, 1])
        >>> [part.n_pages for part in log.split(0.5)]
        [1, 1]
        """
        check_choice("by", by, PARTS)
        if not 0 < share < 1:
            raise ParameterError(param("share"), f" is {share!r}; expected a number between 0 and 1")
        column = {"query": self.queries, "session": self.sessions, "time": self.times, "page": np.arange(self.n_pages)}
        groups = column[by]
        if groups is None:
            raise DataError(f"the log has no {by}s to split by; split by 'page' or 'query'")
        if by == "time":
            ranks = np.empty(self.n_pages)
            ranks[np.argsort(groups, kind="stable")] = np.arange(self.n_pages) / self.n_pages
            first = ranks < share
        else:
            different, numbers = np.unique(groups, return_inverse=True)
            chosen = np.random.default_rng(seed).permutation(len(different)) < share * len(different)
            first = chosen[numbers.ravel()]
        return self.take_pages(np.flatnonzero(first)), self.take_pages(np.flatnonzero(~first))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Different pairs of query and document: ascending keys, and the number of each row's pair."""

    keys: np.ndarray
    of_rows: np.ndarray
    n_doc_ids: int

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def queries(self) -> np.ndarray:
        return self.keys // self.n_doc_ids

    @property
    def documents(self) -> np.ndarray:
        return self.keys % self.n_doc_ids

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of the values of rows, one per pair."""
        return np.bincount(self.of_rows, weights=values, minlength=len(self))


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each pair was shown and clicked at each place, sorted by pair: the rows of a log without repetition.

    Attributes
    ----------
    starts
        The first cell of each pair.
    pairs, places
        Pair and place of each cell.
    shown, clicked
        Counts of each cell; they need not be integers.
    """

    starts: np.ndarray
    pairs: np.ndarray
    places: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray

    @property
    def n_places(self) -> int:
        return int(self.places.max(initial=-1)) + 1

    def by_pair(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.starts)

    def by_place(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.places, weights=values, minlength=self.n_places)


def cells_of(log: ClickLog) -> Cells:
    """The cells of a log."""
    keys = log.pairs.of_rows.astype(OFFSET) * log.n_places + log.places
    different, numbers = np.unique(keys, return_inverse=True)
    shown = np.bincount(numbers.ravel(), minlength=len(different))
    clicked = np.bincount(numbers.ravel(), weights=log.clicks, minlength=len(different))
    return cells_from(different // log.n_places, different % log.n_places, shown, clicked)


def cells_from(pairs: Sequence[int] | np.ndarray, places: Any, shown: Any, clicked: Any) -> Cells:
    """Cells from one pair (ascending), place, and counts each."""
    pairs = np.asarray(pairs)
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    return Cells(
        starts, pairs.astype(ROW), np.asarray(places, ROW), np.asarray(shown, float), np.asarray(clicked, float)
    )
