"""`ranksieve tune`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ranksieve.cli.command import is_flag, option, takes_options
from ranksieve.cli.console import show_error, show_facts, show_table
from ranksieve.cli.files import check_model_file, free_name, reads_data, save_model, with_categories
from ranksieve.cli.options import chosen_params, given_flags, option_words, read_toml, with_params
from ranksieve.cli.shared_options import FirstStage, Missing, OutModel, Quiet, TestData
from ranksieve.cli.training_data import CONVENTIONS, TrainingData
from ranksieve.errors import InterruptedTuning
from ranksieve.parameter_table import FORESTS, canonical, flag, table
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.params import Params
    from ranksieve.rankers.tune import Tuned, TuningRecord

SEARCH_OPTIONS = {"minutes", "trials", "average", "journal"}  # options that `ranksieve train` does not have


@dataclass(frozen=True, kw_only=True)
class TuneArguments:
    """Arguments and options of `ranksieve tune`, besides the parameters of training."""

    data: Annotated[Path, typer.Argument(metavar="TRAIN", help="Training data.")]
    out: OutModel
    valid: Annotated[Path, typer.Option(help="Validation data. Parameters are chosen by the metric on it.")]
    test: TestData = None
    first_stage: FirstStage = None
    minutes: float = option(10.0, "Time of the search.", min=0.01)
    trials: int = option(1000, "Largest number of trials.", min=1)
    average: int = option(5, "Average the models of this many of the best trials; 1: the best trial alone.", min=1)
    journal: Path | None = option(
        None,
        "File that stores the trials. A later search continues from it.",
        metavar="FILE",
        show_default="OUT.trials",
    )
    params: Path | None = option(None, "TOML file of parameters that all trials have. Options take precedence.")
    missing: Missing = "zero"
    quiet: Quiet = False


@reads_data("data", "valid", "test")
@with_params({"": table})
@takes_options
def tune(context: typer.Context, given: TuneArguments) -> None:
    """Search for the training parameters that are best on validation data, and save the mean of the best models.

    Parameters that you give are the same in all trials. Ctrl-C saves the mean of the best finished trials' models; the
    same command continues the search. Needs Optuna: the extra "tune".
    """
    chosen = chosen_params(context, given.params)
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    files = (given.data, given.valid, given.test)
    data, valid, test = (with_categories(file, context) for file in files)
    out = given.out
    journal = given.journal or out.with_name(f"{out.name}.trials")
    check_model_file(out, data, valid, test, given.params, is_forest=chosen.algo in FORESTS)
    used = TrainingData([data], [valid], test, missing=missing, first_stage=given.first_stage)
    from ranksieve.cli.compiling import TRAINING, compile_tasks
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.progress import ProgressDisplay
    from ranksieve.rankers.trials import load_optuna
    from ranksieve.rankers.tune import tune

    load_optuna()
    used.check()
    shared = {**(read_toml(given.params)[0] if given.params else {}), **given_flags(context)}
    if chosen.algo in FORESTS:
        compile_tasks(TRAINING, quiet=given.quiet)
    progress = ProgressDisplay("tuning", quiet=given.quiet)
    used.show = progress.line

    def show(record: TuningRecord) -> None:
        best = "" if record.best is None else f"best {chosen.metric} {record.best:.4f}"
        done = counted(trial=record.trials)
        progress.update(
            min(1.0, record.seconds / (60.0 * given.minutes)), 1.0, details=[done, *([best] if best else [])]
        )

    options: dict[str, Any] = {"journal": journal, "missing": missing}
    options |= {name: getattr(given, name) for name in ("minutes", "trials", "average")}
    try:
        with progress:
            found = tune(data, valid=valid, callbacks=(show, used), **options, **shared)
    except KeyboardInterrupt as stopped:
        _keep_interrupted(stopped, out, journal, used)
    save_model(found.model, out)
    _show(found)
    commands = map(shlex.join, _commands(context, chosen, found))
    repeat = [("" if number else "repeat", command) for number, command in enumerate(commands)]
    show_facts([*_facts(found, out, journal, used), *repeat], len(CONVENTIONS))
    used.show_test(found.model, metric_of(chosen))


def _keep_interrupted(stopped: KeyboardInterrupt, out: Path, journal: Path, used: TrainingData) -> NoReturn:
    """Save the model of the finished trials, beside a model that exists already, and exit."""
    if not journal.exists():
        raise stopped
    kept = ""
    if isinstance(stopped, InterruptedTuning):
        path = free_name(out)
        save_model(stopped.found.model, path)
        show_facts(_facts(stopped.found, path, journal, used))
        kept = f"the model of the finished trials is saved in {path}; "
    show_error(f"interrupted; {kept}the trials are in {journal}, the same command continues")
    raise typer.Exit(130)


def _facts(found: Tuned, out: Path, journal: Path, used: TrainingData) -> list[tuple[str, str]]:
    n, best = len(found.chosen), found.chosen[0].value
    mean = f", the mean of the models of {n} trials" if n > 1 else ""
    others = f", the best trial {best:.4f}" if n > 1 else ""
    others += f", the first trial {found.trials[0].value:.4f}" if len(found.trials) > 1 else ""
    return [
        ("model", f"{out}, {found.model.size}{mean}"),
        ("validation", f"{found.metric} {found.best_score:.4f}{others}{used.leakage('validation')}"),
        ("trials", f"{len(found.trials)}, {sum(one.stopped for one in found.trials)} of them stopped early, "
                   f"{duration(sum(one.seconds for one in found.trials))}; {journal}"),
    ]  # fmt: skip


def _commands(context: typer.Context, chosen: Params, found: Tuned) -> Iterator[list[str]]:
    """The commands that make the same model, with the options of the search that they have, too."""
    from ranksieve.data.data_file import COLUMN_PARAMETERS

    out, n_trees = Path(context.params["out"]), sum(getattr(one.model, "n_trees", 0) for one in found.chosen)
    given = {name: value for name, value in context.params.items() if is_flag(context, name)} | given_flags(context)
    parts = [out.with_name(f"{out.stem}.{number}{out.suffix}") for number in range(1, len(found.chosen) + 1)]
    for one, part in zip(found.chosen, parts if len(parts) > 1 else [out], strict=True):
        own = {"trees": one.params.trees, "size": chosen.size if len(parts) == 1 else 0}
        changed = {name: value for name, value in own.items() if value != getattr(chosen, name)}
        words = _options(context, {**given, **canonical(one.values), **changed}, without=SEARCH_OPTIONS)
        yield ["ranksieve", "train", str(given["data"]), *words, "--out", str(part)]
    if len(parts) > 1:
        is_pruned = 0 < chosen.size < n_trees
        mean = out.with_name(f"{out.stem}.mean{out.suffix}") if is_pruned else out
        yield ["ranksieve", "combine", *map(str, parts), "--out", str(mean)]
        if is_pruned:
            shared = {"valid", "missing", "quiet", *COLUMN_PARAMETERS} & given.keys()
            values = {name: given[name] for name in shared} | {"metric": chosen.metric, "seed": chosen.seed}
            rate = str(1.0 - chosen.size / n_trees)
            yield ["ranksieve", "prune", str(mean), "--rate", rate, *_options(context, values), "--out", str(out)]


def _options(context: typer.Context, values: Mapping[str, Any], without: Collection[str] = ()) -> Iterator[str]:
    """Options and their values as words of a command line, in the order of the command; `out` is left out."""
    for one in context.command.get_params(context):
        if one.param_type_name == "option" and one.name in values and one.name not in (*without, "out"):
            yield from option_words(one, values[one.name])


def _show(found: Tuned) -> None:
    """A table of the parameters of the trials that were chosen, and of the first trial if there are others."""
    trials = {str(number): (one.values, one.value) for number, one in enumerate(found.chosen, start=1)}
    if len(trials) == 1:
        trials = {"chosen" if len(found.trials) > 1 else "value": trials["1"]}
    if len(found.trials) > 1:
        trials = {"first trial": (found.trials[0].values, found.trials[0].value), **trials}
    rows = [[flag(name), *(_text(values.get(name, "")) for values, _ in trials.values())] for name in found.values]
    rows.append([found.metric, *(f"{value:.4f}" for _, value in trials.values())])
    show_table(["parameter", *trials], rows)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
