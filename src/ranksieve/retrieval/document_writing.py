"""Ids, numbers and texts of documents, checked and written into an index as the corpus is read."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ranksieve.data.lists import check_id
from ranksieve.errors import DataError, param
from ranksieve.retrieval.analysis import Field
from ranksieve.retrieval.corpus import IDS, Corpus, Document, kind_of_value, plain_text
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import IndexWriter
from ranksieve.retrieval.texts import packed, unpacked
from ranksieve.text_formats import counted, some_of

KEPT_IDS = 1_000  # in memory before they are written
KEPT_TEXTS = 1 << 18  # bytes
LARGEST = float(np.finfo(np.float32).max)


def as_number(place: str, name: str, value: Any) -> float:
    """The number in a field of a document; NaN if it is missing."""
    try:
        number = float("nan" if value is None or value == "" else value)
        if abs(number) > LARGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        held = kind_of_value(value)
        got = f"is {value!r}" if held == "numbers" else f"holds {held}, not numbers: {value!r:.60}"
        raise DataError(
            f"{place}: {name} {got}; expected a number in single precision, or null where there is none"
        ) from error
    return number


class StoredTexts:
    """Writes the texts of documents as they are in the corpus, for showing them."""

    NONE: ClassVar = {"text_bytes": 0, "texts": 0}

    def __init__(self, fields: list[Field], writer: IndexWriter):
        self._sources = list(dict.fromkeys(field.source for field in fields))
        self._writer = writer
        self._ends, self._kept = array("q"), bytearray()
        self._n_bytes = 0

    def add(self, document: Document) -> None:
        content = packed({source: plain_text(document.get(source)) for source in self._sources})
        self._n_bytes += len(content)
        self._ends.append(self._n_bytes)
        self._kept += content
        if len(self._kept) > KEPT_TEXTS:
            self._write()

    def _write(self) -> None:
        self._writer.append("text_bytes", np.frombuffer(bytes(self._kept), np.uint8))
        self._kept.clear()

    def read(self, docs: Iterable[int]) -> list[str]:
        """The texts of documents that were finished, those of all fields as one."""
        found = []
        for doc in docs:
            content = self._writer.read_back("text_bytes", self._ends[doc - 1] if doc else 0, self._ends[doc])
            found.append("\n".join(unpacked(content.tobytes()).values()))
        return found

    def finish(self) -> dict[str, int]:
        """Write the rest; returns the sizes."""
        self._write()
        self._writer.append("text_ends", np.array(self._ends, dtype=np.int64))
        return {"text_bytes": self._n_bytes, "texts": len(self._ends)}


class DocumentReader:
    """Takes ids, numbers and texts out of documents, and counts what is missing."""

    def __init__(self, fields: list[Field], numbers: Sequence[str], id: str, notes: Notes, writer: IndexWriter):
        self._fields, self._names, self._id = fields, numbers, id
        self._notes, self._writer = notes, writer
        self._numbers = [array("f") for _ in numbers]
        self._hashes, self._ends = array("q"), array("q")
        self._ids: list[bytes] = []
        self._found = [False] * len(fields)
        self._held = [""] * len(fields)  # what else than text the fields hold
        self._id_bytes = 0

    def sizes(self) -> dict[str, int]:
        return {"id_bytes": self._id_bytes, "numbers": len(self._names)}

    def texts(self, item: tuple[str, Document]) -> list[str | None]:
        """The text of every field of the next document, given with its place."""
        place, document = item
        self._add_id(place, document)
        for name, column in zip(self._names, self._numbers, strict=True):
            number = as_number(place, name, document.get(name))
            if number != number:
                self._notes.add(f"documents without the number {name!r}", place)
            column.append(number)
        texts = [field.text(document) for field in self._fields]
        for number, text in enumerate(texts):
            if text is not None:
                self._found[number] = True
                continue
            source = self._fields[number].source
            held = kind_of_value(document.get(source))
            self._held[number] = self._held[number] or held
            lack = f"whose field {source!r} holds {held}" if held else f"without the field {source!r}"
            self._notes.add(f"documents {lack}", place)
        return texts

    def _add_id(self, place: str, document: Document) -> None:
        id = document.get(self._id)
        if id is None or id == "":
            fields = some_of([repr(str(name)[:40]) for name in document])
            known = f", or call it one of {', '.join(IDS)}" if self._id == IDS[0] else ""
            raise DataError(
                f"{place}: has no id in the field {self._id!r}; its fields are {fields}; name the field that holds the "
                "id with ", param("id"), known,
            )  # fmt: skip
        if isinstance(id, bool) or not isinstance(id, str | Integral):
            raise DataError(f"{place}: the id is {id!r}; expected text or an integer")
        check_id(id, "document", f"{place}: ")
        encoded = str(id).encode()
        if str(id).split() != [str(id)]:
            raise DataError(f"{place}: the id {id!r} has spaces in it, which TREC files cannot hold; replace them")
        self._id_bytes += len(encoded)
        self._hashes.append(hash(encoded))
        self._ends.append(self._id_bytes)
        self._ids.append(encoded)
        if len(self._ids) == KEPT_IDS:
            self._write_ids()

    def ids(self) -> list[str]:
        """The ids of all documents, once these are finished."""
        content, ends = self._writer.read_back("id_bytes").tobytes(), self._ends.tolist()
        return [content[start:end].decode() for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _write_ids(self) -> None:
        self._writer.append("id_bytes", np.frombuffer(b"".join(self._ids), np.uint8))
        self._ids.clear()

    def finish(self, corpus: Corpus) -> None:
        """Write the rest, and refuse fields that no document has and ids that two documents have."""
        for field, found, held in zip(self._fields, self._found, self._held, strict=True):
            if not found and held:
                raise DataError(f"{field.source!r} holds {held}; expected text; name fields that hold text")
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
            self._refuse_duplicates(order, same, corpus)

    def _refuse_duplicates(self, order: np.ndarray, same: np.ndarray, corpus: Corpus) -> None:
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
            more = f" ({counted(document=len(twice))} in all)" if len(twice) > 1 else ""
            raise DataError(
                f"{corpus.place(other)}: has the id {id!r} of an earlier document, {corpus.place(one)}{more}; "
                "ids must be unique"
            )
