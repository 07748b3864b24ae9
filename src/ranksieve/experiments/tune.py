"""Choosing parameters on validation lists by search (Optuna) in place of a grid; a search can be continued."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksieve.errors import MissingExtraError, ParameterError
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.train_cell import TrainOptions, load_cell, train_cell
from ranksieve.files import atomic_path
from ranksieve.parameter_table import flag
from ranksieve.params import Params

FOLDER = "tune"
SPACE: dict[str, Any] = {  # where a specification has no table [tune]
    "leaves": {"low": 8, "high": 128, "log": True},
    "learning-rate": {"low": 0.02, "high": 0.3, "log": True},
}
CHOICE = "grid"  # the name under which a study chooses among the cells of a run's own grid


@dataclass(frozen=True)
class Study:
    """The search for one run on one data set: its own grid, and a space around every cell of it."""

    cells: tuple[Cell, ...]  # of one seed
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


def check_space(space: Mapping[str, Any]) -> None:
    """Refuse a search space with unknown names, values out of range, or bounds that are not bounds."""
    for name, wanted in space.items():
        if isinstance(wanted, list) and wanted:
            values = wanted
        elif isinstance(wanted, dict) and {"low", "high"} <= set(wanted) <= {"low", "high", "log"}:
            values = [wanted["low"], wanted["high"]]
            if not all(type(value) in (int, float) for value in values) or not values[0] < values[1]:
                raise ParameterError(f"tune.{name} is from {values[0]} to {values[1]}; expected low below high")
            if wanted.get("log") and values[0] <= 0:
                raise ParameterError(f"tune.{name} is from {values[0]}, with log; expected low above 0")
        else:
            raise ParameterError(
                f"tune.{name} is {wanted!r}; expected a list of values, or {{low = 8, high = 128, log = true}}"
            )
        for value in values:
            Params.from_mapping({name: value}, source="tune")


def studies(cells: Iterable[Cell], space: Mapping[str, Any], n_trials: int) -> list[Study]:
    """One study for each data set, fold and run where there is something to choose, with the run's first seed.

    A run searches the part of the space that its algorithm uses. Interpolations and runs that prune train nothing.
    """
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if not cell.interpolated and cell.prune is None:
            found.setdefault(cell.place, []).append(cell)
    made = [
        Study(tuple(cell for cell in mine if cell.seed == mine[0].seed), _used(mine[0], space or SPACE), n_trials)
        for mine in found.values()
    ]
    return [study for study in made if study.space or len(study.cells) > 1]


def _used(cell: Cell, space: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a search space that the cell's algorithm uses."""
    used = set(map(flag, cell.params.used))
    return {name: wanted for name, wanted in space.items() if flag(name) in used}


def search(study: Study, out: Path, *, threads: int = 0, alone: bool = True) -> None:
    """Run the trials that are missing and store the best parameters in `out/tune/<key>.json`."""
    optuna = load_optuna()
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    backend = optuna.storages.journal.JournalFileBackend(str(out / FOLDER / f"{study.key}.log"))
    trials = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend), study_name=study.key, direction="maximize", load_if_exists=True
    )
    complete = (optuna.trial.TrialState.COMPLETE,)
    while (n_done := len(trials.get_trials(deepcopy=False, states=complete))) < study.n_trials:
        # a new sampler for each trial, so that an interrupted search continues as an uninterrupted one
        trials.sampler = optuna.samplers.TPESampler(seed=n_done, n_startup_trials=min(10, study.n_trials // 2 + 1))
        trials.optimize(lambda trial: _value(study, trial, out, threads), n_trials=1)
    best = trials.best_trial
    facts = {
        "best": best.params,
        "value": best.value,
        "trials": [
            {"params": trial.params, "value": trial.value}
            for trial in trials.get_trials(deepcopy=False, states=complete)
        ],
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


def _value(study: Study, trial: Any, out: Path, threads: int) -> float:
    """Train with the trial's parameters; the validation metric at its best tree."""
    values = {}
    if len(study.cells) > 1:
        values[CHOICE] = trial.suggest_categorical(CHOICE, [cell.label for cell in study.cells])
    for name, wanted in study.space.items():
        values[name] = _suggested(trial, name, wanted)
    cell = _chosen(study, values)
    model = train_cell(cell, out, load_cell(cell, out), TrainOptions(threads=threads))
    return float(model.info["best_score"])


def _suggested(trial: Any, name: str, wanted: Any) -> Any:
    if isinstance(wanted, list):
        return trial.suggest_categorical(name, wanted)
    whole = isinstance(wanted["low"], int) and isinstance(wanted["high"], int)
    suggest = trial.suggest_int if whole else trial.suggest_float
    return suggest(name, wanted["low"], wanted["high"], log=bool(wanted.get("log", False)))


def _chosen(study: Study, values: Mapping[str, Any]) -> Cell:
    """The cell that a trial's values mean."""
    label = values.get(CHOICE, study.cells[0].label)
    cell = next(cell for cell in study.cells if cell.label == label)
    own = {name.replace("-", "_"): value for name, value in values.items() if name != CHOICE}
    return dataclasses.replace(cell, params=cell.params.replace(**own))


def load_optuna() -> Any:
    """Optuna, or an error with the command to install it."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("tuning needs Optuna; install it with pip install 'ranksieve[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
