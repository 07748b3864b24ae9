"""Logs are read from every format alike, and what cannot be used is counted with its place."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError, RanksieveWarning

PAGES = [
    {"query": "red wine", "documents": ["d7", "d2", "d9"], "clicks": [1], "dwell": [30.5], "time": 5.0, "user": "u1"},
    {"query": "rose", "documents": ["d2", "d5"], "clicks": [], "dwell": [], "time": 9.0, "user": "u2"},
    {"query": "red wine", "documents": ["d2", "d7"], "clicks": [0, 1], "dwell": [2, 70], "time": 7.0, "user": "u1"},
]


def columns(log):
    return {
        "offsets": log.offsets.tolist(),
        "queries": log.query_ids[log.queries].tolist(),
        "documents": log.doc_ids[log.documents].tolist(),
        "clicks": log.clicks.astype(int).tolist(),
        "dwell": None if log.dwell is None else [None if math.isnan(one) else one for one in log.dwell.tolist()],
        "times": None if log.times is None else log.times.tolist(),
        "sessions": None if log.sessions is None else log.sessions.tolist(),
    }


EXPECTED = {
    "offsets": [0, 3, 5, 7],
    "queries": ["red wine", "rose", "red wine"],
    "documents": ["d7", "d2", "d9", "d2", "d5", "d2", "d7"],
    "clicks": [0, 1, 0, 0, 0, 1, 1],
    "dwell": [None, 30.5, None, None, None, 2.0, 70.0],
    "times": [5.0, 9.0, 7.0],
    "sessions": [0, 1, 0],
}


def lines(pages):
    return "".join(json.dumps(page) + "\n" for page in pages)


def test_every_format_gives_the_same_log(tmp_path):
    plain, packed, parquet = tmp_path / "log.jsonl", tmp_path / "log.jsonl.gz", tmp_path / "log.parquet"
    plain.write_text(lines(PAGES))
    packed.write_bytes(gzip.compress(lines(PAGES).encode()))
    table = pa.Table.from_pylist(PAGES)
    pq.write_table(table, parquet)
    for given_log in (PAGES, plain, packed, parquet, table, pd.DataFrame(PAGES), pl.DataFrame(PAGES), iter(PAGES)):
        assert columns(rs.clicks.read(given_log)) == EXPECTED
    assert columns(rs.clicks.read([str(plain), str(parquet)]))["queries"] == EXPECTED["queries"] * 2


def test_clicks_are_places_ids_or_flags():
    page = {"query": 3, "documents": [11, 12, 13]}
    for clicks in ([2, 0], ["13", "11"], [True, False, True]):
        assert rs.clicks.read([page | {"clicks": clicks}]).clicks.tolist() == [True, False, True]
    assert rs.clicks.read([page | {"clicks": [3, 1]}], first_place=1).clicks.tolist() == [True, False, True]
    assert rs.clicks.read([page | {"clicks": []}]).n_clicks == 0


def test_the_first_click_below_the_depth_does_not_count():
    log = rs.clicks.read([{"query": "q", "documents": ["a", "b", "c"], "clicks": [1, 2]}] * 2, depth=2)
    assert log.clicks.tolist() == [False, True] * 2


def test_depth_and_dwell_limit_what_counts():
    log = rs.clicks.read(PAGES, depth=2, min_dwell=10)
    assert log.n_places == 2
    assert log.clicks.tolist() == [False, True, False, False, False, True]


def test_times_are_seconds_milliseconds_or_dates():
    base = {"query": "a", "documents": ["d"], "clicks": []}
    times = [1_700_000_000, 1_700_000_000_000, "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", None]
    log = rs.clicks.read([base | {"time": time} for time in times])
    assert log.times[:4].tolist() == [1.7e9] * 4 and math.isnan(log.times[4])


def test_a_field_of_clicks_with_another_name_is_reported():
    page = {"query": "a", "documents": ["d1"], "clickz": [0]}
    message = "page 1: has only query, documents, clickz; the field clicks is missing on 3 of 5 pages"
    with pytest.warns(RanksieveWarning, match=message):
        log = rs.clicks.read([page | {"clicked": [0]}, page, page, page, page | {"clicks": None}])
    assert log.clicks.sum() == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.clicks.read([page | {"clicks": []}, page])


STRANGE = [
    ('{"query": "a", "documents": ["d1"]', "lines that are not JSON"),
    ("[1, 2]", "lines that hold no JSON object"),
    ('{"documents": ["d1"], "clicks": []}', "a query that has no id"),
    ('{"query": "a", "documents": [], "clicks": []}', "without documents"),
    ('{"query": "a", "documents": ["d1", "d1"], "clicks": []}', "show a document twice"),
    ('{"query": "a", "documents": ["d1", null], "clicks": []}', "a document that has no id"),
    (
        r'{"query": "a\u0000", "documents": ["d1"], "clicks": []}',
        "a query whose id has a NUL",
    ),
    (
        r'{"query": "a", "documents": ["d\ud800"], "clicks": []}',
        "a document whose id .* or is not UTF-8",
    ),
    ('{"query": "a", "documents": ["d1"], "clicks": [1]}', "below the last place"),
    ('{"query": "a", "documents": ["d1"], "clicks": [-1]}', "a click above the first place, 0"),
    ('{"query": "a", "documents": ["d1"], "clicks": ["d2"]}', "not shown"),
    ('{"query": "a", "documents": "d1", "clicks": []}', "not a list"),
    ('{"query": "a", "documents": ["d1"], "clicks": [0], "dwell": [1, 2]}', "dwell times"),
    ('{"query": "a", "documents": ["d1"], "clicks": [0.5]}', "not a number"),
    ('{"query": "a", "documents": ["d1"], "clicks": [], "time": 1' + 400 * "0" + "}", "not a number"),
    ('{"query": "a", "documents": ["d1"], "clicks": [], "time": "soon"}', "neither a number nor a date"),
    ('{"query": "a", "documents": ["d1"], "clicks": [], "teams": ["a", "b"]}', "number of teams"),
    ('{"query": "a", "documents": ["d1"], "clicks": [], "teams": ["c"]}', "team other than"),
    ('{"query": "a", "documents": ["d1"], "clicks": [], "swap": [0, 1]}', "swap is not"),
    ('{"query": "\udcff"}'.encode("utf-8", "surrogateescape"), "lines that are not JSON"),
]


@pytest.mark.parametrize(("line", "reason"), STRANGE, ids=[reason for _, reason in STRANGE])
def test_invalid_lines_are_counted_with_their_place(tmp_path, line, reason):
    file, good = tmp_path / "log.jsonl", lines(PAGES[:1]).encode()
    line = line if isinstance(line, bytes) else line.encode()
    file.write_bytes(good + line + b"\n\n" + good + line + b"\n")
    with pytest.warns(RanksieveWarning, match=rf"{reason}.*: 2 .*log.jsonl:2, .*log.jsonl:5"):
        log = rs.clicks.read(file)
    assert log.n_pages == 2 and len(log.notes) == 1
    with pytest.raises(DataError, match=r"log.jsonl:2: "):
        rs.clicks.read(file, strict=True)
    file.write_bytes(line + b"\n")
    with pytest.raises(DataError, match="no page that can be used"):
        rs.clicks.read(file)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4),
            st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True),
            st.sets(st.integers(0, 5)),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["log.jsonl", "log.jsonl.gz", "log.parquet"]),
)
def test_what_is_written_is_read_again(tmp_path_factory, pages, name):
    records = [
        {"query": query, "documents": [f"d{n}" for n in docs], "clicks": [c for c in sorted(clicks) if c < len(docs)]}
        for query, docs, clicks in pages
    ]
    log = rs.clicks.read(records)
    file = tmp_path_factory.mktemp("log") / name
    rs.clicks.write(log, file)
    assert columns(rs.clicks.read(file)) == columns(log)


def test_all_columns_are_written(tmp_path):
    page = {"query": "a", "documents": ["x", "y"], "clicks": [1], "dwell": [3.0], "time": 8.0, "session": 0}
    log = rs.clicks.read([page | {"swap": [0, 1], "teams": ["a", None]}, page | {"teams": [None, "b"]}])
    for name in ("log.jsonl", "log.parquet"):
        rs.clicks.write(log, tmp_path / name)
        again = rs.clicks.read(tmp_path / name)
        assert columns(again) == columns(log)
        assert again.swaps.tolist() == [[0, 1], [-1, -1]] and again.teams.tolist() == [0, -1, -1, 1]


def test_reading_needs_memory_for_columns_alone(tmp_path):
    file = tmp_path / "log.jsonl"
    with open(file, "w") as out:
        for n in range(4000):
            documents = [f"document-{(n * 7 + place) % 50:06d}" for place in range(10)]
            out.write(json.dumps({"query": f"q{n % 20}", "documents": documents, "clicks": [n % 10]}) + "\n")
    tracemalloc.start()
    log = rs.clicks.read(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log.n_pages == 4000
    assert peak < 40_000 * 30 + 1_500_000  # 30 bytes a row while columns become arrays, and buffers


UBI_QUERIES = [
    {"query_id": "1", "user_query": "red wine", "client_id": "c1", "timestamp": "2024-05-01T10:00:00Z",
     "query_response_hit_ids": ["d7", "d2", "d9"]},
    {"_index": "ubi_queries", "_source": {"query_id": "2", "user_query": "rose", "client_id": "c2",
                                          "timestamp": 1714557600000, "query_response_hit_ids": ["d2", "d5"]}},
    {"index": {"_id": "9"}},
    {"query_id": "3", "user_query": "beer", "query_response_hit_ids": []},
    {"query_id": "3", "user_query": "beer again"},
    {"query_id": "4", "user_query": "gin"},
]  # fmt: skip


def event(query_id, action, object_id, ordinal=None):
    attributes = {"object": {"object_id": object_id, "object_id_field": "sku"}, "position": {"ordinal": ordinal}}
    return {"query_id": query_id, "action_name": action, "client_id": "c", "event_attributes": attributes}


UBI_EVENTS = [
    event("1", "click", "d2", 2),
    event("1", "click", "d2", 2),
    event("1", "add_to_cart", "d9"),
    event("2", "click", "d7"),
    event("3", "impression", "b2", 2),
    event("3", "impression", "b1", 1),
    event("3", "click", "b2"),
    event("8", "click", "d2"),
    {"query_id": None, "action_name": "click"},
    {"query_id": [], "action_name": "click"},
    {"query_id": "1", "action_name": "click", "event_attributes": {"object": "d2"}},
]


def test_ubi_is_read_as_it_is_written(tmp_path):
    queries, events = tmp_path / "ubi_queries.jsonl", tmp_path / "ubi_events.jsonl"
    queries.write_text(lines(UBI_QUERIES))
    events.write_text(lines(UBI_EVENTS))
    with pytest.warns(RanksieveWarning):
        log = rs.clicks.read(queries, events)
    assert log.query_ids[log.queries].tolist() == ["red wine", "rose", "beer"]
    assert log.doc_ids[log.documents].tolist() == ["d7", "d2", "d9", "d2", "d5", "b1", "b2"]
    assert log.clicks.astype(int).tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert log.times[0] == log.times[1] == 1714557600
    assert log.sessions.tolist() == [0, 1, -1]
    notes = " | ".join(log.notes)
    for part in (
        f"query_id occurs twice: 1 ({queries}:5)",
        "without hits or impressions: 1 (query_id 4)",
        f"not shown: 1 ({events}:4)",
        f"other actions than click: 1 ({events}:3)",
        f"has no query: 3 ({events}:8, {events}:9, {events}:10)",
        f"an event that has no id: 1 ({events}:11)",
    ):
        assert part in notes
    with pytest.warns(RanksieveWarning):
        carts = rs.clicks.read(UBI_QUERIES, UBI_EVENTS, actions=("click", "add_to_cart"))
    assert carts.clicks.astype(int).tolist() == [0, 1, 1, 0, 0, 0, 1]
    with pytest.raises(DataError, match="give its events too"):
        rs.clicks.read(queries)


def test_ubi_from_parquet(tmp_path):
    queries, events = tmp_path / "queries.parquet", tmp_path / "events.parquet"
    pq.write_table(pa.Table.from_pylist(UBI_QUERIES[:1]), queries)
    pq.write_table(pa.Table.from_pylist(UBI_EVENTS[:2]), events)
    assert rs.clicks.read(queries, events).clicks.tolist() == [False, True, False]


def test_logs_are_split_by_page_query_session_and_time():
    log = rs.clicks.read(PAGES * 4)
    for by in ("page", "query", "session", "time"):
        first, second = log.split(0.5, by=by)
        assert first.n_pages + second.n_pages == log.n_pages and first.n_pages > 0 < second.n_pages
        assert columns(log.split(0.5, by=by)[0]) == columns(first)
        if by in ("query", "session"):
            values = [set(getattr(part, {"query": "queries", "session": "sessions"}[by])) for part in (first, second)]
            assert not values[0] & values[1]
    first, second = log.split(0.5, by="time")
    assert first.times.max() <= second.times.min()
    with pytest.raises(DataError, match="no session"):
        rs.clicks.read([{"query": 1, "documents": [1], "clicks": []}]).split(by="session")
    with pytest.raises(ParameterError, match="by is 'day'"):
        log.split(by="day")


def test_taking_pages_keeps_their_rows():
    log = rs.clicks.read(PAGES)
    taken = log.take_pages([2, 1])
    assert taken.doc_ids[taken.documents].tolist() == ["d2", "d7", "d2", "d5"]
    assert taken.clicks.tolist() == [True, True, False, False] and taken.places.tolist() == [0, 1, 0, 1]
    shown, clicked = log.by_place()
    assert shown.tolist() == [3, 3, 1] and clicked.tolist() == [1, 2, 0]
    assert np.array_equal(log.pairs.sums(np.ones(7)), [2, 2, 1, 1, 1])


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_pages_with_and_without_time_and_session_are_written_and_read(tmp_path, name):
    log = rs.clicks.ClickLog.from_arrays(
        ["a", "b", "c"], list("stuvwx"), [1, 0, 0, 1, 0, 0], [2, 2, 2],
        times=np.array([3.0, np.nan, 5.0]), sessions=np.array([4, -1, 4]),
    )  # fmt: skip
    rs.clicks.write(log, tmp_path / name)
    back = rs.clicks.read(tmp_path / name)
    assert back.n_pages == 3 and np.isnan(back.times).tolist() == [False, True, False]
    assert (back.sessions < 0).tolist() == [False, True, False]


def test_pages_without_documents_are_refused():
    with pytest.raises(rs.errors.DataError, match="a page has no documents"):
        rs.clicks.ClickLog.from_arrays(["a", "b"], ["x", "y"], [0, 1], [2, 0])
