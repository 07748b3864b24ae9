"""Documents of a corpus: JSON Lines, Parquet, tab-separated text, folders of text files, tables, or dicts."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.compression import PARQUET_MAGIC, first_bytes, open_text
from ranksieve.data.pipes import spool_pipe
from ranksieve.errors import DataError
from ranksieve.text_formats import counted, some_of

Document = dict[str, Any]
BATCH_ROWS = 1_024
BUFFER_BYTES = 1 << 16
IDS = ("id", "_id", "docno", "doc_id", "docid")  # fields that hold a document's id, where none is named
MISSING = ("NAType", "NaTType")  # types of missing values in pandas, which need not be installed
MOST_WORDS = 5  # most words of the name of a column
FIRST_VALUES = 16  # values of a list that tell what it holds
SPACE = re.compile(r"\s")
FORMATS = "JSON Lines, tab-separated text with a header, Parquet, or a folder of text files"


class Corpus:
    """Documents of one or several files or folders, of a table, or of any iterable of dicts.

    Files are read as often as needed, so that no text is kept in memory. The first documents of an iterable are kept
    until they are used.
    """

    def __init__(self, source: Any):
        several = isinstance(source, list | tuple) and source and all(isinstance(one, str | Path) for one in source)
        files = source if several else [source] if isinstance(source, str | os.PathLike) else []
        self._files = [spool_pipe(file) for file in files]
        self._documents: Iterator[tuple[str, Document]] | None = None if files else _given_documents(source)
        self.name = ", ".join(map(str, self._files)) or "the corpus"

    def first_fields(self, most: int) -> list[dict[str, str]]:
        """What each field of the first documents holds, as `kind_of_value` names it."""
        if self._documents is None:
            first = self.documents()
        else:
            first, self._documents = itertools.tee(self._documents)
        return [
            {name: kind_of_value(value) for name, value in document.items()}
            for _, document in itertools.islice(first, most)
        ]

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every document and its place, such as `corpus.jsonl:17`."""
        if self._documents is not None:
            return self._documents
        return itertools.chain.from_iterable(map(read_documents, self._files))

    def place(self, number: int) -> str:
        """The place of the document with this number."""
        if self._files:
            return next(itertools.islice(self.documents(), number, None))[0]
        return f"document {number}"


def _given_documents(documents: Any) -> Iterator[tuple[str, Document]]:
    if isinstance(documents, pa.Table):
        batches = documents.to_batches(max_chunksize=BATCH_ROWS)
        documents = (document for batch in batches for document in batch.to_pylist())
    elif hasattr(documents, "columns"):  # a DataFrame of pandas or polars
        names = list(documents.columns)
        rows = documents.itertuples(index=False, name=None) if hasattr(documents, "itertuples") else documents.rows()
        documents = (dict(zip(names, row, strict=True)) for row in rows)
    if not isinstance(documents, Iterable):
        raise DataError(f"the corpus is {type(documents).__name__}; expected files, a table, or dicts")
    for number, document in enumerate(documents):
        if not isinstance(document, dict):
            raise DataError(f"document {number} is {type(document).__name__}; expected a dict from field to text")
        yield f"document {number}", {name: None if is_missing(value) else value for name, value in document.items()}


def read_documents(path: str | os.PathLike[str]) -> Iterator[tuple[str, Document]]:
    """Every document of a file or folder and its place, such as `corpus.jsonl:17`.

    A file is Parquet, JSON Lines if its first line begins with `{`, or else tab-separated with the names of its
    columns in the first line; text may be compressed. A folder holds one document per file: `id` is the path below it
    with spaces as `%20`, `text` the content; names that begin with a dot are left out.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        return _folder(Path(name))
    if first_bytes(name, FORMATS).startswith(PARQUET_MAGIC):
        return _parquet(name)
    return _text(name)


def text_lines(path: str, expected: str = FORMATS) -> Iterator[tuple[int, str]]:
    """The lines of a text file, compressed or not, with their numbers; blank lines are left out."""
    with open_text(path, expected) as stream, io.BufferedReader(stream, BUFFER_BYTES) as lines:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")  # a byte order mark, as Windows writes it
                if text.strip():
                    yield number, text.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8 ({error.reason}); convert the file, "
                "as in: iconv -f latin1 -t utf-8"
            ) from error


def _text(path: str) -> Iterator[tuple[str, Document]]:
    lines = text_lines(path)
    number, first = next(lines, (1, ""))
    if first.lstrip().startswith("{"):
        for place, line in itertools.chain([(number, first)], lines):
            yield f"{path}:{place}", _json(path, place, line)
        return
    if not first:
        return
    columns = first.split("\t")
    if len(columns) < 2:
        remedy = "; convert an array to lines with: jq -c '.[]'" if first.lstrip().startswith("[") else ""
        raise DataError(
            f"{path}:{number}: neither a JSON object nor column names separated by tabs; expected {FORMATS}{remedy}"
        )
    if any(len(column.split()) > MOST_WORDS for column in columns):
        raise DataError(
            f"{path}:{number}: holds text where names of columns are expected; put a first line before it, such as "
            "'id TAB text'"
        )
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise DataError(
                f"{path}:{number}: has {counted(cell=len(cells))} but the header has {len(columns)}; "
                "give every row one cell per column, and no tabs inside cells"
            )
        yield f"{path}:{number}", dict(zip(columns, cells, strict=True))


def _json(path: str, number: int, line: str) -> Document:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: broken JSON ({error}); every line holds one JSON object") from error
    if not isinstance(document, dict):
        raise DataError(f"{path}:{number}: holds {type(document).__name__}; every line holds one JSON object")
    return document


def _parquet(path: str) -> Iterator[tuple[str, Document]]:
    try:
        row = 0
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                for document in batch.to_pylist():
                    yield f"{path}, row {row}", document
                    row += 1
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the Parquet data is damaged or cut short ({error}); fetch or write it again"
        ) from error


def _folder(folder: Path) -> Iterator[tuple[str, Document]]:
    hidden = lambda path: any(part.startswith(".") for part in path.relative_to(folder).parts)  # noqa: E731
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))
    if not files:
        raise DataError(f"{folder}: holds no files; expected {FORMATS}")
    for path in files:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not UTF-8 text ({error.reason}); convert or remove it") from error
        id = SPACE.sub(lambda space: quote(space.group()), path.relative_to(folder).as_posix())  # TREC ids have none
        yield str(path), {"id": id, "text": text}


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: null, NaN, or a missing value of pandas."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in MISSING


def is_plain_number(value: Any) -> bool:
    """Whether a value is a number; booleans and missing values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value)


def is_text(value: Any) -> bool:
    """Whether a value is text or a list of texts."""
    if isinstance(value, list | np.ndarray):
        return len(value) > 0 and all(isinstance(one, str) for one in value)
    return isinstance(value, str)


def kind_of_value(value: Any) -> str:
    """What a field with this value holds: text, numbers, booleans, objects, lists of these; empty if it is missing.

    Of a list, the first values tell.

    Examples
    --------
    >>> kind_of_value(["red", "wine"]), kind_of_value([1, 2]), kind_of_value({"k": "v"}), kind_of_value(None)
    ('text', 'lists of numbers', 'objects', '')
    """
    if is_text(value):
        return "text"
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return "lists of numbers" if value.size else ""
    if isinstance(value, list | tuple | np.ndarray):
        kinds = set(itertools.islice(filter(None, map(kind_of_value, value)), FIRST_VALUES))
        return f"lists of {kinds.pop() if len(kinds) == 1 else 'different values'}" if kinds else ""
    if is_plain_number(value):
        return "numbers"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, dict):
        return "objects"
    return "" if is_missing(value) else "other values"


def fields_by_kind(kinds: Mapping[str, str]) -> str:
    """Fields and what they hold.

    Examples
    --------
    >>> fields_by_kind({"price": "numbers", "shop": "objects", "stock": "numbers"})
    'price, stock (numbers), shop (objects)'
    """
    names = {kind: [name for name, held in kinds.items() if held == kind] for kind in dict.fromkeys(kinds.values())}
    return ", ".join(f"{some_of(some)} ({kind})" for kind, some in names.items())


def plain_text(value: Any) -> str | None:
    """Text of a corpus value: texts, numbers, and lists of them one a line; None for null, NaN and objects."""
    if is_missing(value) or isinstance(value, dict):
        return None
    if isinstance(value, list | tuple | np.ndarray):
        parts = [text for text in map(plain_text, value) if text is not None]
        return "\n".join(parts) if parts else None
    return value if isinstance(value, str) else str(value)
