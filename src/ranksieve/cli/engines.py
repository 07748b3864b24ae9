"""`ranksieve feature-log` and `feature-set`: features of Elasticsearch, OpenSearch and Solr."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_remark
from ranksieve.cli.corpus_options import IndexArgument, Qrels
from ranksieve.cli.files import check_data_file, write_data
from ranksieve.cli.shared_options import OutData, ids_option, missing_option, out_option
from ranksieve.text_formats import counted, some_of


@dataclass(frozen=True, kw_only=True)
class FeatureLogArguments:
    log: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Responses of the engine as JSON, each with a qid.")
    ]
    out: OutData
    qrels: Qrels = None
    id: Annotated[str | None, ids_option("Solr: field with the documents' ids.")] = None
    log_field: str = option("[features]", "Solr: field with the features, as in fl=NAME:[features].", metavar="NAME")
    missing: Annotated[
        str, missing_option("Value of a feature that was not logged; zero for Solr's format=sparse.")
    ] = "nan"


@takes_options
def feature_log(given: FeatureLogArguments) -> None:
    """Make training data from the features that Elasticsearch, OpenSearch or Solr has logged.

    Elasticsearch and OpenSearch log with ext.ltr_log (fields._ltrlog), Solr with fl=[features].
    """
    check_data_file(given.out, *given.log, given.qrels)
    from ranksieve.retrieval.feature_logs import read_feature_log

    data = read_feature_log(given.log, given.qrels, id=given.id, field=given.log_field, missing=given.missing)
    write_data(data, given.out)
    shape = counted(query=data.n_queries, document=data.n_docs, feature=data.n_features)
    show_facts([("data", f"{given.out}, {shape}"), ("positives", f"{(data.labels > 0).sum():,}")])


@dataclass(frozen=True, kw_only=True)
class FeatureSetArguments:
    index: IndexArgument
    out: Annotated[Path, out_option("JSON file to write.")]
    engine: str = option("elasticsearch", "Search engine.", metavar="elasticsearch|opensearch|solr")
    select: list[str] | None = option(
        None, "Features to define: names or patterns, separated by commas.", "--select", "-s", metavar="PATTERNS",
        show_default="all that the engine has",
    )  # fmt: skip
    text: str | None = option(
        None,
        "Name of the request's parameter that holds the query's text.",
        metavar="NAME",
        show_default="keywords; for Solr text",
    )
    store: str | None = option(None, "Solr: the feature store.", metavar="NAME")
    missing: Annotated[
        str, missing_option("Value of number.NAME for a document without the number; nan: no value.")
    ] = "nan"


@takes_options
def feature_set(given: FeatureSetArguments) -> None:
    """Define features of an index in Elasticsearch, OpenSearch or Solr, under the same names.

    Engines can compute bm25.FIELD and number.NAME, and Solr also length.FIELD and first.score. Train on the feature log
    of the engine, which computes the values.
    """
    check_writable(given.out)
    from ranksieve.files import atomic_text
    from ranksieve.retrieval.feature_names import choose, layout_of
    from ranksieve.retrieval.feature_sets import feature_set as define
    from ranksieve.retrieval.index import Index

    with Index(given.index) as opened:
        names = choose(layout_of(opened).names, ",".join(given.select or [])).names
    made = define(names, given.engine, text=given.text, store=given.store, missing=given.missing)
    with atomic_text(given.out) as file:
        json.dump(made.definition, file, indent=1, ensure_ascii=False)
        file.write("\n")
    if made.left_out:
        show_remark(f"note: features without a counterpart: {len(made.left_out):,} ({some_of(made.left_out, 3)})")
    show_facts([("features", f"{given.out}, {counted(feature=len(made.names))}: {some_of(made.names)}")])
