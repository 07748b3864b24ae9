"""`ranksieve retrieve`, `ranksieve fuse` and `ranksieve rerank`: commands that write TREC runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.corpus_options import (
    PANEL,
    Depth,
    IndexArgument,
    Own,
    QueriesArgument,
    RerankStageOptions,
    Run,
    SearchOptions,
    StageOptions,
    own_features,
)
from ranksieve.cli.shared_options import ModelArgument, OutRun, Quiet, metric_option, read_weights
from ranksieve.errors import ModelError
from ranksieve.text_formats import counted, duration


@dataclass(frozen=True, kw_only=True)
class RetrieveArguments:
    """Arguments and options of `ranksieve retrieve`, besides those that choose the first stage."""

    index: IndexArgument
    queries: QueriesArgument
    out: OutRun
    depth: Depth = 1000
    tune: Path | None = option(
        None, "Judgements to tune weights and parameters on.", metavar="QRELS", rich_help_panel=PANEL
    )
    metric: Annotated[str, metric_option("Metric that --tune maximizes.", rich_help_panel=PANEL)] = "ndcg@10"
    quiet: Quiet = False
    save_stage: Path | None = option(
        None, "File to write the first stage to, tuned or not; --stage reads it.", metavar="FILE", rich_help_panel=PANEL
    )


@takes_options
def retrieve(given: RetrieveArguments, search: SearchOptions, first_stage: StageOptions) -> None:
    """Retrieve candidates for queries (first stage)."""
    stage = first_stage.read(given.out)
    for written in filter(None, (given.out, given.save_stage)):
        check_writable(written, given.queries, given.tune)
    from ranksieve.cli.compiling import counting_kernels
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.first_stage import FirstStage
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, write_run
    from ranksieve.retrieval.searching import Retriever
    from ranksieve.retrieval.searching import retrieve as retrieve_candidates
    from ranksieve.retrieval.tuning import tune as tune_stage

    index, texts = Index(given.index), read_queries(given.queries)
    options: dict[str, Any] = {"query_vectors": search.query_vectors(texts), "threads": search.threads or None}
    chosen = stage or index.stage or FirstStage()
    if given.tune is not None:
        metric, first = given.metric, Retriever(index, chosen, **options)
        with ProgressDisplay("tuning", kernels="retrieving", quiet=given.quiet) as display, counting_kernels(display):
            tuned = tune_stage(
                first, texts, read_judgements(given.tune), metric=metric,
                progress=lambda done, most, best: display.update(
                    done, most, unit="setting", details=[f"{metric} {best:.4f}"], estimate="at most {} left",
                    title="tuning",
                ),
            )  # fmt: skip
        chosen = tuned.stage
        shown = f"{chosen.flags()}; {metric} {tuned.before:.4f} → {tuned.after:.4f} on these queries"
        show_facts([("tuned", shown)])
    if given.save_stage is not None:
        chosen.save(given.save_stage)
    start = time.perf_counter()
    with (
        ProgressDisplay(
            "retrieving", doing=counted(query=len(texts)), kernels="retrieving", quiet=given.quiet
        ) as display,
        counting_kernels(display),
    ):
        run = retrieve_candidates(index, texts, given.depth, chosen, **options)
    seconds = time.perf_counter() - start
    write_run(run, given.out, tag=chosen.model)
    show_facts([("run", _run_facts(given.out, run)), ("time", duration(seconds))])


def _run_facts(out: Path, run: Any) -> str:
    return f"{out}, {counted(query=run.n_queries, document=len(run))}"


@dataclass(frozen=True, kw_only=True)
class FuseArguments:
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="TREC runs.")]
    out: OutRun
    method: str = option(
        "rrf",
        "rrf: reciprocal rank fusion; sum: sum of normalised scores (CombSUM); mnz: that sum times the number of runs "
        "that have the document (CombMNZ).", metavar="rrf|sum|mnz",
    )  # fmt: skip
    norm: str | None = option(
        None, "Normalisation of each list for sum and mnz. zmuv: mean 0 and variance 1.",
        metavar="min-max|zmuv|rank|none", show_default="min-max",
    )  # fmt: skip
    weights: str | None = option(
        None, "Weights of the runs in their order, as in '0.7,0.3'.", metavar="WEIGHTS", show_default="all 1"
    )
    k: int | None = option(None, "Constant of rrf.", "--k", min=0, show_default="60")
    depth: int | None = option(None, "Documents to keep per query.", min=1, show_default="all")


@takes_options
def fuse(given: FuseArguments) -> None:
    """Fuse TREC runs of any systems into one run.

    A query gets the documents of all runs. Documents with equal scores keep the order of the first run that
    has them.
    """
    check_writable(given.out, *given.runs)
    from ranksieve.retrieval.fusion import fuse as fuse_runs
    from ranksieve.retrieval.runs import write_run

    weights = None if given.weights is None else read_weights(given.weights)
    run = fuse_runs(given.runs, given.method, norm=given.norm, weights=weights, k=given.k, depth=given.depth)
    write_run(run, given.out, tag=given.method)
    show_facts([("run", _run_facts(given.out, run))])


@dataclass(frozen=True, kw_only=True)
class RerankArguments:
    """Arguments and options of `ranksieve rerank`, besides those of the first stage."""

    index: IndexArgument
    model_file: ModelArgument
    queries: QueriesArgument
    out: OutRun
    run: Run = None
    depth: int | None = option(None, "Candidates per query.", min=1, show_default="as in training, or 1000")
    own: Own = None
    quiet: Quiet = False


@takes_options
def rerank(given: RerankArguments, search: SearchOptions, first_stage: RerankStageOptions) -> None:
    """Re-rank candidates with a model (second stage)."""
    stage = first_stage.read(given.out)
    check_writable(given.out, given.model_file, given.queries, given.run)
    from ranksieve.cli.compiling import counting_kernels
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.pipeline import Pipeline, check_order
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_run, write_run

    own, threads = own_features(given.own), search.threads or None
    try:
        pipeline = Pipeline(given.index, given.model_file, stage=stage, depth=given.depth, extra=own, threads=threads)
    except ModelError:
        check_order(given.model_file, given.queries)
        raise
    texts, candidates = read_queries(given.queries), None if given.run is None else read_run(given.run)
    vectors = search.query_vectors(texts)
    start = time.perf_counter()
    with ProgressDisplay("re-ranking", kernels="lexical", quiet=given.quiet) as display, counting_kernels(display):
        result = pipeline.rerank(
            texts, candidates, query_vectors=vectors,
            progress=lambda done, all: display.update(done, all, unit="query", title="re-ranking"),
        )  # fmt: skip
    seconds = time.perf_counter() - start
    write_run(result, given.out, tag="ranksieve")
    show_facts([("run", _run_facts(given.out, result)), ("time", duration(seconds))])
