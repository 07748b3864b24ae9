"""`SourcePart`: some queries of a file, and `Joined`: several files, each read like a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source, candidates_of
from ranksieve.data.dataset import BLOCK_ROWS, check_feature_names
from ranksieve.errors import DataError


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
        self.candidates = candidates_of(source)
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
        self.dense = getattr(self._source, "dense", False)


class Joined:
    """The rows of several files one after the other; no query may stand in two of them."""

    n_docs: int | None = None

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = list(sources)
        first = self._sources[0]
        for source in self._sources[1:]:
            if source.feature_names is not None and first.feature_names is not None:
                check_feature_names(source.feature_names, first.feature_names, source.path)
        self.path = ", ".join(source.path for source in self._sources)
        self.feature_names, self.first_stage, self.absent = first.feature_names, first.first_stage, first.absent
        self.n_features = first.n_features
        self.fraction_read = 0.0

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        home: dict[Any, str] = {}
        for number, source in enumerate(self._sources):
            for block in source.blocks(rows):
                self.fraction_read = (number + source.fraction_read) / len(self._sources)
                for query in block.run_ids:
                    if home.setdefault(query, source.path) != source.path:
                        raise DataError(
                            f"{source.path}: query {query!r} is in {home[query]} too; give every query an id of its own"
                        )
                yield block
        self.n_features = max(source.n_features or 0 for source in self._sources)
        self.dense = all(getattr(source, "dense", False) for source in self._sources)
