"""`ranksieve cv`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.console import check_writable, exit_if_interrupted, show_facts, show_line, show_table
from ranksieve.cli.data_files import reads_data, with_categories
from ranksieve.cli.evaluate import write_per_query
from ranksieve.cli.model_file import check_model_file, save_model
from ranksieve.cli.options import chosen_params, with_params
from ranksieve.cli.shared_options import Missing, ParamsFile, Quiet, out_option
from ranksieve.files import check_folder
from ranksieve.parameter_table import FORESTS, table


@reads_data("data")
@with_params({"Training parameters": table})
def cv(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with labels.")],
    folds: Annotated[int, typer.Option(min=3, help="Number of folds.")] = 5,
    measure: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Metric to report.", show_default="that of --metric"),
    ] = None,
    out: Annotated[
        Path | None, out_option("Folder for the models, fold1.txt, fold2.txt, …; none are kept without.", metavar="DIR")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=0, help="Folds to train at the same time, in processes that share --threads and --memory; 0: as many "
            "as cores and free memory allow.",
        ),
    ] = 0,
    per_query: Annotated[Path | None, typer.Option(help="TSV file to write: the value of every query.")] = None,
    params: ParamsFile = None,
    missing: Missing = "zero",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Cross-validate by query: train a model per fold and measure it on the queries it has not seen.

    A fold's model is trained on all folds but two: one validates, for early stopping, and one tests. The folds are
    those of 'ranksieve split --folds' with the same --seed.
    """
    chosen = chosen_params(context, params)
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    data = with_categories(data, context.params["categorical"])
    if per_query is not None:
        check_writable(per_query, data, params)
    files = _model_files(out, folds, chosen.algo in FORESTS, data, params)
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.cli.compiling import TRAINING, compile_tasks
    from ranksieve.data.read import read
    from ranksieve.evaluation.evaluate import wanted_metrics
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.rankers.cross_validation import cross_validate
    from ranksieve.rankers.train import check_extra

    check_extra(chosen.algo)
    wanted = wanted_metrics(measure) if measure else (metric_of(chosen),)
    job = TrainingJob(read(data, missing=missing), chosen, missing=missing)
    if chosen.algo in FORESTS and chosen.device != "cuda":
        compile_tasks(TRAINING, quiet=quiet)

    def save(fold: int, model: Any) -> None:
        if files:
            save_model(model, files[fold - 1])
        exit_if_interrupted(model.info.get("interrupted"))

    result = cross_validate(job, folds, wanted, jobs=jobs, display={"quiet": quiet}, on_fold=save)
    header, *rows = result.cells()
    show_table(header, rows)
    for line in result.conventions:
        show_line(line)
    facts = [("models", f"{files[0]} … {files[-1].name}")] if files else []
    if per_query is not None:
        write_per_query(result.evaluation, per_query)
        facts.append(("per query", str(per_query)))
    if facts:
        show_facts(facts)


def _model_files(out: Path | None, folds: int, is_forest: bool, *read: Path | None) -> list[Path]:
    """The files of the models, in a folder that is made here; none without a folder."""
    if out is None:
        return []
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"fold{n}.{'txt' if is_forest else 'json'}" for n in range(1, folds + 1)]
    for file in files:
        check_model_file(file, *read, is_forest=is_forest)
    return files
