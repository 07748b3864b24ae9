"""Reading and writing logs of result pages: JSON Lines, Parquet, tables, dicts, and OpenSearch's UBI."""

from __future__ import annotations

import io
import json
import math
import os
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.clicks import ubi
from ranksieve.clicks.log import NO_TEAM, ClickLog
from ranksieve.clicks.pages import FIELDS, InvalidPageError, LogBuilder, PageOptions, page_of
from ranksieve.data.compression import FORMATS, PARQUET_MAGIC, create_text, first_bytes, open_text
from ranksieve.data.pipes import spool_pipe
from ranksieve.data.tables import is_table
from ranksieve.errors import DataError, ParameterError, RanksieveWarning, caller_level, check_whole, param
from ranksieve.files import atomic_path
from ranksieve.retrieval.corpus import read_documents
from ranksieve.retrieval.notes import Notes
from ranksieve.text_formats import counted

LINES = """result pages like '{"query": "red wine", "documents": ["d7", "d2"], "clicks": [1]}', or Parquet"""
BUFFER_BYTES = 1 << 18
COMPRESSED = tuple(magic for magic, _ in FORMATS.values())
PAGES_PER_BATCH = 65_536  # written to Parquet at a time

Record = tuple[str, Any]  # where it stands, and a dict, or the reason why there is none


def read(
    pages: Any,
    events: Any = None,
    *,
    depth: int | None = None,
    min_dwell: float = 0.0,
    first_place: int = 0,
    actions: Iterable[str] = ubi.ACTIONS,
    strict: bool = False,
) -> ClickLog:
    """Read a log of result pages.

    A page is a JSON line, a row of Parquet or of a table, or a dict, with these fields (in brackets: optional):

    - `query`: its text or id;
    - `documents`: ids of the documents shown, from the top;
    - `clicks`: clicked places from 0 as integers, or ids as texts, or true and false for each document;
    - [`dwell`]: seconds after each click; [`time`]: seconds, or a date; [`session`] or [`user`]: an id;
    - [`swap`]: two places whose documents were exchanged with probability one half;
    - [`teams`]: "a", "b" or null for each document of an interleaved page.

    Files are streamed. Pages that cannot be used are left out, and counted with their file and line in `ClickLog.notes`
    and in a warning.

    Parameters
    ----------
    pages
        A file, several files, a table, or an iterable of dicts. Files and dicts of OpenSearch's `ubi_queries` are read
        together with their `events`.
    events
        `ubi_events` that belong to `ubi_queries`.
    depth
        Number of places of each page to read.
    min_dwell
        Ignore clicks with a shorter dwell time.
    first_place
        Number of the first place in `clicks` and `swap`, 0 or 1.
    actions
        For UBI, names of the actions that count as clicks.
    strict
        Raise `DataError` at the first page that cannot be used.

    Examples
    --------
    >>> read([{"query": "red wine", "documents": ["d7", "d2"], "clicks": [1]}])
    ClickLog(1 page, 1 query, 2 documents, 1 click)
    """
    if first_place not in (0, 1):
        raise ParameterError(param("first_place"), f" is {first_place!r}; expected 0 or 1")
    if depth is not None:
        check_whole("depth", depth)
    options = PageOptions(depth, min_dwell, first_place)
    notes, name = (_StrictNotes() if strict else Notes()), _name(pages)
    if events is not None:
        log = ubi.read_ubi(_records(pages), _records(events), options, frozenset(actions), notes)
    else:
        log = _read_pages(_records(pages), options, notes)
    if not log.n_pages:
        raise DataError(
            f"{name}: holds no page that can be used ({'; '.join(notes) or 'it is empty'}); expected {LINES}"
        )
    for note in notes:
        warnings.warn(RanksieveWarning(f"{name}: left out {note}"), stacklevel=caller_level())
    return log


def is_log(path: str) -> bool:
    """Whether the first record of a file is a result page, or a query of UBI."""
    head = first_bytes(path)
    if head.startswith(PARQUET_MAGIC):
        try:
            names = set(pq.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return False
    elif head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" or head.startswith(COMPRESSED):
        with closing(_json_lines(path)) as lines:
            record = next(lines, ("", None))[1]
        names = set(ubi.source_of(record)) if isinstance(record, Mapping) else set()
    else:
        return False
    has = {role: bool(names & set(FIELDS[role])) for role in ("query", "documents")}
    return all(has.values()) or {"query_id", "user_query"} <= names


def _read_pages(records: Iterator[Record], options: PageOptions, notes: Notes) -> ClickLog:
    builder, n_lacking, first_lacking = LogBuilder(), 0, ""
    for place, record in records:
        if not isinstance(record, Mapping):
            notes.add(record, place)
            continue
        if not builder.n_pages and ubi.HITS in ubi.source_of(record):
            raise DataError(f"{place}: is a query of UBI; give its events too, ", param("events", "ubi_events.jsonl"))
        try:
            builder.append(page_of(record, options))
        except InvalidPageError as error:
            notes.add(str(error), place)
            continue
        if not any(name in record for name in FIELDS["clicks"]):
            n_lacking, first_lacking = n_lacking + 1, first_lacking or f"{place}: has only {', '.join(record)}"
    if n_lacking > builder.n_pages / 2:
        message = (
            f"{first_lacking}; the field clicks is missing on {n_lacking:,} of {counted(page=builder.n_pages)}, which "
            "count as pages without clicks"
        )
        warnings.warn(RanksieveWarning(message), stacklevel=caller_level())
    return builder.finish(notes)


class _StrictNotes(Notes):
    """Notes that raise instead."""

    def extend(self, remark: str, examples: Iterable[object]) -> None:
        for example in examples:
            raise DataError(f"{example}: one of the {remark}; expected {LINES}")


def _name(pages: Any) -> str:
    several = pages if isinstance(pages, list | tuple) and pages and isinstance(pages[0], str | Path) else [pages]
    return ", ".join(str(one) if isinstance(one, str | os.PathLike) else "the log" for one in several)


def _records(given: Any) -> Iterator[Record]:
    """The records of files, a table, or dicts, each with its place."""
    if isinstance(given, str | os.PathLike):
        path = spool_pipe(given)
        yield from read_documents(path) if first_bytes(path, LINES).startswith(PARQUET_MAGIC) else _json_lines(path)
    elif isinstance(given, list | tuple) and given and isinstance(given[0], str | os.PathLike):
        for one in given:
            yield from _records(one)
    elif is_table(given):
        row = 0
        for batch in _arrow_table(given).to_batches(PAGES_PER_BATCH):
            for record in batch.to_pylist():
                yield f"row {row}", record
                row += 1
    elif isinstance(given, Iterable):
        for number, record in enumerate(given):
            yield f"page {number}", record if isinstance(record, Mapping) else "pages that are not dicts"
    else:
        raise DataError(f"the log is {type(given).__name__}; give a file, a table, or dicts; expected {LINES}")


def _arrow_table(given: Any) -> pa.Table:
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    return given.to_arrow() if hasattr(given, "to_arrow") else pa.Table.from_pandas(given, preserve_index=False)


def _json_lines(path: str) -> Generator[Record, None, None]:
    with open_text(path, LINES) as stream, io.BufferedReader(stream, BUFFER_BYTES) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield f"{path}:{number}", _parsed(line)


def _parsed(line: bytes) -> Any:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "lines that are not JSON"
    return record if isinstance(record, dict) else "lines that hold no JSON object"


def write(log: ClickLog, path: str | os.PathLike[str]) -> None:
    """Write a log as JSON Lines, or as Parquet if the name ends in `.parquet`. `read` reads it.

    Examples
    --------
    >>> log = read([{"query": "red wine", "documents": ["d7", "d2"], "clicks": [1]}])
    >>> write(log, "log.jsonl")
    >>> read("log.jsonl")
    ClickLog(1 page, 1 query, 2 documents, 1 click)
    """
    target = Path(path)
    with atomic_path(target) as temporary:
        if target.suffix == ".parquet":
            _write_parquet(log, temporary)
            return
        _write_lines(records_of(log), temporary, target.suffix)


def write_records(records: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write records as JSON Lines."""
    with atomic_path(path) as temporary:
        _write_lines(records, temporary, Path(path).suffix)


def _write_lines(records: Iterable[Mapping[str, Any]], path: Path, suffix: str) -> None:
    with create_text(path, suffix) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def _write_parquet(log: ClickLog, path: Path) -> None:
    writer = None
    try:
        for start in range(0, log.n_pages, PAGES_PER_BATCH):
            pages = np.arange(start, min(start + PAGES_PER_BATCH, log.n_pages))
            writer = writer or pq.ParquetWriter(path, _schema(log))
            writer.write_table(pa.Table.from_pylist(list(records_of(log.take_pages(pages))), writer.schema))
    finally:
        if writer is not None:
            writer.close()


def _schema(log: ClickLog) -> pa.Schema:
    fields = {"query": pa.string(), "documents": pa.list_(pa.string()), "clicks": pa.list_(pa.int64())}
    optional = {
        "dwell": (log.dwell, pa.list_(pa.float64())),
        "time": (log.times, pa.float64()),
        "session": (log.sessions, pa.int64()),
        "swap": (log.swaps, pa.list_(pa.int64())),
        "teams": (log.teams, pa.list_(pa.string())),
    }
    return pa.schema(fields | {name: kind for name, (column, kind) in optional.items() if column is not None})


def records_of(log: ClickLog) -> Iterator[dict[str, Any]]:
    """The pages of a log as `read` takes them."""
    names = {0: "a", 1: "b", NO_TEAM: None}
    for page in range(log.n_pages):
        rows = slice(log.offsets[page], log.offsets[page + 1])
        places = np.flatnonzero(log.clicks[rows])
        record: dict[str, Any] = {
            "query": log.query_ids[log.queries[page]],
            "documents": log.doc_ids[log.documents[rows]].tolist(),
            "clicks": places.tolist(),
        }
        if log.dwell is not None:
            record["dwell"] = [None if math.isnan(one) else one for one in log.dwell[rows][places].tolist()]
        if log.times is not None:
            record["time"] = None if math.isnan(log.times[page]) else float(log.times[page])
        if log.sessions is not None:
            record["session"] = int(log.sessions[page]) if log.sessions[page] >= 0 else None
        if log.swaps is not None:
            record["swap"] = log.swaps[page].tolist() if log.swaps[page, 0] >= 0 else []
        if log.teams is not None:
            record["teams"] = [names[team] for team in log.teams[rows].tolist()]
        yield record
