"""`extract_features`: from queries, candidates and judgements to labelled data; in blocks that fit into memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.blocks import Block
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo, is_dense
from ranksieve.data.lists import starts_of
from ranksieve.data.parquet import write_blocks
from ranksieve.dtypes import LABEL
from ranksieve.errors import DataError, check_whole
from ranksieve.retrieval.feature_extractor import FeatureExtractor, UserFeature
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.notes import Notes, logged_notes
from ranksieve.retrieval.provenance import Provenance
from ranksieve.retrieval.queries import Prepared, Queries, as_queries
from ranksieve.retrieval.runs import Judgements, Run, as_judgements, as_run, note_unknown
from ranksieve.retrieval.searching import Candidates, Retriever

BLOCK_ROWS = 1 << 16
COMPARED = 5  # lists of a run that are retrieved again to find out whether our first stage has made it


@dataclass(frozen=True)
class QueryCandidates:
    """Queries and their candidates, which `judgements` label.

    Candidates are those of a run, or else the `depth` best of the retriever.
    """

    queries: Queries
    retriever: Retriever
    depth: int = 1000
    run: Run | None = None
    judgements: Judgements | None = None
    progress: Callable[[int, int], None] | None = None  # called with the queries that are done, and all of them

    def __post_init__(self) -> None:
        check_whole("depth", self.depth)

    @property
    def provenance(self) -> Provenance:
        """Where the candidates come from; a run that this first stage has made is the same as its candidates."""
        depth = self.depth if self.run is None else self._depth_of_own_run(self.run)
        return Provenance() if depth is None else Provenance(self.retriever.stage.used(), min(depth, self.depth))

    def _depth_of_own_run(self, run: Run) -> int | None:
        """How many candidates a query of the run has, if it has the scores that the first stage gives; else None."""
        lists = [(id, scores) for id, _, scores in run.lists() if id in self.queries and len(scores)]
        if not lists or not self.retriever.can_search:
            return None
        longest = max(range(len(lists)), key=lambda number: len(lists[number][1]))
        for number in dict.fromkeys((*(n for n in range(min(COMPARED, len(lists))) if n != longest), longest)):
            id, scores = lists[number]
            _, ours = self.retriever.of_prepared(
                self.retriever.prepare([self.queries[id]], [id]), len(scores) + 1
            ).list_of(0)
            if len(ours) < len(scores) or not np.allclose(ours[: len(scores)], scores, rtol=1e-5):
                return None
        return len(scores) if len(ours) > len(scores) else self.retriever.index.n_docs  # all that there are

    def blocks(self, extractor: FeatureExtractor, notes: Notes) -> Iterator[tuple[list[str], Candidates, np.ndarray]]:
        """Ids of some queries, their candidates, and the features of these."""
        index = self.retriever.index
        lists = None if self.run is None else self._lists_of_run(self.run, notes)
        ids = list(self.queries) if lists is None else [id for id in self.queries if id in lists]
        size = max(1, BLOCK_ROWS // min(self.depth, index.n_docs))
        for start in range(0, len(ids), size):
            some = ids[start : start + size]
            texts = [self.queries[id] for id in some]
            prepared = self.retriever.prepare(texts, some)
            found = self._candidates(some, prepared, lists, notes)
            yield some, found, extractor.extract(texts, prepared, found)
            if self.progress is not None:
                self.progress(start + len(some), len(ids))

    def _candidates(self, ids: list[str], prepared: Prepared, lists: Any, notes: Notes) -> Candidates:
        if lists is None:
            self.retriever.note_empty({id: self.queries[id] for id in ids}, prepared, notes)
            return self.retriever.of_prepared(prepared, self.depth)
        docs, scores = zip(*(lists[id] for id in ids), strict=True)
        offsets = starts_of([len(some) for some in docs])
        return Candidates(offsets, np.concatenate(docs), np.concatenate(scores))

    def _lists_of_run(self, run: Run, notes: Notes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The run's documents by their numbers."""
        number_of = self.retriever.index.numbers_of_ids
        lists = {}
        for id, doc_ids, scores in run.lists():
            if id not in self.queries:
                notes.add("queries of the run have no text and are left out", id)
                continue
            numbers = np.array([number_of.get(doc, -1) for doc in doc_ids[: self.depth]], dtype=np.int32)
            known = numbers >= 0
            notes.extend("documents of the run are not in the index and are left out", doc_ids[: self.depth][~known])
            if len(doc_ids) > self.depth:
                notes.add(f"queries of the run have more than {self.depth} documents and are cut there", id)
            lists[id] = (numbers[known], scores[: self.depth][known])
        notes.extend("queries are not in the run and are left out", (id for id in self.queries if id not in lists))
        if not lists:
            raise DataError("no query of the run is among the queries; their ids must be the same")
        return lists


def labelled_blocks(pairs: QueryCandidates, extractor: FeatureExtractor, notes: Notes) -> Iterator[Block]:
    """The pairs as blocks of a data file, unjudged documents with label 0."""
    index, judgements = pairs.retriever.index, pairs.judgements or {}
    number_of = index.numbers_of_ids
    if pairs.judgements is not None:
        note_unknown(judgements, pairs.queries, index, notes)
        unjudged = (id for id in pairs.queries if id not in judgements)
        notes.extend("queries have no judgements; their documents get label 0", unjudged)
    for ids, found, features in pairs.blocks(extractor, notes):
        labels = np.zeros(len(found.docs), dtype=LABEL)
        for number, id in enumerate(ids):
            grades = {number_of[doc]: grade for doc, grade in judgements.get(id, {}).items() if doc in number_of}
            docs, _ = found.list_of(number)
            part = labels[found.offsets[number] : found.offsets[number + 1]]
            for place in np.flatnonzero(np.isin(docs, np.array(list(grades), dtype=np.int64))):
                part[place] = grades.pop(int(docs[place]))
            notes.extend(
                "relevant documents are not among the candidates",
                (index.ids[doc] for doc, g in grades.items() if g > 0),
            )
        sizes = np.diff(found.offsets)
        filled = np.flatnonzero(sizes)
        if len(filled):
            yield Block(features, labels, [ids[q] for q in filled], sizes[filled], doc_ids=index.ids[found.docs])


class WrittenFeatures(NamedTuple):
    """What a file of features holds."""

    n_queries: int
    n_docs: int
    n_positives: int
    n_features: int


def write_features(
    pairs: QueryCandidates,
    path: str | os.PathLike[str],
    *,
    select: str | Sequence[str] = (),
    extra: Mapping[str, UserFeature] | None = None,
    threads: int | None = None,
) -> WrittenFeatures:
    """Write the features of all pairs to a Parquet file, a block of queries at a time."""
    extractor = FeatureExtractor(pairs.retriever.index, select, extra, threads)
    counts = Counter[str]()

    def counted() -> Iterator[Block]:
        for block in labelled_blocks(pairs, extractor, notes):
            counts.update(queries=len(block.run_ids), docs=block.n_docs, positives=int(np.count_nonzero(block.labels)))
            yield block
        if not counts["docs"]:
            raise _no_candidates(notes)

    with logged_notes() as notes:
        first_stage = None if extractor.first_stage is None else extractor.names.index(extractor.first_stage)
        info = FeatureInfo(extractor.names, first_stage, candidates=_origin(pairs, extractor))
        write_blocks(counted(), path, info, query_ids=pairs.queries)
    return WrittenFeatures(counts["queries"], counts["docs"], counts["positives"], len(extractor.names))


def extract_features(
    index: Index | Retriever,
    queries: Any,
    run: Run | Any = None,
    *,
    judgements: Judgements | Any = None,
    depth: int = 1000,
    select: str | Sequence[str] = (),
    extra: Mapping[str, UserFeature] | None = None,
) -> Dataset:
    """Features of candidates, as a data set to train on or to score. What is left out is logged.

    Parameters
    ----------
    index
        An index; or a `Retriever`, for another first stage or vectors of the queries.
    queries
        As for `retrieve`.
    run
        The candidates: a `Run`, a DataFrame with `qid`, `docno` and `score`, or a TREC file; those of the first stage
        if None.
    judgements
        Grades of documents by query id, a DataFrame with `qid`, `docno` and `label`, or a file; all labels are 0
        without.
    depth
        Most candidates of a query.
    select
        Names or patterns of features, such as `bm25*` or `*.title`, separated by commas or in a list; all if empty.
        `!dense.*` leaves some out.
    extra
        Your own features by name: functions (query text, document ids) → one number per document.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> index = Index.build(corpus, "index")
    >>> data = extract_features(index, {"q": "red roses"}, judgements={"q": {"b": 1}}, select=["tf_sum.text"])
    >>> data.features.tolist(), data.labels.tolist(), data.lists.doc_ids.tolist()
    ([[3.0], [1.0]], [1.0, 0.0], ['b', 'a'])
    """
    texts = as_queries(queries)
    retriever = Retriever.of(index).for_queries(texts)
    pairs = QueryCandidates(texts, retriever, depth, as_run(run), as_judgements(judgements))
    with logged_notes() as notes:
        return to_dataset(pairs, FeatureExtractor(retriever.index, select, extra), notes)


def to_dataset(pairs: QueryCandidates, extractor: FeatureExtractor, notes: Notes) -> Dataset:
    """The features of all pairs in memory."""
    blocks = list(labelled_blocks(pairs, extractor, notes))
    if not blocks:
        raise _no_candidates(notes)
    run_ids = [id for block in blocks for id in block.run_ids]
    data = Dataset.from_arrays(
        np.concatenate([block.features for block in blocks]),
        np.concatenate([block.labels for block in blocks]),
        qid=np.repeat(np.array(run_ids, dtype=object), np.concatenate([block.run_lengths for block in blocks])),
        doc_ids=np.concatenate([block.doc_ids for block in blocks]),
    ).with_features(extractor.names, first_stage=extractor.first_stage)
    return replace(data, info=replace(data.info, candidates=_origin(pairs, extractor)))


def _origin(pairs: QueryCandidates, extractor: FeatureExtractor) -> dict[str, Any]:
    """What data and models store of the candidates: their provenance, and what made the vectors that features use."""
    encoder = extractor.index.encoder_info if any(map(is_dense, extractor.names)) else None
    return {**pairs.provenance.as_dict(), **({} if encoder is None else {"encoder": encoder})}


def _no_candidates(notes: Notes) -> DataError:
    reasons = "".join(f"{note}; " for note in notes)
    return DataError(f"no query has candidates; {reasons}check that queries, run and index belong together")
