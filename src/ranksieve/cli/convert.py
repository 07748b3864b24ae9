"""`ranksieve convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts, show_line
from ranksieve.cli.shared_options import OutModel, n_features_option
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted, file_size

FORMATS = "lightgbm, xgboost, elasticsearch (and OpenSearch), ranklib, quickrank, solr, vespa, onnx or c"


def convert(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model file of LightGBM, XGBoost (JSON, UBJSON), RankLib, QuickRank or CatBoost (JSON).",
        ),
    ],
    out: OutModel,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help=f"Format to write: {FORMATS}.",
            show_default="from the extension of --out: .onnx, .c, .xml (quickrank)",
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            metavar="nan|zero|never",
            help="Missing values in the documents that the converted model will score. nan: each split decides, which "
            "RankLib and QuickRank cannot express; zero: they count as 0; never: there are none.",
        ),
    ] = "nan",
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest", help="Solr only: replace a threshold that Solr cannot represent by the nearest one below."
        ),
    ] = False,
    n_features: Annotated[int | None, n_features_option("the largest that a tree uses")] = None,
) -> None:
    """Convert a model file to another format.

    For float32 documents the converted model takes the same leaf in every tree, ties and missing values included. A
    model that the format cannot express is refused, never approximated. For Vespa the rank profile is printed, too.
    """
    check_writable(out, model)
    from ranksieve.forest.formats.model_files import ENDINGS, load_forest, save

    meant = ENDINGS.get(out.suffix.lower(), ()) if format is None else (format,)
    if len(meant) != 1:
        raise ParameterError(f"{out}: the format is not clear from the name; give --format, one of {FORMATS}")
    (format,) = meant

    forest = load_forest(model, n_features=n_features)
    save(forest, out, format=format, missing=missing, nearest=nearest)
    if format == "vespa":
        from ranksieve.forest.formats.vespa import rank_profile

        show_line(rank_profile(forest, out.name))
    largest = int(forest.n_leaves.max(initial=0))
    show_facts(
        [
            (
                "read",
                f"{model}, {counted(tree=forest.n_trees)} of up to {counted(leaf=largest, feature=forest.n_features)}",
            ),
            ("written", f"{out}, {format}, {file_size(out.stat().st_size)}"),
        ]
    )
