"""`SourcePart`: some queries of a file, read like a file of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source
from ranksieve.data.dataset import BLOCK_ROWS


def query_ids_of(source: Source) -> list[Any]:
    """The query ids of a file in the order of their first rows; one pass."""
    return list(dict.fromkeys(query for block in source.blocks() for query in block.run_ids))


class SourcePart:
    """The rows of some queries, so that a file too large for memory can be split without writing its parts."""

    n_docs: int | None = None

    def __init__(self, source: Source, query_ids: Iterable[Any], name: str) -> None:
        self._source, self._wanted = source, frozenset(query_ids)
        self.path = f"{source.path} ({name})"
        self.feature_names = source.feature_names
        self.first_stage = source.first_stage
        self.absent = source.absent
        self.n_features = source.n_features
        self.fraction_read = 0.0

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        for block in self._source.blocks(rows):
            self.fraction_read = self._source.fraction_read
            runs = np.array([query in self._wanted for query in block.run_ids], dtype=bool)
            if runs.all():
                yield block
            elif runs.any():
                yield block.take_runs(runs)
        self.n_features = self._source.n_features  # a text file knows after its first pass
