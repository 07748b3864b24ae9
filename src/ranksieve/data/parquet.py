"""Parquet files with one column per feature."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.data_file import NEEDED
from ranksieve.data.table_source import TableSource
from ranksieve.data.tables import FORMAT_KEY, FORMAT_VERSION
from ranksieve.errors import DataError

MAGIC = b"PAR1"
BUFFER_BYTES = 1 << 16  # of every column


class ParquetSource(TableSource):
    """A Parquet file; the parameters are those of `TableSource`, and its own note names the first stage."""

    def __init__(
        self,
        path: str,
        *,
        columns: Mapping[str, str] | None = None,
        first_stage: int | str | None = None,
        needed: Sequence[str] = NEEDED,
    ) -> None:
        self.path = path
        with self._open() as file:
            schema = file.schema_arrow
            n_docs = file.metadata.num_rows
        note = self._note(schema)
        first_stage = note.get("first_stage") if first_stage is None else first_stage
        super().__init__(path, schema, columns or {}, first_stage, n_docs, needed)
        self.candidates = str(note.get("candidates", ""))

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        done, n_docs = 0, self.n_docs or 1
        with self._open() as file:
            batches = file.iter_batches(batch_size=rows, use_threads=False)
            while True:
                try:
                    batch = next(batches, None)
                except (pa.ArrowException, OSError) as error:
                    raise self._damaged(error) from error
                if batch is None:
                    return
                done += batch.num_rows
                self.fraction_read = done / n_docs
                yield batch

    def _open(self) -> pq.ParquetFile:
        try:
            # So a pass holds one block and a page of each column; pre-buffering would hold the whole file.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return DataError(f"{self.path}: the Parquet data is damaged or cut short ({reason}); fetch or write it again")

    def _note(self, schema: pa.Schema) -> dict[str, Any]:
        """What `write_parquet` noted in the file; nothing for files of others."""
        try:
            note = json.loads((schema.metadata or {}).get(FORMAT_KEY, b"{}"))
            version = int(note.get("format", FORMAT_VERSION))
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{self.path}: the note of ranksieve in it is damaged; pack the file again") from error
        if version > FORMAT_VERSION:
            raise DataError(
                f"{self.path}: was packed in format {version}, this version reads up to {FORMAT_VERSION}; "
                "upgrade with: pip install -U ranksieve"
            )
        return note
