"""`ranksieve cv`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import check_writable, exit_if_interrupted, show_facts, show_line, show_table
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.evaluate import write_per_query
from ranksieve.cli.model_file import check_model_file, save_model
from ranksieve.cli.options import chosen_params, with_params
from ranksieve.cli.shared_options import Missing, Quiet, out_option
from ranksieve.files import check_folder
from ranksieve.parameter_table import FORESTS, table

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset


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
    params: Annotated[
        Path | None,
        typer.Option(help="TOML file of training parameters, such as 'learning-rate = 0.05'. Options take precedence."),
    ] = None,
    missing: Missing = "zero",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Cross-validate by query: train a model per fold and measure it on the queries it has not seen.

    A fold's model is trained on all folds but two: one validates, for early stopping, and one tests. The folds are
    those of 'ranksieve split --folds' with the same --seed.
    """
    chosen = chosen_params(context, params)
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    if per_query is not None:
        check_writable(per_query, data, params)
    is_forest = chosen.algo in FORESTS
    files = [] if out is None else [out / f"fold{n}.{'txt' if is_forest else 'json'}" for n in range(1, folds + 1)]
    if out is not None:
        check_folder(out)
        out.mkdir(parents=True, exist_ok=True)
        for file in files:
            check_model_file(file, data, params, is_forest=is_forest)
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.cli.compiling import TRAINING, compile_tasks
    from ranksieve.data.read import read
    from ranksieve.evaluation.evaluate import wanted_metrics
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.progress import PruningProgress, TrainingProgress
    from ranksieve.rankers.cross_validation import cross_validate, fold_progress
    from ranksieve.rankers.fold_processes import FoldTraining, fold_jobs
    from ranksieve.rankers.train import check_extra, run

    check_extra(chosen.algo)
    wanted = wanted_metrics(measure) if measure else (metric_of(chosen),)
    documents = read(data, missing=missing)
    if is_forest and chosen.device != "cuda":
        compile_tasks(TRAINING, quiet=quiet)
    display = PruningProgress if chosen.algo == "xcleaver" else TrainingProgress

    def save(fold: int, model: Any) -> None:
        if files:
            save_model(model, files[fold - 1])

    def fit(fold: int, train_set: Dataset, valid_set: Dataset) -> Any:
        with display(f"fold {fold} of {folds}", doing="binning the data", quiet=quiet) as progress:
            model = run(TrainingJob(train_set, chosen, valid_set, None, (progress,), missing))
        save(fold, model)
        exit_if_interrupted(model.info.get("interrupted"))
        return model

    jobs = fold_jobs(jobs, folds, documents, chosen)
    if jobs == 1:
        result = cross_validate(documents, folds, fit, wanted, seed=chosen.seed)
    else:
        with fold_progress(folds, jobs, quiet=quiet) as show_fold:

            def finish(fold: int, model: Any) -> None:
                save(fold, model)
                show_fold(fold, model)

            training = FoldTraining.of(chosen, missing, jobs)
            result = cross_validate(
                documents, folds, training, wanted, seed=chosen.seed, jobs=jobs, on_fold=finish
            )  # fmt: skip
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
