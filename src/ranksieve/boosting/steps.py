"""Step sizes: the factor of a new tree's leaf values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.rules import STEPS, Traits, choice, parameter, share

if TYPE_CHECKING:
    from ranksieve.boosting.grower import KnownLeaves
    from ranksieve.boosting.loop import State, StepSize
    from ranksieve.boosting.scores import Scores
    from ranksieve.boosting.tree import Tree
    from ranksieve.data.binned import Binned
    from ranksieve.evaluation.metrics import Metric

    ScoredSet = tuple[Binned, Scores]


@STEPS.register("shrinkage")
@dataclass(frozen=True)
class Shrinkage:
    """The same small step for every tree (Friedman 2001)."""

    learning_rate: float = share(0.05, "Shrinkage of each tree; for lambdarank, the step size")

    def __call__(self, train: ScoredSet, valid: Sequence[ScoredSet], metric: Metric) -> StepSize:
        return lambda tree, leaves, state: self.learning_rate


def _is_range(value: tuple[float, float]) -> bool:
    low, high = value
    return -np.inf < low < high < np.inf


@STEPS.register("optimal")
@dataclass(frozen=True)
class OptimalStep:
    """The step in a range that is best for the metric on full lists, exactly (Wu et al. 2010, §4), times a factor."""

    step_range: tuple[float, float] = parameter(
        (0.1, 5.0), "Smallest and largest optimal step", "two numbers, the smaller one first", _is_range, convert=tuple
    )
    step_on: str = choice("train", "Data set that a step is optimal for", ("train", "valid"))
    step_shrinkage: float = share(1.0, "Factor of the optimal step")

    traits: ClassVar[Traits] = Traits(one_machine_only=True, varies=True)

    def __call__(self, train: ScoredSet, valid: Sequence[ScoredSet], metric: Metric) -> StepSize:
        from ranksieve.boosting.disk_scores import new_scores
        from ranksieve.boosting.line_search import LineSearch, best_step

        if self.step_on == "valid" and not valid:
            raise ParameterError(param("step_on", "valid"), " needs validation data; give ", param("valid"))
        data, scores = train if self.step_on == "train" else valid[0]
        search = LineSearch(data.lists, metric)

        def step_size(tree: Tree, leaves: KnownLeaves | None, state: State[Any, Any]) -> float:
            for earlier in state.trees[scores.n_trees :]:
                scores.add(earlier)
            direction = new_scores(data)
            direction.add(tree, leaves if scores is state.scores else None)
            return self.step_shrinkage * best_step(search, scores.all(), direction.all(), *self.step_range)[0]

        return step_size
