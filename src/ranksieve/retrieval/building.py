"""`build_index`: indexes a corpus of any size in one pass over its documents."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranksieve.errors import DataError, ParameterError, param
from ranksieve.files import atomic_folder
from ranksieve.retrieval.analysis import Analyzer, Field, parse_field
from ranksieve.retrieval.corpus import IDS, Corpus, Document, plain_text
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.inverting import Inverter
from ranksieve.retrieval.merging import PostingsRun, merge_runs
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import HEADER, Header, IndexWriter
from ranksieve.retrieval.texts import packed
from ranksieve.text_formats import counted, some_of

FIRST_DOCUMENTS = 1_000  # in which text fields are found
MOST_FIELDS = 255  # a field's number is one byte
LEAST_MEMORY = 1 << 20
KEPT_IDS = 1_000  # in memory before they are written
KEPT_TEXTS = 1 << 18  # bytes
LARGEST = float(np.finfo(np.float32).max)
RUNS = "runs"


@dataclass(frozen=True)
class IndexSettings:
    """What to index and how; the parameters are those of `Index.build`."""

    fields: str | Field | Sequence[str | Field] = ()
    numbers: str | Sequence[str] = ()
    id: str | None = None
    analyzer: Analyzer | None = None
    positions: bool = True
    memory: int = 1 << 30
    stage: FirstStage | None = None
    texts: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.memory, int) or self.memory < LEAST_MEMORY:
            raise ParameterError(
                param("memory"), f" is {self.memory!r}; expected bytes, at least {LEAST_MEMORY} (1 MiB)"
            )
        if not isinstance(self.positions, bool):
            raise ParameterError(
                param("positions"),
                f" is {self.positions!r}; expected True or False, or for one field 'title:positions', "
                "'title:nopositions'",
            )
        if not isinstance(self.texts, bool):
            raise ParameterError(param("texts"), f" is {self.texts!r}; expected True or False")
        if not isinstance(self.analyzer, Analyzer | None):
            raise ParameterError(
                param("analyzer"), f" is {self.analyzer!r}; expected an Analyzer, as in Analyzer(stem='none')"
            )

    def number_names(self) -> list[str]:
        return [self.numbers] if isinstance(self.numbers, str) else list(self.numbers or ())

    def chosen_fields(self, corpus: Corpus) -> tuple[list[Field], str]:
        """The fields given, or all that hold text in the first documents; and the field that holds the ids."""
        given = [self.fields] if isinstance(self.fields, str | Field) else list(self.fields or ())
        first = corpus.first_fields(1 if given else FIRST_DOCUMENTS)
        if not first:
            raise DataError(f"{corpus.name}: holds no documents; expected at least one")
        id = self.id or next((name for name in IDS if name in first[0][1]), IDS[0])
        analyzer = self.analyzer or Analyzer()
        fields = [
            field if isinstance(field, Field) else parse_field(field, analyzer, positions=self.positions)
            for field in given
        ]
        if not fields:
            texts = dict.fromkeys(name for _, found in first for name, text in found.items() if text)
            names = [name for name in texts if name not in (id, *self.number_names())]
            fields = [Field(name, analyzer=analyzer, positions=self.positions) for name in names]
            if not fields:
                raise DataError(
                    f"no field of {first[0][0]} and the next {len(first) - 1} holds text; name fields to index"
                )
        names = [field.name for field in fields]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ParameterError(f"the field {twice[0]!r} is given twice; name each field once")
        if len(fields) > MOST_FIELDS:
            raise ParameterError(f"got {len(fields)} fields; an index has at most {MOST_FIELDS}")
        return fields, id


def build_index(
    corpus: Corpus,
    out: str | os.PathLike[str],
    settings: IndexSettings,
    *,
    replace: bool,
    progress: Callable[[int], None] | None,
    notes: Notes,
) -> None:
    """Write an index. Irregularities of the corpus are added to the notes."""
    target = Path(out)
    if target.exists() and not (replace and (target / HEADER).is_file()):
        raise DataError(
            f"{target}: exists already; choose another name, or replace the index there with ", param("replace")
        )
    fields, id = settings.chosen_fields(corpus)
    if settings.stage is not None:
        for name in ("weights", "b"):
            settings.stage.field_values([field.name for field in fields], name)
    with atomic_folder(target, replace=replace) as folder:
        (folder / RUNS).mkdir()
        writer = IndexWriter(folder)
        try:
            reader = DocumentReader(fields, settings.number_names(), id, notes, writer)
            stored = StoredTexts(fields, writer) if settings.texts else None
            inverter = Inverter(fields, folder / RUNS, settings.memory // 2)
            for item in _with_progress(corpus.documents(), progress):
                inverter.add(reader.texts(item))
                if stored is not None:
                    stored.add(item[1])
            inverter.flush()
            reader.finish(corpus)
            sizes = reader.sizes() | (StoredTexts.NONE if stored is None else stored.finish())
            sizes |= _write_postings(inverter, fields, folder, settings.memory // 2, writer)
            if not sizes["terms"]:
                names = ", ".join(repr(field.name) for field in fields)
                raise DataError(f"{corpus.name}: no document has a word in {names}; name fields that hold text")
        finally:
            writer.close()
        shutil.rmtree(folder / RUNS)
        numbers = tuple(settings.number_names())
        Header(tuple(fields), numbers, sizes, tuple(notes), writer.checksums, settings.stage).write(folder)


def _with_progress(items: Iterator[Any], progress: Callable[[int], None] | None) -> Iterator[Any]:
    for number, item in enumerate(items, 1):
        yield item
        if progress is not None and number % FIRST_DOCUMENTS == 0:
            progress(number)


def _write_postings(
    inverter: Inverter, fields: list[Field], folder: Path, memory: int, writer: IndexWriter
) -> dict[str, int]:
    lengths = np.concatenate(inverter.lengths, axis=1)
    writer.append("lengths", np.concatenate([lengths, lengths.sum(axis=0, keepdims=True)]))
    runs = [PostingsRun(folder / RUNS, number) for number in range(inverter.n_runs)]
    sizes = merge_runs(runs, inverter.n_docs, len(fields), memory, writer)
    return sizes | {"docs": inverter.n_docs, "columns": len(fields) + 1}


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
        self._id_bytes = 0

    def sizes(self) -> dict[str, int]:
        return {"id_bytes": self._id_bytes, "numbers": len(self._names)}

    def texts(self, item: tuple[str, Document]) -> list[str | None]:
        """The text of every field of the next document, given with its place."""
        place, document = item
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
                "id with ", param("id"), known,
            )  # fmt: skip
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
        self._id_bytes += len(encoded)
        self._hashes.append(hash(encoded))
        self._ends.append(self._id_bytes)
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
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{place}: {name} is {value!r}; expected a number in single precision, or null where there is none"
            ) from error
        if number != number:
            self._notes.add(f"documents without the number {name!r}", place)
        return number

    def finish(self, corpus: Corpus) -> None:
        """Write the rest, and refuse fields that no document has and ids that two documents have."""
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
