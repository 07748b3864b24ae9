"""`ranksieve retrieve`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts, show_waiting
from ranksieve.cli.corpus_options import (
    Depth,
    IndexArgument,
    Model,
    QueriesArgument,
    Settings,
    Weights,
    first_stage,
    show_notes,
)
from ranksieve.cli.shared_options import OutRun, Threads, metric_option
from ranksieve.text_formats import counted, duration


def retrieve(
    index: IndexArgument,
    queries: QueriesArgument,
    out: OutRun,
    depth: Depth = 1000,
    model: Model = "bm25f",
    weights: Weights = "",
    settings: Settings = "",
    tune: Annotated[
        Path | None, typer.Option(help="Judgements to tune the model's parameters on.", rich_help_panel="First stage")
    ] = None,
    metric: Annotated[str, metric_option("Metric that --tune maximizes.", rich_help_panel="First stage")] = "ndcg@10",
    threads: Threads = 0,
) -> None:
    """Retrieve candidates for queries: the first stage."""
    check_writable(out, queries, tune)
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.models import spelling
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, write_run
    from ranksieve.retrieval.searching import retrieve as search
    from ranksieve.retrieval.tuning import tune as tune_stage

    show_waiting("retrieving")
    stage, notes = first_stage(model, weights, settings), Notes()
    opened, texts = Index(index), read_queries(queries)
    if tune is not None:
        tuned = tune_stage(
            opened, texts, read_judgements(tune), stage, metric=metric, threads=threads or None, notes=notes
        )
        stage = tuned.stage
        show_facts([("tuned", f"{spelling(stage)}; {metric} {tuned.before:.4f} → {tuned.after:.4f} on these queries")])
    start = time.perf_counter()
    run = search(opened, texts, depth, stage, notes=notes, threads=threads or None)
    seconds = time.perf_counter() - start
    write_run(run, out, tag=stage.model)
    show_notes(notes)
    show_facts([("run", f"{out}, {counted(query=run.n_queries, document=len(run))}"), ("time", duration(seconds))])
