"""`ranksieve synth`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.data.blocks import Block
    from ranksieve.data.dataset import Dataset

BLOCK_QUERIES = {"two-stage": 16, "cubic": 1000}  # of about 40 MB each


def synth(
    kind: Annotated[str, typer.Argument(metavar="two-stage|cubic", help="Which data set to generate.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where it goes: Parquet if named *.parquet, else LETOR text.")
    ],
    queries: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another collection.")] = 0,
    start: Annotated[int, typer.Option(min=0, help="Number of the first query: more of the same collection.")] = 0,
) -> None:
    """Generate data: long lists as a second stage sees them, or grades that are a cubic polynomial."""
    if kind not in BLOCK_QUERIES:
        raise ParameterError(f"unknown kind {kind!r}; expected one of {', '.join(BLOCK_QUERIES)}")
    check_writable(out)
    from ranksieve.data import generators
    from ranksieve.data.letor import write_letor
    from ranksieve.data.tables import write_parquet

    generate = {"two-stage": generators.two_stage, "cubic": generators.cubic}[kind]
    source = GeneratedSource(generate, range(start, start + queries), seed, BLOCK_QUERIES[kind])
    write = write_parquet if out.suffix == ".parquet" else write_letor
    write(source, out)
    show_facts([("data", f"{out}, {queries:,} queries, {source.n_docs:,} documents, {source.n_features} features")])


class GeneratedSource:
    """A generator read like a file, some queries at a time."""

    absent = 0.0
    fraction_read = 0.0

    def __init__(self, generate: Callable[..., Dataset], queries: range, seed: int, size: int) -> None:
        self._generate, self._queries, self._seed, self._size = generate, queries, seed, size
        sample = generate(1, seed=seed, start=queries.start)
        self.path = sample.source
        self.n_features: int | None = sample.n_features
        self.feature_names: tuple[str, ...] | None = sample.feature_names
        self.first_stage = sample.first_stage
        self.n_docs: int | None = None

    def blocks(self, rows: int = 16_384) -> Iterator[Block]:
        from ranksieve.data.blocks import blocks_of

        n_docs = 0
        for first in range(self._queries.start, self._queries.stop, self._size):
            count = min(self._size, self._queries.stop - first)
            data = self._generate(count, seed=self._seed, start=first)
            n_docs += data.n_docs
            yield from blocks_of(data, rows)
        self.n_docs = n_docs
