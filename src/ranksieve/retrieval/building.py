"""`build_index`: a corpus in one pass into an index, whatever its size."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ranksieve.data.data_file import spool_pipe
from ranksieve.errors import DataError, ParameterError
from ranksieve.files import atomic_folder
from ranksieve.retrieval.analysis import Analyzer
from ranksieve.retrieval.corpus import BATCH_ROWS, IDS, Document, read_documents
from ranksieve.retrieval.fields import Field, is_missing, parse_field
from ranksieve.retrieval.inverting import Inverter
from ranksieve.retrieval.merging import Run, merge_runs
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.reading import Reader
from ranksieve.retrieval.storage import HEADER, Writer, write_header

SEEN_FIRST = 1_000  # documents looked at to find the text fields
MOST_FIELDS = 255  # a field's number is one byte
LEAST_MEMORY = 1 << 20
RUNS = "runs"


def build_index(
    corpus: str | os.PathLike[str] | Iterable[Document],
    out: str | os.PathLike[str],
    *,
    fields: str | Field | Sequence[str | Field],
    numbers: str | Sequence[str],
    id: str | None,
    analyzer: Analyzer | None,
    positions: bool,
    memory: int,
    replace: bool,
    progress: Callable[[int], None] | None,
    notes: Notes,
) -> None:
    """Write an index; the parameters are those of `Index.build`. The notes get what was odd about the corpus."""
    _check(analyzer, positions, memory)
    target = Path(out)
    if target.exists() and not (replace and (target / HEADER).is_file()):
        raise DataError(f"{target}: exists already; choose another name, or replace the index there with --replace")
    fields = [fields] if isinstance(fields, str | Field) else list(fields or ())
    numbers = [numbers] if isinstance(numbers, str) else list(numbers or ())
    if isinstance(corpus, str | os.PathLike):
        corpus = spool_pipe(corpus)
    first, documents = _opened(corpus, 1 if fields else SEEN_FIRST)
    if not first:
        raise DataError(f"{_named(corpus)}: holds no documents; expected at least one")
    id = id or next((name for name in IDS if name in first[0][1]), IDS[0])
    chosen = _fields(fields, first, id, numbers, analyzer or Analyzer(), positions)
    with atomic_folder(target, replace=replace) as folder:
        (folder / RUNS).mkdir()
        writer = Writer(folder)
        try:
            inverter = Inverter(chosen, folder / RUNS, memory // 2)
            reader = Reader(chosen, numbers, id, notes, writer)
            for number, (place, document) in enumerate(documents, 1):
                inverter.add(reader.texts(place, document))
                if progress is not None and number % SEEN_FIRST == 0:
                    progress(number)
            inverter.flush()
            reader.finish(lambda number: _place(corpus, number))
            lengths = np.concatenate(inverter.lengths, axis=1)
            writer.append("lengths", np.concatenate([lengths, lengths.sum(axis=0, keepdims=True)]))
            runs = [Run(folder / RUNS, number) for number in range(inverter.n_runs)]
            sizes = merge_runs(runs, inverter.n_docs, len(chosen), memory // 2, writer)
            if not sizes["terms"]:
                names = ", ".join(repr(field.name) for field in chosen)
                raise DataError(f"{_named(corpus)}: no document has a word in {names}; name fields that hold text")
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
                "checksums": writer.checksums,
            },
        )


def _check(analyzer: Any, positions: Any, memory: Any) -> None:
    if not isinstance(memory, int) or memory < LEAST_MEMORY:
        raise ParameterError(f"--memory is {memory!r}; expected bytes, at least {LEAST_MEMORY} (1 MiB)")
    if not isinstance(positions, bool):
        raise ParameterError(
            f"--positions is {positions!r}; expected True or False, or for one field 'title:positions', "
            "'title:nopositions'"
        )
    if not isinstance(analyzer, Analyzer | None):
        raise ParameterError(f"--analyzer is {analyzer!r}; expected an Analyzer, as in Analyzer(stem='none')")


def _named(corpus: Any) -> str:
    """What errors call a corpus."""
    return os.fspath(corpus) if isinstance(corpus, str | os.PathLike) else "the corpus"


def _place(corpus: Any, number: int) -> str:
    """Where a document stands, by its number."""
    if isinstance(corpus, str | os.PathLike):
        return next(itertools.islice(read_documents(corpus), number, None))[0]
    return f"document {number}"


def _given(documents: Any) -> Iterator[tuple[str, Document]]:
    if isinstance(documents, pa.Table):
        batches = documents.to_batches(max_chunksize=BATCH_ROWS)
        documents = (document for batch in batches for document in batch.to_pylist())
    elif hasattr(documents, "columns"):  # a DataFrame of pandas or polars
        names = list(documents.columns)
        rows = documents.itertuples(index=False, name=None) if hasattr(documents, "itertuples") else documents.rows()
        documents = (dict(zip(names, row, strict=True)) for row in rows)
    for number, document in enumerate(documents):
        if not isinstance(document, dict):
            raise DataError(f"document {number} is {type(document).__name__}; expected a dict from field to text")
        yield f"document {number}", {name: None if is_missing(value) else value for name, value in document.items()}


def _opened(
    corpus: str | os.PathLike[str] | Iterable[Document], most: int
) -> tuple[list[tuple[str, dict[str, bool]]], Iterator[tuple[str, Document]]]:
    """Where the first documents stand, which fields they have and whether these are text; and all documents.

    Files are opened twice, so that no text is held meanwhile; of others the first documents are, until they are taken.
    """
    if isinstance(corpus, str | os.PathLike):
        ahead, documents = read_documents(corpus), read_documents(corpus)
    else:
        ahead, documents = itertools.tee(_given(corpus))
    first = [
        (place, {name: _is_text(value) for name, value in document.items()})
        for place, document in itertools.islice(ahead, most)
    ]
    return first, documents


def _fields(
    given: Sequence[str | Field],
    first: Sequence[tuple[str, dict[str, bool]]],
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
        names = [name for _, found in first for name, text in found.items() if text]
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
        isinstance(value, list | np.ndarray) and len(value) > 0 and all(isinstance(v, str) for v in value)
    )
