"""`ranksieve train`."""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ranksieve.cli.command import CHECKPOINT
from ranksieve.cli.console import exit_if_interrupted, show_error, show_facts
from ranksieve.cli.files import check_model_file, free_name, reads_data, save_model, show_biases, with_categories
from ranksieve.cli.options import chosen_params, is_flag, with_params
from ranksieve.cli.shared_options import Missing, OutModel, ParamsFile, Quiet
from ranksieve.errors import InterruptedTraining, ParameterError, RanksieveWarning
from ranksieve.files import check_folder
from ranksieve.parameter_table import FORESTS, table
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.data.joined import JoinedSource
    from ranksieve.evaluation.metrics import Metric
    from ranksieve.forest.model import Model
    from ranksieve.params import Params


@reads_data("data", "valid", "test")
@with_params({"Training parameters": table})
def train(
    context: typer.Context,
    data: Annotated[list[Path], typer.Argument(metavar="TRAIN...", help="Training data: one file, or several parts.")],
    out: OutModel,
    valid: Annotated[
        list[Path] | None, typer.Option(help="Validation data for early stopping, or a part of it.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Test data. The metric on it is reported at the end.")] = None,
    init: Annotated[
        str | None,
        typer.Option(metavar="MODEL|FEATURE", help="Model file or feature to start from. The new model contains it."),
    ] = None,
    params: ParamsFile = None,
    missing: Missing = "zero",
    checkpoint: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for checkpoints.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Trees between two checkpoints.")] = 50,
    checkpoint_minutes: Annotated[
        float, typer.Option(min=0, help="Minutes between two checkpoints, if that is sooner.")
    ] = 5.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Train on the Dask cluster with this scheduler address.")
    ] = None,
    local_workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Train in this many worker processes on this machine.")
    ] = 0,
    no_copies: Annotated[
        bool, typer.Option("--no-copies", help="On a cluster: store no copies of the bins on the workers' disks.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model and report its quality.

    Ctrl-C saves the model of the finished trees.
    """
    context.meta[CHECKPOINT] = checkpoint
    chosen = chosen_params(context, params)
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    _warn_of_training_data(data, {"validation": valid or (), "test": (test,) if test else ()})
    data, valid, test = (with_categories(files, context.params["categorical"]) for files in (data, valid, test))
    _check_options(context.params, explicit_stopping=is_flag(context, "early_stopping") and chosen.early_stopping > 0)
    read = (*data, *(valid or ()), test, init, params)
    check_model_file(out, *read, is_forest=init is None and chosen.algo in FORESTS)
    from ranksieve.boosting.checkpoint import CheckpointOptions
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.cli.compiling import TRAINING, compile_tasks, start_task
    from ranksieve.data.read import open_data
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.progress import training_display

    _check_extras(chosen.algo, on_cluster=cluster is not None or local_workers > 0)
    metric = metric_of(chosen)
    for path in (*data, *(valid or ()), *((test,) if test else ())):
        open_data(path, missing=missing)  # a wrong path is refused before training
    scoring = None
    if chosen.algo in FORESTS and chosen.device != "cuda":
        compile_tasks(TRAINING, quiet=quiet)
        scoring = start_task("scoring") if test else None
    doing = f"starting {counted(worker=local_workers)}, reading the data" if local_workers else "reading the data"
    saved = CheckpointOptions(checkpoint, checkpoint_every, checkpoint_minutes, resume)
    try:
        with training_display(chosen.algo, doing=doing, quiet=quiet) as progress:
            job = TrainingJob(data, chosen, valid, init, (progress,), missing, saved)
            model = _run(job, cluster, local_workers, copies=not no_copies)
    except InterruptedTraining as stopped:
        _keep_interrupted(stopped.model, out, checkpoint, chosen, metric)
    if model.info.get("interrupted"):
        out = free_name(out)
    save_model(model, out)
    show_facts(_facts(model, out, metric))
    show_biases(model.info)
    if test is not None:
        if scoring is not None:
            scoring.wait()
        _show_test(model, test, metric)
    exit_if_interrupted(model.info.get("interrupted"))


def _warn_of_training_data(data: Sequence[Path], others: Mapping[str, Sequence[Path]]) -> None:
    """Warn if other data is the training data, too."""
    trained_on = {os.path.realpath(path) for path in data}
    for kind, paths in others.items():
        for path in paths:
            if os.path.realpath(path) in trained_on:
                text = f"{path} is training and {kind} data; the metric on it says nothing about new queries"
                warnings.warn(RanksieveWarning(text), stacklevel=2)


def _check_options(given: Mapping[str, Any], *, explicit_stopping: bool) -> None:
    """Refuse options that exclude or lack others, and a folder that cannot be made."""
    on_cluster = given["cluster"] is not None or given["local_workers"]
    if given["cluster"] is not None and given["local_workers"]:
        raise ParameterError("--cluster and --local-workers are mutually exclusive")
    if given["no_copies"] and not on_cluster:
        raise ParameterError("--no-copies needs --cluster or --local-workers")
    if explicit_stopping and not given["valid"]:
        raise ParameterError("--early-stopping needs validation data; add --valid FILE")
    if given["resume"] and given["checkpoint"] is None:
        raise ParameterError("--resume needs --checkpoint DIR")
    if given["checkpoint"] is not None:
        check_folder(Path(given["checkpoint"]))


def _check_extras(algo: str, *, on_cluster: bool) -> None:
    """Refuse what is not installed before any work is done."""
    from ranksieve.rankers.train import check_extra

    check_extra(algo)
    if on_cluster:
        from ranksieve.cluster.connect import check_dask

        check_dask()


def _keep_interrupted(model: Model, out: Path, checkpoint: Path | None, params: Params, metric: Metric) -> NoReturn:
    """Save the model of the finished trees, beside a model that exists already, and exit."""
    kept = free_name(out)
    save_model(model, kept)
    show_facts(_facts(model, kept, metric))
    resume = "" if checkpoint is None else f"; a checkpoint is in {checkpoint}, continue with --resume"
    step, done = model.info.get("round", "tree"), len(model.info["seconds"])
    wanted = counted(**{step: params.epochs if step == "epoch" else params.trees})
    show_error(f"interrupted after {done:,} of {wanted}; the model is saved in {kept}{resume}")
    raise typer.Exit(130)


def _run(job: TrainingJob, address: str | None, local_workers: int, *, copies: bool) -> Model:
    """Train here or on a cluster; the data sets of the job are lists of files."""
    from ranksieve.rankers.train import run

    if address is None and not local_workers:
        return run(replace(job, data=_joined(job.data, job.missing), valid=_joined(job.valid, job.missing)))
    from ranksieve.cluster.connect import connect
    from ranksieve.cluster.training import Cluster

    with connect(address, local_workers, job.params.threads) as client:
        return run(replace(job, cluster=Cluster(client, copies=copies)))


def _joined(paths: list[Path] | None, missing: str) -> Path | JoinedSource | None:
    """The parts of a data set as one."""
    from ranksieve.data.joined import JoinedSource, Piece

    if not paths:
        return None
    return paths[0] if len(paths) == 1 else JoinedSource([Piece(path) for path in paths], missing=missing)


def _facts(model: Model, out: Path, metric: Metric) -> list[tuple[str, str]]:
    info = model.info
    seconds = info.get("seconds") or []
    step = info.get("round", "tree")
    facts = [("model", f"{out}, {model.size}")]
    if seconds:
        facts.append(("time", f"{duration(sum(seconds))}, median {statistics.median(seconds):.3g} s per {step}"))
    if info.get("best_score") is not None:
        if info.get("best_iteration"):
            facts.append((f"best {step}", str(info["best_iteration"])))
        facts.append(("validation", f"{metric} {info['best_score']:.4f}"))
        facts.append(("conventions", metric.describe()))
    return facts


def _show_test(model: Model, path: Path, metric: Metric) -> None:
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.forest.score_file import open_for, score_file

    models = {"the model": model}
    scored = score_file(models, open_for(path, models, None))
    result = evaluate(scored.scores, scored.lists, metric)
    show_facts([("test", f"{metric} {result.mean():.4f}"), ("conventions", result.conventions[0])])
