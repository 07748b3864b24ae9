"""`Inverter`: sorts the postings of texts into runs on disk, each as large as the memory budget allows."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.kernels import postings as kernels
from ranksieve.retrieval.analysis import Field, words_of

BYTES_PER_TOKEN = 40  # the token, its place in the sort, its share of an entry, and growing arrays: measured
BYTES_PER_WORD = 450  # a distinct word: the word, its terms and their numbers
RUN_ARRAYS = {  # of a run on disk, one file each: names and types
    "entry_starts": "i8",
    "byte_starts": "i8",
    "docs": "i4",
    "fields": "u1",
    "tfs": "i4",
    "position_starts": "u4",
    "positions": "u1",
    "terms": "u1",  # one behind the other
    "term_ends": "i8",
    "forward_counts": "i8",
    "forward_terms": "i4",
    "forward_tfs": "i4",
    "forward_firsts": "u1",
    "numbers": "i4",  # of the terms in the merged vocabulary, ascending; written by merging
}


class _Vocabulary(dict[str, int]):
    """Numbers of words, in the order of their first occurrence."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Inverter:
    """Collects the texts of documents, in order, and writes a run when the budget is reached."""

    def __init__(self, fields: Sequence[Field], folder: Path, memory: int):
        self._fields = fields
        self._folder = folder
        self._memory = memory
        self._analyzers = list(dict.fromkeys(field.analyzer for field in fields))
        self._analyzer_of = np.array([self._analyzers.index(field.analyzer) for field in fields], dtype=np.int64)
        self._has_positions = np.array([field.positions for field in fields])
        self.n_docs = self.n_runs = 0
        self.lengths: list[np.ndarray] = []  # lengths of each run: (fields, documents)
        self._begin()

    def _begin(self) -> None:
        self._words = _Vocabulary()
        self._tokens = array("i")
        self._ends = array("q")
        self._texts = array("q")  # document · fields + field
        self._first_doc = self.n_docs

    def add(self, texts: Sequence[str | None]) -> None:
        """The texts of the next document, one per field."""
        for number, text in enumerate(texts):
            if text:
                self._tokens.extend(map(self._words.__getitem__, words_of(text)))
                self._ends.append(len(self._tokens))
                self._texts.append(self.n_docs * len(self._fields) + number)
        self.n_docs += 1
        if len(self._tokens) * BYTES_PER_TOKEN + len(self._words) * BYTES_PER_WORD > self._memory:
            self.flush()

    def flush(self) -> None:
        """Write the run, unless nothing was added since the last."""
        if self.n_docs == self._first_doc:
            return
        terms, piece_starts, pieces = self._analyse()
        raw = np.frombuffer(self._tokens, dtype=np.int32) if self._tokens else np.empty(0, np.int32)
        ends = np.array(self._ends, dtype=np.int64)
        docs, fields = np.divmod(np.array(self._texts, dtype=np.int64), len(self._fields))
        analyzers = self._analyzer_of[fields]
        lengths, counts = np.zeros(len(ends), np.int32), np.zeros(len(terms), np.int64)
        kernels.count_tokens(raw, ends, analyzers, piece_starts, pieces, lengths, counts)
        starts = starts_of(counts)
        texts, places = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
        kernels.sort_tokens(raw, ends, analyzers, piece_starts, pieces, starts[:-1].copy(), texts, places)
        self._write(terms, starts, texts, places, docs, fields)
        by_field = np.zeros((len(self._fields), self.n_docs - self._first_doc), np.int32)
        by_field[fields, docs - self._first_doc] = lengths
        self.lengths.append(by_field)
        self._begin()

    def _analyse(self) -> tuple[list[bytes], np.ndarray, np.ndarray]:
        """The run's terms, sorted, and the numbers of the terms of every word under each analyzer."""
        words = list(self._words)
        numbers = _Vocabulary()
        starts, flat = np.zeros((len(self._analyzers), len(words) + 1), np.int64), array("i")
        for number, analyzer in enumerate(self._analyzers):
            analysed = analyzer.analyse(words)
            starts[number, 0] = len(flat)
            starts[number, 1:] = len(flat) + np.cumsum([len(some) for some in analysed])
            flat.extend(numbers[term] for some in analysed for term in some)
        terms = [term.encode() for term in numbers]
        order = sorted(range(len(terms)), key=terms.__getitem__)
        rank = np.empty(len(terms), np.int32)
        rank[order] = np.arange(len(terms))
        return [terms[k] for k in order], starts, rank[np.array(flat, dtype=np.int32)]

    def _write(
        self,
        terms: list[bytes],
        starts: np.ndarray,
        texts: np.ndarray,
        places: np.ndarray,
        docs: np.ndarray,
        fields: np.ndarray,
    ) -> None:
        has_positions = self._has_positions[fields]
        entry_counts, byte_counts = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        kernels.count_entries(starts, texts, places, has_positions, entry_counts, byte_counts)
        n_entries, n_bytes = int(entry_counts.sum()), int(byte_counts.sum())
        run = {
            "entry_starts": starts_of(entry_counts),
            "byte_starts": starts_of(byte_counts),
            "docs": np.empty(n_entries, np.int32),
            "fields": np.empty(n_entries, np.uint8),
            "tfs": np.empty(n_entries, np.int32),
            "position_starts": np.empty(n_entries, np.uint32),
            "positions": np.empty(n_bytes, np.uint8),
            "terms": np.frombuffer(b"".join(terms), np.uint8),
            "term_ends": np.cumsum([len(term) for term in terms], dtype=np.int64),
        }
        firsts = np.empty(n_entries, np.uint8)
        kernels.write_entries(
            starts, texts, places, has_positions, docs.astype(np.int32), fields.astype(np.uint8),
            run["docs"], run["fields"], run["tfs"], firsts, run["position_starts"], run["positions"],
        )  # fmt: skip
        run |= self._forward(run, firsts)
        for name, values in run.items():
            written = np.ascontiguousarray(values, dtype=RUN_ARRAYS[name])
            (self._folder / f"{self.n_runs}.{name}").write_bytes(written.data)  # tofile would not report a full disk
        self.n_runs += 1

    def _forward(self, run: dict[str, np.ndarray], firsts: np.ndarray) -> dict[str, np.ndarray]:
        """The terms of every document, from the postings of a run."""
        counts = np.zeros(self.n_docs - self._first_doc, np.int64)
        kernels.count_forward(run["entry_starts"], run["docs"], self._first_doc, counts)
        ends = np.cumsum(counts)
        forward = tuple(np.empty(counts.sum(), kind) for kind in (np.int32, np.int32, np.uint8))
        kernels.write_forward(
            run["entry_starts"], run["docs"], run["tfs"], firsts, self._first_doc, ends - counts, *forward
        )
        names = ("forward_counts", "forward_terms", "forward_tfs", "forward_firsts")
        return dict(zip(names, (counts, *forward), strict=True))
