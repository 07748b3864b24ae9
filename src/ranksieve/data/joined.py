"""`JoinedSource`: several files or data sets, or some of their queries, read one after the other as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source, blocks_of, widened
from ranksieve.data.categories import Encoder
from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.features import default_names
from ranksieve.data.read import open_values
from ranksieve.errors import DataError
from ranksieve.text_formats import counted


def query_ids_of(source: Source) -> list[Any]:
    """The query ids of a source in the order of their first rows; one pass."""
    return list(dict.fromkeys(query for block in source.blocks() for query in block.run_ids))


@dataclass(frozen=True)
class Piece:
    """Some queries of a file or a data set; None is all of them.

    A range selects by number, in the order of the queries' first rows, and a set selects by id.
    """

    data: Any
    queries: range | Set[Any] | None = None

    @property
    def suffix(self) -> str:
        """What is added to the name of a file that holds these queries."""
        return f"-{self.queries.start}-{self.queries.stop}" if isinstance(self.queries, range) else ""

    def blocks(self, data: Dataset | Source, rows: int) -> Iterator[Block]:
        """The rows of the queries; `data` is the piece's data, opened."""
        if self.queries is None:
            yield from blocks_of(data, rows)
            return
        numbers: dict[Any, int] = {}
        by_number = isinstance(self.queries, range)
        for block in blocks_of(data, rows):
            keys = [numbers.setdefault(id, len(numbers)) for id in block.run_ids] if by_number else block.run_ids
            wanted = np.array([key in self.queries for key in keys], dtype=bool)
            if wanted.any():
                yield block if wanted.all() else block.take_runs(wanted)


class JoinedSource(Source):
    """Pieces read one after the other.

    Parameters
    ----------
    pieces
        What to read.
    missing
        The value of features that a line of LETOR text does not name, "zero" or "nan".
    n_docs
        The number of rows, where it is known.
    name
        The name in messages; made of those of the pieces by default.
    distinct
        Refuse a query id that occurs in two pieces. Else these are the same query.
    wanted
        The features of a model, and their categories, as arguments of `open_data`.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        *,
        missing: str = "zero",
        n_docs: int | None = None,
        name: str = "",
        distinct: bool = False,
        wanted: Mapping[str, Any] | None = None,
    ) -> None:
        encoders: dict[str, Encoder] = {}
        self._opened = [
            (piece, open_values(piece.data, missing=missing, encoders=encoders, **(wanted or {}))) for piece in pieces
        ]
        self._distinct = distinct
        self.n_docs = n_docs if n_docs is not None else self._count_docs()
        first = self._opened[0][1]
        check_alike([part.source for _, part in self._opened], [part.feature_names for _, part in self._opened])
        if any(part.categories != first.categories for _, part in self._opened):
            raise DataError(f"{first.source} and other parts have different categories; read all of them together")
        more = len(pieces) - 1
        self.info = replace(first.info, source=name or first.source + (f" and {more} more" if more else ""))
        self.n_features = first.n_features
        self.parts = tuple(data for _, data in self._opened if isinstance(data, Source))
        self.files = tuple(path for data in self.parts for path in data.files)
        self.can_read_ahead = bool(self.parts) and all(data.can_read_ahead for data in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        sources = ((piece, data) for piece, data in self._opened if isinstance(data, Source))
        return tuple(f"{name}{piece.suffix}" for piece, data in sources for name in data.names)

    def _count_docs(self) -> int | None:
        """The number of rows of all pieces, if it is known before they are read."""
        counts = [None if piece.queries is not None else data.n_docs for piece, data in self._opened]
        return sum(n for n in counts if n is not None) if None not in counts else None

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The rows of all pieces in order."""
        width = done = 0
        first_in: dict[Any, str] = {}
        for number, (piece, data) in enumerate(self._opened):
            if isinstance(data, Source):
                in_order = self.sampled_from is not None and piece.queries is None
                data.sampled_from = (self.sampled_from or 0) + done if in_order else None
            for block in piece.blocks(data, rows):
                done += block.n_docs
                read = data.fraction_read if isinstance(data, Source) else 1.0
                self.fraction_read = (number + read) / len(self._opened)
                if self._distinct:
                    self._check_distinct(block, data.source, first_in)
                if not (isinstance(data, Source) and data.by_column):
                    # text does not name features that are absent from its last lines on
                    block = replace(block, features=widened(block.features, width, self.absent))
                    width = block.features.shape[1]
                yield block
        parts = [data for _, data in self._opened]
        self.n_features = max(data.n_features or 0 for data in parts)
        self.dense = all(isinstance(data, Source) and data.dense for data in parts)

    def fingerprint(self) -> list[Any] | None:
        """Those of the parts, unless these are data in memory or queries with given ids."""
        parts = [data.fingerprint() if isinstance(data, Source) else None for _, data in self._opened]
        by_id = any(isinstance(piece.queries, Set) for piece, _ in self._opened)
        return None if by_id or None in parts else [parts, [piece.suffix for piece, _ in self._opened]]

    @staticmethod
    def _check_distinct(block: Block, source: str, first_in: dict[Any, str]) -> None:
        for query in block.run_ids:
            if first_in.setdefault(query, source) != source:
                raise DataError(f"{source}: query {query!r} is in {first_in[query]} too; give every query its own id")


def check_alike(sources: Sequence[str], names: Sequence[tuple[str, ...] | None]) -> None:
    """Raise `DataError` unless all data has the same features in the same order; text has no names and passes."""
    known = [(source, found) for source, found in zip(sources, names, strict=True) if found is not None]
    for source, found in known[1:]:
        first, expected = known[0]
        if found != expected and default_names(len(found)) != found:
            place = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(expected))
            raise DataError(
                f"{source}: its features differ from those of {first} at number {place + 1} "
                f"({counted(feature=len(found))} against {len(expected)}); all parts need the same features in the "
                "same order"
            )
