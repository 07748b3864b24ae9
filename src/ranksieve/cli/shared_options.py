"""Options and arguments that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.errors import ParameterError


def out_option(help: str, *, metavar: str = "FILE", **settings: Any) -> Any:
    """`--out`: what the command writes."""
    return typer.Option("--out", "-o", metavar=metavar, help=help, **settings)


def metric_option(help: str, **settings: Any) -> Any:
    """`--metric`."""
    return typer.Option("--metric", "-m", metavar="METRIC", help=help, **settings)


def missing_option(help: str = "Value of a feature that is absent from a LETOR line.", **settings: Any) -> Any:
    """`--missing`."""
    return typer.Option(metavar="zero|nan", help=help, **settings)


def ids_option(help: str = "Field with the documents' ids.") -> Any:
    """`--id`."""
    return typer.Option(metavar="FIELD", help=help, show_default="id, _id, docno, doc_id or docid")


def n_features_option(default: str) -> Any:
    """`--n-features`."""
    return typer.Option(
        min=1, help="Number of features. RankLib and QuickRank models do not store it.", show_default=default
    )


def read_weights(text: str) -> list[float]:
    """What `--weights` gives."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--weights is {text!r}; expected numbers separated by commas, such as 0.7,0.3") from None


DataArgument = Annotated[Path, typer.Argument(metavar="DATA", help="Documents with labels.")]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
TestData = Annotated[Path | None, typer.Option(help="Test data. The metric on it is reported at the end.")]
OutModel = Annotated[Path, out_option("Model file to write. A file that exists is replaced.")]
OutRun = Annotated[Path, out_option("TREC run to write.")]
OutData = Annotated[
    Path,
    out_option("Data file to write: Parquet if its name ends in .parquet, LETOR text if in .txt or .letor (.gz, …)."),
]
Metric = Annotated[str, metric_option("Metric to maximize.")]
FirstStage = Annotated[
    str | None, typer.Option(help="Feature with the first stage's score, such as bm25.", metavar="FEATURE")
]
Missing = Annotated[str, missing_option()]
MissingAsTrained = Annotated[str | None, missing_option(show_default="as in training")]
Threads = Annotated[int, typer.Option(min=0, help="Number of threads; 0: all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
ParamsFile = Annotated[
    Path | None,
    typer.Option(help="TOML file of training parameters, such as 'learning-rate = 0.05'. Options take precedence."),
]
