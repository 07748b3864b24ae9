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

from ranksieve.boosting.callbacks import checked_mean
from ranksieve.boosting.checkpoint import checksums
from ranksieve.boosting.disk_training import display_of, store_of
from ranksieve.boosting.initial_scores import TRAIN, ModelBase
from ranksieve.boosting.job import TrainingJob, named_sets, report_data
from ranksieve.boosting.selections.fields import Minimum
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.errors import InterruptedTraining, InterruptedTuning, ParameterError, check_whole, param
from ranksieve.evaluation.evaluate import list_scores
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.model import Model
from ranksieve.forest.score_file import read_for_models
from ranksieve.other_names import ALIASES
from ranksieve.parameter_table import RESOURCES, canonical, flag, table
from ranksieve.params import Params
from ranksieve.rankers.combination import mean_model
from ranksieve.rankers.train import prune_to_size, run, training_job
from ranksieve.rankers.trials import SPACE, Outcome, Report, Trial, Trials, check_space, used_space
from ranksieve.text_formats import counted


@dataclass(frozen=True)
class TuningRecord:
    """How far a search is, passed to the callbacks of `tune` after each tree.

    Attributes
    ----------
    seconds
        Since the search began.
    trials
        Number of finished trials.
    best
        The best value of the metric so far; None before the first.
    step
        Number of trees of the current trial.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(10, start=20)
    >>> done = []
    >>> given = {"trials": 2, "space": {"leaves": [4, 8]}, "algo": "lambdamart", "trees": 3}
    >>> _ = rs.tune(train, valid=valid, callbacks=[lambda record: done.append(record.trials)], **given)
    >>> min(done), max(done)
    (0, 2)
    """

    seconds: float
    trials: int
    best: float | None
    step: int


@dataclass(frozen=True)
class ChosenTrial:
    """A trial whose model is a part of the result of `tune`.

    Attributes
    ----------
    values
        The values of the parameters that were searched, by name.
    value
        The metric of the model on the validation lists.
    params
        All parameters; `trees` is smaller if the trial ended when the time was up.
    model
        The model.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(10, start=20)
    >>> found = rs.tune(train, valid=valid, trials=2, space={"leaves": [4, 8]}, algo="lambdamart", trees=5)
    >>> best = found.chosen[0]
    >>> best.values["leaves"] == best.params.leaves, best.model.n_trees <= 5
    (True, True)
    """

    values: dict[str, Any]
    value: float
    params: Params
    model: Model

    @property
    def flags(self) -> str:
        """The parameters that differ from their defaults, as on the command line."""
        return _flags(self.params)


@dataclass(frozen=True)
class Tuned:
    """What a search found, as `tune` returns it.

    Attributes
    ----------
    model
        The mean of the best trials' models.
    best_score
        The metric of `model` on the validation lists.
    metric
        The name of the metric.
    chosen
        The trials that `model` is the mean of, best first.
    trials
        All trials.
    size
        Number of trees that `model`, and not each trial, is pruned to; 0: it is not pruned.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(10, start=20)
    >>> found = rs.tune(train, valid=valid, trials=2, space={"leaves": [4, 8]}, algo="lambdamart", trees=5)
    >>> found.values["leaves"] in (4, 8), len(found.trials)
    (True, 2)
    >>> "--algo lambdamart" in found.flags  # for `ranksieve train`
    True
    """

    model: Model
    best_score: float
    metric: str
    chosen: Sequence[ChosenTrial]
    trials: Sequence[Trial]
    size: int = 0

    @property
    def values(self) -> dict[str, Any]:
        """The best trial's values of the parameters that were searched."""
        return self.chosen[0].values

    @property
    def params(self) -> Params:
        """The parameters of the best trial, and the size of the model."""
        return self.chosen[0].params.replace(size=self.size)

    @property
    def flags(self) -> str:
        """The best trial's parameters that differ from their defaults, as on the command line."""
        return _flags(self.params)

    def __repr__(self) -> str:
        mean = f", the mean of {len(self.chosen)}" if len(self.chosen) > 1 else ""
        return f"Tuned({self.metric} {self.best_score:.4f}, {counted(trial=len(self.trials))}{mean}, {self.flags})"


def _flags(params: Params) -> str:
    known = table()
    given = {name: value for name, value in params.as_dict().items() if name in known}
    return " ".join(_flag(name, value) for name, value in given.items() if value != known[name].default)


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
    average: int = 5,
    space: Mapping[str, Any] | None = None,
    journal: str | os.PathLike[str] | None = None,
    **params: Any,
) -> Tuned:
    """Search for the training parameters that are best on validation lists, with Optuna (extra `tune`).

    The first trial has the default parameters. A trial that is worse than the median of the others after as many trees
    is stopped. When the time is up, the last trial counts with the trees it has. The result is the mean of the models
    of the best trials: the best of many trials fits the validation lists, and their mean is better on other lists. If
    the mean is worse on the validation lists than the first trial, the result is the best trial's model.

    Ctrl-C raises `InterruptedTuning`, whose `found` is the result of this search's finished trials, not pruned to
    `size`; `KeyboardInterrupt` if none of them is among the best.

    Parameters
    ----------
    data, valid : Dataset, Binned or file name
        The training lists, and those that parameters are chosen on. The first of several validation sets decides.
    minutes, trials : numbers
        When the search ends, whichever comes first.
    average : int
        Number of best trials whose models are averaged, without those that are worse than the first; 1: the best trial
        alone.
    space : mapping, optional
        Parameters to search by name: a list of values, or bounds as in `{"low": 8, "high": 128, "log": True}`. The
        default has leaves, learning rate, smallest leaf, L2, feature fraction and share of negatives.
    journal : file name, optional
        Where trials are kept. A later search with the same data, parameters and space continues from there. Their
        models are not kept: the best trial is trained again, and the others to average if there is time. A trial that
        ended when the time was up is trained up to the tree it had.
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
    >>> len(found.trials), sorted(found.values), found.model.n_trees <= 10
    (2, ['leaves'], True)
    """
    if not minutes > 0:
        raise ParameterError(param("minutes"), f" is {minutes}; expected a number above 0")
    check_whole("average", average)
    if valid is None:
        raise ParameterError(param("valid"), " is missing; parameters are chosen on validation lists")
    job = training_job(data, params, valid=valid, arguments=("trials",))
    check_space(space or {})
    space = {ALIASES.get(name.replace("-", "_"), name): values for name, values in (space or SPACE).items()}
    given = set(canonical(params))
    wanted = {name: values for name, values in space.items() if set(canonical({name: 0})) - given}
    wanted = used_space(wanted, job.params)
    _check_searched(wanted)
    return _Search(job, wanted, minutes * 60.0, average).run(trials, None if journal is None else Path(journal))


def _check_searched(space: Mapping[str, Any]) -> None:
    if not space:
        raise ParameterError("there is nothing to search: all parameters of the space are given or not used")


class _Search:
    """The data, read once, and the models of the best trials so far."""

    def __init__(self, job: TrainingJob, space: dict[str, Any], seconds: float, average: int) -> None:
        self._base, self._space, self._callbacks = job.params, space, job.callbacks
        self._begin, self._seconds, self._average = time.monotonic(), seconds, average
        data, valid = job.data, next(iter(named_sets(job.valid).values()))
        if job.params.algorithm.is_forest:
            store = store_of(job.params)
            data = bin_data(data, **job.params.bin_limits, missing=job.missing, store=store)
            report_data(job.callbacks, TRAIN, data)
            valid = bin_like(valid, data, missing=job.missing, store=store)
            report_data(job.callbacks, "valid", valid)
            self._space = _with_effect(space, job, data)
            _check_searched(self._space)
        self._job = replace(job, data=data, valid=valid)
        self._best: list[ChosenTrial] = []  # best trials of this search, best first
        self._n_done, self._cut = 0, False

    def run(self, n_trials: int, journal: Path | None) -> Tuned:
        trials = Trials(self._name(), self._space, journal)
        defaults = {name: self._base.as_dict().get(key) for name in self._space for key in canonical({name: 0})}
        trials.try_first({name: value for name, value in defaults.items() if value is not None})
        self._n_done = len(trials.done())
        self._known = next((one.value for one in trials.best(1)), None)
        try:
            trials.run(self._try, n_trials, seconds=self._seconds - (time.monotonic() - self._begin))
            return self._found(trials, self._chosen(trials), self._base.size)
        except KeyboardInterrupt:
            known = [one for trial in self._averaged(trials) if (one := self._model_of(trial.values))]
            if not known:
                raise KeyboardInterrupt from None
            raise InterruptedTuning(self._found(trials, known)) from None

    def _chosen(self, trials: Trials) -> list[ChosenTrial]:
        """The trials to average; those of an earlier search are trained again, all but the best while there is time."""
        chosen: list[ChosenTrial] = []
        for trial in self._averaged(trials):
            one = self._model_of(trial.values)
            if one is None and (not chosen or time.monotonic() - self._begin < self._seconds):
                job = self._trial(trial.values, ())
                if trial.trees is not None:
                    job = replace(job, params=job.params.replace(trees=trial.trees))
                one = _chosen_trial(trial.values, job.params, run(job))
                self._best.append(one)
            chosen += [one] if one else []
        return sorted(chosen, key=lambda one: -one.value)

    def _averaged(self, trials: Trials) -> list[Trial]:
        """The best trials; where there are few, none is worse than the first, which has the defaults."""
        first = trials.done()[:1]
        return [one for one in trials.best(self._average) if all(one.value >= other.value for other in first)]

    def _model_of(self, values: Mapping[str, Any]) -> ChosenTrial | None:
        """The trial of some values, with its model; None if an earlier search has run it."""
        return next((one for one in self._best if one.values == values), None)

    def _found(self, trials: Trials, chosen: Sequence[ChosenTrial], size: int = 0) -> Tuned:
        """The mean of the chosen trials' models, pruned to a size unless it is 0."""
        model, score, done = chosen[0].model, chosen[0].value, trials.done()
        if len(chosen) > 1:
            mean = mean_model([one.model for one in chosen])
            of_mean = self._measured(mean)
            if of_mean < done[0].value:
                chosen = chosen[:1]
            else:
                score, parts = of_mean, [one.params.as_dict() for one in chosen]
                model = replace(mean, info={**mean.info, "best_score": score, "trials": parts})
        pruned = prune_to_size(model, replace(self._job, params=self._base.replace(size=size)))
        if pruned is not model:
            score = pruned.info["best_score"]
        return Tuned(pruned, score, self._base.metric, chosen, done, size)

    def _measured(self, model: Any) -> float:
        """The metric of a model on the validation lists."""
        valid, metric = self._job.valid, metric_of(self._base)
        if isinstance(valid, Binned):
            scores = ModelBase(model, "mean").scores("valid", valid, valid)
        else:
            valid = read_for_models(valid, [model])
            scores = list_scores("mean", model, valid, valid.lists)
        return checked_mean(metric, valid.lists, scores, "valid")

    def _name(self) -> str:
        """A name that changes with anything the trials depend on."""
        others = (*RESOURCES, "size")  # the result is pruned, not each trial
        params = {name: value for name, value in self._base.as_dict().items() if name not in others}
        facts: dict[str, Any] = {"params": params, "space": self._space}
        for name, data in (("train", self._job.data), ("valid", self._job.valid)):
            facts[name] = _identity(data)
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def _trial(self, values: Mapping[str, Any], callbacks: Sequence[Callable[[Any], None]]) -> TrainingJob:
        params = self._base.replace(**canonical(values), size=0).load_files()
        # The warning is about validation lists that are sorted by label. All trials have the same lists, so the first
        # trial, which has the default parameters, is checked for all of them.
        return replace(self._job, params=params, callbacks=callbacks, warns_of_ties=self._n_done == 0)

    def _try(self, values: dict[str, Any], report: Report) -> Outcome:
        def follow(record: Any) -> None:
            self._report(getattr(record, "step", 0))
            if time.monotonic() - self._begin > self._seconds:
                self._cut = True
                raise KeyboardInterrupt  # training returns the model of its best tree so far
            report(record)

        job = self._trial(values, (follow,))
        params, trees = job.params, None
        try:
            model = run(job)
        except InterruptedTraining as stopped:
            if not self._cut:
                raise
            model = stopped.model
            if params.algorithm.is_forest:  # as many trees give the same model again
                trees = max(1, len(model.info["seconds"]) // params.bag)
                params = params.replace(trees=trees)
        found = _chosen_trial(values, params, model)
        self._n_done += 1
        if self._model_of(values) is None:
            self._best = sorted([*self._best, found], key=lambda one: -one.value)[: self._average]
        self._report(0)
        return Outcome(found.value, trees)

    def _report(self, step: int) -> None:
        found = [self._known, *(one.value for one in self._best)]
        best = max((value for value in found if value is not None), default=None)
        for callback in self._callbacks:
            callback(TuningRecord(time.monotonic() - self._begin, self._n_done, best, step))


def _with_effect(space: Mapping[str, Any], job: TrainingJob, data: Binned) -> dict[str, Any]:
    """The space without the share of negatives, if all negatives of lists so short are selected whatever it is."""
    names = {plain: name for name in space for plain in canonical({name: 0})}
    is_fixed = names.keys().isdisjoint(("algo", "selection", "min_negatives"))
    most = _most_negatives(data.lists, job.params) if is_fixed and "negatives" in names else None
    if most is None:
        return dict(space)
    display = display_of(job.callbacks)
    if display is not None:
        display.note(
            param("negatives"), f" is not searched: all lists have at most {counted(negative=most)}, and ",
            param("min_negatives", job.params.selection_rule.min_negatives), " selects all of them",
        )  # fmt: skip
    return {name: wanted for name, wanted in space.items() if name != names["negatives"]}


def _chosen_trial(values: Mapping[str, Any], params: Params, model: Any) -> ChosenTrial:
    return ChosenTrial(dict(values), float(model.info["best_score"]), params, model)


def _most_negatives(lists: Lists, params: Params) -> int | None:
    """The largest number of negatives of a list; None if `min_negatives` does not select all of them."""
    if not isinstance(params.selection_rule, Minimum):
        return None
    most = int(np.add.reduceat(lists.stored_labels == 0, lists.offsets[:-1], dtype=np.int64).max())
    return most if most <= params.selection_rule.min_negatives else None


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
