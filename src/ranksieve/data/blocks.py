"""`Block`: some rows of a file. `Source`: a file that hands out its blocks as often as asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import scipy.sparse

from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.lists import runs_of
from ranksieve.dtypes import FEATURE, OFFSET
from ranksieve.errors import DataError


@dataclass
class Block:
    """Rows that follow each other in a file.

    `run_ids` and `run_lengths` are the runs of equal neighbouring query ids inside the block, so a query that goes on
    in the next block has a run in both.
    """

    features: np.ndarray
    labels: np.ndarray
    run_ids: list[Any]
    run_lengths: np.ndarray
    doc_ids: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def n_docs(self) -> int:
        return len(self.labels)

    def take_runs(self, wanted: np.ndarray) -> Block:
        """The rows of some runs, which a mask tells."""
        rows = np.repeat(wanted, self.run_lengths)
        return Block(
            features=self.features[rows],
            labels=self.labels[rows],
            run_ids=[run_id for run_id, keep in zip(self.run_ids, wanted, strict=True) if keep],
            run_lengths=self.run_lengths[wanted],
            doc_ids=None if self.doc_ids is None else self.doc_ids[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


@runtime_checkable
class Source(Protocol):
    """A file of documents that is read in blocks, as often as needed.

    A text source does not know `n_docs` and `n_features` before its first full pass; until then later blocks may be
    wider than earlier ones, whose missing columns then hold `absent`. From the second pass on all have `n_features`.
    """

    path: str
    n_docs: int | None
    n_features: int | None
    feature_names: tuple[str, ...] | None
    first_stage: int | None
    absent: float
    fraction_read: float  # how much of the file the running pass has read, for progress bars and size estimates

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The file's rows from the first to the last, at most `rows` at a time."""
        ...


def candidates_of(data: Dataset | Source) -> str:
    """Where the documents come from, if the data says so."""
    return getattr(data, "candidates", "")


def widened(features: np.ndarray, n_features: int, absent: float) -> np.ndarray:
    """Rows of a text file with the last columns filled up: text does not name features that are absent throughout."""
    missing = n_features - features.shape[1]
    return features if missing <= 0 else np.pad(features, ((0, 0), (0, missing)), constant_values=absent)


def check_narrow(source: Source, width: int, n_features: int) -> None:
    """Refuse, after a full pass, text with fewer features than are known, unless it leaves some out anyway.

    Text that names every feature on every line left out none of them, so it has no others. Where lines have gaps the
    last features may be absent throughout; when those are many, that is said.
    """
    if width >= n_features:
        return
    if getattr(source, "dense", False):
        raise DataError(
            f"{source.path}: every line names features 1 to {width} and no other, but {n_features} are expected; give "
            f"data with the same features, or where the others are zeros left out, name the last: {n_features}:0"
        )
    if width < 0.9 * n_features:
        warnings.warn(
            f"{source.path}: no feature beyond {width} occurs, but {n_features} are expected; the others count as "
            "absent; check that this is the right file",
            stacklevel=2,
        )


def blocks_of(data: Dataset | Source, rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Blocks of a data set in the order its user gave the rows in, or those of a source."""
    if not isinstance(data, Dataset):
        yield from data.blocks(rows)
        return
    lists = data.lists
    labels = lists.to_user_order(lists.labels)
    queries = lists.to_user_order(np.repeat(np.arange(lists.n_queries), lists.sizes))
    doc_ids = None if lists.doc_ids is None else lists.to_user_order(lists.doc_ids)
    weights = None if lists.weights is None else lists.to_user_order(lists.weights)
    for start in range(0, data.n_docs, rows):
        part = slice(start, min(start + rows, data.n_docs))
        numbers, run_lengths = runs_of(queries[part])
        features = data.features[part]
        features = features.toarray() if scipy.sparse.issparse(features) else features
        yield Block(
            features=np.ascontiguousarray(features, dtype=FEATURE),
            labels=labels[part],
            run_ids=lists.query_ids[numbers].tolist(),
            run_lengths=run_lengths.astype(OFFSET),
            doc_ids=None if doc_ids is None else doc_ids[part],
            weights=None if weights is None else weights[part],
        )


def give_back_memory() -> None:
    """Return to the system what was freed; it would stay with the process, several times a block."""
    pa.default_memory_pool().release_unused()
