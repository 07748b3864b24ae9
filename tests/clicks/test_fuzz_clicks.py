"""Damaged logs of clicks and propensities: an error of ours, or what the file says."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from damage import damaged
from ranksieve import clicks
from ranksieve.clicks.propensity import Propensities
from ranksieve.errors import RanksieveError, RanksieveWarning

PAGES = [
    {"query": f"q{n % 3}", "documents": ["a", "b", "c"], "clicks": [n % 3], "dwell": [2.5], "time": n,
     "session": n // 2, "swap": [0, 1], "teams": ["a", "b", None]}
    for n in range(8)
]  # fmt: skip
QUERIES = [{"query_id": f"i{n}", "user_query": "wine", "query_response_hit_ids": ["a", "b"]} for n in range(4)]
EVENTS = [
    {"query_id": f"i{n}", "action_name": "click", "timestamp": "2026-01-02T03:04:05Z",
     "event_attributes": {"object": {"object_id": "a"}, "position": {"ordinal": 1}}}
    for n in range(4)
]  # fmt: skip


def lines(records: list[dict]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in records).encode()


def check(log: clicks.ClickLog) -> None:
    """Raise if a log does not hold what a log promises."""
    assert log.n_pages == len(log.offsets) - 1 > 0 and (np.diff(log.offsets) > 0).all()
    assert len(log.clicks) == len(log.documents) == log.offsets[-1]
    assert log.documents.min() >= 0 and log.documents.max() < log.n_documents
    assert log.queries.min() >= 0 and log.queries.max() < log.n_queries


@pytest.mark.parametrize("kind", ["lines", "parquet", "ubi_queries", "ubi_events"])
def test_damaged_logs_are_refused_or_read(fuzz_cases, tmp_path, kind):
    names = {"ubi_queries": "queries", "ubi_events": "events", "parquet": "log.parquet", "lines": "log"}
    for name, records in (("log", PAGES), ("queries", QUERIES), ("events", EVENTS)):
        (tmp_path / name).write_bytes(lines(records))
    clicks.write(clicks.read(tmp_path / "log"), tmp_path / "log.parquet")
    path = tmp_path / names[kind]
    given = (tmp_path / "queries", tmp_path / "events") if kind.startswith("ubi") else (path,)
    check(clicks.read(*given))
    content = path.read_bytes()
    for number, rng in enumerate(fuzz_cases(150)):
        path.write_bytes(damaged(content, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RanksieveWarning)
                check(clicks.read(*given))
        except RanksieveError as error:
            assert str(tmp_path) in str(error), f"case {number}: {error}"
        except Exception as error:
            raise AssertionError(f"case {number} of {kind}: {error!r}") from error


def test_damaged_propensities_are_refused_or_read(fuzz_cases, tmp_path):
    path = tmp_path / "propensities.json"
    Propensities(np.array([1.0, 0.5, 0.25]), "harvest", np.array([0.1, 0.05, 0.0])).save(path)
    content = path.read_bytes()
    for number, rng in enumerate(fuzz_cases(150)):
        path.write_bytes(damaged(content, rng))
        try:
            found = Propensities.load(path)
            assert np.isfinite(found.biases).all()
        except RanksieveError as error:
            assert str(path) in str(error), f"case {number}: {error}"
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}") from error
