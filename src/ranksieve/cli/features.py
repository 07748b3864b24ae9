"""`ranksieve features`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import show_facts
from ranksieve.cli.corpus_options import (
    QUERIES,
    Depth,
    Own,
    Qrels,
    Run,
    SearchOptions,
    StageOptions,
    own_features,
)
from ranksieve.cli.files import check_data_file
from ranksieve.cli.shared_options import Quiet, out_option
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index

UNLABELLED = "; without --qrels all labels are 0, so these lists are for ranksieve predict, not for training"


@dataclass(frozen=True, kw_only=True)
class FeatureArguments:
    """Arguments and options of `ranksieve features`, besides those of the first stage."""

    index: Annotated[
        Path | None,
        typer.Argument(metavar="INDEX", help="Index folder, made by 'ranksieve index'; optional with --list."),
    ] = None
    queries: Annotated[Path | None, QUERIES] = None
    out: Annotated[Path | None, out_option("Parquet file to write.")] = None
    run: Run = None
    qrels: Qrels = None
    depth: Depth = 1000
    select: list[str] | None = option(
        None, "Features to compute: names or patterns, separated by commas, as in 'bm25*,*.title'; 'relative.*' are "
        "scaled within each list, '!dense.*' are left out.", "--select", "-s", metavar="PATTERNS",
    )  # fmt: skip
    list_them: bool = option(False, "List the features of the index, or of any index, and exit.", "--list")
    own: Own = None
    quiet: Quiet = False


@takes_options
def features(given: FeatureArguments, search: SearchOptions, first_stage: StageOptions) -> None:
    """Make training data for the second stage: features of candidates, and labels from judgements.

    'ranksieve feature-log' reads features that Elasticsearch, OpenSearch or Solr has logged.
    """
    from ranksieve.retrieval.index import Index

    select, out, threads = ",".join(given.select or []), given.out, search.threads or None
    stage = first_stage.read(out)
    if given.list_them:
        _list(None if given.index is None else Index(given.index), select, own_features(given.own))
        return
    if given.index is None or given.queries is None or out is None:
        raise ParameterError("features need INDEX, QUERIES and --out FILE; or list them with --list")
    check_data_file(out, given.queries, given.run, given.qrels, text=False)
    opened = Index(given.index)
    from ranksieve.cli.compiling import counting_kernels
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.labelling import QueryCandidates, write_features
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, read_run
    from ranksieve.retrieval.searching import Retriever

    start, texts = time.perf_counter(), read_queries(given.queries)
    pairs = QueryCandidates(
        texts,
        Retriever(opened, stage, query_vectors=search.query_vectors(texts), threads=threads),
        given.depth,
        None if given.run is None else read_run(given.run),
        None if given.qrels is None else read_judgements(given.qrels),
    )
    with ProgressDisplay("features", kernels="lexical", quiet=given.quiet) as display, counting_kernels(display):
        pairs = replace(pairs, progress=lambda done, all: display.update(done, all, unit="query", title="features"))
        own = own_features(given.own)
        written = write_features(pairs, out, select=select, extra=own, threads=threads)
    show_facts(
        [
            ("data", f"{out}, {counted(query=written.n_queries, document=written.n_docs, feature=written.n_features)}"),
            ("positives", f"{written.n_positives:,}{UNLABELLED if given.qrels is None else ''}"),
            ("time", duration(time.perf_counter() - start)),
        ]
    )


def _list(index: Index | None, patterns: str, own: dict[str, Callable[..., Any]]) -> None:
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
