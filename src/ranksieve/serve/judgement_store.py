"""`JudgementStore`: grades in a TREC file that is whole at any time."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ranksieve.errors import DataError, ParameterError
from ranksieve.files import atomic_text, check_writable, locked
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import Judgements, judgement_rows

HEADER = "qid\tquery\n"
GRADES = range(5)  # grades that the page offers


def normal_text(text: str) -> str:
    """The text of a query as it is stored: one line, single spaces."""
    normal = " ".join(text.split())
    try:
        normal.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(f"the query cannot be written as UTF-8 ({error.reason}); correct it") from error
    return normal


class Change(NamedTuple):
    """A grade that was given: the query's id, and the grade before; None where there was none."""

    query_id: str
    previous: float | None


class JudgementStore:
    """Grades of documents by query, and the texts of the queries.

    The grades are a TREC file, the texts a tab-separated file beside it. Both are replaced in one step on every
    change. Other processes may write them, too: they are read again where they have changed.

    Parameters
    ----------
    path
        The file of judgements; need not exist. If it has grades beyond those of the page, such as -2 for spam, grades
        up to these are taken.
    own_queries
        The file for the texts of judged queries; need not exist.
    queries
        More texts of queries, which is only read.
    """

    def __init__(self, path: Path, own_queries: Path, queries: Path | None = None, *, read_only: bool = False):
        self._path, self._own = path, own_queries
        self._given = {} if queries is None else read_queries(queries)
        self._lock = threading.RLock()
        self._seen: object = None
        self._grades: dict[str, dict[str, str]] = {}
        self._texts: dict[str, str] = {}
        self._range = float(GRADES[0]), float(GRADES[-1])  # range of all grades so far
        self.version = 0  # changes with the judgements
        if not read_only:
            check_writable(path)
            check_writable(own_queries)
        with self._lock:
            self._refresh()

    def grades(self) -> Judgements:
        """Grades by query id and document; below 0 they count as 0."""
        with self._lock:
            self._refresh()
            return {id: _numbers(some) for id, some in self._grades.items()}

    def grades_of(self, text: str) -> Mapping[str, float]:
        """The grades of a query by its text."""
        with self._lock:
            self._refresh()
            return _numbers(self._grades.get(self._id_of(normal_text(text)), {}))

    def texts(self) -> dict[str, str]:
        """The texts of all known queries by id, judged or not."""
        with self._lock:
            self._refresh()
            return dict(self._texts)

    def put(self, text: str, document: str, grade: float | None) -> Change:
        """Grade a document, or remove its grade; it is on disk when this returns."""
        normal = normal_text(text)
        if not normal:
            raise ParameterError("the query is empty; give its text")
        with self._lock, locked(self._path.parent):  # locks out threads of this process, and other processes
            self._refresh()
            low, high = self._range
            if grade is not None and not low <= grade <= high:
                raise ParameterError(
                    f"the grade is {grade:g}; expected a number from {low:g} to {high:g}, or null to remove it"
                )
            id = self._id_of(normal)
            grades = {query: dict(some) for query, some in self._grades.items()}
            mine = grades.setdefault(id, {})
            previous = mine.pop(document, None)
            if grade is not None:
                mine[document] = repr(int(grade) if grade == int(grade) else grade)
            if not mine:
                del grades[id]
            self._write(grades, {**self._texts, id: normal})
            self._refresh()
        return Change(id, None if previous is None else float(previous))

    def _write(self, grades: Mapping[str, Mapping[str, str]], texts: Mapping[str, str]) -> None:
        """The texts first: a text without grades is harmless."""
        needed = [(id, texts[id]) for id in texts if id in grades or id not in self._given]
        content = HEADER + "".join(f"{id}\t{' '.join(text.split())}\n" for id, text in needed)
        if not self._own.exists() or self._own.read_text(encoding="utf-8") != content:
            with atomic_text(self._own) as file:
                file.write(content)
        with atomic_text(self._path) as file:
            file.writelines(f"{id} 0 {doc} {grade}\n" for id, some in grades.items() for doc, grade in some.items())

    def _id_of(self, normal: str) -> str:
        """The id of a query: the known one, or one made from its text, the same for every judge."""
        found = self._ids.get(normal)
        if found is not None:
            return found
        digest = hashlib.sha256(normal.encode()).hexdigest()
        return next(id for size in range(10, 65) if (id := f"q-{digest[:size]}") not in self._texts)

    def _refresh(self) -> None:
        """Read the files again if they have changed."""
        seen = (_signature(self._path), _signature(self._own))
        if seen == self._seen:
            return
        texts = dict(self._given)
        if seen[1] is not None and seen[1][-1] > len(HEADER):
            texts |= read_queries(self._own)
        grades: dict[str, dict[str, str]] = {}
        if seen[0] is not None and seen[0][-1] > 0:
            for place, id, doc, grade in judgement_rows(self._path):
                if grades.setdefault(id, {}).setdefault(doc, grade) != grade:
                    raise DataError(f"{place}: {doc!r} has two different grades for query {id!r}; keep one")
        self._grades, self._texts, self._seen = grades, texts, seen
        found = [float(grade) for some in grades.values() for grade in some.values()]
        self._range = min((self._range[0], *found)), max((self._range[1], *found))
        self._ids = {" ".join(text.split()): id for id, text in reversed(texts.items())}
        self.version += 1


def _numbers(grades: Mapping[str, str]) -> dict[str, float]:
    return {doc: max(float(grade), 0.0) for doc, grade in grades.items()}


def _signature(path: Path) -> tuple[int, ...] | None:
    """What changes with a file; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
