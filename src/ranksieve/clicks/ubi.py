"""OpenSearch's User Behavior Insights: pages from `ubi_queries`, clicks on them from `ubi_events`.

Records are read as the indices hold them, and as exports wrap them: in `_source`, or with bulk actions between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.pages import InvalidPageError, LogBuilder, Page, PageOptions, id_text, list_of, time_of
from ranksieve.retrieval.notes import Notes
from ranksieve.text_formats import some_of

HITS = "query_response_hit_ids"
ACTIONS = ("click",)
IMPRESSION = "impression"
BULK = ({"index"}, {"create"})  # the only keys of lines between documents of a bulk request


def source_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document that a record holds; empty for a bulk action."""
    if set(record) in BULK:
        return {}
    wrapped = record.get("_source")
    return wrapped if isinstance(wrapped, Mapping) else record


class _UbiReader:
    """Pages by `query_id`.

    Pages of queries without hits are made of `impression` events, which have an ordinal; they are complete only at the
    end.
    """

    def __init__(self, options: PageOptions, actions: frozenset[str], notes: Notes):
        self._options, self._actions, self._notes = options, actions, notes
        self._builder = LogBuilder()
        self._numbers: dict[str, int] = {}  # pages with hits
        self._waiting: dict[str, Page] = {}  # pages without
        self._seen: dict[str, dict[float, str]] = {}  # their documents by ordinal
        self._clicked: dict[str, list[str]] = {}

    def add_query(self, query: Mapping[str, Any]) -> None:
        id = id_text(query.get("query_id"), "a query_id")
        if id in self._numbers or id in self._waiting:
            raise InvalidPageError("queries whose query_id occurs twice")
        text = str(query.get("user_query") or "").strip()
        if not text:
            raise InvalidPageError("queries without user_query")
        id_text(text, "a user_query")
        shown = [id_text(hit, "a hit") for hit in list_of(query.get(HITS), "hits")][: self._options.depth]
        if len(set(shown)) < len(shown):
            raise InvalidPageError("pages that show a document twice")
        session = query.get("session_id") or query.get("client_id")
        page = Page(text, shown, {}, time_of(query.get("timestamp")), None if session is None else str(session))
        if shown:
            self._numbers[id] = self._builder.n_pages
            self._builder.append(page)
        else:
            self._waiting[id] = page

    def add_event(self, event: Mapping[str, Any]) -> None:
        action = str(event.get("action_name"))
        if action not in self._actions and action != IMPRESSION:
            raise InvalidPageError(f"events of other actions than {some_of(sorted(self._actions))}")
        id = event.get("query_id")
        if not isinstance(id, str) or (id not in self._numbers and id not in self._waiting):
            raise InvalidPageError("events whose query_id has no query")
        attributes = _table(event.get("event_attributes"))
        document = id_text(_table(attributes.get("object")).get("object_id"), "an event")
        if action == IMPRESSION:
            ordinal = _table(attributes.get("position")).get("ordinal")
            if not isinstance(ordinal, int | float):
                raise InvalidPageError("impressions without an ordinal")
            if id in self._waiting:
                self._seen.setdefault(id, {}).setdefault(ordinal, document)
        elif id in self._numbers:
            self._click(self._numbers[id], document)
        else:
            self._clicked.setdefault(id, []).append(document)

    def _click(self, page: int, document: str) -> None:
        builder, number = self._builder, self._builder.doc_numbers.get(document)
        try:
            if number is None:
                raise ValueError
            builder.clicks[builder.documents.index(number, builder.offsets[page], builder.offsets[page + 1])] = 1
        except ValueError:
            raise InvalidPageError("events with a click on a document that is not shown") from None

    def finish(self) -> ClickLog:
        for id, page in self._waiting.items():
            ordinals = self._seen.get(id, {})
            shown = list(dict.fromkeys(ordinals[one] for one in sorted(ordinals)))[: self._options.depth]
            clicked = self._clicked.get(id, [])
            self._notes.extend(
                "events with a click on a document that is not shown",
                (f"query_id {id}" for one in clicked if shown and one not in shown),
            )
            if not shown:
                self._notes.add("queries without hits or impressions", f"query_id {id}")
                continue
            clicks = {place: math.nan for place, one in enumerate(shown) if one in clicked}
            self._builder.append(Page(page.query, shown, clicks, page.time, page.session))
        return self._builder.finish(self._notes)


def _table(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def read_ubi(
    queries: Iterator[tuple[str, Any]],
    events: Iterator[tuple[str, Any]],
    options: PageOptions,
    actions: frozenset[str],
    notes: Notes,
) -> ClickLog:
    """The log that queries and events make; what cannot be used is counted in the notes."""
    reader = _UbiReader(options, actions, notes)
    for records, add in ((queries, reader.add_query), (events, reader.add_event)):
        for place, record in records:
            if not isinstance(record, Mapping):
                notes.add(record, place)
                continue
            source = source_of(record)
            if not source:
                continue
            try:
                add(source)
            except InvalidPageError as error:
                notes.add(str(error), place)
    return reader.finish()
