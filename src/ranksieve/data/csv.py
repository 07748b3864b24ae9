"""Text tables whose first line names the columns: CSV, and the same with tabs or semicolons."""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ranksieve.data.compression import RawStream, TextStream, open_text
from ranksieve.data.data_file import NEEDED, OTHERS, USUAL, find_columns
from ranksieve.data.table_source import TableSource
from ranksieve.errors import DataError

SEPARATORS = ",\t;"
HEADER_BYTES = 1 << 20  # the names of very many columns
READ_BYTES = 1 << 20  # at a time
CELL_BYTES = 32  # room for a number: a line has to fit into what is read at a time
RECODE = "write the file as UTF-8, as in: iconv -f latin1 -t utf-8"
TEXTS = ("qid", "docid")  # other columns hold numbers
NUMBER = re.compile(r"\s*[-+.]?\d")  # so LETOR lines begin, and no names of columns
LETOR_LINE = re.compile(r"\s*\S+\s+qid:")  # may have commas in its comment
NO_NUMBER = re.compile(r"column #(\d+): .*invalid value (.*)", re.DOTALL)


class CsvSource(TableSource):
    """A text table, plain or compressed; empty cells are missing. The parameters are those of `TableSource`."""

    def __init__(
        self,
        path: str,
        *,
        columns: Mapping[str, str] | None = None,
        first_stage: int | str | None = None,
        needed: Sequence[str] = NEEDED,
    ) -> None:
        names, self._separator = _header(path)
        if "" in names:
            raise DataError(
                f"{path}: column {names.index('') + 1} has no name; name it in the first line, or leave it out "
                "(pandas: to_csv with index=False)"
            )
        if any("\ufffd" in name for name in names):
            raise DataError(f"{path}:1: the names of the columns are not UTF-8; {RECODE}")
        found = find_columns(names, columns or {}, path, needed)
        self._ids = [found[role] for role in TEXTS if role in found]
        unused = {*itertools.chain(*USUAL.values())} - {*found.values()}  # left out, whatever they hold
        texts = {*self._ids, *unused}
        self._types = {name: pa.string() if name in texts else pa.float64() for name in names}
        super().__init__(
            path, pa.schema([(name, self._types[name]) for name in names]), columns or {}, first_stage, needed=needed
        )

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        n_docs = 0
        with open_text(self.path) as stream, contextlib.closing(self._reader(stream)) as reader:
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                except pa.ArrowInvalid as error:
                    raise self._complaint(str(error)) from error
                self.fraction_read = stream.fraction_read
                self._check_texts(batch, n_docs)
                n_docs += batch.num_rows
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
        if not n_docs:
            raise DataError(f"{self.path}: has 0 rows; expected at least one below the names of the columns")
        self.n_docs = n_docs

    def _check_texts(self, batch: pa.RecordBatch, done: int) -> None:
        """Refuse rows without ids, and lines that a stray quote has joined."""
        for name in (name for name, kind in self._types.items() if kind == pa.string()):
            column = batch.column(name)
            row = pc.index(pc.match_substring(column, "\n"), True).as_py()
            if row >= 0:
                raise DataError(
                    f"{self.path}: column {name!r} of row {done + row} has a line break; a quote that is not closed in "
                    "its line joins lines, so remove it, or write it twice within a quoted cell"
                )
            row = pc.index(column, "").as_py() if name in self._ids else -1
            if row >= 0:
                raise DataError(
                    f"{self.path}: column {name!r} of row {done + row} is empty; every row needs a value there"
                )

    def _reader(self, stream: TextStream) -> Any:
        try:
            return pyarrow.csv.open_csv(
                RawStream(stream),
                pyarrow.csv.ReadOptions(use_threads=False, block_size=max(READ_BYTES, CELL_BYTES * len(self._types))),
                pyarrow.csv.ParseOptions(delimiter=self._separator),
                pyarrow.csv.ConvertOptions(column_types=self._types),
            )
        except pa.ArrowInvalid as error:
            raise self._complaint(str(error)) from error

    def _complaint(self, reason: str) -> DataError:
        if "invalid UTF8" in reason:
            return DataError(f"{self.path}: has text that is not UTF-8; {RECODE}")
        found = NO_NUMBER.search(reason)
        if found is None:
            return DataError(f"{self.path}: is not a table ({reason.splitlines()[0]}); every line needs all columns")
        name = list(self._types)[int(found[1])]
        return DataError(
            f"{self.path}: column {name!r} holds {found[2].strip()}; expected numbers, so leave the column out or "
            "encode it as numbers"
        )


def is_csv(path: str, columns: Mapping[str, str]) -> bool:
    """Whether the first line of a text names columns: numbers are none, unless some of labels or queries stand by."""
    names, _ = _header(path)
    if names and LETOR_LINE.match(names[0]):
        return False
    if len(names) > 1 and not any(map(NUMBER.match, names)):
        return True
    likely = {name for role in OTHERS for name in (*USUAL[role], *OTHERS[role])} | set(columns.values())
    return len(names) > 1 and any(name in likely or name.lower() in likely for name in names)


def _header(path: str) -> tuple[list[str], str]:
    """The cells of the first line, and what separates them."""
    buffer = bytearray(HEADER_BYTES)
    with open_text(path) as stream:
        size = stream.readinto(memoryview(buffer))
    line = bytes(buffer[:size]).partition(b"\n")[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    separator = max(SEPARATORS, key=line.count)
    try:
        return next(csv.reader([line], delimiter=separator), []), separator
    except csv.Error:  # bytes that no table has
        return [], separator
