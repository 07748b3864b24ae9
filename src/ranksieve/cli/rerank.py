"""`ranksieve rerank`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.corpus_options import (
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
from ranksieve.cli.shared_options import ModelArgument, OutRun, Threads
from ranksieve.text_formats import counted, duration


@takes_first_stage
def rerank(
    index: IndexArgument,
    model_file: ModelArgument,
    queries: QueriesArgument,
    out: OutRun,
    run: Run = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates per query.", show_default="as in training, or 1000"),
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
