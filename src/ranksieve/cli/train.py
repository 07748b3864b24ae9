"""`ranksieve train`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ranksieve.cli.command import CHECKPOINT, option, takes_options
from ranksieve.cli.console import exit_if_interrupted, show_error, show_facts
from ranksieve.cli.files import check_model_file, free_name, reads_data, save_model, show_biases, with_categories
from ranksieve.cli.options import chosen_params, with_params
from ranksieve.cli.shared_options import FirstStage, Missing, OutModel, ParamsFile, Quiet, TestData
from ranksieve.cli.training_data import CONVENTIONS, TrainingData, joined
from ranksieve.errors import InterruptedTraining, ParameterError
from ranksieve.files import check_folder
from ranksieve.parameter_table import FORESTS, table
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.evaluation.metrics import Metric
    from ranksieve.forest.model import Model
    from ranksieve.params import Params

CHECKPOINTS, CLUSTER = "Checkpoints", "Cluster"  # panels of the help


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Arguments and options of `ranksieve train`, besides the training parameters."""

    data: Annotated[list[Path], typer.Argument(metavar="TRAIN...", help="Training data: one file, or several parts.")]
    out: OutModel
    valid: list[Path] | None = option(None, "Validation data for early stopping: one file, or several parts.")
    test: TestData = None
    first_stage: FirstStage = None
    init: str | None = option(
        None,
        "Model file or feature whose scores training starts from. The new model contains it.",
        metavar="MODEL|FEATURE",
    )
    params: ParamsFile = None
    missing: Missing = "zero"
    checkpoint: Path | None = option(None, "Folder for checkpoints.", metavar="DIR", rich_help_panel=CHECKPOINTS)
    checkpoint_every: int = option(50, "Trees between two checkpoints.", min=1, rich_help_panel=CHECKPOINTS)
    checkpoint_minutes: float = option(
        5.0, "Minutes between two checkpoints, if that is sooner.", min=0, rich_help_panel=CHECKPOINTS
    )
    resume: bool = option(
        False, "Continue from the checkpoint, if there is one.", "--resume", rich_help_panel=CHECKPOINTS
    )
    cluster: str | None = option(
        None, "Train on the Dask cluster with this scheduler address.", metavar="ADDRESS", rich_help_panel=CLUSTER
    )
    local_workers: int = option(
        0, "Train in this many worker processes on this machine.", min=0, metavar="N", rich_help_panel=CLUSTER
    )
    no_copies: bool = option(
        False, "Store no copies of the bins on the workers' disks.", "--no-copies", rich_help_panel=CLUSTER
    )
    quiet: Quiet = False

    @property
    def on_cluster(self) -> bool:
        return self.cluster is not None or self.local_workers > 0

    @property
    def read(self) -> list[Path]:
        """The data files."""
        return [*self.data, *(self.valid or ()), *((self.test,) if self.test else ())]


@reads_data("data", "valid", "test")
@with_params({"": table})
@takes_options
def train(context: typer.Context, given: TrainArguments) -> None:
    """Train a model and report its quality.

    Ctrl-C saves the model of the finished trees. Without --valid and --trees, the number of trees is chosen by
    cross-validation first.
    """
    context.meta[CHECKPOINT] = given.checkpoint
    chosen = chosen_params(context, given.params)
    data, valid, test = (with_categories(files, context) for files in (given.data, given.valid, given.test))
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    given = replace(given, data=data, valid=valid, test=test, missing=missing)
    _check_options(given)
    is_forest = given.init is None and chosen.algo in FORESTS
    check_model_file(given.out, *given.read, given.init, given.params, is_forest=is_forest)
    used = TrainingData(given.data, given.valid or (), given.test, missing=given.missing, first_stage=given.first_stage)
    from ranksieve.cli.compiling import TRAINING, compile_tasks, start_task
    from ranksieve.evaluation.metrics import metric_of

    _check_before_reading(given, chosen)
    metric = metric_of(chosen)
    used.check()
    scoring, compiled = None, (0, 0.0)
    if chosen.algo in FORESTS and chosen.device != "cuda":
        compiled = compile_tasks(TRAINING, quiet=given.quiet)
        scoring = start_task("scoring") if given.test else None
    try:
        model = _run(given, chosen, used)
    except InterruptedTraining as stopped:
        out = free_name(given.out)
        facts = _facts(stopped.model, out, metric, used)
        _keep_interrupted(stopped.model, out, given, chosen, [*facts, *_conventions(stopped.model, metric)])
    interrupted = model.info.get("interrupted")
    out = free_name(given.out) if interrupted else given.out
    save_model(model, out)
    tested = [] if given.test else _conventions(model, metric)  # the test shows the same ones
    show_facts([*_facts(model, out, metric, used, compiled), *tested], len(CONVENTIONS))
    show_biases(model.info)
    if scoring is not None:
        scoring.wait()
    used.show_test(model, metric)
    exit_if_interrupted(interrupted)


def _check_options(given: TrainArguments) -> None:
    """Refuse options that exclude or lack others, and a folder that cannot be made."""
    if given.cluster is not None and given.local_workers:
        raise ParameterError("--cluster and --local-workers are mutually exclusive")
    if given.no_copies and not given.on_cluster:
        raise ParameterError("--no-copies needs --cluster or --local-workers")
    if given.resume and given.checkpoint is None:
        raise ParameterError("--resume needs --checkpoint DIR")
    if given.checkpoint is not None:
        check_folder(given.checkpoint)


def _check_before_reading(given: TrainArguments, params: Params) -> None:
    """Refuse what is not installed, and a cluster without validation data, before any work is done."""
    from ranksieve.rankers.inputs import load_library

    load_library(params.algo)
    if given.on_cluster:
        from ranksieve.cluster.connect import check_dask
        from ranksieve.rankers.early_stopping import check_cluster_has_valid

        check_dask()
        check_cluster_has_valid(params, given.valid)


def _keep_interrupted(
    model: Model, out: Path, given: TrainArguments, params: Params, facts: list[tuple[str, str]]
) -> NoReturn:
    """Save the model of the finished trees, beside a model that exists already, and exit."""
    save_model(model, out)
    show_facts(facts)
    resume = f"; a checkpoint is in {given.checkpoint}, continue with --resume" if given.checkpoint else ""
    step, done = model.info.get("round", "tree"), len(model.info["seconds"])
    wanted = counted(**{step: params.epochs if step == "epoch" else params.trees})
    unpruned = f", and is not pruned to {counted(tree=params.size)}" if params.size else ""
    show_error(f"interrupted after {done:,} of {wanted}; the model is saved in {out}{unpruned}{resume}")
    raise typer.Exit(130)


def _run(given: TrainArguments, params: Params, used: TrainingData) -> Model:
    """Train here or on a cluster."""
    from ranksieve.boosting.checkpoint import CheckpointOptions
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.progress import training_display
    from ranksieve.rankers.train import run

    workers = f"starting {counted(worker=given.local_workers)}, " if given.local_workers else ""
    saved = CheckpointOptions(given.checkpoint, given.checkpoint_every, given.checkpoint_minutes, given.resume)
    doing = f"{workers}reading the data"
    with training_display(params.algo, doing=doing, quiet=given.quiet, flags=True) as progress:
        used.show = progress.line
        job = TrainingJob(given.data, params, given.valid, given.init, (progress, used), given.missing, saved)
        if not given.on_cluster:
            return run(replace(job, data=joined(job.data, job.missing), valid=joined(job.valid, job.missing)))
        from ranksieve.cluster.connect import connect
        from ranksieve.cluster.training import Cluster

        with connect(given.cluster, given.local_workers, params.threads) as client:
            return run(replace(job, cluster=Cluster(client, copies=not given.no_copies)))


def _facts(
    model: Model, out: Path, metric: Metric, used: TrainingData, compiled: tuple[int, float] = (0, 0.0)
) -> list[tuple[str, str]]:
    """What was trained; `compiled` are the number of kernels compiled before, and the seconds this took."""
    from ranksieve.forest.summary import cross_validated

    info = model.info
    seconds = info.get("seconds") or []
    step = info.get("round", "tree")
    facts = [("model", f"{out}, {model.size}")]
    if seconds:
        kernels = f"; {duration(compiled[1])} more to compile kernels, on first use only" if compiled[0] else ""
        median = f"median {statistics.median(seconds):.3g} s per {step}"
        facts.append(("time", f"{duration(sum(seconds))}, {median}{kernels}"))
    if info.get("best_score") is not None:
        if info.get("best_iteration") and info["params"].get("early_stopping"):
            facts.append((f"best {step}", str(info["best_iteration"])))
        facts.append(("validation", f"{metric} {info['best_score']:.4f}{used.leakage('validation')}"))
    if (chosen := cross_validated(info)) is not None:
        facts.append(("validation", f"cross-validated {chosen}"))
    return facts


def _conventions(model: Model, metric: Metric) -> list[tuple[str, str]]:
    """Those of the metric that decided when to stop, where there is one."""
    is_measured = model.info.get("best_score") is not None or "cross_validation" in model.info
    return [(CONVENTIONS, metric.describe())] if is_measured else []
