"""Steps: how far to go with a new tree. A step is a function of the tree that returns the factor of its leaf values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.line_search import LineSearch, best_step
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.params import Params

if TYPE_CHECKING:
    from ranksieve.boosting.loop import State

# the tree, where every training document ended in it (None: not known yet), and what there was before it
Step = Callable[[Tree, "Leaves | None", "State"], float]


def shrinkage(rate: float) -> Step:
    """The same small step with every tree (Friedman 2001)."""
    return lambda tree, leaves, state: rate


def optimal(data: Binned, scores: Scores, metric: Metric, low: float, high: float, shrink: float = 1.0) -> Step:
    """The step between low and high that is best for a metric on full lists, exactly, times a factor.

    `scores` are those of the lists under the trees so far; they may lag behind.
    """
    search = LineSearch(data.lists, metric)

    def step(tree: Tree, leaves: Leaves | None, state: State) -> float:
        for earlier in state.trees[scores.n_trees :]:
            scores.add(earlier)
        direction = Scores(data)
        direction.add(tree, leaves if scores is state.scores else None)
        return shrink * best_step(search, scores.all(), direction.all(), low, high)[0]

    return step


def named_step(params: Params, train: tuple[Binned, Scores], valid: Sequence[tuple[Binned, Scores]]) -> Step:
    """The step that the parameters name; training and validation sets come with their scores."""
    if params.step == "shrinkage":
        return shrinkage(params.learning_rate)
    if params.step_on == "valid" and not valid:
        raise ParameterError("--step-on=valid needs a validation set; give --valid")
    data, scores = train if params.step_on == "train" else valid[0]
    return optimal(data, scores, metric_of(params), *params.step_range, params.step_shrinkage)
