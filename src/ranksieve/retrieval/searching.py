"""`search` and `retrieve`: the documents that the first stage finds for one text, and for many queries."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.errors import ParameterError, check_whole, param
from ranksieve.kernels.retrieving import retrieve as retrieve_kernel
from ranksieve.retrieval.encoders import QueryVectors, as_query_vectors
from ranksieve.retrieval.first_stage import DENSE, HYBRID, FirstStage, Setting, as_first_stage
from ranksieve.retrieval.fusion import fuse_numbers, points_of
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.notes import Notes, logged_notes
from ranksieve.retrieval.queries import Prepared, Queries, QueryAnalysis, as_queries, note_empty_queries
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.vectors import best_of, lengths_of

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


class Hit(NamedTuple):
    """One document found.

    Attributes
    ----------
    docno
        The id of the document.
    score
        Its score.
    rank
        Its rank, from 1, as in TREC runs.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> for hit in rs.retrieval.search(rs.Index.build(corpus, "index4"), "red roses"):
    ...     print(hit.rank, hit.docno)
    1 b
    2 a
    """

    docno: str
    score: float
    rank: int


def check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise ParameterError(param("text"), f" is {text!r}; expected the text of one query")


class Retriever:
    """A first stage on an index, which the functions of this package and `Pipeline` take in place of an index.

    Parameters
    ----------
    index
        The index.
    stage
        A `FirstStage`, a model's name, or a file that `FirstStage.save` has written; that of the index if None, or
        BM25F with its defaults.
    query_vectors
        Vectors of the queries, which the models "dense" and "hybrid" and the features `dense.*` need unless the index
        encodes queries by itself: a function texts → array, vectors by query id, or an array or `.npy` file with one
        row per query, in their order.
    threads
        All cores if None; results do not depend on it.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> retriever = Retriever(Index.build(corpus, "index"), "dirichlet")
    >>> data = rs.retrieval.extract_features(retriever, {"q": "red roses"}, select=["first.score"])
    >>> data.lists.doc_ids.tolist()
    ['b', 'a']
    """

    def __init__(
        self,
        index: Index,
        stage: FirstStage | str | os.PathLike[str] | None = None,
        *,
        query_vectors: Any = None,
        threads: int | None = None,
    ):
        self.index, self.analysis = index, QueryAnalysis(index)
        self._query_vectors = index.encoder if query_vectors is None else query_vectors
        self._threads = threads or numba.get_num_threads()
        self._set_stage(as_first_stage(stage) or index.stage or FirstStage())

    @classmethod
    def of(cls, given: Index | Retriever, **options: Any) -> Retriever:
        """A retriever as it is, or one made of an index with these options."""
        if not isinstance(given, Retriever):
            return cls(given, **options)
        for name in (name for name, value in options.items() if value is not None):
            raise ParameterError(
                param(name), " is given with a Retriever, which has its own; expected an index, or no ", param(name),
                "; give it to Retriever(index, …)",
            )  # fmt: skip
        return given

    def _set_stage(self, stage: FirstStage) -> None:
        self.stage = stage
        if stage.uses_vectors:
            self._check_vectors()
        self._scoring = stage.scoring(self.index) if stage.uses_words else None

    def _check_vectors(self) -> None:
        if self.index.vectors is None:
            raise ParameterError(
                f"the first stage {self.stage.model} compares vectors, which the index {self.index.path} does not "
                "have; index the corpus with ", param("vectors"),
            )  # fmt: skip
        if self.stage.ef and self.index.graph is None:
            raise ParameterError(
                Setting("ef"),
                f" is {self.stage.ef:g}, but the index {self.index.path} has no HNSW graph; index the corpus with ",
                param("hnsw"), ", or use ", Setting("ef", 0),
            )  # fmt: skip

    @property
    def can_search(self) -> bool:
        """Whether queries have the vectors that the first stage needs, if it needs some."""
        return not self.stage.uses_vectors or self._query_vectors is not None

    def with_stage(self, stage: FirstStage) -> Retriever:
        """The same with another first stage."""
        other = copy.copy(self)
        other._set_stage(stage)
        return other

    def for_queries(self, ids: Iterable[str], query_vectors: Any = None) -> Retriever:
        """The same with vectors by query id: those given here, if there are any, or those of the retriever."""
        other = copy.copy(self)
        given = self._query_vectors if query_vectors is None else query_vectors
        other._query_vectors = as_query_vectors(given, ids)
        return other

    def prepare(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> Prepared:
        """Queries as terms and vectors; these are made when they are first needed."""
        dimension = 0 if self.index.vectors is None else self.index.vectors.dimension
        vectors = QueryVectors(self._query_vectors, dimension)
        return self.analysis.prepare(texts, lambda: vectors.of(texts, ids))

    def prepared_blocks(self, queries: Queries) -> Iterator[tuple[list[str], Prepared]]:
        """The ids of some queries at a time, and these queries as terms and vectors."""
        ids = list(queries)
        for start in range(0, len(ids), BLOCK_QUERIES):
            some = ids[start : start + BLOCK_QUERIES]
            yield some, self.prepare([queries[id] for id in some], some)

    def candidates(self, texts: Sequence[str], k: int) -> Candidates:
        """The k best documents of every text."""
        return self.of_prepared(self.prepare(texts), k)

    def of_prepared(self, prepared: Prepared, k: int) -> Candidates:
        """The k best documents of every prepared query."""
        check_whole("depth", k)
        k = min(k, self.index.n_docs)
        if self.stage.model == DENSE:
            return self._by_vectors(prepared, k)
        if self.stage.model == HYBRID:
            pool, share = min(max(int(self.stage.pool), k), self.index.n_docs), self.stage.dense_share
            both = self._by_words(prepared, pool), self._by_vectors(prepared, pool)
            points = points_of("rrf", k=self.stage.rrf_k) if share is None else points_of("sum", "min-max")
            weights = (1.0, 1.0) if share is None else (1.0 - share, share)
            lists = ([found.list_of(query) for found in both] for query in range(prepared.n_queries))
            return _joined(fuse_numbers(some, points, weights, k) for some in lists)
        return self._by_words(prepared, k)

    def _by_vectors(self, prepared: Prepared, k: int) -> Candidates:
        """The k documents of each query with the most similar vectors; kept, because tuning repeats the call."""
        key = (k, int(self.stage.ef))
        if key not in prepared.near:
            prepared.near[key] = self._nearest(prepared.vectors, k)
        found: Candidates = prepared.near[key]
        return found

    def _nearest(self, queries: np.ndarray, k: int) -> Candidates:
        vectors = self.index.vectors
        assert vectors is not None
        if not self.stage.ef:
            return _joined(vectors.best(queries, k))
        graph = self.index.graph
        assert graph is not None
        near = graph.near(queries, k, int(self.stage.ef)) if len(queries) else []
        lengths = lengths_of(queries)
        found = (
            (docs[: k if length else 0], query) for docs, query, length in zip(near, queries, lengths, strict=True)
        )
        return _joined(best_of(docs, vectors.scores(docs, query), k) for docs, query in found)

    def _by_words(self, prepared: Prepared, k: int) -> Candidates:
        n_queries = prepared.n_queries
        docs, scores = np.empty((n_queries, k), np.int32), np.empty((n_queries, k))
        counts = np.zeros(n_queries, np.int64)
        masks, scales, rates = self.stage.term_values(self.index, prepared)
        scoring = self._scoring
        assert scoring is not None
        totals = np.add.reduceat(np.append(prepared.weights.max(axis=1, initial=0.0), 0.0), prepared.starts[:-1])
        totals[np.diff(prepared.starts) == 0] = 0.0
        retrieve_kernel(
            self.index.postings(prepared.terms), (prepared.starts, prepared.terms, masks, scales, rates, totals),
            (scoring.factors, scoring.steps, scoring.bases, scoring.logarithmic), k,
            min(self._threads, max(n_queries, 1)), docs, scores, counts,
        )  # fmt: skip
        taken = np.arange(k) < counts[:, None]
        return Candidates(starts_of(counts), docs[taken], scores[taken])

    def lists(self, ids: Sequence[str], prepared: Prepared, k: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """The ids of the k best documents of every prepared query, and their scores."""
        found = self.of_prepared(prepared, k)
        for number, id in enumerate(ids):
            docs, scores = found.list_of(number)
            yield id, self.index.ids[docs], scores

    def note_empty(self, queries: dict[str, str], prepared: Prepared, notes: Notes) -> None:
        """Note queries that retrieve nothing."""
        if not self.stage.uses_vectors:
            note_empty_queries(queries, prepared, notes)
            return
        without, what = lengths_of(prepared.vectors) == 0, "a vector of zeros"
        if self.stage.uses_words:
            without, what = without & (np.diff(prepared.starts) == 0), f"{what} and without a word of the index"
        zeros = (id for id, is_zero in zip(queries, without, strict=True) if is_zero)
        notes.extend(f"queries with {what}, which retrieve nothing", zeros)


def _joined(lists: Iterable[tuple[np.ndarray, np.ndarray]]) -> Candidates:
    """The documents and scores of each query as one."""
    docs, scores = [np.empty(0, np.int32)], [np.empty(0)]
    for some, values in lists:
        docs.append(some.astype(np.int32))
        scores.append(values)
    return Candidates(starts_of(list(map(len, docs[1:]))), np.concatenate(docs), np.concatenate(scores))


def search(
    index: Index | Retriever,
    text: str,
    k: int = 10,
    stage: FirstStage | str | os.PathLike[str] | None = None,
    *,
    query_vectors: Any = None,
) -> list[Hit]:
    """The k best documents for a text by the first stage alone; ranks count from 1. Parameters are as for `retrieve`.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> hits = search(Index.build(corpus, "index2"), "red roses")
    >>> hits[0].docno, hits[0].rank
    ('b', 1)
    """
    check_text(text)
    check_whole("k", k)
    retriever = Retriever.of(index, stage=stage, query_vectors=query_vectors).for_queries(["1"])
    docs, scores = retriever.of_prepared(retriever.prepare([text], ["1"]), k).list_of(0)
    return hits(retriever.index.ids[docs], scores)


def hits(doc_ids: Iterable[str], scores: Iterable[float]) -> list[Hit]:
    found = enumerate(zip(doc_ids, scores, strict=True), 1)
    return [Hit(doc, float(score), rank) for rank, (doc, score) in found]


def retrieve(
    index: Index | Retriever,
    queries: Any,
    depth: int = 1000,
    stage: FirstStage | str | os.PathLike[str] | None = None,
    *,
    query_vectors: Any = None,
    threads: int | None = None,
) -> Run:
    """The `depth` best documents of every query.

    Queries that retrieve nothing are logged.

    Parameters
    ----------
    index
        An index; or a `Retriever`, which has its own first stage, vectors and threads.
    queries
        A mapping from query ids to texts, (id, text) pairs, a DataFrame with `qid` and `query`, or a file as a `Path`.
    depth
        Documents per query.
    stage, query_vectors, threads
        As for `Retriever`.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> run = retrieve(Index.build(corpus, "index3"), {"q1": "wine", "q2": "red"})
    >>> [(id, list(docs)) for id, docs, _ in run.lists()]
    [('q1', ['b']), ('q2', ['b', 'a'])]
    """
    texts = as_queries(queries)
    retriever = Retriever.of(index, stage=stage, query_vectors=query_vectors, threads=threads).for_queries(texts)
    with logged_notes() as notes:
        return Run.from_lists(_lists(retriever, texts, depth, notes))


def _lists(retriever: Retriever, queries: Queries, depth: int, notes: Notes) -> Iterator[tuple[str, Any, Any]]:
    for ids, prepared in retriever.prepared_blocks(queries):
        retriever.note_empty({id: queries[id] for id in ids}, prepared, notes)
        yield from retriever.lists(ids, prepared, depth)
