"""`ranksieve experiment` and `report`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import show_error, show_facts, show_line, show_table
from ranksieve.cli.files import reads_data
from ranksieve.cli.shared_options import FirstStage, Missing, Quiet, out_option
from ranksieve.errors import ParameterError
from ranksieve.experiments.spec import find_spec, shipped_specs
from ranksieve.text_formats import counted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from ranksieve.experiments.data_sets import DataSpec
    from ranksieve.experiments.results import Results
    from ranksieve.experiments.spec import Cell


@dataclass(frozen=True, kw_only=True)
class ExperimentArguments:
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help=f"TOML file, or a shipped one by name: {', '.join(shipped_specs())}.")
    ]
    out: Annotated[Path, out_option("Folder for the results. Finished cells in it are kept.", metavar="DIR")]
    quick: bool = option(False, "Run a small version on generated data, which takes minutes.", "--quick")
    jobs: int = option(0, "Cells to run at the same time, one thread each; 0: one per core.", min=0)
    tune: int = option(0, "Trials of a search for each run's parameters on validation data (Optuna).", min=0)
    data: list[Path] | None = option(None, "Your data in one file; it is split by query.", "--data", "-d")
    folds: int = option(0, "Cross-validate --data with this many folds; 0: split 60/20/20.", min=0)
    train: Path | None = option(None, "Your training data, with --valid and --test.")
    valid: Path | None = option(None, "Your validation data.")
    test: Path | None = option(None, "Your test data.")
    background: list[Path] | None = option(None, "Data of another domain, for runs that start from a model of it.")
    first_stage: FirstStage = None
    missing: Missing = "zero"
    settings: list[str] | None = option(
        None, "Value of a parameter in all runs, as in trees=200.", "--set", metavar="NAME=VALUE"
    )
    quiet: Quiet = False


@reads_data("data", "train", "valid", "test", "background")
@takes_options
def experiment(given: ExperimentArguments) -> None:
    """Run an experiment: data sets × algorithms × parameter grids × seeds.

    An interrupted experiment continues where it stopped when the same command is run again.
    """
    from ranksieve.experiments.read_spec import load_spec
    from ranksieve.experiments.run import run_experiment
    from ranksieve.progress import ProgressDisplay
    from ranksieve.rankers.trials import load_optuna

    out = given.out
    params = _parameters(given.settings or [])
    loaded = load_spec(find_spec(given.spec), quick=given.quick, data=_own_data(given), params=params)
    if given.tune:
        load_optuna()
    doing = " and ".join(sorted({"reading" if data.generate is None else "generating" for data in loaded.data}))
    try:
        with ProgressDisplay(
            "experiment", doing=f"{counted(cell=len(loaded.cells))}; {doing} the data", quiet=given.quiet
        ) as display:

            def show(cell: Cell, n_done: int, n_cells: int) -> None:
                finished = f"{cell.data.title}: {cell.label}, seed {cell.seed}"
                display.update(n_done, n_cells, unit="cell", details=[finished])

            results = run_experiment(loaded, out, jobs=given.jobs, tune=given.tune, on_cell=show)
    except KeyboardInterrupt:
        show_error(f"interrupted; finished cells are kept in {out}; run the same command again to continue")
        raise typer.Exit(130) from None
    _show(results)
    show_facts([("results", f"{out}, {counted(cell=len(results.cells))}; write a report with ranksieve report {out}")])


def _own_data(given: ExperimentArguments) -> list[DataSpec]:
    """The user's data, as one file or as three."""
    from ranksieve.data.data_file import DataFile
    from ranksieve.experiments.data_sets import DataSpec

    parts = {"train": given.train, "valid": given.valid, "test": given.test}
    paths: dict[str, Any] = {name: os.fspath(path) for name, path in parts.items() if path is not None}
    common: dict[str, Any] = {"first_stage": given.first_stage, "missing": given.missing}
    if given.background:
        common["background"] = tuple(os.fspath(path) for path in given.background)
    for one in (*(given.data or ()), *parts.values()):
        common |= DataFile(one).given  # the same of all
    if paths and given.data:
        raise ParameterError("--data and --train, --valid, --test are mutually exclusive")
    if given.background and not (paths or given.data):
        raise ParameterError("--background needs --data, or --train, --valid and --test")
    if paths:
        return DataSpec(Path(paths.get("train", "data")).stem, **common, **paths).checked()
    return [
        one
        for path in given.data or ()
        for one in DataSpec(Path(path).stem, file=os.fspath(path), folds=given.folds, **common).checked()
    ]


def _parameters(given: list[str]) -> dict[str, Any]:
    """Parameters from texts like `trees=200`; values are those of TOML, and words need no quotes."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise ParameterError(f"--set is {text!r}; expected a parameter and its value, as in trees=200")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            found[name] = value
    return found


def _show(results: Results) -> None:
    metric = results.facts["metrics"][0]
    if results.facts["tuned"]:
        from ranksieve.report.result_tables import tuned_table

        table = tuned_table(results)
        names = [name or "run" for name in table.columns]
        rows = [[value.text for value in row] for row in table.rows]
        show_table(names, rows, title=table.title, numbers=names[3:])
    for data in results.data:
        show_table(
            ["", "validation", metric, "trees", "s/tree", "documents used"],
            [
                [
                    group.label,
                    f"{group.valid:.4f}",
                    f"{group.value(metric):.4f}",
                    _number_or_dash(group.n_trees, ".0f"),
                    _number_or_dash(group.seconds_per_tree, ".4f"),
                    _number_or_dash(group.share_per_tree, ".1%"),
                ]
                for group in results.groups(data)
            ],
            title=f"{results.facts['title']}: {data}",
        )
    if results.facts["quick"]:
        counts = (f"{len(results.groups(data)[0].per_query(metric)[0])} on {data}" for data in results.data)
        show_line(f"quick size: too small to compare models; test queries: {', '.join(counts)}")
    show_line(
        f"{results.cells[0].facts['conventions'][0]}; number of trees chosen on validation data; documents used: share "
        "of the training documents per tree"
    )


def _number_or_dash(number: float | None, style: str) -> str:
    return "–" if number is None else format(number, style)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by 'ranksieve experiment'.")],
    out: Annotated[Path | None, out_option("Folder for the report.", metavar="DIR", show_default="DIR/report")] = None,
) -> None:
    """Write a report on an experiment: tables and figures. Nothing is trained."""
    from ranksieve.experiments.results import Results
    from ranksieve.plots.style import without_display
    from ranksieve.report.write import write_report

    without_display()
    path = write_report(Results.open(folder), out)
    show_facts([("report", str(path)), ("figures", str(len(list((path.parent / "figures").glob("*.svg")))))])
