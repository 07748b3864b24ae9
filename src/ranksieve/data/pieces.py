"""Several files or data sets, or some of their queries, read as one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, Source, blocks_of, candidates_of
from ranksieve.data.dataset import BLOCK_ROWS, Dataset, default_names
from ranksieve.data.read import open_source
from ranksieve.data.tables import COLUMNS, QID
from ranksieve.errors import DataError


def opened(given: Any, missing: str) -> Dataset | Source:
    """A part of the data as something that has blocks: a file, a pandas frame, or what has them already."""
    if isinstance(given, str | os.PathLike):
        return open_source(given, missing=missing)
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        return _dataset_of(given)
    if isinstance(given, Dataset | Source):
        return given
    raise DataError(f"a part of the data is {type(given).__name__}; expected a file, a Dataset or a DataFrame")


def _dataset_of(frame: Any) -> Dataset:
    """A pandas frame laid out like a Parquet file: `label`, `qid`, perhaps `docid` and `weight`, and features."""
    label, _, docid, weight = COLUMNS
    for name in (label, QID):
        if name not in frame.columns:
            raise DataError(f"the DataFrame has no column {name!r}; it has: {', '.join(map(str, frame.columns[:8]))}")
    sides = {name: frame[name] for name in (label, docid, weight) if name in frame.columns}
    return Dataset.from_arrays(
        frame.drop(columns=list(sides)), sides[label], weights=sides.get(weight), doc_ids=sides.get(docid)
    )


@dataclass(frozen=True)
class Piece:
    """The queries first:stop of a part, counted in the order of their first rows; None is all of them."""

    given: Any
    queries: range | None = None


class Pieces:
    """Pieces read one after the other, as a `Source`. A query in two pieces is joined like one scattered in a file."""

    fraction_read = 0.0

    def __init__(self, pieces: Sequence[Piece], *, missing: str = "zero", n_docs: int | None = None) -> None:
        self._pieces, self._missing = pieces, missing
        parts = [opened(piece.given, missing) for piece in pieces]
        names = [part.feature_names for part in parts]
        self.path = name_of(pieces[0].given) + (f" and {len(pieces) - 1} more" if len(pieces) > 1 else "")
        self.n_docs = n_docs
        self.n_features: int | None = None
        self.feature_names: tuple[str, ...] | None = names[0]
        self.first_stage = parts[0].first_stage
        self.absent = parts[0].absent
        self.candidates = candidates_of(parts[0])
        check_alike([name_of(piece.given) for piece in pieces], names)

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The rows of all pieces in order."""
        width = 0
        for piece in self._pieces:
            blocks = blocks_of(opened(piece.given, self._missing), rows)
            for block in blocks if piece.queries is None else _some_queries(blocks, piece.queries):
                features = block.features
                if features.shape[1] < width:  # text names no features that are absent to its end
                    padding = ((0, 0), (0, width - features.shape[1]))
                    block = replace(block, features=np.pad(features, padding, constant_values=self.absent))
                width = block.features.shape[1]
                yield block


def name_of(given: Any) -> str:
    """What to call a part in messages."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return str(getattr(given, "source", None) or getattr(given, "path", None) or type(given).__name__)


def check_alike(parts: Sequence[str], names: Sequence[tuple[str, ...] | None]) -> None:
    """Refuse parts whose features have other names, or the same in another order."""
    known = [(part, found) for part, found in zip(parts, names, strict=True) if found is not None]
    for part, found in known[1:]:
        first, expected = known[0]
        if found != expected and default_names(len(found)) != found:
            place = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(expected))
            raise DataError(
                f"{part}: its features differ from those of {first} at number {place + 1} "
                f"({len(found)} features against {len(expected)}); all parts need the same features in the same order"
            )


def _some_queries(blocks: Iterator[Block], queries: range) -> Iterator[Block]:
    """The rows of some queries of a part."""
    numbers: dict[Any, int] = {}
    for block in blocks:
        run = np.array([numbers.setdefault(query, len(numbers)) for query in block.run_ids])
        wanted = (run >= queries.start) & (run < queries.stop)
        if wanted.any():
            yield block.take_runs(wanted)
