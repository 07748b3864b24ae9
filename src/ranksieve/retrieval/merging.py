"""Sorted runs of postings merged into an index, a stretch of the vocabulary at a time."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranksieve.kernels import postings as kernels
from ranksieve.retrieval.inverting import RUN_ARRAYS
from ranksieve.retrieval.storage import Writer
from ranksieve.retrieval.weighting import idf

WRITTEN_TERMS = 1 << 16  # buffered before they are appended
BYTES_PER_ENTRY = 60  # of the stretch in memory: entries, positions, both once from the run and once merged


@dataclass
class Run:
    """A run on disk, mapped into memory, and the number of each of its terms in the merged vocabulary."""

    arrays: dict[str, np.ndarray]
    term_bytes: np.ndarray
    numbers: np.ndarray

    @classmethod
    def open(cls, folder: Path, number: int) -> Run:
        arrays = {name: np.load(folder / f"{number}.{name}.npy", mmap_mode="r") for name in RUN_ARRAYS}
        blob = folder / f"{number}.terms"
        term_bytes = np.memmap(blob, dtype=np.uint8, mode="r") if blob.stat().st_size else np.empty(0, np.uint8)
        return cls(arrays, term_bytes, np.empty(len(arrays["term_ends"]), np.int32))

    def terms(self) -> Iterator[bytes]:
        """The run's terms in order."""
        ends, start = self.arrays["term_ends"], 0
        for first in range(0, len(ends), WRITTEN_TERMS):
            stops = ends[first : first + WRITTEN_TERMS].tolist()
            blob, base = self.term_bytes[start : stops[-1]].tobytes(), start
            for stop in stops:
                yield blob[start - base : stop - base]
                start = stop


def merge_runs(runs: list[Run], n_docs: int, n_fields: int, memory: int, writer: Writer) -> dict[str, int]:
    """Write vocabulary, postings and statistics; returns the sizes of what was written."""
    n_terms, n_term_bytes = _merge_vocabularies(runs, writer)
    entries, n_bytes = np.zeros(n_terms, np.int64), np.zeros(n_terms, np.int64)
    for run in runs:
        entries[run.numbers] += np.diff(run.arrays["entry_starts"])
        n_bytes[run.numbers] += np.diff(run.arrays["byte_starts"])
    writer.append("entry_starts", np.concatenate([[0], np.cumsum(entries)]))
    writer.append("byte_starts", np.concatenate([[0], np.cumsum(n_bytes)]))
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


def _append_forward(runs: list[Run], memory: int, writer: Writer) -> int:
    """Write the terms of every document, run by run; returns how many there are in all."""
    counts = np.concatenate([run.arrays["forward_counts"] for run in runs])
    writer.append("forward_starts", np.concatenate([[0], np.cumsum(counts)]))
    size = max(memory // BYTES_PER_ENTRY, 1)
    for run in runs:
        for start in range(0, len(run.arrays["forward_terms"]), size):
            writer.append("forward_terms", run.numbers[run.arrays["forward_terms"][start : start + size]])
            writer.append("forward_tfs", run.arrays["forward_tfs"][start : start + size])
    return int(counts.sum())


def _merge_vocabularies(runs: list[Run], writer: Writer) -> tuple[int, int]:
    """Write the sorted terms of all runs, and number those of each run; returns how many there are, and their bytes."""
    cursors = [0] * len(runs)
    last: bytes | None = None
    number, end = -1, 0
    blob, ends = bytearray(), array("q")

    def tagged(position: int) -> Iterator[tuple[bytes, int]]:
        return ((term, position) for term in runs[position].terms())

    for term, position in heapq.merge(*map(tagged, range(len(runs)))):
        if term != last:
            last, number, end = term, number + 1, end + len(term)
            blob += term
            ends.append(end)
            if len(ends) == WRITTEN_TERMS:
                _write_terms(writer, blob, ends)
        runs[position].numbers[cursors[position]] = number
        cursors[position] += 1
    _write_terms(writer, blob, ends)
    return number + 1, end


def _write_terms(writer: Writer, blob: bytearray, ends: array) -> None:
    writer.append("term_bytes", np.frombuffer(bytes(blob), np.uint8))
    writer.append("term_ends", np.array(ends, dtype=np.int64))
    blob.clear()
    del ends[:]


def _stretches(entries: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of terms that have at most so many entries together, or are one term."""
    totals = np.cumsum(entries)
    first = 0
    while first < len(entries):
        done = totals[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(totals, done + most, side="right")))
        yield first, stop
        first = stop


def _merge_stretch(
    runs: list[Run], first: int, stop: int, entries: np.ndarray, n_bytes: np.ndarray, writer: Writer
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Merge the postings of the terms first:stop and append them; returns them and where each term's start."""
    starts = np.concatenate([[0], np.cumsum(entries[first:stop])])
    byte_starts = np.concatenate([[0], np.cumsum(n_bytes[first:stop])])
    cursors, byte_cursors, term_bytes = starts[:-1].copy(), byte_starts[:-1].copy(), np.zeros(stop - first, np.int64)
    kinds = (np.int32, np.uint8, np.int32, np.uint32)
    merged = tuple(np.empty(starts[-1], kind) for kind in kinds)
    positions = np.empty(byte_starts[-1], np.uint8)
    names = ("docs", "fields", "tfs", "position_starts")
    for run in runs:
        a, b = np.searchsorted(run.numbers, [first, stop])
        local, local_bytes = (np.array(run.arrays[name][a : b + 1]) for name in ("entry_starts", "byte_starts"))
        parts = tuple(np.array(run.arrays[name][local[0] : local[-1]]) for name in names)
        some_positions = np.array(run.arrays["positions"][local_bytes[0] : local_bytes[-1]])
        kernels.append_run(
            local, local_bytes, run.numbers[a:b] - first, parts, some_positions,
            cursors, byte_cursors, term_bytes, merged, positions,
        )  # fmt: skip
    for name, values in zip(names, merged, strict=True):
        writer.append(name, values)
    writer.append("positions", positions)
    return starts, merged
