"""`build_index`: a corpus in one pass into an index, whatever its size."""

from __future__ import annotations

import itertools
import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError
from ranksieve.files import atomic_folder
from ranksieve.retrieval.analysis import Analyzer
from ranksieve.retrieval.corpus import Document, read_documents
from ranksieve.retrieval.fields import Field, parse_field
from ranksieve.retrieval.inverting import Inverter
from ranksieve.retrieval.merging import Run, merge_runs
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import HEADER, Writer, write_header

SEEN_FIRST = 1_000  # documents looked at to find the text fields
MOST_FIELDS = 255  # a field's number is one byte
LEAST_MEMORY = 1 << 20
RUNS = "runs"


def build_index(
    corpus: str | os.PathLike[str] | Iterable[Document],
    out: str | os.PathLike[str],
    *,
    fields: Sequence[str | Field],
    numbers: Sequence[str],
    id: str,
    analyzer: Analyzer | None,
    positions: bool,
    memory: int,
    replace: bool,
    progress: Callable[[int], None] | None,
) -> Notes:
    """Write an index; the parameters are those of `Index.build`. Returns what was odd about the corpus."""
    if memory < LEAST_MEMORY:
        raise ParameterError(f"memory is {memory} bytes; expected at least {LEAST_MEMORY} (1 MiB)")
    target = Path(out)
    if target.exists() and not (replace and (target / HEADER).is_file()):
        raise DataError(
            f"{target}: exists already; choose another name, or replace the index there with replace=True (--replace)"
        )
    notes = Notes()
    first, documents = _opened(corpus, 1 if fields else SEEN_FIRST)
    if not first:
        raise DataError("the corpus holds no documents; expected at least one")
    chosen = _fields(fields, first, id, numbers, analyzer or Analyzer(), positions)
    with atomic_folder(target, replace=replace) as folder:
        (folder / RUNS).mkdir()
        writer = Writer(folder)
        try:
            inverter = Inverter(chosen, folder / RUNS, memory // 2)
            reader = _Reader(chosen, numbers, id, notes, writer)
            for number, (place, document) in enumerate(documents, 1):
                inverter.add(reader.texts(place, document))
                if progress is not None and number % SEEN_FIRST == 0:
                    progress(number)
            inverter.flush()
            reader.check()
            lengths = np.concatenate(inverter.lengths, axis=1)
            writer.append("lengths", np.concatenate([lengths, lengths.sum(axis=0, keepdims=True)]))
            runs = [Run(folder / RUNS, number) for number in range(inverter.n_runs)]
            sizes = merge_runs(runs, inverter.n_docs, len(chosen), memory // 2, writer)
        finally:
            writer.close()
        shutil.rmtree(folder / RUNS)
        write_header(
            folder,
            {
                "fields": [field.as_dict() for field in chosen],
                "numbers": list(numbers),
                "sizes": {
                    **sizes,
                    "docs": inverter.n_docs,
                    "id_bytes": reader.id_bytes,
                    "columns": len(chosen) + 1,
                    "numbers": len(numbers),
                },
                "notes": list(notes),
            },
        )
    return notes


def _given(documents: Iterable[Document]) -> Iterator[tuple[str, Document]]:
    for number, document in enumerate(documents):
        if not isinstance(document, dict):
            raise DataError(f"document {number} is {type(document).__name__}; expected a dict from field to text")
        yield f"document {number}", document


def _opened(
    corpus: str | os.PathLike[str] | Iterable[Document], most: int
) -> tuple[list[tuple[str, list[str]]], Iterator[tuple[str, Document]]]:
    """Where the first documents stand and which text fields they have; and all documents.

    Files are opened twice, so that no text is held meanwhile; of others the first documents are, until they are taken.
    """
    if isinstance(corpus, str | os.PathLike):
        ahead, documents = read_documents(corpus), read_documents(corpus)
    else:
        ahead, documents = itertools.tee(_given(corpus))
    first = [
        (place, [name for name, value in document.items() if _is_text(value)])
        for place, document in itertools.islice(ahead, most)
    ]
    return first, documents


def _fields(
    given: Sequence[str | Field],
    first: Sequence[tuple[str, list[str]]],
    id: str,
    numbers: Sequence[str],
    analyzer: Analyzer,
    positions: bool,
) -> list[Field]:
    """The fields asked for, or all that hold text in the first documents."""
    fields = [
        field if isinstance(field, Field) else parse_field(field, analyzer, positions=positions) for field in given
    ]
    if not fields:
        names = [name for _, found in first for name in found]
        fields = [
            Field(name, analyzer=analyzer, positions=positions)
            for name in dict.fromkeys(names)
            if name != id and name not in numbers
        ]
        if not fields:
            raise DataError(f"no field of {first[0][0]} and the next {len(first) - 1} holds text; name fields to index")
    names = [field.name for field in fields]
    twice = [name for name in names if names.count(name) > 1]
    if twice or len(fields) > MOST_FIELDS:
        raise ParameterError(
            f"the field {twice[0]!r} is given twice; name each field once"
            if twice
            else f"got {len(fields)} fields; an index has at most {MOST_FIELDS}"
        )
    return fields


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)
    )


class _Reader:
    """Takes ids, numbers and texts out of documents, and counts what is missing."""

    def __init__(self, fields: list[Field], numbers: Sequence[str], id: str, notes: Notes, writer: Writer):
        self._fields, self._names, self._id = fields, numbers, id
        self._notes, self._writer = notes, writer
        self._numbers = [array("f") for _ in numbers]
        self._hashes, self._ends = array("q"), array("q")
        self._ids: list[bytes] = []
        self._found = [False] * len(fields)
        self.id_bytes = 0

    def texts(self, place: str, document: Document) -> list[str | None]:
        """The text of every field of the next document."""
        self._add_id(place, document)
        for name, column in zip(self._names, self._numbers, strict=True):
            column.append(self._number(place, name, document.get(name)))
        texts = [field.text(document) for field in self._fields]
        for number, text in enumerate(texts):
            if text is None:
                self._notes.add(f"documents without the field {self._fields[number].source!r}", place)
            else:
                self._found[number] = True
        return texts

    def _add_id(self, place: str, document: Document) -> None:
        id = document.get(self._id)
        if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
            fields = ", ".join(map(repr, list(document)[:8]))
            raise DataError(
                f"{place}: has no id in the field {self._id!r} (it has {fields}); name its field with id='…' (--id)"
            )
        encoded = str(id).encode()
        if encoded.split() != [encoded]:
            raise DataError(f"{place}: the id {id!r} has spaces in it, which TREC files cannot hold; replace them")
        self.id_bytes += len(encoded)
        self._hashes.append(hash(encoded))
        self._ends.append(self.id_bytes)
        self._ids.append(encoded)
        if len(self._ids) == SEEN_FIRST:
            self._write_ids()

    def _write_ids(self) -> None:
        self._writer.append("id_bytes", np.frombuffer(b"".join(self._ids), np.uint8))
        self._ids.clear()

    def _number(self, place: str, name: str, value: Any) -> float:
        if value is None or value == "":
            self._notes.add(f"documents without the number {name!r}", place)
            return float("nan")
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise DataError(f"{place}: {name} is {value!r}; expected a number, or null where there is none") from error

    def check(self) -> None:
        """Write the rest, and refuse fields that no document has and ids that two have."""
        for field, found in zip(self._fields, self._found, strict=True):
            if not found:
                raise DataError(f"no document has the field {field.source!r}; name fields that the corpus has")
        self._write_ids()
        self._writer.append("id_ends", np.array(self._ends, dtype=np.int64))
        for column in self._numbers:
            self._writer.append("numbers", np.array(column, dtype=np.float32))
        hashes = np.array(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
        if len(same):
            self._refuse_duplicates(order, same)

    def _refuse_duplicates(self, order: np.ndarray, same: np.ndarray) -> None:
        """Equal hashes are almost surely equal ids; the ids on disk decide."""
        ids = self._writer.read_back("id_bytes")
        starts = [0, *self._ends]
        twice = []
        for k in same.tolist():
            a, b = (ids[starts[doc] : starts[doc + 1]].tobytes() for doc in order[k : k + 2])
            if a == b:
                twice.append((a.decode(), *sorted(order[k : k + 2].tolist())))
        if twice:
            id, one, other = min(twice, key=lambda found: found[2])
            raise DataError(
                f"{len(twice)} documents have an id that an earlier one has: {id!r} is the id of documents {one} and "
                f"{other} (from 0); ids must be unique"
            )
