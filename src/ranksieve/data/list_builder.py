"""`ListBuilder`: collects labels, query ids, document ids, weights and positions from blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.data.blocks import Block
from ranksieve.data.lists import Lists, lists_from_runs
from ranksieve.dtypes import POSITION
from ranksieve.errors import DataError


class ListBuilder:
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
