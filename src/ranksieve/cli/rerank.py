"""`ranksieve rerank`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts, show_waiting
from ranksieve.cli.corpus_options import (
    IndexArgument,
    Model,
    Own,
    QueriesArgument,
    Settings,
    Stage,
    Weights,
    first_stage,
    own_features,
    show_notes,
)
from ranksieve.cli.shared_options import ModelArgument, OutRun, Threads
from ranksieve.text_formats import counted, duration


def rerank(
    index: IndexArgument,
    model_file: ModelArgument,
    queries: QueriesArgument,
    out: OutRun,
    run: Annotated[
        Path | None, typer.Option(help="TREC run with the candidates. Without it, the first stage retrieves them.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates per query.", show_default="as in training, or 1000"),
    ] = None,
    own: Own = None,
    model: Model = None,
    weights: Weights = "",
    settings: Settings = "",
    stage: Stage = None,
    threads: Threads = 0,
) -> None:
    """Re-rank candidates with a model (second stage)."""
    check_writable(out, model_file, queries, run, stage)
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.pipeline import Pipeline
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_run, write_run

    show_waiting("lexical")
    chosen = first_stage(model, weights, settings, stage)
    pipeline = Pipeline(index, model_file, stage=chosen, depth=depth, extra=own_features(own), threads=threads or None)
    texts, candidates, notes = read_queries(queries), None if run is None else read_run(run), Notes()
    start = time.perf_counter()
    result = pipeline.rerank(texts, candidates, notes=notes)
    seconds = time.perf_counter() - start
    write_run(result, out, tag="ranksieve")
    show_notes(notes)
    show_facts(
        [("run", f"{out}, {counted(query=result.n_queries, document=len(result))}"), ("time", duration(seconds))]
    )
