"""`tune`: search for training parameters on validation lists in a given time."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.checkpoint import checksums
from ranksieve.boosting.disk_training import store_of
from ranksieve.boosting.initial_scores import TRAIN
from ranksieve.boosting.job import TrainingJob, named_sets, report_data
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.errors import InterruptedTraining, InterruptedTuning, ParameterError, param
from ranksieve.forest.model import Model
from ranksieve.other_names import ALIASES
from ranksieve.parameter_table import RESOURCES, canonical, flag, table
from ranksieve.params import Params
from ranksieve.rankers.train import run, training_job
from ranksieve.rankers.trials import SPACE, Report, Trial, Trials, check_space, used_space
from ranksieve.text_formats import counted


@dataclass(frozen=True)
class TuningRecord:
    """How far a search is, passed to callbacks after each tree."""

    seconds: float
    trials: int  # that are done
    best: float | None
    step: int  # trees of the trial at hand


@dataclass(frozen=True)
class Tuned:
    """What a search found: the model, its parameters, and all trials."""

    model: Model
    values: dict[str, Any]  # the best ones, by name
    best_score: float  # on the validation lists
    metric: str
    trials: Sequence[Trial]
    params: Params  # of the best model; `trees` is smaller if its trial ended when the time was up

    @property
    def flags(self) -> str:
        """The parameters that differ from their defaults, as on the command line."""
        known = table()
        given = {name: value for name, value in self.params.as_dict().items() if name in known}
        changed = {name: value for name, value in given.items() if value != known[name].default}
        return " ".join(_flag(name, value) for name, value in changed.items())

    def __repr__(self) -> str:
        return f"Tuned({self.metric} {self.best_score:.4f}, {counted(trial=len(self.trials))}, {self.flags})"


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return flag(name) if value else f"--no-{flag(name)[2:]}"
    return f"{flag(name)} {value}"


def tune(
    data: Any,
    *,
    valid: Any,
    minutes: float = 10.0,
    trials: int = 1000,
    space: Mapping[str, Any] | None = None,
    journal: str | os.PathLike[str] | None = None,
    **params: Any,
) -> Tuned:
    """Search for the training parameters that are best on validation lists, with Optuna (extra `tune`).

    The first trial has the default parameters. A trial that is worse than the median of the others after as many trees
    is stopped. When the time is up, the last trial counts with the trees it has.

    Ctrl-C raises `InterruptedTuning`, whose `found` is the result of the finished trials; `KeyboardInterrupt` if there
    is none, or if an earlier search has found the best one.

    Parameters
    ----------
    data, valid : Dataset, Binned or file name
        The training lists, and those that parameters are chosen on. The first of several validation sets decides.
    minutes, trials : numbers
        When the search ends, whichever comes first.
    space : mapping, optional
        Parameters to search by name: a list of values, or bounds as in `{"low": 8, "high": 128, "log": True}`. The
        default has leaves, learning rate, smallest leaf, L2, feature fraction and share of negatives.
    journal : file name, optional
        Where trials are kept. A later search with the same data, parameters and space continues from there.
    callbacks : functions of a `TuningRecord`
        Called after each tree.
    missing, categorical
        As in `train`.
    **params
        Training parameters of all trials, as in `train`; they are not searched.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(10, start=20)
    >>> found = rs.tune(train, valid=valid, trials=2, space={"leaves": [4, 8]}, algo="lambdamart", trees=5)
    >>> len(found.trials), sorted(found.values), found.model.n_trees <= 5
    (2, ['leaves'], True)
    """
    if not minutes > 0:
        raise ParameterError(param("minutes"), f" is {minutes}; expected a number above 0")
    if valid is None:
        raise ParameterError(param("valid"), " is missing; parameters are chosen on validation lists")
    job = training_job(data, params, valid=valid, arguments=("trials",))
    check_space(space or {})
    space = {ALIASES.get(name.replace("-", "_"), name): values for name, values in (space or SPACE).items()}
    given = set(canonical(params))
    wanted = {name: values for name, values in space.items() if set(canonical({name: 0})) - given}
    wanted = used_space(wanted, job.params)
    if not wanted:
        raise ParameterError("there is nothing to search: all parameters of the space are given or not used")
    return _Search(job, wanted, minutes * 60.0).run(trials, None if journal is None else Path(journal))


class _Search:
    """The data, read once, and the best model so far."""

    def __init__(self, job: TrainingJob, space: dict[str, Any], seconds: float) -> None:
        self._base, self._space, self._callbacks = job.params, space, job.callbacks
        self._begin, self._seconds = time.monotonic(), seconds
        data, valid = job.data, next(iter(named_sets(job.valid).values()))
        if job.params.algorithm.is_forest:
            store = store_of(job.params)
            data = bin_data(data, **job.params.bin_limits, missing=job.missing, store=store)
            report_data(job.callbacks, TRAIN, data)
            valid = bin_like(valid, data, missing=job.missing, store=store)
            report_data(job.callbacks, "valid", valid)
        self._job = replace(job, data=data, valid=valid)
        self._best: tuple[float, dict[str, Any], Model] | None = None
        self._n_done, self._cut = 0, False
        self._cut_model: Model | None = None  # of the trial that the end of the time has cut short

    def run(self, n_trials: int, journal: Path | None) -> Tuned:
        trials = Trials(self._name(), self._space, journal)
        defaults = {name: self._base.as_dict().get(key) for name in self._space for key in canonical({name: 0})}
        trials.try_first({name: value for name, value in defaults.items() if value is not None})
        self._n_done, known = len(trials.done()), trials.best()
        self._known = None if known is None else known.value
        try:
            trials.run(self._try, n_trials, seconds=self._seconds - (time.monotonic() - self._begin))
        except KeyboardInterrupt:
            best = trials.best()
            if best is None or (model := self._model_of(best)) is None:
                raise KeyboardInterrupt from None
            raise InterruptedTuning(self._found(trials, best, model)) from None
        best = trials.best()
        assert best is not None  # the first trials are not stopped
        return self._found(trials, best, self._model_of(best) or run(self._trial(best.values, ())))

    def _model_of(self, best: Trial) -> Model | None:
        """The model of the best trial; None if an earlier search has found it."""
        return None if self._best is None or self._best[0] < best.value else self._best[2]

    def _found(self, trials: Trials, best: Trial, model: Model) -> Tuned:
        params = self._base.replace(**canonical(best.values))
        if self._cut_model is not None and model is self._cut_model and params.algorithm.is_forest:
            # as many trees give the same model again
            params = params.replace(trees=max(1, len(model.info["seconds"]) // params.bag))
        return Tuned(model, dict(best.values), best.value, self._base.metric, trials.done(), params)

    def _name(self) -> str:
        """A name that changes with anything the trials depend on."""
        params = {name: value for name, value in self._base.as_dict().items() if name not in RESOURCES}
        facts: dict[str, Any] = {"params": params, "space": self._space}
        for name, data in (("train", self._job.data), ("valid", self._job.valid)):
            facts[name] = _identity(data)
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def _trial(self, values: Mapping[str, Any], callbacks: Sequence[Callable[[Any], None]]) -> TrainingJob:
        params = self._base.replace(**canonical(values)).load_files()
        # The warning is about validation lists that are sorted by label. All trials have the same lists, so the first
        # trial, which has the default parameters, is checked for all of them.
        return replace(self._job, params=params, callbacks=callbacks, warns_of_ties=self._n_done == 0)

    def _try(self, values: dict[str, Any], report: Report) -> float:
        def follow(record: Any) -> None:
            self._tell(getattr(record, "step", 0))
            if time.monotonic() - self._begin > self._seconds:
                self._cut = True
                raise KeyboardInterrupt  # training returns the model of its best tree so far
            report(record)

        try:
            model = run(self._trial(values, (follow,)))
        except InterruptedTraining as stopped:
            if not self._cut:
                raise
            model = self._cut_model = stopped.model
        value = float(model.info["best_score"])
        self._n_done += 1
        if self._best is None or value > self._best[0]:
            self._best = value, values, model
        self._tell(0)
        return value

    def _tell(self, step: int) -> None:
        found = [one for one in (self._known, self._best and self._best[0]) if one is not None]
        best = max(found, default=None)
        for callback in self._callbacks:
            callback(TuningRecord(time.monotonic() - self._begin, self._n_done, best, step))


def _identity(data: Any) -> Any:
    """What identifies data: checksums of its content; of a file its name, size and time."""
    if isinstance(data, Mapping):
        return {name: _identity(one) for name, one in data.items()}
    if isinstance(data, list | tuple):
        return [_identity(one) for one in data]
    if isinstance(data, Binned):
        return checksums(data)
    if isinstance(data, Dataset):
        weights, positions = data.lists.weights, data.lists.positions
        arrays = [data.labels, data.offsets, data.features, weights, positions]
        return [zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays if array is not None]
    if isinstance(data, DataFile):
        return [data.given, _identity(data.path)]
    if isinstance(data, str | os.PathLike) and os.path.exists(data):
        status = os.stat(data)
        return [os.path.abspath(data), status.st_size, status.st_mtime_ns]
    return str(data)
