"""`ranksieve feature-log` and `feature-set`: features of Elasticsearch, OpenSearch and Solr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts, show_remark
from ranksieve.cli.corpus_options import IndexArgument, Qrels
from ranksieve.cli.files import write_data
from ranksieve.cli.shared_options import OutData, out_option
from ranksieve.text_formats import counted, some_of


def feature_log(
    log: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Responses of the engine as JSON, each with a qid.")
    ],
    out: OutData,
    qrels: Qrels = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="Solr: field with the documents' ids.",
            show_default="id, _id, docno, doc_id or docid",
        ),
    ] = None,
    log_field: Annotated[
        str, typer.Option(metavar="NAME", help="Solr: field with the features, as in fl=NAME:[features].")
    ] = "[features]",
    missing: Annotated[
        str,
        typer.Option(
            metavar="zero|nan", help="Value of a feature that was not logged; zero for Solr's format=sparse."
        ),
    ] = "nan",
) -> None:  # fmt: skip
    """Make training data of the features that Elasticsearch, OpenSearch or Solr has logged.

    Elasticsearch and OpenSearch log with ext.ltr_log (fields._ltrlog), Solr with fl=[features].
    """
    check_writable(out, *log, qrels)
    from ranksieve.retrieval.feature_logs import read_feature_log

    data = read_feature_log(log, qrels, id=id, field=log_field, missing=missing)
    write_data(data, out)
    shape = counted(query=data.n_queries, document=data.n_docs, feature=data.n_features)
    show_facts([("data", f"{out}, {shape}"), ("positives", f"{(data.labels > 0).sum():,}")])


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
        show_remark(f"note: features without a counterpart: {len(made.left_out):,} ({some_of(made.left_out, 3)})")
    show_facts([("features", f"{out}, {counted(feature=len(made.names))}: {some_of(made.names)}")])
