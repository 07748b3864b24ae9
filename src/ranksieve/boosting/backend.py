"""`Backend`: where a forest is trained. It makes the parts of the boosting loop, on the CPU or on a GPU."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from ranksieve.boosting.bagging import BaggedLists, BaggedRows, BaggedScores
from ranksieve.boosting.callbacks import ValidationSet
from ranksieve.boosting.disk_grower import DiskGrower
from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.disk_training import listener_of
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.loop import BoostedScores, Rows, Target, TrainedLists, TreeGrower
from ranksieve.boosting.oblivious import ObliviousGrower
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import TrainingLists, TrainingRows, TreeTarget
from ranksieve.data.binned import Binned
from ranksieve.errors import ParameterError, param
from ranksieve.evaluation.metrics import Metric
from ranksieve.rules import AUTO

GROWERS: dict[str, type[Grower]] = {"best-first": Grower, "oblivious": ObliviousGrower}


class AllScores(BoostedScores, Protocol):
    """Scores of the training set that can be read here."""

    def all(self) -> np.ndarray: ...


LocalScores = TypeVar("LocalScores", bound=AllScores)


class Backend(Protocol[Rows, LocalScores, Target]):
    """Makes the parts of the loop, which fit together: lists take the scores, and the grower what the lists make."""

    def training_scores(self, data: Binned, start: float | np.ndarray) -> LocalScores:
        """The scores of the training set, made before those of validation sets."""

    def validation_set(
        self, name: str, data: Binned, start: float | np.ndarray, restart_scores: float | np.ndarray
    ) -> ValidationSet:
        """A validation set with its initial scores.

        `restart_scores` are the same scores, kept so that the set can be scored again under fewer trees: of a constant,
        one number.
        """

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> TrainedLists[Rows, LocalScores, Target]: ...

    def grower(self, data: Binned) -> TreeGrower[Target]: ...


class _OnCpu:
    """What all backends on the CPU have."""

    def __init__(self, job: TrainingJob) -> None:
        self._params, self._threads, self._listener = job.params, job.threads, listener_of(job.callbacks)

    def validation_set(
        self, name: str, data: Binned, start: float | np.ndarray, restart_scores: float | np.ndarray
    ) -> ValidationSet:
        return ValidationSet(name, data, new_scores(data, start=start), restart_scores)

    def grower(self, data: Binned) -> Grower:
        if data.disk is not None:
            return DiskGrower(data, self._params, self._listener, threads=self._threads)
        return GROWERS[self._params.forest_algorithm.grower](data, self._params, threads=self._threads)


class CpuBackend(_OnCpu, Backend[TrainingRows, Scores, TreeTarget]):
    """One forest on the CPU."""

    def training_scores(self, data: Binned, start: float | np.ndarray) -> Scores:
        return new_scores(data, start=start)

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> TrainingLists:
        return TrainingLists(data.lists, self._params, metric, first_selection)


class BagBackend(_OnCpu, Backend[BaggedRows, BaggedScores, TreeTarget]):
    """A bag of forests on the CPU."""

    def training_scores(self, data: Binned, start: float | np.ndarray) -> BaggedScores:
        return BaggedScores(data, self._params.bag, start=start)

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> BaggedLists:
        return BaggedLists(TrainingLists(data.lists, self._params, metric, first_selection))


def backend_of(job: TrainingJob, *, has_biases: bool = False, has_categories: bool = False) -> Backend[Any, Any, Any]:
    """Where a forest is trained: on the CPU, or on a GPU."""
    on_cpu = CpuBackend if job.params.bag == 1 else BagBackend
    only_cpu = has_biases or has_categories or job.params.bag > 1
    if job.params.device == "cpu" or (job.params.device == AUTO and only_cpu):
        return on_cpu(job)
    from ranksieve.cuda import device

    if not device.is_chosen(job.params.device):
        return on_cpu(job)
    if has_biases:
        raise ParameterError(
            param("device", job.params.device), " does not support position biases; use ", param("device", "cpu"),
            ", or ", param("position_rate", 0), " to ignore positions",
        )  # fmt: skip
    if has_categories:
        raise ParameterError(
            param("device", job.params.device), " does not support categorical features; use ", param("device", "cpu"),
            ", or leave these features out",
        )  # fmt: skip
    from ranksieve.boosting.gpu.backend import GpuBackend

    return GpuBackend(job)
