"""Queries: reading them, and turning their texts into terms of an index."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.data.compression import PARQUET_MAGIC, first_bytes
from ranksieve.data.lists import check_id, starts_of
from ranksieve.data.other_files import QRELS, QUERY_IDS, QUERY_TEXTS, RUN, other_file
from ranksieve.data.pipes import spool_pipe
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.analysis import Analyzer, words_of
from ranksieve.retrieval.corpus import plain_text, read_documents, text_lines
from ranksieve.retrieval.index import UNKNOWN, Index
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.runs import rows_of
from ranksieve.text_formats import some_of

Queries = dict[str, str]  # id → text
KEYS = (QUERY_IDS, QUERY_TEXTS)
LINES = "lines 'id TAB text', JSON Lines or Parquet with 'id' (or '_id', 'qid') and 'text' (or 'query')"
MOST_KEPT = 1 << 15  # words whose terms are kept in memory: a few megabytes, whatever a service is asked for


def read_queries(path: str | os.PathLike[str]) -> Queries:
    """Queries of a file: `id TAB text` lines, JSON Lines, or Parquet; ids must be unique.

    Tab-separated text may name its columns in the first line (`qid TAB query`), and is then read by these names.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("queries.tsv").write_text("q1\\tred wine\\n")
    >>> read_queries("queries.tsv")
    {'q1': 'red wine'}
    """
    name = spool_pipe(path)
    head = first_bytes(name, LINES)
    queries: Queries = {}
    for place, id, text in _from_documents(name) if head.startswith(PARQUET_MAGIC) else _from_text(name):
        if not id or id.split() != [id]:
            raise DataError(f"{place}: the query id {id!r} is empty or has spaces; expected {LINES}")
        check_id(id, "query", f"{place}: ")
        if id in queries:
            raise DataError(f"{place}: the query id {id!r} occurs twice; query ids must be unique")
        queries[id] = text
    if not queries:
        raise DataError(f"{name}: holds no queries; expected {LINES}")
    return queries


def _from_text(path: str) -> Iterable[tuple[str, str, str]]:
    _, first = next(text_lines(path, LINES), (1, ""))
    if first.count("\t") != 1 and (other := other_file(path)) in (RUN, QRELS):
        raise DataError(f"{path}: {other.refusal('queries')}")
    if first.lstrip().startswith("{") or all(set(first.lower().split("\t")) & set(names) for names in KEYS):
        yield from _from_documents(path)
        return
    for number, line in text_lines(path, LINES):
        id, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}:{number}: has no tab in it; expected {LINES}")
        yield f"{path}:{number}", id.strip(), text


def _from_documents(path: str) -> Iterable[tuple[str, str, str]]:
    for place, document in read_documents(path):
        known = {name.lower(): name for name in document}
        id, text = (next((known[name] for name in names if name in known), None) for names in KEYS)
        if id is None or text is None:
            raise DataError(f"{place}: has the fields {some_of(list(map(repr, document)))}; expected {LINES}")
        yield place, plain_text(document[id]) or "", plain_text(document[text]) or ""


def as_queries(queries: Any) -> Queries:
    """Queries given in Python: one text, a mapping, (id, text) pairs, a DataFrame with `qid` and `query`, or a `Path`.

    Examples
    --------
    >>> as_queries("red wine"), as_queries([(7, "white rose")])
    ({'1': 'red wine'}, {'7': 'white rose'})
    """
    if isinstance(queries, str):
        if os.path.splitext(queries)[1] and os.path.isfile(queries):
            raise DataError(
                f"the query {queries!r} is the name of a file; to read queries from it give Path({queries!r}), to "
                f"search for these words {{'1': {queries!r}}}"
            )
        return {"1": queries}
    if isinstance(queries, os.PathLike):
        return read_queries(queries)
    if isinstance(queries, Mapping):
        queries = list(queries.items())
    elif hasattr(queries, "columns"):
        queries = rows_of(queries, ("qid", "query"))
    elif not isinstance(queries, Iterable):
        raise DataError(
            f"queries are {queries!r}; expected texts by query id, pairs (id, text), a DataFrame with 'qid' and "
            "'query', a Path, or one text"
        )
    found: Queries = {}
    for pair in queries:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise DataError(f"a query is {pair!r}; expected pairs (id, text), or a mapping from ids to texts")
        id = str(pair[0])
        check_id(id, "query")
        if id in found:
            raise DataError(f"the query id {id!r} occurs twice; query ids must be unique")
        found[id] = plain_text(pair[1]) or ""
    return found


@dataclass(frozen=True)
class Prepared:
    """Queries as terms of an index; query q has the terms `starts[q]:starts[q + 1]`, each once.

    `weights[t, f]` is how often the query has the term as field f analyses it. Under analyzer a the term stands at
    the places `places[place_starts[a, t]:place_starts[a, t + 1]]` of the query, which has `spans[a, q]` places.
    """

    starts: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    place_starts: np.ndarray
    places: np.ndarray
    spans: np.ndarray
    words: np.ndarray  # how many words each query has
    analyzer_of: np.ndarray  # the number of each field's analyzer
    encode: Callable[[], np.ndarray] | None = None  # makes the vectors
    near: dict[tuple[int, int], Any] = field(default_factory=dict)  # candidates by vectors, found before; by k and ef

    @property
    def n_queries(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def vectors(self) -> np.ndarray:
        """One row per query; they are made when they are first needed."""
        if self.encode is None:
            raise ParameterError("the queries were prepared without vectors; prepare them with Retriever.prepare")
        return self.encode()


class QueryAnalysis:
    """Finds the terms of queries in an index; the terms of words it has analysed are kept.

    Several threads may use it at once.
    """

    def __init__(self, index: Index):
        self._index = index
        self._analyzers: list[Analyzer] = list(dict.fromkeys(field.analyzer for field in index.fields))
        numbers = [self._analyzers.index(field.analyzer) for field in index.fields]
        self._analyzer_of = np.array(numbers, dtype=np.int64)
        self._known: list[dict[str, tuple[int, ...]]] = [{} for _ in self._analyzers]
        self._lock = threading.Lock()  # guards the known words

    def prepare(self, texts: Iterable[str], encode: Callable[[], np.ndarray] | None = None) -> Prepared:
        """The terms of queries; `encode` makes their vectors."""
        starts, terms, weights, spans, words = [0], [], [], [], []
        chunks: list[list[np.ndarray]] = [[] for _ in self._analyzers]
        counts: list[list[np.ndarray]] = [[] for _ in self._analyzers]
        for text in texts:
            found = words_of(text)
            with self._lock:
                sequences = [
                    np.array(self._sequence(number, found), dtype=np.int64) for number in range(len(self._analyzers))
                ]
            known = np.unique(np.concatenate(sequences))
            known = known[known != UNKNOWN]
            by_analyzer = np.zeros((len(self._analyzers), len(known)))
            for number, sequence in enumerate(sequences):
                places = np.flatnonzero(sequence != UNKNOWN)
                slots = np.searchsorted(known, sequence[places])
                chunks[number].append(places[np.argsort(slots, kind="stable")])
                count = np.bincount(slots, minlength=len(known))
                counts[number].append(count)
                by_analyzer[number] = count
            starts.append(starts[-1] + len(known))
            terms.append(known)
            weights.append(by_analyzer[self._analyzer_of].T)
            spans.append([len(sequence) for sequence in sequences])
            words.append(len(found))
        return Prepared(
            np.array(starts, dtype=np.int64),
            np.concatenate([np.empty(0, np.int64), *terms]),
            np.ascontiguousarray(np.concatenate([np.empty((0, len(self._analyzer_of))), *weights])),
            *_joined(chunks, counts),
            np.array(spans, dtype=np.int64).reshape(len(words), len(self._analyzers)).T.copy(),
            np.array(words, dtype=np.int64),
            self._analyzer_of,
            encode,
        )

    def _sequence(self, number: int, words: list[str]) -> list[int]:
        """The terms of words, in order."""
        known = self._known[number]
        if len(known) > MOST_KEPT:
            known.clear()
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            for word, terms in zip(new, self._analyzers[number].analyse(new), strict=True):
                known[word] = tuple(map(self._index.term_number, terms))
        return [term for word in words for term in known[word]]


def _joined(chunks: list[list[np.ndarray]], counts: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Places of all analyzers in one array, and where those of each term start."""
    flat = [np.concatenate([np.empty(0, np.int64), *some]) for some in chunks]
    lengths = [np.concatenate([np.empty(0, np.int64), *some]) for some in counts]
    bases = np.cumsum([0, *map(len, flat[:-1])])
    place_starts = np.array([base + starts_of(some) for base, some in zip(bases, lengths, strict=True)], dtype=np.int64)
    return place_starts, np.concatenate(flat)


def note_empty_queries(queries: Queries, prepared: Prepared, notes: Notes) -> None:
    """Note queries that retrieve nothing."""
    for number, id in enumerate(queries):
        if prepared.words[number] == 0:
            notes.add("queries are empty and retrieve nothing", id)
        elif prepared.starts[number] == prepared.starts[number + 1]:
            notes.add("queries without a word of the index, which retrieve nothing", id)
