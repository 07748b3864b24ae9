"""`ranksieve features`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.corpus_options import (
    Depth,
    Own,
    QueryVectorIds,
    QueryVectors,
    Run,
    own_features,
    query_vectors,
    show_notes,
    takes_first_stage,
)
from ranksieve.cli.shared_options import Threads, out_option
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index

OTHER_ENDINGS = (".csv", ".tsv", ".txt", ".letor", ".jsonl", ".json")


@takes_first_stage
def features(
    index: Annotated[
        Path | None,
        typer.Argument(metavar="INDEX", help="Index folder, made by 'ranksieve index'; optional with --list."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Argument(
            metavar="QUERIES", help="File with lines 'id TAB text', or JSON Lines or Parquet with fields id and text."
        ),
    ] = None,
    out: Annotated[Path | None, out_option("Parquet file to write.")] = None,
    run: Run = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements, which become the labels. Without them, all labels are 0.")
    ] = None,
    depth: Depth = 1000,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            "-s",
            metavar="PATTERN",
            help="Features to compute, by name or pattern: 'bm25*', '*.title', 'relative.*' (scaled within each list), "
            "'!dense.*' (left out).",
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the features of the index, or of any index, and exit.")
    ] = False,
    own: Own = None,
    vectors: QueryVectors = None,
    vector_ids: QueryVectorIds = None,
    stage: Any = None,
    threads: Threads = 0,
) -> None:
    """Compute features of candidates, with labels from judgements: training data for the second stage.

    'ranksieve feature-log' reads features that Elasticsearch, OpenSearch or Solr has logged.
    """
    from ranksieve.retrieval.index import Index

    if list_them:
        _list(None if index is None else Index(index), select or [], own_features(own))
        return
    if index is None or queries is None or out is None:
        raise ParameterError("features need INDEX, QUERIES and --out FILE; or list them with --list")
    if out.suffix.lower() in OTHER_ENDINGS:
        raise ParameterError(f"features are written as Parquet, but --out is {out}; name it {out.stem}.parquet")
    opened = Index(index)
    check_writable(out, queries, run, qrels)
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.labelling import QueryCandidates, write_features
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, read_run
    from ranksieve.retrieval.searching import Searcher

    start, notes, texts = time.perf_counter(), Notes(), read_queries(queries)
    pairs = QueryCandidates(
        texts,
        Searcher(opened, stage, threads or None, query_vectors=query_vectors(vectors, vector_ids, texts)),
        depth,
        None if run is None else read_run(run),
        None if qrels is None else read_judgements(qrels),
    )
    with ProgressDisplay("features", kernels="lexical") as display:
        pairs = replace(pairs, progress=lambda done, all: display.update(done, all, unit="query"))
        written = write_features(
            pairs, out, select=select or (), extra=own_features(own), notes=notes, threads=threads or None
        )
    show_notes(notes)
    show_facts(
        [
            ("data", f"{out}, {counted(query=written.n_queries, document=written.n_docs, feature=written.n_features)}"),
            ("positives", f"{written.n_positives:,}"),
            ("time", duration(time.perf_counter() - start)),
        ]
    )


def _list(index: Index | None, patterns: list[str], own: dict[str, Callable[..., Any]]) -> None:
    from ranksieve.data.features import RELATIVE
    from ranksieve.retrieval.feature_names import any_features, choose, layout_of

    meanings = dict(any_features() if index is None else layout_of(index).features)
    meanings |= {name: (make.__doc__ or "your own").strip().splitlines()[0] for name, make in own.items()}
    chosen = choose(tuple(meanings), patterns)
    show_facts(
        [
            *((name, meanings[name]) for name in chosen.plain),
            *((RELATIVE + name, f"{meanings[name]}; from 0 to 1 within the list") for name in chosen.relative),
            ("", counted(feature=len(chosen.names))),
        ]
    )
