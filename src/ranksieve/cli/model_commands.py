"""`ranksieve predict`, `ranksieve convert` and `ranksieve bench`: commands on one model file."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_line, show_table, show_waiting
from ranksieve.cli.files import reads_data
from ranksieve.cli.shared_options import (
    MissingAsTrained,
    ModelArgument,
    OutModel,
    Quiet,
    Threads,
    n_features_option,
    out_option,
)
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted, file_size

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset

STANDARD_OUTPUT = ("-", "/dev/stdout")
LIBRARIES = "LightGBM, XGBoost (JSON, UBJSON), RankLib, QuickRank or CatBoost (JSON)"
FORMATS = "lightgbm, xgboost, elasticsearch (and OpenSearch), ranklib, quickrank, solr, vespa, onnx or c"


@reads_data("data")
def predict(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Documents to score. CSV and Parquet files need no labels.")
    ],
    out: Annotated[Path, out_option("File to write: one score per line, in the order of DATA; -: standard output.")],
    threads: Threads = 0,
    missing: MissingAsTrained = None,
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda|auto", help="Where to score. auto: a GPU if there is one.")
    ] = "cpu",
    quiet: Quiet = False,
) -> None:
    """Score documents with a model."""
    to_file = str(out) not in STANDARD_OUTPUT
    if to_file:
        check_writable(out, model, data)
    from ranksieve.errors import ModelError, param
    from ranksieve.files import atomic_text
    from ranksieve.forest.forest import Forest
    from ranksieve.forest.score_file import open_for, score_blocks
    from ranksieve.models.load import load
    from ranksieve.progress import ProgressDisplay

    models = {str(model): load(model)}
    if not isinstance(models[str(model)], Forest):
        if device == "cuda":
            raise ModelError(f"{model}: only forests are scored on a GPU; use ", param("device", "cpu"))
        device = "cpu"
    source = open_for(data, models, missing, needed=())
    n_docs = 0
    with (
        ProgressDisplay("scoring", kernels="scoring", quiet=quiet) as display,
        atomic_text(out) if to_file else contextlib.nullcontext(sys.stdout) as file,
    ):
        for _, scores in score_blocks(models, source, threads or None, device):
            values = scores[str(model)].tolist()
            file.writelines(f"{value!r}\n" for value in values)
            n_docs += len(values)
            display.update(source.fraction_read, 1.0)
    if to_file:
        show_facts([("scores", f"{out}, {counted(document=n_docs)}")])


@dataclass(frozen=True, kw_only=True)
class ConvertArguments:
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=f"Model file of {LIBRARIES}.")]
    out: OutModel
    format: str | None = option(
        None, f"Format to write: {FORMATS}.", metavar="FORMAT",
        show_default="from the extension of --out: .onnx, .c, .xml (quickrank)",
    )  # fmt: skip
    missing: str = option(
        "nan",
        "How the converted model treats missing values. nan: each split has a default direction, which RankLib and "
        "QuickRank cannot express; zero: as 0; never: no value is missing.", metavar="nan|zero|never",
    )  # fmt: skip
    nearest: bool = option(
        False, "Solr only: replace a threshold that Solr cannot represent by the nearest one below.", "--nearest"
    )
    n_features: Annotated[int | None, n_features_option("the largest that a tree uses")] = None


@takes_options
def convert(given: ConvertArguments) -> None:
    """Convert a model file to another format.

    For float32 features, both models take the same leaf of every tree, also at thresholds and for missing values. A
    model that the format cannot express is refused. For Vespa, the rank profile is printed.
    """
    model, out = given.model, given.out
    check_writable(out, model)
    from ranksieve.forest.formats.model_files import ENDINGS, load_forest, save

    meant = ENDINGS.get(out.suffix.lower(), ()) if given.format is None else (given.format,)
    if len(meant) != 1:
        raise ParameterError(f"{out}: the format is not clear from the name; give --format, one of {FORMATS}")
    (format,) = meant
    forest = load_forest(model, n_features=given.n_features)
    save(forest, out, format=format, missing=given.missing, nearest=given.nearest)
    if format == "vespa":
        from ranksieve.forest.formats.vespa import rank_profile

        show_line(rank_profile(forest, out.name))
    size = counted(leaf=int(forest.n_leaves.max(initial=0)), feature=forest.n_features)
    show_facts(
        [
            ("read", f"{model}, {counted(tree=forest.n_trees)} of up to {size}"),
            ("written", f"{out}, {format}, {file_size(out.stat().st_size)}"),
        ]
    )


@reads_data("data")
def bench(
    model: ModelArgument,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Documents to score. Without it, random documents are scored.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Measure the scoring time of a model, in ranksieve and in every other scorer that is installed."""
    from ranksieve.forest.bench import PEERS, absent
    from ranksieve.forest.bench import bench as measure
    from ranksieve.forest.formats.model_files import load_forest
    from ranksieve.forest.score_file import open_for, read_for

    forest = load_forest(model)
    show_waiting("scoring", "timing the scorers")
    documents = None if data is None else read_for(forest, str(model), open_for(data, {str(model): forest}, None))
    rows = measure(forest, documents, threads=threads or None)
    show_table(
        ["scorer", "µs per document", "× ranksieve", "largest difference", "agrees"],
        [
            [row["name"], f"{row['us_per_doc']:.3f}", f"{row['ratio']:.2f}", f"{row['max_difference']:.1e}",
             "yes" if row["agrees"] else "no"]
            for row in rows if "failed" not in row
        ],
    )  # fmt: skip
    notes = [f"{row['name']} failed: {row['failed']}" for row in rows if "failed" in row]
    missing = {name: absent(name) for name in PEERS if name not in {row["name"] for row in rows}}
    if missing:
        names = (name if name in lacks else f"{name} (lacks {', '.join(lacks)})" for name, lacks in missing.items())
        notes.append(f"not installed: {', '.join(names)}")
    for line in (_documents(documents), *notes):
        show_line(line)


def _documents(documents: Dataset | None) -> str:
    """A line about the documents that were scored."""
    from ranksieve.forest.bench import MOST_DOCUMENTS, RANDOM_DOCUMENTS

    if documents is None:
        return f"scored: {RANDOM_DOCUMENTS:,} random documents, with values around the model's thresholds"
    if documents.n_docs > MOST_DOCUMENTS:
        return f"scored: the first {MOST_DOCUMENTS:,} of {counted(document=documents.n_docs)}"
    return f"scored: {counted(document=documents.n_docs)}"
