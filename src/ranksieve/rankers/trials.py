"""Trials of parameter values (Optuna): the search space, the journal that keeps them, and the loop that runs them."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve.data.other_files import JOURNAL_LINE
from ranksieve.errors import DataError, ParameterError, import_extra
from ranksieve.files import locked
from ranksieve.parameter_table import flag
from ranksieve.params import Params

SPACE: dict[str, Any] = {  # of what an algorithm uses
    "leaves": {"low": 8, "high": 128, "log": True},
    "learning-rate": {"low": 0.02, "high": 0.3, "log": True},
    "min-docs": {"low": 5, "high": 200, "log": True},
    "l2": {"low": 0.01, "high": 30.0, "log": True},
    "feature-fraction": {"low": 0.2, "high": 1.0},
    "negatives": {"low": 0.01, "high": 0.5, "log": True},
}
LINE = JOURNAL_LINE.encode()
STARTUP = 10  # trials at random before the others follow them
WARM_UP_TREES = 50  # a trial is not compared with others before

TREES = "trees"  # the attribute of a trial that is its number of trees


class Outcome(NamedTuple):
    """The metric of a trial; its number of trees, if it ended because the time was up."""

    value: float
    trees: int | None = None


Report = Callable[[Any], None]  # a callback of training
Objective = Callable[[dict[str, Any], Report], Outcome]  # values, and what is called after each tree


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


def used_space(space: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """The part of a search space that an algorithm uses."""
    used = set(map(flag, params.used))
    return {name: wanted for name, wanted in space.items() if flag(name) in used}


def _distribution(optuna: Any, wanted: Any) -> Any:
    """What Optuna draws a parameter's values from."""
    if isinstance(wanted, list):
        return optuna.distributions.CategoricalDistribution(wanted)
    whole = isinstance(wanted["low"], int) and isinstance(wanted["high"], int)
    make = optuna.distributions.IntDistribution if whole else optuna.distributions.FloatDistribution
    return make(wanted["low"], wanted["high"], log=bool(wanted.get("log", False)))


def _suggested(trial: Any, name: str, distribution: Any) -> Any:
    """A trial's value of a parameter."""
    if hasattr(distribution, "choices"):
        return trial.suggest_categorical(name, distribution.choices)
    suggest = trial.suggest_int if isinstance(distribution.low, int) else trial.suggest_float
    return suggest(name, distribution.low, distribution.high, log=distribution.log)


@dataclass(frozen=True)
class Trial:
    """One trial of a search.

    Attributes
    ----------
    values
        The values that were tried, by parameter.
    value
        The validation metric of the model; of a trial that was stopped, at its best tree.
    stopped
        Whether the trial ended early, because it was worse than others.
    seconds
        How long it took.
    trees
        The number of trees to train, if it ended because the time was up; None otherwise.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(10, start=20)
    >>> found = rs.tune(train, valid=valid, trials=2, space={"leaves": [4, 8]}, algo="lambdamart", trees=5)
    >>> [trial.values["leaves"] in (4, 8) for trial in found.trials]
    [True, True]
    """

    values: dict[str, Any]
    value: float
    stopped: bool
    seconds: float
    trees: int | None = None


class Trials:
    """The trials of one search; those in the journal, if there is one, count."""

    def __init__(self, name: str, space: Mapping[str, Any], journal: Path | None = None) -> None:
        optuna = self._optuna = load_optuna()
        self._space = space
        self._distributions = {name: _distribution(optuna, wanted) for name, wanted in space.items()}
        pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP // 2, n_warmup_steps=WARM_UP_TREES)
        try:
            storage = None if journal is None else _open_journal(optuna, journal)
            self._study = optuna.create_study(
                storage=storage, study_name=name, direction="maximize", load_if_exists=True, pruner=pruner
            )
            self._check()
        except OSError:
            raise
        except Exception as error:  # Optuna does not check what it reads
            raise DataError(
                f"{journal}: is not a journal of trials, or damaged ({error!r}); remove it, or choose another file"
            ) from error

    def _check(self) -> None:
        """Refuse trials that this search cannot have made."""
        for trial in self._study.get_trials(deepcopy=False):
            if any(self._distributions[name] != found for name, found in trial.distributions.items()):
                raise ValueError(f"the trial {trial.number} has another search space")
            if trial.state == self._optuna.trial.TrialState.COMPLETE and trial.value is None:
                raise ValueError(f"the trial {trial.number} has no value")
            trees = trial.user_attrs.get(TREES, 1)
            if type(trees) is not int or trees < 1:
                raise ValueError(f"the trial {trial.number} has {trees!r} trees")
            first = trial.system_attrs.get("fixed_params", {})  # the values of a waiting trial
            if not all(self._has(name, value) for name, value in first.items()):
                raise ValueError(f"the trial {trial.number} would try {first}")
        for one in self.done():
            if not math.isfinite(one.value) or not all(self._has(name, value) for name, value in one.values.items()):
                raise ValueError(f"a trial has the metric {one.value} with {one.values}")

    def done(self) -> list[Trial]:
        """The trials so far, in order; without those that failed or were interrupted."""
        state = self._optuna.trial.TrialState
        found = self._study.get_trials(deepcopy=False, states=(state.COMPLETE, state.PRUNED))
        return [
            Trial(
                one.params, _value_of(one), one.state == state.PRUNED, one.duration.total_seconds(),
                one.user_attrs.get(TREES),
            )
            for one in found
            if _value_of(one) is not None
        ]  # fmt: skip

    def best(self, n: int) -> list[Trial]:
        """The n best trials that were not stopped, best first; of trials with the same values the first."""
        best: list[Trial] = []
        for trial in sorted(self.done(), key=lambda one: -one.value):
            if len(best) < n and not trial.stopped and all(one.values != trial.values for one in best):
                best.append(trial)
        return best

    def try_first(self, values: Mapping[str, Any]) -> None:
        """Values for the first trial, if there was none yet; those outside the space are left to the search."""
        waiting = self._study.get_trials(deepcopy=False, states=(self._optuna.trial.TrialState.WAITING,))
        if not waiting and not self.done():  # an interrupted first trial does not count
            self._study.enqueue_trial({name: value for name, value in values.items() if self._has(name, value)})

    def _has(self, name: str, value: Any) -> bool:
        wanted = self._space[name]
        return value in wanted if isinstance(wanted, list) else wanted["low"] <= value <= wanted["high"]

    def run(self, objective: Objective, n_trials: int, *, seconds: float = float("inf")) -> None:
        """Run trials until there are `n_trials`, or until the time is up; at least one."""
        end = time.monotonic() + seconds
        while (n_done := len(self.done())) < n_trials and (n_done == 0 or time.monotonic() < end):
            # a new sampler for each trial, so that an interrupted search continues as an uninterrupted one
            startup = min(STARTUP, n_trials // 2 + 1)
            self._study.sampler = self._optuna.samplers.TPESampler(seed=n_done, n_startup_trials=startup)
            self._study.optimize(lambda trial: self._try(trial, objective), n_trials=1)

    def _try(self, trial: Any, objective: Objective) -> float:
        values = {name: _suggested(trial, name, found) for name, found in self._distributions.items()}

        def report(record: Any) -> None:
            best = getattr(record, "best_value", None)
            if best is not None:
                trial.report(best, record.step)
                if trial.should_prune():
                    raise self._optuna.TrialPruned

        found = objective(values, report)
        if found.trees is not None:
            trial.set_user_attr(TREES, found.trees)
        return found.value


class JournalLock:
    """What Optuna locks its journal with; unlike its own lock, this one ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path, self._held = path, contextlib.ExitStack()

    def acquire(self) -> bool:
        self._held.enter_context(locked(self._path))
        return True

    def release(self) -> None:
        self._held.close()


def _open_journal(optuna: Any, path: Path) -> Any:
    """The trials in a file; a last line that a killed process, or one without space, has not finished is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file, locked(path):
        file.seek(0)
        *lines, unfinished = file.read().split(b"\n")
        for line in lines:
            if not (line.startswith(LINE) and isinstance(json.loads(line), dict)):
                raise ValueError(f"the line {line[:40]!r} is not JSON of a journal")
        if not LINE.startswith(unfinished[: len(LINE)]):
            raise ValueError(f"the last line {unfinished[:40]!r} is not JSON of a journal")
        if unfinished:
            file.truncate(file.tell() - len(unfinished))
    backend = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=JournalLock(path))
    return optuna.storages.JournalStorage(backend)


def _value_of(trial: Any) -> Any:
    """The metric of a trial; of a stopped trial, the last one reported."""
    return trial.value if trial.value is not None else trial.intermediate_values.get(trial.last_step)


def load_optuna() -> Any:
    """Optuna, or an error with the command to install it."""
    optuna = import_extra("optuna", "tuning needs Optuna", "ranksieve[tune]")
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it shows the traceback of an error that is raised, too
    return optuna
