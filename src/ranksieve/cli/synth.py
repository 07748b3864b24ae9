"""`ranksieve synth`."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.shared_options import OutData, Seed
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted

BLOCK_QUERIES = {"two-stage": 16, "cubic": 1000}  # of about 40 MB each


def synth(
    kind: Annotated[str, typer.Argument(metavar="two-stage|cubic", help="Which data set to generate.")],
    out: OutData,
    queries: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 300,
    seed: Seed = 0,
    start: Annotated[
        int, typer.Option(min=0, help="Number of the first query, to generate more of the same collection.")
    ] = 0,
) -> None:
    """Generate data: long lists as in a second stage, or labels that are a cubic polynomial of the features."""
    if kind not in BLOCK_QUERIES:
        raise ParameterError(f"unknown kind {kind!r}; expected one of {', '.join(BLOCK_QUERIES)}")
    check_writable(out)
    from ranksieve.data import generators
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet

    generate = {"two-stage": generators.two_stage, "cubic": generators.cubic}[kind]
    source = generators.GeneratedSource(generate, range(start, start + queries), seed, BLOCK_QUERIES[kind])
    write = write_parquet if out.suffix == ".parquet" else write_letor
    write(source, out)
    assert source.n_docs is not None and source.n_features is not None  # once all of it was generated
    show_facts([("data", f"{out}, {counted(query=queries, document=source.n_docs, feature=source.n_features)}")])
