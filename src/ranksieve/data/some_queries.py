"""Some queries of a file as a source of their own, so that files are split without being held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source
from ranksieve.data.dataset import BLOCK_ROWS


class SomeQueries:
    """The documents of some queries of a source, in its order."""

    def __init__(self, source: Source, query_ids: set[Any]):
        self.path = source.path
        self.n_docs: int | None = None
        self.n_features = source.n_features
        self.feature_names = source.feature_names
        self.first_stage = source.first_stage
        self.absent = source.absent
        self.fraction_read = 0.0
        self._source, self._ids = source, query_ids

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The rows of the chosen queries, at most `rows` at a time."""
        for block in self._source.blocks(rows):
            self.fraction_read = self._source.fraction_read
            wanted = np.array([id in self._ids for id in block.run_ids])
            if wanted.any():
                kept = np.repeat(wanted, block.run_lengths)
                yield Block(
                    np.ascontiguousarray(block.features[kept]),
                    block.labels[kept],
                    [id for id, keep in zip(block.run_ids, wanted, strict=True) if keep],
                    block.run_lengths[wanted],
                    None if block.doc_ids is None else block.doc_ids[kept],
                    None if block.weights is None else block.weights[kept],
                )


def query_ids_of(source: Source) -> list[Any]:
    """The query ids of a source, in the order of their first rows."""
    return list(dict.fromkeys(id for block in source.blocks() for id in block.run_ids))
