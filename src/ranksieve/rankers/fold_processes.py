"""The folds of a cross-validation in processes, several at the same time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.boosting.job import TrainingJob
from ranksieve.data.bin_store import MEMORY_BYTES, SHARE
from ranksieve.data.dataset import Dataset
from ranksieve.data.free_memory import USUAL_SIZE, available_memory
from ranksieve.errors import ParameterError, RanksieveError, param
from ranksieve.evaluation.metric_names import known_metric, register_metric
from ranksieve.evaluation.metrics import metric_of
from ranksieve.params import Params, label
from ranksieve.rankers.train import run
from ranksieve.rules import SLOTS
from ranksieve.text_formats import AUTO, read_size

SMALL = 5e9  # values × trees of a fold that is trained before another process has started
SECONDS_BETWEEN_LOOKS = 1.0
VALUE_BYTES = 5  # bytes of a value in a fold's copy: the float32, and its bin

Fold = tuple[np.ndarray, ...]  # the numbers of training, validation and test queries


def fold_jobs(jobs: int, folds: int, data: Dataset, params: Params) -> int:
    """How many folds to train at a time: as many as asked for; of 0, as many as cores and free memory allow."""
    if jobs < 0:
        raise ParameterError(param("jobs"), f" is {jobs}; expected an integer from 1, or 0 to choose it")
    if jobs:
        return min(jobs, folds)
    n_values = data.n_docs * data.n_features * (folds - 1) / folds
    if n_values * params.all_trees < SMALL or params.device != "cpu":
        return 1
    size = USUAL_SIZE + n_values * VALUE_BYTES + data.n_docs * MEMORY_BYTES
    free = available_memory()
    fitting = folds if free is None else int(SHARE * free / size)
    return max(1, min(folds, params.threads or os.cpu_count() or 1, fitting))


@dataclass(frozen=True)
class FoldTraining:
    """Trains the model of a fold in a process; threads and memory are divided among `jobs` processes."""

    params: Params
    missing: str
    # what other processes do not know: the user's metric, name and function or None, and rules, (kind, name, rule)
    own_metric: tuple[str, Any]
    own_rules: tuple[tuple[str, str, Any], ...]

    @classmethod
    def of(cls, params: Params, missing: str, jobs: int) -> FoldTraining:
        shares: dict[str, Any] = {"threads": max(1, (params.threads or os.cpu_count() or 1) // jobs)}
        if params.memory != AUTO:
            shares["memory"] = str(read_size(params.memory) // jobs)
        name = metric_of(params).name
        return cls(
            params.replace(**shares).load_files(), missing, (name, known_metric(name).function), _own_rules(params)
        )

    def __call__(self, train_set: Dataset, valid_set: Dataset) -> Any:
        if self.own_metric[1] is not None:
            register_metric(*self.own_metric)
        for registry in SLOTS:
            sent = {name: rule for kind, name, rule in self.own_rules if kind == registry.kind}
            registry.restore({**registry, **sent})
        return run(TrainingJob(train_set, self.params, valid_set, missing=self.missing))


def _own_rules(params: Params) -> tuple[tuple[str, str, Any], ...]:
    """The rules of the parameters that the user has registered; models hold their names."""
    chosen = ((registry, label(getattr(params, registry.kind))) for registry in SLOTS)
    known = ((registry, name) for registry, name in chosen if name in registry and registry.is_added(name))
    return tuple((registry.kind, name, registry[name]) for registry, name in known)


def fit_in_processes(data: Dataset, folds: Sequence[Fold], fit: FoldTraining, jobs: int) -> Iterator[tuple[int, Any]]:
    """The number and the model of each fold, in the order in which they are finished.

    The processes are those of joblib: they share one copy of the data, functions of scripts and notebooks are sent to
    them, and scripts need no `if __name__ == "__main__"`.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    tasks = (delayed(_fit_in_process)(data, number, fold, fit) for number, fold in enumerate(folds, start=1))
    try:
        yield from Parallel(jobs, backend="loky", return_as="generator_unordered", pre_dispatch=jobs)(tasks)
    except BrokenProcessPool:
        raise RanksieveError(
            "a process that trained a fold ended unexpectedly; if memory is short, use fewer ", param("jobs")
        ) from None
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)  # they would wait for minutes


def _fit_in_process(data: Dataset, number: int, fold: Fold, fit: FoldTraining) -> tuple[int, Any]:
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    train, valid, _ = fold
    return number, fit(data.take_queries(train), data.take_queries(valid))


def _end_with(parent: int) -> None:
    """End this process soon after the one that started it, also if that was killed."""
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
