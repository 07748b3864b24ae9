"""Choosing parameters on validation lists by search (Optuna) in place of a grid; a search can be continued."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksieve.experiments.spec import Cell
from ranksieve.experiments.train_cell import TrainOptions, load_cell, train_cell
from ranksieve.files import atomic_path
from ranksieve.rankers.trials import SPACE, Outcome, Report, Trials, used_space

FOLDER = "tune"
CHOICE = "grid"  # the name under which a study chooses among the cells of a run's own grid


@dataclass(frozen=True)
class Study:
    """The search for one run on one data set: its own grid, and a space around every cell of it."""

    cells: tuple[Cell, ...]  # the cells of one seed
    space: Mapping[str, Any]
    n_trials: int

    @property
    def place(self) -> tuple[str, str]:
        """The data set, fold and run it is for."""
        return self.cells[0].place

    @property
    def key(self) -> str:
        """A name that changes with anything the trials depend on; a larger number of trials continues the study."""
        facts = {"cells": [cell.settings() for cell in self.cells], "space": dict(self.space)}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]
        return f"{self.cells[0].key.rsplit('-s', 1)[0]}-{digest}"


def studies(cells: Iterable[Cell], space: Mapping[str, Any], n_trials: int) -> list[Study]:
    """One study for each data set, fold and run where there is something to choose, with the run's first seed.

    A run searches the part of the space that its algorithm uses. Interpolations and runs that prune train nothing.
    """
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if not cell.interpolated and cell.prune is None:
            found.setdefault(cell.place, []).append(cell)
    made = [
        Study(
            tuple(cell for cell in mine if cell.seed == mine[0].seed),
            used_space(space or SPACE, mine[0].params),
            n_trials,
        )
        for mine in found.values()
    ]
    return [study for study in made if study.space or len(study.cells) > 1]


def search(study: Study, out: Path, *, threads: int = 0, alone: bool = True) -> None:
    """Run the trials that are missing and store the best parameters in `out/tune/<key>.json`."""
    grid = {CHOICE: [cell.label for cell in study.cells]} if len(study.cells) > 1 else {}
    trials = Trials(study.key, {**grid, **study.space}, out / FOLDER / f"{study.key}.log")

    def value(values: dict[str, Any], report: Report) -> Outcome:
        """Train with the values; the validation metric at the best tree."""
        cell = _chosen(study, values)
        options = TrainOptions(threads=threads, callbacks=(report,))
        return Outcome(float(train_cell(cell, out, load_cell(cell, out), options).info["best_score"]))

    trials.run(value, study.n_trials)
    (best,) = trials.best(1)  # the first trials are not stopped
    facts = {
        "best": best.values,
        "value": best.value,
        "trials": [{"params": one.values, "value": one.value} for one in trials.done()],
    }
    with atomic_path(out / FOLDER / f"{study.key}.json") as path:
        path.write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


def tuned(study: Study, out: Path) -> dict[str, Any]:
    """What a finished search chose: the data set, the run, the best parameters, their validation value, the trials."""
    found = json.loads((out / FOLDER / f"{study.key}.json").read_text(encoding="utf-8"))
    data, run = study.place
    return {"data": data, "run": run, "best": found["best"], "valid": found["value"], "trials": len(found["trials"])}


def tuned_cells(cells: Sequence[Cell], study: Study, best: Mapping[str, Any]) -> list[Cell]:
    """The cells of the study's data set and run with the best parameters found, one for each seed."""
    chosen = _chosen(study, best)
    mine = [cell for cell in cells if (cell.data, cell.run) == (chosen.data, chosen.run)]
    seeds = dict.fromkeys(cell.seed for cell in mine)
    return [dataclasses.replace(chosen, grid={}, seed=seed, params=chosen.params.replace(seed=seed)) for seed in seeds]


def _chosen(study: Study, values: Mapping[str, Any]) -> Cell:
    """The cell that a trial's values mean."""
    label = values.get(CHOICE, study.cells[0].label)
    cell = next(cell for cell in study.cells if cell.label == label)
    own = {name.replace("-", "_"): value for name, value in values.items() if name != CHOICE}
    return dataclasses.replace(cell, params=cell.params.replace(**own))
