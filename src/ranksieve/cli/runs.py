"""`ranksieve retrieve`, `ranksieve fuse` and `ranksieve rerank`: commands that write TREC runs."""

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
    Own,
    QueriesArgument,
    QueryVectorIds,
    QueryVectors,
    Run,
    own_features,
    query_vectors,
    show_notes,
    takes_first_stage,
)
from ranksieve.cli.shared_options import ModelArgument, OutRun, Threads, metric_option, read_weights
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


@takes_first_stage
def rerank(
    index: IndexArgument,
    model_file: ModelArgument,
    queries: QueriesArgument,
    out: OutRun,
    run: Run = None,
    depth: Annotated[
        int | None, typer.Option(min=1, help="Candidates per query.", show_default="as in training, or 1000")
    ] = None,
    own: Own = None,
    vectors: QueryVectors = None,
    vector_ids: QueryVectorIds = None,
    stage: Any = None,
    threads: Threads = 0,
) -> None:
    """Re-rank candidates with a model (second stage)."""
    check_writable(out, model_file, queries, run)
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.pipeline import Pipeline
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_run, write_run

    pipeline = Pipeline(index, model_file, stage=stage, depth=depth, extra=own_features(own), threads=threads or None)
    texts, candidates, notes = read_queries(queries), None if run is None else read_run(run), Notes()
    given = query_vectors(vectors, vector_ids, texts)
    start = time.perf_counter()
    with ProgressDisplay("re-ranking", kernels="lexical") as display:
        result = pipeline.rerank(
            texts, candidates, query_vectors=given, notes=notes,
            progress=lambda done, all: display.update(done, all, unit="query"),
        )  # fmt: skip
    seconds = time.perf_counter() - start
    write_run(result, out, tag="ranksieve")
    show_notes(notes)
    show_facts(
        [("run", f"{out}, {counted(query=result.n_queries, document=len(result))}"), ("time", duration(seconds))]
    )
