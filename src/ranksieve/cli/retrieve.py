"""`ranksieve retrieve`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.console import check_writable, show_facts, show_waiting
from ranksieve.cli.corpus_options import (
    PANEL,
    Depth,
    IndexArgument,
    QueriesArgument,
    QueryVectorIds,
    QueryVectors,
    query_vectors,
    show_notes,
    takes_first_stage,
)
from ranksieve.cli.shared_options import OutRun, Threads, metric_option
from ranksieve.text_formats import counted, duration


@takes_first_stage
def retrieve(
    index: IndexArgument,
    queries: QueriesArgument,
    out: OutRun,
    depth: Depth = 1000,
    vectors: QueryVectors = None,
    vector_ids: QueryVectorIds = None,
    stage: Any = None,
    tune: Annotated[
        Path | None,
        typer.Option(metavar="QRELS", help="Judgements to tune weights and parameters on.", rich_help_panel=PANEL),
    ] = None,
    metric: Annotated[str, metric_option("Metric that --tune maximizes.", rich_help_panel=PANEL)] = "ndcg@10",
    save_stage: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write the first stage to, tuned or not; --stage reads it.",
                     rich_help_panel=PANEL),
    ] = None,
    threads: Threads = 0,
) -> None:  # fmt: skip
    """Retrieve candidates for queries (first stage)."""
    check_writable(out, queries, tune)
    if save_stage is not None:
        check_writable(save_stage, queries, tune)
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.first_stage import FirstStage
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, write_run
    from ranksieve.retrieval.searching import retrieve as search
    from ranksieve.retrieval.tuning import tune as tune_stage

    show_waiting("retrieving")
    notes, opened, texts = Notes(), Index(index), read_queries(queries)
    given = query_vectors(vectors, vector_ids, texts)
    chosen = stage or opened.stage or FirstStage()
    if tune is not None:
        with ProgressDisplay("tuning", kernels="retrieving") as display:
            tuned = tune_stage(
                opened, texts, read_judgements(tune), chosen, metric=metric, query_vectors=given,
                threads=threads or None, notes=notes,
                progress=lambda done, most, best: display.update(
                    done, most, unit="setting", details=[f"{metric} {best:.4f}"], estimate="at most {} left"
                ),
            )  # fmt: skip
        chosen = tuned.stage
        shown = f"{chosen.flags()}; {metric} {tuned.before:.4f} → {tuned.after:.4f} on these queries"
        show_facts([("tuned", shown)])
    if save_stage is not None:
        chosen.save(save_stage)
    start = time.perf_counter()
    run = search(opened, texts, depth, chosen, query_vectors=given, notes=notes, threads=threads or None)
    seconds = time.perf_counter() - start
    write_run(run, out, tag=chosen.model)
    show_notes(notes)
    show_facts([("run", f"{out}, {counted(query=run.n_queries, document=len(run))}"), ("time", duration(seconds))])
