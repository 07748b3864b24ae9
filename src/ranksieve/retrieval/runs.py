"""`Run`: ranked documents of queries, and TREC run files. `read_judgements`: TREC qrels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.data.lists import check_id
from ranksieve.data.other_files import INTEGER, QUERY_IDS, other_text
from ranksieve.data.pipes import spool_pipe
from ranksieve.errors import DataError, import_extra
from ranksieve.files import atomic_text
from ranksieve.retrieval.corpus import text_lines
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.notes import Notes

RUN_LINE = "TREC run lines like '101 Q0 doc7 1 14.2 bm25f'"
QRELS_LINE = "judgements like '101 0 doc7 2' (TREC) or '101 doc7 2'"
COLUMNS = ("qid", "docno", "score", "rank")
QRELS_HEADS = (*QUERY_IDS, "query")  # first cells of lines that name columns

Judgements = Mapping[str, Mapping[str, float]]  # query id → document id → grade


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Ranked lists of documents: query q has the rows `offsets[q]:offsets[q + 1]`, best first.

    Attributes
    ----------
    query_ids
        The ids of the queries.
    offsets
        The first row of each query, and the number of rows.
    doc_ids, scores
        Id and score of each row.

    Examples
    --------
    >>> run = Run.from_rows([("q1", "a", 1.5), ("q1", "b", 2.5), ("q2", "a", 0.5)])
    >>> run
    Run(2 queries, 3 documents)
    >>> [(query, list(documents)) for query, documents, scores in run.lists()]
    [('q1', ['b', 'a']), ('q2', ['a'])]
    """

    query_ids: tuple[str, ...]
    offsets: np.ndarray
    doc_ids: np.ndarray  # object
    scores: np.ndarray  # float64

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __repr__(self) -> str:
        return f"Run({counted(query=self.n_queries, document=len(self))})"

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
        pandas = import_extra("pandas", "DataFrames need the package 'pandas'", "pandas")
        return pandas.DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    @classmethod
    def from_frame(cls, frame: Any) -> Run:
        """A run from a DataFrame with `qid`, `docno` and `score`, in any order."""
        return cls.from_rows(rows_of(frame, COLUMNS[:3]))

    @classmethod
    def from_rows(cls, rows: Any) -> Run:
        """A run from (query id, document id, score); lists are ordered by score, equal scores as they are given."""
        ranked = ((f"row {n}", str(id), str(doc), score, n) for n, (id, doc, score) in enumerate(rows))
        return cls._from_ranked(ranked)

    @classmethod
    def _from_ranked(cls, rows: Iterable[tuple[str, str, str, Any, int]]) -> Run:
        """A run from (place for errors, query id, document id, score, rank), equal scores by rank."""
        by_query: dict[str, dict[str, tuple[float, int]]] = {}
        for place, id, doc, score, rank in rows:
            check_id(id, "query", f"{place}: ")
            check_id(doc, "document", f"{place}: ")
            found = by_query.setdefault(id, {})
            if doc in found:
                raise DataError(f"{place}: document {doc!r} occurs twice for query {id!r}; expected once")
            number = _finite(score)
            if number is None:
                raise DataError(f"{place}: the score {str(score)!r} is not a finite number")
            found[doc] = (-number, rank)
        lists = ((id, found, sorted(found, key=found.__getitem__)) for id, found in by_query.items())
        return cls.from_lists(
            (id, np.array(docs, dtype=object), -np.array([found[doc][0] for doc in docs])) for id, found, docs in lists
        )

    @classmethod
    def from_lists(cls, lists: Any) -> Run:
        """A run from (query id, document ids, scores) of every query, best first."""
        ids, docs, scores = [], [np.empty(0, object)], [np.empty(0)]
        for id, some, values in lists:
            ids.append(str(id))
            docs.append(some if len(some) and isinstance(some[0], str) else np.array([*map(str, some)], dtype=object))
            scores.append(values)
        offsets = np.cumsum([0, *map(len, docs[1:])])
        return cls(tuple(ids), offsets, np.concatenate(docs), np.concatenate(scores).astype(np.float64))


def read_run(path: str | os.PathLike[str]) -> Run:
    """A TREC run file of any system; lists are ordered by score, equal scores by the rank given.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("run.txt").write_text("q1 Q0 d7 1 2.5 bm25\\nq1 Q0 d9 2 1.5 bm25\\n")
    >>> len(read_run("run.txt"))
    2
    """
    name = spool_pipe(path)
    run = Run._from_ranked(_run_rows(name))
    if not len(run):
        raise DataError(f"{name}: holds no results; expected {RUN_LINE}")
    return run


def _run_rows(name: str) -> Iterator[tuple[str, str, str, str, int]]:
    for number, line in text_lines(name, RUN_LINE):
        cells = line.split()
        if len(cells) != 6:
            raise _wrong_columns(f"{name}:{number}", line, RUN_LINE)
        id, _, doc, rank, score, _ = cells
        if not INTEGER.fullmatch(rank):
            raise DataError(f"{name}:{number}: the rank {rank!r} is not an integer; expected {RUN_LINE}")
        yield f"{name}:{number}", id, doc, score, int(rank)


def write_run(run: Run, path: str | os.PathLike[str], tag: str = "ranksieve") -> None:
    """Write a TREC run file; ranks count from 1.

    Scores are written in single precision and fall strictly within a list: readers of runs order by score alone, and
    would order equal ones in their own way. One that is not below the score before it is written as the next smaller
    number.

    Examples
    --------
    >>> from pathlib import Path
    >>> run = Run.from_rows([("q1", "d7", 2.5), ("q1", "d9", 1.5)])
    >>> write_run(run, "run.txt")
    >>> Path("run.txt").read_text().splitlines()
    ['q1 Q0 d7 1 2.5 ranksieve', 'q1 Q0 d9 2 1.5 ranksieve']
    """
    with atomic_text(path) as file:
        for id, docs, scores in run.lists():
            _check_ids((id,), "query")
            _check_ids(docs, "document")
            file.writelines(
                f"{id} Q0 {doc} {rank} {score:.9g} {tag}\n"
                for rank, (doc, score) in enumerate(zip(docs, _descending(scores).tolist(), strict=True), 1)
            )


def _check_ids(ids: Iterable[str], kind: str) -> None:
    """Refuse ids that a line of cells with spaces between them cannot hold."""
    given = list(map(str, ids))
    if len(" ".join(given).split()) != len(given) or "" in given:
        bad = next(id for id in given if id.split() != [id])
        raise DataError(f"the {kind} id {bad!r} is empty or has spaces in it, which TREC files cannot hold; replace it")


def _descending(scores: np.ndarray) -> np.ndarray:
    """Strictly descending scores in float32, the precision of trec_eval; nine digits distinguish them."""
    limit, down = np.finfo(np.float32).max, np.float32(-np.inf)
    descending: np.ndarray = np.clip(scores, -limit, limit).astype(np.float32)
    for k in range(1, len(descending)):
        if descending[k] >= descending[k - 1]:
            descending[k] = np.nextafter(descending[k - 1], down)
    return descending


def read_judgements(path: str | os.PathLike[str]) -> Judgements:
    """Judgements of a file: TREC qrels, or lines `query document grade` as BEIR has them; below 0 a grade counts as 0.

    A first line that names the columns is left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("qrels.txt").write_text("q1 0 d7 2\\nq1 0 d9 0\\n")
    >>> read_judgements("qrels.txt")
    {'q1': {'d7': 2.0, 'd9': 0.0}}
    """
    name = spool_pipe(path)
    judgements = _graded(judgement_rows(name))
    if not judgements:
        raise DataError(f"{name}: holds no judgements; expected {QRELS_LINE}")
    return judgements


def as_judgements(judgements: Any) -> Judgements | None:
    """Judgements given in Python: a mapping, a DataFrame with `qid`, `docno` and `label`, a file, or None."""
    if isinstance(judgements, str | os.PathLike):
        return read_judgements(judgements)
    if judgements is None:
        return None
    if isinstance(judgements, Mapping):
        return {**{str(id): {} for id in judgements}, **_graded(_mapped_rows(judgements))}
    if not hasattr(judgements, "columns"):
        raise DataError(
            f"judgements are {type(judgements).__name__}; expected a mapping from query ids to grades by document id, "
            "a DataFrame with 'qid', 'docno' and 'label', or a file"
        )
    names = ("qid", "docno", "label")
    return _graded((f"row {n}", *row) for n, row in enumerate(rows_of(judgements, names)))


def _mapped_rows(judgements: Mapping[Any, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    for id, grades in judgements.items():
        if not isinstance(grades, Mapping):
            raise DataError(f"the judgements of query {id!r} are {grades!r}; expected a mapping from ids to grades")
        for doc, grade in grades.items():
            yield f"query {id!r}", id, doc, grade


def as_run(run: Any) -> Run | None:
    """A run given in Python: a `Run`, a DataFrame with `qid`, `docno` and `score`, a file, or None."""
    if isinstance(run, str | os.PathLike):
        return read_run(run)
    return run if run is None or isinstance(run, Run) else Run.from_frame(run)


def rows_of(frame: Any, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns of a table."""
    missing = [name for name in names if name not in getattr(frame, "columns", ())]
    if missing:
        raise DataError(f"the table has no column {missing[0]!r}; expected {', '.join(names)}")
    return zip(*(frame[name] for name in names), strict=True)


def judgement_lines(judgements: Judgements) -> Iterator[str]:
    """The lines of a TREC file of judgements."""
    for id, grades in judgements.items():
        yield from (f"{id} 0 {doc} {grade:g}\n" for doc, grade in grades.items())


def judgement_rows(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, str, str]]:
    """Each judgement of a file as it is written there: its place, query id, document id and grade, a finite number."""
    name = os.fspath(path)
    for number, line in text_lines(name, QRELS_LINE):
        cells = line.split()
        if number == 1 and cells[0].lower() in QRELS_HEADS and _finite(cells[-1]) is None:
            continue
        if len(cells) not in (3, 4):
            raise _wrong_columns(f"{name}:{number}", line, QRELS_LINE)
        if _finite(cells[-1]) is None:
            if _looks_like(line):
                raise _wrong_columns(f"{name}:{number}", line, QRELS_LINE)
            raise DataError(f"{name}:{number}: the grade {cells[-1]!r} is not a finite number; expected {QRELS_LINE}")
        yield f"{name}:{number}", cells[0], cells[-2], cells[-1]


def _wrong_columns(place: str, line: str, expected: str) -> DataError:
    """The error for a line with another number of columns than expected."""
    looks, cells = _looks_like(line), line.split()
    what = f"looks like {looks}" if looks else f"has {counted(column=len(cells))}"
    return DataError(f"{place}: {what}; expected {expected}, with spaces or tabs between the columns")


def _looks_like(line: str) -> str:
    """The kind of file that has such a line, where another one is expected; empty if unknown."""
    if line.lstrip().startswith(("{", "[")):
        return "JSON"
    if max(line.count(","), line.count(";")) > 1:
        return "CSV"
    kind = other_text(line.encode(), "")
    return "" if kind is None else kind.name


def _finite(value: Any) -> float | None:
    """A finite number; None for anything else, and for texts that only Python reads as a number, such as `1_0`."""
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _graded(rows: Iterable[tuple[str, Any, Any, Any]]) -> Judgements:
    """Judgements from (place for errors, query id, document id, grade)."""
    judgements: dict[str, dict[str, float]] = {}
    for place, id, doc, text in rows:
        number = _finite(text)
        if number is None:
            raise DataError(f"{place}: the grade {str(text)!r} is not a finite number; expected {QRELS_LINE}")
        check_id(id, "query", f"{place}: ")
        check_id(doc, "document", f"{place}: ")
        grade = max(number, 0.0)
        if judgements.setdefault(str(id), {}).setdefault(str(doc), grade) != grade:
            raise DataError(f"{place}: {doc!r} has two different grades for query {id!r}; keep one")
    return judgements


def note_unknown(judgements: Judgements, queries: Iterable[str], index: Index, notes: Notes) -> None:
    """Note judgements of documents that an index does not have, and of queries without a text.

    If these are all judgements, they belong to other queries or to another corpus: that is an error, and so are
    judgements with queries in the place of documents.
    """
    known, with_text = index.numbers_of_ids, set(queries)
    pairs = [(id, doc) for id, grades in judgements.items() for doc in grades]
    exchanged = sum(doc in with_text and id in known for id, doc in pairs)
    if 2 * exchanged > len(pairs) and not any(id in with_text and doc in known for id, doc in pairs):
        raise DataError(
            f"queries and documents of the judgements are exchanged: {exchanged:,} of {counted(judgement=len(pairs))} "
            "have the id of a document in the place of the query; give the query first, then the document"
        )
    judged = {id: grades for id, grades in judgements.items() if id in with_text}
    if judgements and not judged:
        raise _foreign(judgements, "one of these queries", next(iter(judgements)), next(iter(queries), ""))
    documents = [doc for grades in judged.values() for doc in grades]
    if documents and not any(doc in known for doc in documents):
        raise _foreign(judged, "a document of the index", documents[0], str(index.ids[0]))
    for id, grades in judgements.items():
        if id in with_text:
            notes.extend("judgements are of documents that are not in the index", (d for d in grades if d not in known))
        else:
            notes.add("judged queries have no text and are left out", id)


def _foreign(judgements: Judgements, what: str, got: str, expected: str) -> DataError:
    """The error for judgements of which none is of a known query or document."""
    n = sum(map(len, judgements.values()))
    return DataError(
        f"no judgement is for {what}: got {counted(judgement=n)} with ids like {got!r}, expected ids like {expected!r}"
        "; give the judgements of these queries and this corpus"
    )
