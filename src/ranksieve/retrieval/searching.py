"""`Searcher`: the first stage on an index, for any number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numba
import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.kernels.retrieving import retrieve as retrieve_kernel
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.models import FirstStage
from ranksieve.retrieval.notes import Notes, remarks
from ranksieve.retrieval.queries import Prepared, as_queries, note_odd_queries
from ranksieve.retrieval.runs import Run

BLOCK_QUERIES = 128


@dataclass(frozen=True)
class Candidates:
    """Documents of queries by their numbers, best first; query q has the rows `offsets[q]:offsets[q + 1]`."""

    offsets: np.ndarray
    docs: np.ndarray  # int32
    scores: np.ndarray  # float64

    def list_of(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.docs[part], self.scores[part]


def check_depth(depth: Any, name: str = "--depth") -> None:
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 1:
        raise ParameterError(f"{name} is {depth!r}; expected a whole number from 1")


class Searcher:
    """A first-stage model made ready for one index."""

    def __init__(self, index: Index, stage: FirstStage | str | None = None, threads: int | None = None):
        self.index = index
        self.stage = FirstStage(stage) if isinstance(stage, str) else stage or FirstStage()
        self._scoring = self.stage.scoring(index)
        self._threads = threads or numba.get_num_threads()

    def candidates(self, texts: Sequence[str], k: int) -> Candidates:
        """The k best documents of every text."""
        return self.of_prepared(self.index.analysis.prepare(texts), k)

    def of_prepared(self, prepared: Prepared, k: int) -> Candidates:
        """The k best documents of every prepared query."""
        check_depth(k)
        k, n_queries = min(k, self.index.n_docs), prepared.n_queries
        docs, scores = np.empty((n_queries, k), np.int32), np.empty((n_queries, k))
        counts = np.zeros(n_queries, np.int64)
        masks, scales, rates = self.stage.term_values(self.index, prepared)
        scoring = self._scoring
        totals = np.add.reduceat(np.append(prepared.weights.max(axis=1, initial=0.0), 0.0), prepared.starts[:-1])
        totals[np.diff(prepared.starts) == 0] = 0.0
        retrieve_kernel(
            self.index.postings, prepared.starts, prepared.terms, masks, scales, rates, scoring.factors, scoring.steps,
            scoring.bases, totals, scoring.logarithmic, k, min(self._threads, max(n_queries, 1)), docs, scores, counts,
        )  # fmt: skip
        taken = np.arange(k) < counts[:, None]
        return Candidates(np.concatenate([[0], np.cumsum(counts)]), docs[taken], scores[taken])

    def lists(self, ids: Sequence[str], prepared: Prepared, k: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """The ids of the k best documents of every prepared query, and their scores."""
        found = self.of_prepared(prepared, k)
        for number, id in enumerate(ids):
            docs, scores = found.list_of(number)
            yield id, self.index.ids[docs], scores


def blocks_of_queries(ids: Sequence[str], size: int = BLOCK_QUERIES) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def retrieve(
    index: Index,
    queries: Any,
    depth: int = 1000,
    stage: FirstStage | str | None = None,
    *,
    notes: Notes | None = None,
    threads: int | None = None,
) -> Run:
    """The `depth` best documents of every query.

    Parameters
    ----------
    index
        The index.
    queries
        A mapping from query ids to texts, (id, text) pairs, a DataFrame with `qid` and `query`, or a file as a `Path`.
    depth
        Documents per query.
    stage
        The model; BM25F with its defaults if None.
    notes
        Gets remarks on queries that retrieve nothing; the logger `ranksieve` tells them if None.
    """
    texts = as_queries(queries)
    searcher = Searcher(index, stage, threads)
    with remarks(notes) as taken:
        return Run.from_lists(_lists(searcher, texts, depth, taken))


def _lists(searcher: Searcher, queries: dict[str, str], depth: int, notes: Notes) -> Iterable[tuple[str, Any, Any]]:
    for ids in blocks_of_queries(list(queries)):
        prepared = searcher.index.analysis.prepare(queries[id] for id in ids)
        note_odd_queries({id: queries[id] for id in ids}, prepared, notes)
        yield from searcher.lists(ids, prepared, depth)
