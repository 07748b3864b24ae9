"""`Run`: ranked documents of queries, and TREC run files. `read_judgements`: TREC qrels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import DataError, MissingExtraError
from ranksieve.files import atomic_path
from ranksieve.retrieval.corpus import text_lines

RUN_LINE = "TREC run lines like '101 Q0 doc7 1 14.2 bm25f'"
QRELS_LINE = "TREC judgements like '101 0 doc7 2'"
COLUMNS = ("qid", "docno", "score", "rank")

Judgements = Mapping[str, Mapping[str, float]]  # query id → document id → grade


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Ranked lists: query q has the rows `offsets[q]:offsets[q + 1]`, best first."""

    query_ids: tuple[str, ...]
    offsets: np.ndarray
    doc_ids: np.ndarray  # object
    scores: np.ndarray  # float64

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __repr__(self) -> str:
        return f"Run({self.n_queries} queries, {len(self)} documents)"

    def lists(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Each query's id, documents and scores."""
        for number, id in enumerate(self.query_ids):
            part = slice(self.offsets[number], self.offsets[number + 1])
            yield id, self.doc_ids[part], self.scores[part]

    def to_frame(self) -> Any:
        """A pandas DataFrame with `qid`, `docno`, `score` and `rank` (from 0), as PyTerrier has them."""
        sizes = np.diff(self.offsets)
        columns = (
            np.repeat(np.array(self.query_ids, dtype=object), sizes),
            self.doc_ids,
            self.scores,
            np.arange(len(self)) - np.repeat(self.offsets[:-1], sizes),
        )
        return pandas_module().DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    @classmethod
    def from_frame(cls, frame: Any) -> Run:
        """A run from a DataFrame with `qid`, `docno` and `score`, in any order."""
        missing = [name for name in COLUMNS[:3] if name not in frame.columns]
        if missing:
            raise DataError(f"the table has no column {missing[0]!r}; expected {', '.join(COLUMNS[:3])}")
        return cls.from_rows(zip(*(frame[name] for name in COLUMNS[:3]), strict=True))

    @classmethod
    def from_rows(cls, rows: Any) -> Run:
        """A run from (query id, document id, score); lists are ordered by score, equal scores as they are given."""
        by_query: dict[str, tuple[list[str], list[float]]] = {}
        for id, doc_id, score in rows:
            docs, scores = by_query.setdefault(str(id), ([], []))
            docs.append(str(doc_id))
            scores.append(float(score))
        return cls.from_lists(
            (id, np.array(docs, dtype=object)[order], np.array(scores)[order])
            for id, (docs, scores) in by_query.items()
            for order in [np.argsort(-np.array(scores), kind="stable")]
        )

    @classmethod
    def from_lists(cls, lists: Any) -> Run:
        """A run from (query id, document ids, scores) of every query, best first."""
        ids, docs, scores = [], [np.empty(0, object)], [np.empty(0)]
        for id, some, values in lists:
            ids.append(id)
            docs.append(some)
            scores.append(values)
        offsets = np.cumsum([0, *map(len, docs[1:])])
        return cls(tuple(ids), offsets, np.concatenate(docs), np.concatenate(scores).astype(np.float64))


def read_run(path: str | os.PathLike[str]) -> Run:
    """A TREC run file of any system; lists are ordered by score, equal scores by the rank given."""
    name = os.fspath(path)
    rows: dict[str, list[tuple[float, int, str]]] = {}
    seen: set[tuple[str, str]] = set()
    for number, line in text_lines(name, RUN_LINE):
        cells = line.split()
        if len(cells) != 6:
            raise DataError(f"{name}:{number}: has {len(cells)} columns; expected {RUN_LINE}")
        id, _, doc, rank, score, _ = cells
        if (id, doc) in seen:
            raise DataError(f"{name}:{number}: document {doc!r} is there twice for query {id!r}; once is enough")
        seen.add((id, doc))
        try:
            value, place = float(score), int(rank)
            if not np.isfinite(value):
                raise ValueError
        except ValueError as error:
            raise DataError(
                f"{name}:{number}: rank {rank!r} or score {score!r} is no number; expected {RUN_LINE}"
            ) from error
        rows.setdefault(id, []).append((-value, place, doc))
    if not rows:
        raise DataError(f"{name}: holds no results; expected {RUN_LINE}")
    lists = ((id, sorted(found)) for id, found in rows.items())
    return Run.from_lists(
        (id, np.array([row[2] for row in found], dtype=object), -np.array([row[0] for row in found]))
        for id, found in lists
    )


def write_run(run: Run, path: str | os.PathLike[str], tag: str = "ranksieve") -> None:
    """Write a TREC run file; ranks count from 1."""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for id, docs, scores in run.lists():
            file.writelines(
                f"{id} Q0 {doc} {rank} {score:.9g} {tag}\n"
                for rank, (doc, score) in enumerate(zip(docs, scores.tolist(), strict=True), 1)
            )


def read_judgements(path: str | os.PathLike[str]) -> Judgements:
    """TREC qrels; a grade below 0 counts as 0."""
    name = os.fspath(path)
    judgements: dict[str, dict[str, float]] = {}
    for number, line in text_lines(name, QRELS_LINE):
        cells = line.split()
        if len(cells) != 4:
            raise DataError(f"{name}:{number}: has {len(cells)} columns; expected {QRELS_LINE}")
        id, _, doc, text = cells
        try:
            grade = float(text)
        except ValueError as error:
            raise DataError(f"{name}:{number}: the grade {text!r} is no number; expected {QRELS_LINE}") from error
        if not np.isfinite(grade):
            raise DataError(f"{name}:{number}: the grade is {text}; expected a finite number")
        grades = judgements.setdefault(id, {})
        if grades.setdefault(doc, max(grade, 0.0)) != max(grade, 0.0):
            raise DataError(f"{name}:{number}: {doc!r} has two different grades for query {id!r}; keep one")
    if not judgements:
        raise DataError(f"{name}: holds no judgements; expected {QRELS_LINE}")
    return judgements


def pandas_module() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("DataFrames need the package 'pandas'; install it with: pip install pandas") from error
    return pandas


def ids_array(ids: Sequence[str]) -> np.ndarray:
    """Ids as an array of Python texts."""
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array
