"""`Block`: some rows of the data. `Source`: data that is read in blocks. `ListsBuilder`: lists from blocks."""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import get_num_threads

from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.feature_columns import FeatureColumns, Rows
from ranksieve.data.features import Described
from ranksieve.data.lists import Lists, document_columns, lists_from_runs, runs_of
from ranksieve.dtypes import OFFSET, POSITION
from ranksieve.errors import DataError, RanksieveWarning
from ranksieve.threads import using_threads

ROWS_AHEAD = 8_192  # of a block for binning: with fewer, calls for each column cost more; more take more memory
STAMP_BYTES = 1 << 20  # bytes of a file whose digest tells it from other files


@dataclass
class Block:
    """Consecutive rows.

    Tables that are read for binning have `columns` instead of `features`, or none where only lists are read. `run_ids`
    and `run_lengths` are the runs of equal neighbouring query ids in the block. A query that continues in the next
    block has a run in both.
    """

    features: np.ndarray
    labels: np.ndarray
    run_ids: list[Any]
    run_lengths: np.ndarray
    doc_ids: np.ndarray | None = None
    weights: np.ndarray | None = None
    positions: np.ndarray | None = None
    columns: FeatureColumns | None = None

    @property
    def n_docs(self) -> int:
        return len(self.labels)

    @property
    def rows(self) -> Rows:
        """The features, however they are stored."""
        return self.features if self.columns is None else self.columns

    def take_runs(self, wanted: np.ndarray) -> Block:
        """The rows of the runs that a mask selects."""
        rows = np.repeat(wanted, self.run_lengths)
        return Block(
            features=self.features[rows],
            labels=self.labels[rows],
            run_ids=[run_id for run_id, keep in zip(self.run_ids, wanted, strict=True) if keep],
            run_lengths=self.run_lengths[wanted],
            **document_columns(self, lambda column: column[rows]),
            columns=None if self.columns is None else self.columns.take(rows),
        )


class Source(Described, ABC):
    """Documents that are read in blocks, as often as needed: a file, a table, a generator, or parts of these.

    For text, `n_docs` and `n_features` are None before the first full pass; until then later blocks may be wider than
    earlier ones, whose missing columns hold `absent`. From the second pass on, all blocks have `n_features`.
    """

    n_docs: int | None = None
    n_features: int | None = None
    fraction_read: float = 0.0  # how much of the data the current pass has read, for progress bars and size estimates
    dense: bool = False  # whether every line of a text names every feature; known after a full pass
    can_read_ahead: bool = False  # whether blocks are new arrays, made without kernels, which use all threads
    files: tuple[str, ...] = ()  # files that it reads; empty for tables and generators
    parts: tuple[Source, ...] = ()  # sources that it consists of
    by_column: bool = False  # whether blocks of tables should have columns instead of features
    use_threads: bool = False  # whether reading may use several threads
    noted_first_stage: str | None = None  # the column that a file notes as the first stage's score; it may be left out
    # for thresholds: the number of the first row among those of all data. Blocks of rows that are not in the sample may
    # have no features then.
    sampled_from: int | None = None

    @property
    def path(self) -> str:
        """The name of the data in messages: the path as the user gave it, where there is one."""
        return self.info.source

    @property
    def names(self) -> tuple[str, ...]:
        """The files, each with the range of its queries where not all are read: for names of files made of it."""
        return self.files

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """None for text, whose features have numbers."""
        return self.info.feature_names or None

    @abstractmethod
    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The rows from the first to the last, at most `rows` at a time."""

    def fingerprint(self) -> list[Any] | None:
        """What is the same as long as the same is read: of the files, and of how they are read. None: not known."""
        if not self.files:
            return None
        return [[stamp(path) for path in self.files], self.info.feature_names, self.info.first_stage, self.info.missing]


def stamp(path: str) -> tuple[int, int, str]:
    """The size and the time of a file, and a digest of its beginning."""
    status = os.stat(path)
    with open(path, "rb") as file:
        return status.st_size, status.st_mtime_ns, hashlib.sha256(file.read(STAMP_BYTES)).hexdigest()


def widened(features: np.ndarray, n_features: int, absent: float) -> np.ndarray:
    """Rows padded to `n_features` columns: text does not name features that are absent from all of its lines."""
    missing = n_features - features.shape[1]
    return features if missing <= 0 else np.pad(features, ((0, 0), (0, missing)), constant_values=absent)


def check_narrow(source: Source, width: int, n_features: int) -> None:
    """Refuse text with fewer features than expected if every line names all of its features; after a full pass.

    Such text left no feature out, so it has no others. Where lines have gaps, the last features may be absent from the
    whole file; there is a warning if these are many.
    """
    if width >= n_features:
        return
    if source.dense:
        raise DataError(
            f"{source.path}: every line names features 1 to {width} and no other, but {n_features} are expected; give "
            "data with the same features, or if the others are zeros that were left out, name the last one: "
            f"{n_features}:0"
        )
    if width < 0.9 * n_features:
        warnings.warn(
            RanksieveWarning(
                f"{source.path}: no feature beyond {width} occurs, but {n_features} are expected; the others are "
                "read as absent; check that this is the right file"
            ),
            stacklevel=2,
        )


def blocks_of(data: Dataset | Source, rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Blocks of a data set in the user's row order, or those of a source."""
    if not isinstance(data, Dataset):
        yield from data.blocks(rows)
        return
    lists = data.lists
    labels = lists.to_user_order(lists.labels)
    queries = lists.to_user_order(np.repeat(np.arange(lists.n_queries), lists.sizes))
    columns = document_columns(lists, lists.to_user_order)
    for number, features in enumerate(data.blocks(rows, in_user_order=True)):
        part = slice(number * rows, number * rows + len(features))
        numbers, run_lengths = runs_of(queries[part])
        yield Block(
            features=features,
            labels=labels[part],
            run_ids=lists.query_ids[numbers].tolist(),
            run_lengths=run_lengths.astype(OFFSET),
            **{name: None if column is None else column[part] for name, column in columns.items()},
        )


@contextmanager
def reading_ahead(data: Dataset | Source, *, sampled_from: int | None = None) -> Iterator[Iterator[Block]]:
    """Blocks for binning; where possible, with columns, and with the next one read in other threads meanwhile.

    Kernels have fewer threads then: reading takes most of the time. `sampled_from` is that of `Source`.
    """
    if isinstance(data, Dataset) or not data.can_read_ahead:
        yield blocks_of(data)
        return
    sources, threads = list(_with_parts(data)), get_num_threads()
    for one in sources:
        one.by_column, one.use_threads = True, threads > 1
    data.sampled_from = sampled_from
    try:
        with using_threads(max(1, threads // 4)), ThreadPoolExecutor(1) as pool:
            yield _ahead(data.blocks(ROWS_AHEAD), pool)
    finally:
        for one in sources:
            one.by_column = one.use_threads = False
            one.sampled_from = None


def _with_parts(source: Source) -> Iterator[Source]:
    """A source, its parts, and theirs."""
    yield source
    for part in source.parts:
        yield from _with_parts(part)


def _ahead(coming: Iterator[Block], pool: ThreadPoolExecutor) -> Iterator[Block]:
    following = pool.submit(next, coming, None)
    while (block := following.result()) is not None:
        following = pool.submit(next, coming, None)
        yield block
        del block  # before the next one is waited for


def give_back_memory() -> None:
    """Return freed memory to the system; the process would keep several times a block otherwise."""
    pa.default_memory_pool().release_unused()


class ListsBuilder:
    """Makes `Lists` of the blocks that are appended; `source` names the data in messages."""

    def __init__(self, source: str, *, doc_ids: bool = False):
        self._source, self._with_doc_ids = source, doc_ids
        self._sizes: list[int] = []
        self._labels: list[np.ndarray] = []
        self._run_ids: list[Any] = []
        self._run_lengths: list[np.ndarray] = []
        self._doc_ids: list[np.ndarray | None] = []
        self._weights: list[np.ndarray | None] = []
        self._positions: list[np.ndarray | None] = []

    @property
    def n_docs(self) -> int:
        return sum(self._sizes)

    def append(self, block: Block) -> None:
        """Add a block's documents. They are copied, so that the memory of the block can be reused."""
        self._sizes.append(block.n_docs)
        self._labels.append(block.labels.copy())
        self._run_ids.extend(block.run_ids)
        self._run_lengths.append(block.run_lengths.copy())
        self._doc_ids.append(block.doc_ids.copy() if self._with_doc_ids and block.doc_ids is not None else None)
        self._weights.append(None if block.weights is None else block.weights.copy())
        self._positions.append(None if block.positions is None else block.positions.copy())

    def finish(self) -> Lists:
        """The lists of all documents.

        If some blocks have weights or positions, documents of other blocks have weight 1, and were shown at none.
        """
        if not self._labels:
            raise DataError(f"{self._source}: no documents; expected lines like '2 qid:10 1:0.5'")
        try:
            return lists_from_runs(
                np.concatenate(self._labels),
                self._run_ids,
                np.concatenate(self._run_lengths),
                doc_ids=self._joined(self._doc_ids, None, object),
                weights=self._joined(self._weights, 1.0, np.float64),
                positions=self._joined(self._positions, 0, POSITION),
            )
        except DataError as error:
            raise error.with_prefix(f"{self._source}: ") from error

    def _joined(self, parts: list[np.ndarray | None], default: Any, dtype: Any) -> np.ndarray | None:
        """The arrays of all blocks as one, `default` for blocks that have none; None if no block has any."""
        if all(part is None for part in parts):
            return None
        sizes = zip(self._sizes, parts, strict=True)
        return np.concatenate([np.full(n, default, dtype=dtype) if part is None else part for n, part in sizes])
