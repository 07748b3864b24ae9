"""From queries to labelled pairs with features: blocks that stream into a file, a data set, or a model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.blocks import Block
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.parquet import write_blocks
from ranksieve.dtypes import LABEL, OFFSET
from ranksieve.errors import DataError
from ranksieve.retrieval.features import FeatureMaker
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.notes import Notes, remarks
from ranksieve.retrieval.origins import origin_of
from ranksieve.retrieval.queries import Prepared, Queries, note_odd_queries
from ranksieve.retrieval.runs import Judgements, Run, note_unknown
from ranksieve.retrieval.searching import Candidates, Searcher, check_depth

BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class Pairs:
    """Queries and where their candidates come from; `judgements` label them.

    Candidates are those of a run, or else the `depth` best of the searcher.
    """

    queries: Queries
    searcher: Searcher
    depth: int = 1000
    run: Run | None = None
    judgements: Judgements | None = None

    def __post_init__(self) -> None:
        check_depth(self.depth)

    @property
    def origin(self) -> str:
        """Where the candidates come from, in the words of the command line."""
        return origin_of(self.searcher, self.depth, self.run, self.queries)

    def blocks(self, maker: FeatureMaker, notes: Notes) -> Iterator[tuple[list[str], Candidates, np.ndarray]]:
        """Ids of some queries, their candidates, and the features of these."""
        index = self.searcher.index
        lists = None if self.run is None else self._lists_of_run(self.run, notes)
        ids = list(self.queries) if lists is None else [id for id in self.queries if id in lists]
        size = max(1, BLOCK_ROWS // min(self.depth, index.n_docs))
        for start in range(0, len(ids), size):
            some = ids[start : start + size]
            texts = [self.queries[id] for id in some]
            prepared = index.analysis.prepare(texts)
            found = self._candidates(some, prepared, lists, notes)
            yield some, found, maker.make(texts, prepared, found)

    def _candidates(self, ids: list[str], prepared: Prepared, lists: Any, notes: Notes) -> Candidates:
        if lists is None:
            note_odd_queries({id: self.queries[id] for id in ids}, prepared, notes)
            return self.searcher.of_prepared(prepared, self.depth)
        docs, scores = zip(*(lists[id] for id in ids), strict=True)
        offsets = np.concatenate([[0], np.cumsum([len(some) for some in docs])]).astype(OFFSET)
        return Candidates(offsets, np.concatenate(docs), np.concatenate(scores))

    def _lists_of_run(self, run: Run, notes: Notes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The run's documents by their numbers."""
        number_of = self.searcher.index.numbers_of_ids
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


def labelled_blocks(pairs: Pairs, maker: FeatureMaker, notes: Notes) -> Iterator[Block]:
    """The pairs as blocks of a data file, unjudged documents with label 0."""
    index, judgements = pairs.searcher.index, pairs.judgements or {}
    if pairs.judgements is not None:
        note_odd_judgements(pairs, notes)
    for ids, found, features in pairs.blocks(maker, notes):
        labels = np.zeros(len(found.docs), dtype=LABEL)
        for number, id in enumerate(ids):
            grades = _numbered(judgements.get(id, {}), index)
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


def _numbered(grades: Mapping[str, float], index: Index) -> dict[int, float]:
    number_of = index.numbers_of_ids
    return {number_of[doc]: grade for doc, grade in grades.items() if doc in number_of}


def note_odd_judgements(pairs: Pairs, notes: Notes) -> None:
    """Remark on judgements that cannot be used, and on queries without any."""
    judgements = pairs.judgements or {}
    note_unknown(judgements, pairs.queries, pairs.searcher.index, notes)
    notes.extend(
        "queries have no judgements; their documents get label 0", (q for q in pairs.queries if q not in judgements)
    )


class Written(NamedTuple):
    """What a file of features holds."""

    n_queries: int
    n_docs: int
    n_positives: int
    n_features: int


def write_features(
    pairs: Pairs,
    path: str | os.PathLike[str],
    *,
    select: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    notes: Notes | None = None,
    threads: int | None = None,
) -> Written:
    """Write the features of all pairs to a Parquet file, a block of queries at a time."""
    maker = FeatureMaker(pairs.searcher.index, select, extra, threads)
    counts = Counter[str]()

    def counted() -> Iterator[Block]:
        for block in labelled_blocks(pairs, maker, taken):
            counts.update(queries=len(block.run_ids), docs=block.n_docs, positives=int(np.count_nonzero(block.labels)))
            yield block
        if not counts["docs"]:
            raise _nothing(taken)

    with remarks(notes) as taken:
        first_stage = None if maker.first_stage is None else maker.names.index(maker.first_stage)
        info = FeatureInfo(tuple(maker.names), first_stage, candidates=pairs.origin)
        write_blocks(counted(), path, info, query_ids=pairs.queries)
    return Written(counts["queries"], counts["docs"], counts["positives"], len(maker.names))


def to_dataset(pairs: Pairs, maker: FeatureMaker, notes: Notes) -> Dataset:
    """The features of all pairs in memory."""
    blocks = list(labelled_blocks(pairs, maker, notes))
    if not blocks:
        raise _nothing(notes)
    run_ids = [id for block in blocks for id in block.run_ids]
    data = Dataset.from_arrays(
        np.concatenate([block.features for block in blocks]),
        np.concatenate([block.labels for block in blocks]),
        qid=np.repeat(np.array(run_ids, dtype=object), np.concatenate([block.run_lengths for block in blocks])),
        doc_ids=np.concatenate([block.doc_ids for block in blocks]),
        feature_names=maker.names,
        first_stage=maker.first_stage,
    )
    return replace(data, candidates=pairs.origin)


def _nothing(notes: Notes) -> DataError:
    why = "".join(f"{note}; " for note in notes)
    return DataError(f"no query has candidates; {why}check that queries, run and index belong together")
