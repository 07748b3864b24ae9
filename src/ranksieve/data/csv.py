"""Text tables whose first line names the columns: CSV, and the same with tabs or semicolons."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ranksieve.data.compression import RawStream, TextStream, open_text
from ranksieve.data.data_file import OTHERS, USUAL, ReadOptions, permanent_paths
from ranksieve.data.features import FeatureInfo
from ranksieve.data.table_source import TableSource, not_numbers
from ranksieve.errors import DataError

SEPARATORS = ",\t;"
HEADER_BYTES = 1 << 20  # the names of very many columns
READ_BYTES = 1 << 20  # at a time
CELL_BYTES = 32  # room for a number: a line has to fit into what is read at a time
SAMPLE_LINES = 100  # in which true and false are looked for
RECODE = "write the file as UTF-8, as in: iconv -f latin1 -t utf-8"
TEXTS = ("qid", "docid")  # other columns hold numbers
NUMBER = re.compile(r"\s*[-+.]?\d")  # LETOR lines begin with one, names of columns do not
LETOR_LINE = re.compile(r"\s*\S+\s+qid:")  # may have commas in its comment
BAD_CELL = re.compile(r"column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid value (.*)", re.DOTALL)
DECIMAL_COMMA = re.compile(r"'\s*([-+]?\d*),(\d+)\s*'")
BAD_ROW = re.compile(r"Row #(\d+): ([^:]*)")


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
            for number, lines in enumerate(_whole_lines(stream, max(READ_BYTES, CELL_BYTES * len(self._types)))):
                table = self._parsed(lines, n_docs if number else None)
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
                    f"{self._place(done + row)}: column {name!r} has a line break; a quote that is not "
                    "closed in its line joins lines, so remove it, or write it twice within a quoted cell"
                )
            row = pc.index(column, "").as_py() if name in self._ids else -1
            if row >= 0:
                raise DataError(f"{self._place(done + row)}: column {name!r} is empty; every row needs a value there")

    def _parsed(self, lines: pa.Buffer, done: int | None) -> pa.Table:
        """The rows of some lines after `done` rows; None for the first lines, which begin with the names of columns."""
        names = None if done is None else list(self._types)
        try:
            return pyarrow.csv.read_csv(
                pa.BufferReader(lines),
                pyarrow.csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=names),
                pyarrow.csv.ParseOptions(delimiter=self._separator),
                pyarrow.csv.ConvertOptions(column_types=self._types),
            ).combine_chunks()
        except pa.ArrowInvalid as error:
            raise self._complaint(str(error), 0 if done is None else done + 1) from error

    def _complaint(self, reason: str, before: int) -> DataError:
        """An error of Arrow's reader with the line, and with advice; `before` are the lines before those it read."""
        if "invalid UTF8" in reason:
            return DataError(f"{self.path}: has text that is not UTF-8; {RECODE}")
        found = BAD_CELL.search(reason)
        if found is None:
            row = BAD_ROW.search(reason)
            place, reason = (f":{self._line(before + int(row[1]))}", row[2]) if row else ("", reason.splitlines()[0])
            return DataError(f"{self.path}{place}: is not a table ({reason}); every line needs all columns")
        name = list(self._types)[int(found[1])]
        place = f":{self._line(before + int(found[2]))}" if found[2] else ""
        comma = DECIMAL_COMMA.fullmatch(found[4].strip())
        if comma is not None:
            return DataError(
                f"{self.path}{place}: column {name!r} holds {found[4].strip()}; decimal commas are not read; write "
                f"{comma[1]}.{comma[2]}"
            )
        expected = "true or false, as in the lines before" if found[3] == "bool" else "numbers"
        role = next((role for role, column in self._columns.items() if column == name), "")
        return DataError(
            f"{self.path}{place}: column {name!r} holds {found[4].strip()}; expected {expected}; ",
            *not_numbers(name, role),
        )

    def _place(self, row: int) -> str:
        return f"{self.path}:{self._line(row + 2)}"

    def _line(self, number: int) -> int:
        """The line, from 1, of the n-th line that is not empty; the file is read again for it."""
        line = 0
        with open_text(self._file) as stream:
            for text in io.BufferedReader(RawStream(stream)):
                line += 1
                number -= text.strip(b"\r\n") != b""
                if number == 0:
                    break
        return line


def _whole_lines(stream: TextStream, size: int) -> Iterator[pa.Buffer]:
    """The content of a stream, about so many bytes at a time, in memory of Arrow.

    Arrow reads ahead in a thread of its own. If that thread used objects of Python, a program that ends early, as after
    an error, would be aborted.
    """
    pieces, room = list[bytes](), memoryview(bytearray(size))  # pieces of a line that has not ended
    while n := stream.readinto(room):
        piece = bytes(room[:n])
        end = 1 + piece.rfind(b"\n")
        if end:
            lines = b"".join([*pieces, piece[:end]])
            pieces = []
            if lines.strip():
                yield _arrow_buffer(lines)
        pieces.append(piece[end:])
    if (rest := b"".join(pieces)).strip():
        yield _arrow_buffer(rest)


def _arrow_buffer(content: bytes) -> pa.Buffer:
    buffer = pa.allocate_buffer(len(content))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(content, np.uint8)
    return buffer


def is_csv(path: str, columns: Mapping[str, str]) -> bool:
    """Whether the first line of a file names columns."""
    return _are_columns(first_lines(path)[0], columns)


def _are_columns(names: list[str], columns: Mapping[str, str]) -> bool:
    """Whether cells name columns, which are not numbers unless labels or queries are among them."""
    if names and LETOR_LINE.match(names[0]):
        return False
    if len(names) > 1 and not any(map(NUMBER.match, names)):
        return True
    likely = {name for role in OTHERS for name in (*USUAL[role], *OTHERS[role])} | set(columns.values())
    return len(names) > 1 and any(name in likely or name.lower() in likely for name in names)


def is_csv_text(content: bytes) -> bool:
    """Whether a text begins with names of columns and a row with as many cells."""
    names, _, rows = _cells_of(content[:HEADER_BYTES])
    return _are_columns(names, {}) and bool(rows) and len(rows[0]) == len(names)


def first_lines(path: str) -> tuple[list[str], str, list[list[str]]]:
    """`_cells_of` the beginning of a file."""
    buffer = bytearray(HEADER_BYTES)
    with open_text(path) as stream:
        size = stream.readinto(memoryview(buffer))
    return _cells_of(bytes(buffer[:size]))


def _cells_of(text: bytes) -> tuple[list[str], str, list[list[str]]]:
    """The cells of the first line, what separates them, and the cells of some more lines."""
    first, *others = text.split(b"\n", SAMPLE_LINES)
    line = first.decode("utf-8-sig", errors="replace").rstrip("\r")
    separator = max(SEPARATORS, key=line.count)
    lines = [line, *(other.decode(errors="replace").rstrip("\r") for other in others[: SAMPLE_LINES - 1])]
    cells: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # bytes that no table has
        cells.extend(csv.reader([line], delimiter=separator))
        cells.extend(csv.reader(lines[1:], delimiter=separator))
    return cells[0] if cells else [], separator, cells[1:]


def _kind(column: int, sample: list[list[str]]) -> pa.DataType:
    """The type of a column of numbers; booleans are numbers."""
    cells = (cells[column].strip().lower() for cells in sample if len(cells) > column)
    first = next((cell for cell in cells if cell), "")
    return pa.bool_() if first in ("true", "false") else pa.float64()
