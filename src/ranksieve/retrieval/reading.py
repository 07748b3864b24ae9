"""`Reader`: ids, numbers and texts of documents, for an index."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ranksieve.errors import DataError
from ranksieve.retrieval.corpus import IDS, Document
from ranksieve.retrieval.fields import Field
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import Writer
from ranksieve.text_formats import counted, some_of

KEPT_IDS = 1_000  # in memory before they are written
LARGEST = float(np.finfo(np.float32).max)


class Reader:
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
        if id is None or id == "":
            fields = some_of([repr(str(name)[:40]) for name in document])
            known = f", or call it one of {', '.join(IDS)}" if self._id == IDS[0] else ""
            raise DataError(
                f"{place}: has no id in the field {self._id!r}; its fields are {fields}; name the field that holds the "
                f"id with --id{known}"
            )
        if isinstance(id, bool) or not isinstance(id, str | Integral):
            raise DataError(f"{place}: the id is {id!r}; expected text or a whole number")
        try:
            encoded = str(id).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{place}: the id {id!r} cannot be written as UTF-8 ({error.reason}); correct it"
            ) from error
        if str(id).split() != [str(id)]:
            raise DataError(f"{place}: the id {id!r} has spaces in it, which TREC files cannot hold; replace them")
        self.id_bytes += len(encoded)
        self._hashes.append(hash(encoded))
        self._ends.append(self.id_bytes)
        self._ids.append(encoded)
        if len(self._ids) == KEPT_IDS:
            self._write_ids()

    def _write_ids(self) -> None:
        self._writer.append("id_bytes", np.frombuffer(b"".join(self._ids), np.uint8))
        self._ids.clear()

    def _number(self, place: str, name: str, value: Any) -> float:
        try:
            number = float("nan" if value is None or value == "" else value)
            if abs(number) > LARGEST:
                raise ValueError
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{place}: {name} is {value!r}; expected a number in single precision, or null where there is none"
            ) from error
        if number != number:
            self._notes.add(f"documents without the number {name!r}", place)
        return number

    def finish(self, place_of: Callable[[int], str]) -> None:
        """Write the rest, and refuse fields that no document has and ids that two have; `place_of` finds documents."""
        for field, found in zip(self._fields, self._found, strict=True):
            if not found:
                raise DataError(f"no document has the field {field.source!r}; name fields that the corpus has")
        self._write_ids()
        self._writer.append("id_ends", np.array(self._ends, dtype=np.int64))
        for name, column in zip(self._names, self._numbers, strict=True):
            values = np.array(column, dtype=np.float32)
            if np.isnan(values).all():
                raise DataError(f"no document has the number {name!r}; name fields that the corpus has")
            self._writer.append("numbers", values)
        hashes = np.array(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
        if len(same):
            self._refuse_duplicates(order, same, place_of)

    def _refuse_duplicates(self, order: np.ndarray, same: np.ndarray, place_of: Callable[[int], str]) -> None:
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
            more = f" (so it is with {counted(document=len(twice))})" if len(twice) > 1 else ""
            raise DataError(
                f"{place_of(other)}: has the id {id!r} of an earlier document, {place_of(one)}{more}; "
                "ids must be unique"
            )
