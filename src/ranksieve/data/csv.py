"""Text tables whose first line names the columns: CSV, and the same with tabs or semicolons."""

from __future__ import annotations

import codecs
import csv
import io
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ranksieve.data.compression import TextStream, open_text
from ranksieve.data.data_file import OTHER_NAMES, USUAL_NAMES, ReadOptions
from ranksieve.data.features import FeatureInfo
from ranksieve.data.other_files import BINARY
from ranksieve.data.pipes import permanent_paths
from ranksieve.data.table_source import TableSource, not_numbers
from ranksieve.errors import DataError
from ranksieve.text_formats import counted

SEPARATORS = ",\t;"
HEADER_BYTES = 1 << 20  # the names of very many columns
READ_BYTES = 1 << 20  # at a time
CELL_BYTES = 32  # room for a number: a line has to fit into what is read at a time
LONGEST_SHOWN = 80  # characters of a cell in a message
SAMPLE_LINES = 100  # in which true and false are looked for
RECODE = "write the file as UTF-8, as in: iconv -f latin1 -t utf-8"
TEXTS = ("qid", "docid")  # other columns hold numbers
NUMBER = re.compile(r"\s*[-+.]?\d")  # LETOR lines begin with one, names of columns do not
LETOR_LINE = re.compile(r"\s*\S+\s+qid:")  # may have commas in its comment
DECIMAL_COMMA = re.compile(r"\s*([-+]?\d*),(\d+)\s*")


class CsvSource(TableSource):
    """A text table, plain or compressed, with the names of the columns in its first line; empty cells are missing."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        names, self._separator, sample = first_lines(path)
        if "" in names:
            raise DataError(
                f"{path}: column {names.index('') + 1} has no name; name it in the first line, or leave it out "
                "(pandas: to_csv with index=False)"
            )
        if any("\ufffd" in name for name in names):
            raise DataError(f"{path}:1: the names of the columns are not UTF-8; {RECODE}")
        self._file, self.files = path, permanent_paths(path)
        found = options.find_columns(names, str(path))
        self._ids = [found[role] for role in TEXTS if role in found]
        features = options.find_features(names, found, str(path))
        categorical, known = options.categorical, options.categorical.known
        texts = categorical.names(features, str(path)) if known is None else [name for name in known if known[name]]
        numbers = {*features, *(found[role] for role in found.keys() - TEXTS)} - set(texts)
        self._types = {
            name: _kind(number, sample) if name in numbers else pa.string() for number, name in enumerate(names)
        }
        schema = pa.schema([(name, self._types[name]) for name in names])
        super().__init__(FeatureInfo(source=str(path), absent=float("nan")), schema, options)

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        n_docs = 0
        with open_text(self._file) as stream:
            for lines in _whole_lines(stream, max(READ_BYTES, CELL_BYTES * len(self._types))):
                if not lines.strip():
                    continue
                table = self._parsed(lines, n_docs)
                self.fraction_read = stream.fraction_read
                self._check_texts(table, n_docs)
                n_docs += table.num_rows
                yield from table.to_batches(max_chunksize=rows)
        if not n_docs:
            raise DataError(f"{self.path}: has 0 rows; expected at least one below the names of the columns")
        self.n_docs = n_docs

    def _check_texts(self, batch: pa.Table, done: int) -> None:
        """Refuse rows without ids, and lines that a stray quote has joined."""
        for name in (name for name, kind in self._types.items() if kind == pa.string()):
            column = batch.column(name)
            row = pc.index(pc.match_substring(column, "\n"), True).as_py()
            if row >= 0:
                raise DataError(
                    f"{self._row_name(done + row)}: column {name!r} has a line break; a quote that is not "
                    "closed in its line joins lines, so remove it, or write it twice within a quoted cell"
                )
            row = pc.index(column, "").as_py() if name in self._ids else -1
            if row >= 0:
                raise DataError(
                    f"{self._row_name(done + row)}: column {name!r} is empty; every row needs a value there"
                )

    def _parsed(self, lines: bytes, done: int) -> pa.Table:
        """The rows of some lines after `done` rows."""
        try:
            return self._read(lines, self._types)
        except pa.ArrowInvalid as error:
            rows = [line for line in lines.split(b"\n") if line.strip(b"\r")]
            raise self._read_error(rows, done + 1) from error

    def _read(self, lines: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        return pyarrow.csv.read_csv(
            pa.BufferReader(_arrow_buffer(lines)),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=list(self._types)),
            pyarrow.csv.ParseOptions(delimiter=self._separator),
            pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types)),
        ).combine_chunks()

    def _fails(self, lines: bytes, types: Mapping[str, pa.DataType]) -> bool:
        try:
            self._read(lines, types)
        except pa.ArrowInvalid:
            return True
        return False

    def _read_error(self, rows: list[bytes], before: int) -> DataError:
        """The first row that cannot be read, and what to do; `before` are the lines before these rows.

        Arrow's reader has neither the row nor the column in its error, other than in words.
        """
        number = self._first_failing(rows)
        line, place = rows[number], f"{self.path}:{self._line(before + number + 1)}"
        cells = _cells_of(line, self._separator)
        if len(cells) != len(self._types):
            return DataError(
                f"{place}: is not a table (expected {counted(column=len(self._types))}, got {len(cells)}); every line "
                "needs all columns"
            )
        name = next((name for name, kind in self._types.items() if self._fails(line, {name: kind})), None)
        if name is None:  # a quote that is not closed
            return DataError(f"{place}: is not a table; check the quotes in this line and before it")
        kind, cell = self._types[name], cells[list(self._types).index(name)]
        if kind == pa.string():
            return DataError(f"{place}: column {name!r} has text that is not UTF-8; {RECODE}")
        cell = cell if len(cell) <= LONGEST_SHOWN else f"{cell[:LONGEST_SHOWN]}…"
        comma = DECIMAL_COMMA.fullmatch(cell)
        if comma is not None:
            return DataError(
                f"{place}: column {name!r} holds {cell!r}; decimal commas are not read; write {comma[1]}.{comma[2]}"
            )
        expected = "true or false, as in the lines before" if pa.types.is_boolean(kind) else "numbers"
        role = next((role for role, column in self._columns.items() if column == name), "")
        return DataError(f"{place}: column {name!r} holds {cell!r}; expected {expected}; ", *not_numbers(name, role))

    def _first_failing(self, rows: list[bytes]) -> int:
        """The first row with which reading fails."""
        found = bisect_left(
            range(len(rows) - 1), True, key=lambda n: self._fails(b"\n".join(rows[: n + 1]), self._types)
        )
        return int(found)

    def _row_name(self, row: int) -> str:
        return f"{self.path}:{self._line(row + 2)}"

    def _line(self, number: int) -> int:
        """The line, from 1, of the n-th line that is not empty; the file is read again for it."""
        line = 0
        with open_text(self._file) as stream:
            for text in io.BufferedReader(stream):
                line += 1
                number -= text.strip(b"\r\n") != b""
                if number == 0:
                    break
        return line


def _whole_lines(stream: TextStream, size: int) -> Iterator[bytes]:
    """The content of a stream after its first line, about so many bytes at a time."""
    pieces, room = list[bytes](), memoryview(bytearray(size))  # pieces of a line that has not ended
    is_first = True
    while n := stream.readinto(room):
        head, newline, piece = bytes(room[:n]).rpartition(b"\n")
        if newline:
            lines = b"".join([*pieces, head, newline])
            yield lines.partition(b"\n")[2] if is_first else lines
            pieces, is_first = [], False
        pieces.append(piece)
    if not is_first:
        yield b"".join(pieces)


def _arrow_buffer(content: bytes) -> pa.Buffer:
    """Content in memory of Arrow, which reads ahead in a thread of its own.

    If that thread used objects of Python, a program that ends early, as after an error, would be aborted.
    """
    buffer = pa.allocate_buffer(len(content))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(content, np.uint8)
    return buffer


def is_csv(path: str, columns: Mapping[str, str]) -> bool:
    """Whether the first line of a file names columns."""
    return _are_columns(first_lines(path)[0], columns)


def _are_columns(names: list[str], columns: Mapping[str, str]) -> bool:
    """Whether cells name columns, which are not numbers unless labels or queries are among them."""
    if names and (LETOR_LINE.match(names[0]) or BINARY.search("".join(names))):
        return False
    if len(names) > 1 and not any(map(NUMBER.match, names)):
        return True
    likely = {name for role in OTHER_NAMES for name in (*USUAL_NAMES[role], *OTHER_NAMES[role])} | set(columns.values())
    return len(names) > 1 and any(name in likely or name.lower() in likely for name in names)


def check_names(path: str) -> None:
    """Refuse a text table that has no names of columns in its first line."""
    first, separator, rows = first_lines(path)
    line = separator.join(first)
    text = line.partition("#")[0].rstrip()  # without a comment of LETOR, whose features have colons
    if separator not in text or ":" in text or not NUMBER.match(line):
        return
    if not BINARY.search(line) and (not rows or len(rows[0]) in (0, len(first))):
        shown = line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}…"
        raise DataError(
            f"{path}:1: {shown!r} looks like CSV without names of columns; write them in a first line, as in "
            "label,qid,bm25 (pandas: to_csv with header=True)"
        )


def is_csv_text(content: bytes) -> bool:
    """Whether a text begins with names of columns and a row with as many cells."""
    names, _, rows = _split_header(content[:HEADER_BYTES])
    return _are_columns(names, {}) and bool(rows) and len(rows[0]) == len(names)


def first_lines(path: str, most: int = SAMPLE_LINES) -> tuple[list[str], str, list[list[str]]]:
    """`_split_header` of the beginning of a file."""
    buffer = bytearray(HEADER_BYTES)
    with open_text(path) as stream:
        size = stream.readinto(memoryview(buffer))
    return _split_header(bytes(buffer[:size]), most)


def _split_header(text: bytes, most: int = SAMPLE_LINES) -> tuple[list[str], str, list[list[str]]]:
    """The cells of the first line, what separates them, and the cells of some more lines."""
    first, *others = text.removeprefix(codecs.BOM_UTF8).split(b"\n", most)
    separator = max(SEPARATORS, key=first.decode(errors="replace").count)
    return _cells_of(first, separator), separator, [_cells_of(line, separator) for line in others[: most - 1]]


def _cells_of(line: bytes, separator: str) -> list[str]:
    """The cells of a line; none where it has bytes that no table has."""
    text = line.decode(errors="replace").rstrip("\r")
    usual = csv.field_size_limit()
    csv.field_size_limit(max(usual, len(text)))
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return []
    finally:
        csv.field_size_limit(usual)


def _kind(column: int, sample: list[list[str]]) -> pa.DataType:
    """The type of a column of numbers; booleans are numbers."""
    cells = (cells[column].strip().lower() for cells in sample if len(cells) > column)
    first = next((cell for cell in cells if cell), "")
    return pa.bool_() if first in ("true", "false") else pa.float64()
