"""Documents and queries of others: JSON Lines, Parquet, tab-separated text, or a folder of text files."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.compression import RawStream, first_bytes, open_text
from ranksieve.errors import DataError
from ranksieve.text_formats import counted

Document = dict[str, Any]
MAGIC = b"PAR1"
BATCH_ROWS = 1_024
BUFFER_BYTES = 1 << 16
IDS = ("id", "_id", "docno", "doc_id", "docid")  # fields that hold a document's id, where none is named
MOST_WORDS = 5  # of the name of a column
SPACE = re.compile(r"\s")
LINES = "JSON Lines, tab-separated text with a header, Parquet, or a folder of text files"


def read_documents(path: str | os.PathLike[str]) -> Iterator[tuple[str, Document]]:
    """Every document with where it stands, as in `corpus.jsonl:17`.

    A file is Parquet, JSON Lines where its first line begins with `{`, or else tab-separated with the names of its
    columns in the first line; text may be compressed. A folder holds one document per file: `id` is the path below it
    with spaces as `%20`, `text` the content; what begins with a dot is left out.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        return _folder(Path(name))
    if first_bytes(name, LINES).startswith(MAGIC):
        return _parquet(name)
    return _text(name)


def text_lines(path: str, expected: str = LINES) -> Iterator[tuple[int, str]]:
    """The lines of a text file, compressed or not, with their numbers; blank lines are left out."""
    with open_text(path, expected) as stream, io.BufferedReader(RawStream(stream), BUFFER_BYTES) as lines:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")  # editors on Windows put a mark in front
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
        yield f"{path}:{number}", _json(path, number, first)
        for number, line in lines:
            yield f"{path}:{number}", _json(path, number, line)
        return
    if not first:
        return
    columns = first.split("\t")
    if len(columns) < 2:
        remedy = "; of an array make lines with: jq -c '.[]'" if first.lstrip().startswith("[") else ""
        raise DataError(
            f"{path}:{number}: neither a JSON object nor column names separated by tabs; expected {LINES}{remedy}"
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
    except ValueError as error:
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
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: the Parquet data is damaged or cut short ({error}); fetch or write it again"
        ) from error


def _folder(folder: Path) -> Iterator[tuple[str, Document]]:
    hidden = lambda path: any(part.startswith(".") for part in path.relative_to(folder).parts)  # noqa: E731
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))
    if not files:
        raise DataError(f"{folder}: holds no files; expected {LINES}")
    for path in files:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not UTF-8 text ({error.reason}); convert or remove it") from error
        yield str(path), {"id": SPACE.sub(_quoted, path.relative_to(folder).as_posix()), "text": text}


def _quoted(space: re.Match[str]) -> str:
    """White space as addresses spell it, since TREC files cannot hold it."""
    return quote(space.group())
