"""`ranksieve predict`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import MissingAsTrained, ModelArgument, Threads, out_option
from ranksieve.text_formats import counted

STANDARD_OUTPUT = ("-", "/dev/stdout")


@reads_data("data")
def predict(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Documents to score. CSV and Parquet files need no labels.")
    ],
    out: Annotated[Path, out_option("File to write: one score per line, in the order of DATA; -: standard output.")],
    threads: Threads = 0,
    missing: MissingAsTrained = None,
    device: Annotated[str, typer.Option(help="Where to score: cpu, cuda, or auto, a GPU if there is one.")] = "cpu",
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
        ProgressDisplay("scoring", kernels="scoring") as display,
        atomic_text(out) if to_file else contextlib.nullcontext(sys.stdout) as file,
    ):
        for _, scores in score_blocks(models, source, threads or None, device):
            values = scores[str(model)].tolist()
            file.writelines(f"{value!r}\n" for value in values)
            n_docs += len(values)
            display.update(source.fraction_read, 1.0)
    if to_file:
        show_facts([("scores", f"{out}, {counted(document=n_docs)}")])
