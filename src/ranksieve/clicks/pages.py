"""One result page of a log as a record, and `LogBuilder`, which collects pages in columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ranksieve.clicks.log import NO_TEAM, ClickLog
from ranksieve.data.lists import check_id
from ranksieve.dtypes import OFFSET, ROW
from ranksieve.errors import DataError
from ranksieve.retrieval.notes import Notes

FIELDS = {  # names of the fields of a page, by role
    "query": ("query", "query_id", "qid", "user_query"),
    "documents": ("documents", "shown", "docs", "results", "doc_ids"),
    "clicks": ("clicks", "clicked"),
    "dwell": ("dwell", "dwell_time"),
    "time": ("time", "timestamp"),
    "session": ("session", "session_id", "user", "user_id", "client_id"),
    "swap": ("swap",),
    "teams": ("teams",),
}
TEAMS = {"a": 0, "A": 0, 0: 0, "b": 1, "B": 1, 1: 1, None: NO_TEAM, -1: NO_TEAM}
MILLISECONDS = 1e11  # a larger time counts milliseconds; in seconds it would be in the year 5138
NO_SESSION = -1
NO_NUMBER = "pages with a place or time that is not a number"


class InvalidPageError(ValueError):
    """A page that cannot be used; the text is the reason."""


@dataclass(frozen=True)
class PageOptions:
    """How pages are read.

    Parameters
    ----------
    depth
        Places of a page that are read; None reads all.
    min_dwell
        Seconds after a click from which on it counts; clicks without a dwell time count.
    first_place
        The number of the first place in the log, 0 or 1.
    """

    depth: int | None = None
    min_dwell: float = 0.0
    first_place: int = 0


@dataclass(frozen=True)
class Page:
    """One page with texts in place of numbers."""

    query: str
    documents: Sequence[str]
    clicks: Mapping[int, float]  # seconds after the click by place, NaN where they are not known
    time: float = math.nan
    session: str | None = None
    swap: tuple[int, int] = (-1, -1)
    teams: Sequence[int] | None = None


def page_of(record: Mapping[str, Any], options: PageOptions) -> Page:
    """The page that a record holds, or `InvalidPageError`."""
    found = {role: _value(record, names) for role, names in FIELDS.items()}
    query = id_text(found["query"], "a query")
    documents = [id_text(one, "a document") for one in list_of(found["documents"], "documents")]
    if not documents:
        raise InvalidPageError("pages without documents")
    if len(set(documents)) < len(documents):
        raise InvalidPageError("pages that show a document twice")
    teams = None if found["teams"] is None else [_team(one) for one in list_of(found["teams"], "teams")]
    if teams is not None and len(teams) != len(documents):
        raise InvalidPageError("pages with another number of teams than documents")
    swap = [_whole(place) - options.first_place for place in list_of(found["swap"], "swap")] or [-1, -1]
    if len(swap) != 2 or max(swap) >= len(documents) or (min(swap) < 0 and swap != [-1, -1]):
        raise InvalidPageError("pages whose swap is not two places of the page")
    if options.depth is not None and max(swap) >= options.depth:
        swap = [-1, -1]  # one of the two places is left out
    return Page(
        query,
        documents[: options.depth],
        _clicks(found, documents, options),
        time_of(found["time"]),
        None if found["session"] is None else id_text(found["session"], "a session"),
        (swap[0], swap[1]),
        None if teams is None else teams[: options.depth],
    )


def _clicks(found: Mapping[str, Any], documents: list[str], options: PageOptions) -> dict[int, float]:
    clicked = list_of(found["clicks"], "clicks")
    dwell = [math.nan if one is None else _number(one) for one in list_of(found["dwell"], "dwell")]
    if dwell and len(dwell) != len(clicked):
        raise InvalidPageError("pages with another number of dwell times than clicks")
    places: Iterable[int]
    if clicked and all(isinstance(one, bool) for one in clicked):
        if len(clicked) != len(documents):
            raise InvalidPageError("pages with another number of clicks, as true and false, than documents")
        places = [place if is_clicked else -1 for place, is_clicked in enumerate(clicked)]
    else:
        places = [_clicked_place(one, documents, options.first_place) for one in clicked]
    clicks: dict[int, float] = {}
    for place, seconds in zip(places, dwell or [math.nan] * len(clicked), strict=True):
        is_short = seconds < options.min_dwell
        if place >= 0 and not is_short and (options.depth is None or place < options.depth):
            known = clicks.get(place, math.nan)
            clicks[place] = max(seconds, known) if known == known else seconds
    return clicks


def _clicked_place(one: Any, documents: list[str], first_place: int) -> int:
    """The place of a click, which is given as an integer; or as a text, the document's id."""
    if isinstance(one, str):
        try:
            return documents.index(one)
        except ValueError:
            raise InvalidPageError("pages with a click on a document that is not shown") from None
    place = _whole(one) - first_place
    if place < 0:
        raise InvalidPageError(f"pages with a click above the first place, {first_place}")
    if place >= len(documents):
        raise InvalidPageError("pages with a click below the last place")
    return place


def id_text(value: Any, what: str) -> str:
    """The text of an id."""
    if type(value) is str and value:  # the usual case first
        try:
            check_id(value, what)
        except DataError:
            raise InvalidPageError(f"pages with {what} whose id has a NUL character or is not UTF-8") from None
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    raise InvalidPageError(f"pages with {what} that has no id")


def time_of(value: Any) -> float:
    """A time in seconds: of a number of seconds or milliseconds, or of a date as ISO 8601 writes it; NaN for None."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise InvalidPageError("pages with a time that is neither a number nor a date") from None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    seconds = _number(value)
    return seconds / 1000 if seconds > MILLISECONDS else seconds


def _value(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        if record.get(name) is not None:
            return record[name]
    return None


def list_of(value: Any, what: str) -> Sequence[Any]:
    """The values of a list; none for None."""
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not isinstance(value, list | tuple):
        raise InvalidPageError(f"pages whose {what} are not a list")
    return value


def _number(value: Any) -> float:
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        with suppress(OverflowError):  # of integers that are too large
            if math.isfinite(value):
                return float(value)
    raise InvalidPageError(NO_NUMBER)


def _whole(value: Any) -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise InvalidPageError(NO_NUMBER)


def _team(value: Any) -> int:
    try:
        return TEAMS[value]
    except (KeyError, TypeError):
        raise InvalidPageError("pages with a team other than 'a', 'b' and null") from None


class Numbers(dict[str, int]):
    """Numbers of texts, from 0 in the order of their first occurrence."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))

    def texts(self) -> np.ndarray:
        return np.array(list(self), dtype=object)


class LogBuilder:
    """Collects pages as columns of numbers: about five bytes per document shown, and each text once."""

    def __init__(self) -> None:
        self.query_numbers, self.doc_numbers, self._session_numbers = Numbers(), Numbers(), Numbers()
        self.offsets = array("q", [0])
        self.documents = array("i")
        self.clicks = array("b")
        self._queries, self._sessions, self._times = array("i"), array("i"), array("d")
        self._swaps, self._teams, self._dwell = array("i"), array("b"), array("f")
        self._has_teams = self._has_dwell = False

    @property
    def n_pages(self) -> int:
        return len(self.offsets) - 1

    def append(self, page: Page) -> None:
        """Add a page."""
        numbers, n = self.doc_numbers, len(page.documents)
        start = len(self.documents)
        self.documents.extend([numbers[id] for id in page.documents])
        self.clicks.frombytes(bytes(n))
        self._has_dwell = self._has_dwell or any(seconds == seconds for seconds in page.clicks.values())
        self._dwell.extend([math.nan] * n)
        for place, seconds in page.clicks.items():
            self.clicks[start + place] = 1
            self._dwell[start + place] = seconds
        self._has_teams = self._has_teams or page.teams is not None
        self._teams.extend([NO_TEAM] * n if page.teams is None else page.teams)
        self.offsets.append(start + n)
        self._queries.append(self.query_numbers[page.query])
        self._sessions.append(NO_SESSION if page.session is None else self._session_numbers[page.session])
        self._times.append(page.time)
        self._swaps.extend(page.swap)

    def finish(self, notes: Notes) -> ClickLog:
        """The log of all pages. Columns that no page has a value for are None."""
        times, sessions = np.array(self._times), np.array(self._sessions, ROW)
        swaps = np.array(self._swaps, ROW).reshape(-1, 2)
        return ClickLog(
            np.array(self.offsets, OFFSET),
            np.array(self._queries, ROW),
            np.array(self.documents, ROW),
            np.array(self.clicks, bool),
            self.query_numbers.texts(),
            self.doc_numbers.texts(),
            dwell=np.array(self._dwell) if self._has_dwell else None,
            times=None if np.isnan(times).all() else times,
            sessions=None if (sessions == NO_SESSION).all() else sessions,
            swaps=None if (swaps < 0).all() else swaps,
            teams=np.array(self._teams, np.int8) if self._has_teams else None,
            notes=notes,
        )
