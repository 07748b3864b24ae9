"""`ranksieve feature-log`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.corpus_options import show_notes
from ranksieve.cli.shared_options import OutData
from ranksieve.text_formats import counted


def feature_log(
    log: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Responses of the engine as JSON, each with a qid.")
    ],
    out: OutData,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements, which become the labels. Without them, all labels are 0.")
    ] = None,
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
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet
    from ranksieve.retrieval.feature_logs import read_feature_log
    from ranksieve.retrieval.notes import Notes

    notes = Notes()
    data = read_feature_log(log, qrels, id=id, field=log_field, missing=missing, notes=notes)
    (write_parquet if out.suffix == ".parquet" else write_letor)(data, out)
    show_notes(notes)
    shape = counted(query=data.n_queries, document=data.n_docs, feature=data.n_features)
    show_facts([("data", f"{out}, {shape}"), ("positives", f"{(data.labels > 0).sum():,}")])
