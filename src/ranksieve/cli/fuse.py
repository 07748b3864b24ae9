"""`ranksieve fuse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.shared_options import OutRun, read_weights
from ranksieve.text_formats import counted


def fuse(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="TREC runs.")],
    out: OutRun,
    method: Annotated[
        str,
        typer.Option(
            metavar="rrf|sum|mnz",
            help="rrf: reciprocal rank fusion; sum: sum of normalised scores (CombSUM); mnz: that sum times the number "
            "of runs that have the document (CombMNZ).",
        ),
    ] = "rrf",
    norm: Annotated[
        str | None,
        typer.Option(
            metavar="min-max|zmuv|rank|none",
            help="Normalisation of each list for sum and mnz. zmuv: mean 0 and variance 1.",
            show_default="min-max",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS", help="Weights of the runs in their order, as in '0.7,0.3'.", show_default="all 1"
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", min=0, help="Constant of rrf.", show_default="60")] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, help="Documents to keep per query.", show_default="all")
    ] = None,
) -> None:  # fmt: skip
    """Fuse TREC runs of any systems into one run.

    A query has the documents that any run has for it. Documents with equal scores keep the order of the first run that
    has them.
    """
    check_writable(out, *runs)
    from ranksieve.retrieval.fusion import fuse as fuse_runs
    from ranksieve.retrieval.runs import write_run

    factors = None if weights is None else read_weights(weights)
    run = fuse_runs(runs, method, norm=norm, weights=factors, k=k, depth=depth)
    write_run(run, out, tag=method)
    show_facts([("run", f"{out}, {counted(query=run.n_queries, document=len(run))}")])
