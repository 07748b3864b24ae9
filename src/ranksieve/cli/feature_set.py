"""`ranksieve feature-set`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.corpus_options import IndexArgument, show_notes
from ranksieve.cli.shared_options import out_option
from ranksieve.text_formats import counted, some_of


def feature_set(
    index: IndexArgument,
    out: Annotated[Path, out_option("JSON file to write.")],
    engine: Annotated[
        str, typer.Option(metavar="elasticsearch|opensearch|solr", help="Search engine.")
    ] = "elasticsearch",
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", metavar="PATTERN", help="Features to define, by name or pattern: 'bm25*'.",
                     show_default="all that the engine has"),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Parameter of a request with the query's text.",
                     show_default="keywords; for Solr text"),
    ] = None,
    store: Annotated[str | None, typer.Option(metavar="NAME", help="Solr: the feature store.")] = None,
    missing: Annotated[
        str, typer.Option(metavar="zero|nan", help="What a document without a number gets; nan: no value.")
    ] = "nan",
) -> None:  # fmt: skip
    """Define features of an index in Elasticsearch, OpenSearch or Solr, under the same names.

    These are bm25.FIELD and number.NAME, in Solr also length.FIELD and first.score. The engine computes their values,
    so train on its feature log.
    """
    check_writable(out)
    from ranksieve.files import atomic_text
    from ranksieve.retrieval.feature_names import choose, layout_of
    from ranksieve.retrieval.feature_sets import feature_set as define
    from ranksieve.retrieval.index import Index

    with Index(index) as opened:
        names = choose(layout_of(opened).names, select or []).names
    made = define(names, engine, text=text, store=store, missing=missing)
    with atomic_text(out) as file:
        json.dump(made.definition, file, indent=1, ensure_ascii=False)
        file.write("\n")
    if made.left_out:
        show_notes([f"features without a counterpart: {len(made.left_out):,} ({some_of(made.left_out, 3)})"])
    show_facts([("features", f"{out}, {counted(feature=len(made.names))}: {some_of(made.names)}")])
