"""Sorted runs of postings merged into an index, a stretch of the vocabulary at a time."""

from __future__ import annotations

import heapq
import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.kernels import postings as kernels
from ranksieve.retrieval.first_stage import idf
from ranksieve.retrieval.inverting import RUN_ARRAYS
from ranksieve.retrieval.storage import IndexWriter

WRITTEN_TERMS = 1 << 16  # buffered before they are appended
BYTES_PER_ENTRY = 60  # of the stretch in memory: entries, positions, both once from the run and once merged
BYTES_PER_TERM = 80  # memory for each term of a run while vocabularies are merged


class PostingsRun:
    """Sorted postings of some documents on disk, and the numbers of its terms in the merged vocabulary.

    It is read a part at a time: a memory map would keep all that was read.
    """

    def __init__(self, folder: Path, number: int):
        self._stem = f"{folder / str(number)}."
        self._new = array("i")

    def part(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some of an array of the run, or all."""
        dtype = np.dtype(RUN_ARRAYS[name])
        count = -1 if stop is None else stop - start
        return np.fromfile(self._stem + name, dtype=dtype, count=count, offset=start * dtype.itemsize)

    def size(self, name: str) -> int:
        return os.path.getsize(self._stem + name) // np.dtype(RUN_ARRAYS[name]).itemsize

    def terms(self, most: int) -> Iterator[bytes]:
        """The run's terms in order, a limited number of them in memory."""
        start = 0
        for first in range(0, self.size("term_ends"), most):
            stops = self.part("term_ends", first, min(first + most, self.size("term_ends"))).tolist()
            blob, base = self.part("terms", start, stops[-1]).tobytes(), start
            for stop in stops:
                yield blob[start - base : stop - base]
                start = stop

    def add_number(self, number: int, most: int) -> None:
        """Add the number of the run's next term in the merged vocabulary; a limited number is kept in memory."""
        self._new.append(number)
        if len(self._new) >= most:
            self.write_numbers()

    def write_numbers(self) -> None:
        with open(self._stem + "numbers", "ab") as file:
            self._new.tofile(file)
        del self._new[:]

    def between(self, first: int, stop: int) -> tuple[int, int]:
        """Which of the run's terms have merged numbers first:stop."""
        if not self.size("term_ends"):
            return 0, 0
        numbers = np.memmap(self._stem + "numbers", dtype=np.int32, mode="r")
        a, b = np.searchsorted(numbers, [first, stop])
        return int(a), int(b)


def merge_runs(runs: list[PostingsRun], n_docs: int, n_fields: int, memory: int, writer: IndexWriter) -> dict[str, int]:
    """Write vocabulary, postings and statistics; returns the sizes of what was written."""
    n_terms, n_term_bytes = _merge_vocabularies(runs, memory, writer)
    entries, n_bytes = np.zeros(n_terms, np.int64), np.zeros(n_terms, np.int64)
    for run in runs:
        numbers = run.part("numbers")
        entries[numbers] += np.diff(run.part("entry_starts"))
        n_bytes[numbers] += np.diff(run.part("byte_starts"))
    writer.append("entry_starts", starts_of(entries))
    writer.append("byte_starts", starts_of(n_bytes))
    squares, distinct = np.zeros((n_fields + 1, n_docs)), np.zeros((n_fields + 1, n_docs), np.int32)
    for first, stop in _stretches(entries, max(memory // BYTES_PER_ENTRY, 1)):
        starts, merged = _merge_stretch(runs, first, stop, entries, n_bytes, writer)
        frequency = np.zeros((stop - first, n_fields + 1), np.int32)
        occurrences = np.zeros((stop - first, n_fields + 1), np.int64)
        docs, fields, tfs, _ = merged
        kernels.count_statistics(starts, docs, fields, tfs, frequency, occurrences)
        kernels.add_document_norms(starts, docs, fields, tfs, idf(n_docs, frequency), squares, distinct)
        writer.append("document_frequency", frequency)
        writer.append("collection_frequency", occurrences)
    n_forward = _append_forward(runs, memory, writer)
    writer.append("norms", np.sqrt(squares))
    writer.append("distinct", distinct)
    return {
        "terms": n_terms,
        "term_bytes": n_term_bytes,
        "entries": int(entries.sum()),
        "position_bytes": int(n_bytes.sum()),
        "forward": n_forward,
    }


def _append_forward(runs: list[PostingsRun], memory: int, writer: IndexWriter) -> int:
    """Write the terms of every document, run by run; returns how many there are in all."""
    counts = np.concatenate([run.part("forward_counts") for run in runs])
    writer.append("forward_starts", starts_of(counts))
    size = max(memory // BYTES_PER_ENTRY, 1)
    for run in runs:
        numbers, n_forward = run.part("numbers"), run.size("forward_terms")
        for start in range(0, n_forward, size):
            stop = min(start + size, n_forward)
            writer.append("forward_terms", numbers[run.part("forward_terms", start, stop)])
            for name in ("forward_tfs", "forward_firsts"):
                writer.append(name, run.part(name, start, stop))
    return int(counts.sum())


def _merge_vocabularies(runs: list[PostingsRun], memory: int, writer: IndexWriter) -> tuple[int, int]:
    """Write the sorted terms of all runs, and number those of each run; returns how many there are, and their bytes."""
    most = max(memory // (BYTES_PER_TERM * max(len(runs), 1)), 1)
    last: bytes | None = None
    number, end = -1, 0
    blob, ends = bytearray(), array("q")

    def tagged(position: int) -> Iterator[tuple[bytes, int]]:
        return ((term, position) for term in runs[position].terms(most))

    for term, position in heapq.merge(*map(tagged, range(len(runs)))):
        if term != last:
            last, number, end = term, number + 1, end + len(term)
            blob += term
            ends.append(end)
            if len(ends) == WRITTEN_TERMS:
                _write_terms(writer, blob, ends)
        runs[position].add_number(number, most)
    for run in runs:
        run.write_numbers()
    _write_terms(writer, blob, ends)
    return number + 1, end


def _write_terms(writer: IndexWriter, blob: bytearray, ends: array) -> None:
    writer.append("term_bytes", np.frombuffer(bytes(blob), np.uint8))
    writer.append("term_ends", np.array(ends, dtype=np.int64))
    blob.clear()
    del ends[:]


def _stretches(entries: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of terms with a limited number of entries together, or of one term."""
    totals = np.cumsum(entries)
    first = 0
    while first < len(entries):
        done = totals[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(totals, done + most, side="right")))
        yield first, stop
        first = stop


def _merge_stretch(
    runs: list[PostingsRun], first: int, stop: int, entries: np.ndarray, n_bytes: np.ndarray, writer: IndexWriter
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Merge the postings of the terms first:stop and append them; returns them and where each term's start."""
    starts = starts_of(entries[first:stop])
    byte_starts = starts_of(n_bytes[first:stop])
    cursors, byte_cursors, term_bytes = starts[:-1].copy(), byte_starts[:-1].copy(), np.zeros(stop - first, np.int64)
    kinds = (np.int32, np.uint8, np.int32, np.uint32)
    merged = tuple(np.empty(starts[-1], kind) for kind in kinds)
    positions = np.empty(byte_starts[-1], np.uint8)
    names = ("docs", "fields", "tfs", "position_starts")
    for run in runs:
        a, b = run.between(first, stop)
        local, local_bytes = (run.part(name, a, b + 1) for name in ("entry_starts", "byte_starts"))
        parts = tuple(run.part(name, local[0], local[-1]) for name in names)
        some_positions = run.part("positions", local_bytes[0], local_bytes[-1])
        kernels.append_run(
            local, local_bytes, run.part("numbers", a, b) - first, parts, some_positions,
            cursors, byte_cursors, term_bytes, merged, positions,
        )  # fmt: skip
    for name, values in zip(names, merged, strict=True):
        writer.append(name, values)
    writer.append("positions", positions)
    return starts, merged
