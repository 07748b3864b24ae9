"""`build_index`: indexes a corpus of any size in one pass over its documents."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError, ParamName, check_once, param
from ranksieve.files import atomic_folder
from ranksieve.retrieval.analysis import Analyzer, Field, parse_field
from ranksieve.retrieval.corpus import IDS, Corpus, fields_by_kind
from ranksieve.retrieval.document_writing import DocumentReader, StoredTexts, as_number
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index_header import HEADER, VECTOR_SIZES, IndexHeader, VectorInfo
from ranksieve.retrieval.inverting import Inverter
from ranksieve.retrieval.merging import PostingsRun, merge_runs
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import IndexWriter
from ranksieve.retrieval.vector_building import VectorSource, vector_source
from ranksieve.text_formats import counted

FIRST_DOCUMENTS = 1_000  # in which text fields are found
MOST_FIELDS = 255  # a field's number is one byte
SUGGESTED_FIELDS = 8
LEAST_MEMORY = 1 << 20
RUNS = "runs"


class FieldNames(ParamName):
    """A parameter that takes names of fields, in a message; the command line has a flag for each of them."""

    @property
    def flag(self) -> str:
        flag = "--" + self.name.removesuffix("s")
        return " ".join(f"{flag} {shlex.quote(name)}" for name in self.value) if self.value else flag


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
    vectors: Any = None
    vector_ids: Any = None
    similarity: str = "cosine"
    hnsw: bool = False

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

    @cached_property
    def vector_source(self) -> VectorSource | None:
        """Where the vectors come from; None if there are none."""
        return vector_source(self.vectors, self.vector_ids, self.similarity, hnsw=self.hnsw, has_texts=self.texts)

    def number_names(self) -> list[str]:
        return [self.numbers] if isinstance(self.numbers, str) else list(self.numbers or ())

    def chosen_fields(self, corpus: Corpus) -> tuple[list[Field], str]:
        """The fields given, or all that hold text in the first documents; and the field that holds the ids."""
        given = [self.fields] if isinstance(self.fields, str | Field) else list(self.fields or ())
        first = corpus.first_fields(1 if given else FIRST_DOCUMENTS)
        if not first:
            raise DataError(f"{corpus.name}: holds no documents; expected at least one")
        id = self.id or next((name for name in IDS if name in first[0]), IDS[0])
        analyzer = self.analyzer or Analyzer()
        fields = [
            field if isinstance(field, Field) else parse_field(field, analyzer, positions=self.positions)
            for field in given
        ]
        if not fields:
            texts = self._text_fields(corpus, first, id)
            fields = [Field(name, analyzer=analyzer, positions=self.positions) for name in texts]
        check_once((f"the field {field.name!r}" for field in fields), "name each field once")
        if len(fields) > MOST_FIELDS:
            raise ParameterError(f"got {len(fields)} fields; an index has at most {MOST_FIELDS}; name fewer")
        return fields, id

    def _text_fields(self, corpus: Corpus, first: Sequence[dict[str, str]], id: str) -> list[str]:
        """The fields that hold text in the first documents, whose fields and what they hold are given."""
        others = (id, *self.number_names())
        texts = Counter(
            name for found in first for name, kind in found.items() if kind == "text" and name not in others
        )
        of_first = f"the first {counted(document=len(first))}"
        if not texts:
            for place, document in itertools.islice(corpus.documents(), FIRST_DOCUMENTS):
                for name in self.number_names():
                    as_number(place, name, document.get(name))  # the reason may be text that is given as numbers
            kinds = {name: kind for found in first for name, kind in found.items() if kind and name not in others}
            holds = f"; they hold {fields_by_kind(kinds)}" if kinds else ""
            raise DataError(
                f"{corpus.name}: no field of {of_first} holds text{holds}; name fields to index with ",
                FieldNames("fields"),
            )
        if len(texts) > MOST_FIELDS:
            frequent = texts.most_common(SUGGESTED_FIELDS)
            shares = ", ".join(f"{name} ({count / len(first):.0%})" for name, count in frequent)
            raise ParameterError(
                f"{corpus.name}: got {len(texts)} fields of text; an index has at most {MOST_FIELDS}; name those to "
                "index, as in ", FieldNames("fields", [name for name, _ in frequent[:2]]),
                f"; most frequent in {of_first}: {shares}",
            )  # fmt: skip
        return list(texts)


def build_index(
    corpus: Corpus,
    out: str | os.PathLike[str],
    settings: IndexSettings,
    *,
    replace: bool,
    progress: Callable[[int], None] | None,
    vector_progress: Callable[[int, int], None] | None,
    notes: Notes,
) -> None:
    """Write an index. Irregularities of the corpus are added to the notes."""
    target = Path(out)
    if target.exists() and not (target / HEADER).is_file():
        raise DataError(f"{target}: exists already, and is not an index; choose another name")
    if target.exists() and not replace:
        raise DataError(
            f"{target}: exists already; choose another name, or replace the index there with ", param("replace")
        )
    source = settings.vector_source
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
            sizes |= dict.fromkeys(VECTOR_SIZES, 0)
            if source is not None:
                sizes |= source.write(reader.ids(), stored, writer, notes, vector_progress)
        finally:
            writer.close()
        shutil.rmtree(folder / RUNS)
        numbers = tuple(settings.number_names())
        info = None if source is None else VectorInfo(source.dtype, settings.similarity, source.function)
        IndexHeader(tuple(fields), numbers, sizes, tuple(notes), writer.checksums, settings.stage, info).write(folder)


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
