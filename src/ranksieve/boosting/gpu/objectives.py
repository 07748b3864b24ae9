"""The objectives that are computed on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.boosting.objectives.lambdas import ALL_RANKS, LambdaObjective, sparse_gains
from ranksieve.boosting.objectives.squared import SquaredError
from ranksieve.boosting.objectives.xendcg import XeNdcg
from ranksieve.boosting.objectives.yetiloss import YetiLoss
from ranksieve.boosting.training_rows import ObjectiveView, TrainingLists
from ranksieve.cuda.gradients import CrossEntropy, Lambdas, ListGradients, NoisyLambdas, Residuals
from ranksieve.kernels.lambdas import NDCG, all_ideals, discounts_by_rank


@dataclass(frozen=True)
class GpuObjective:
    """Gradients on a GPU, and the ideal values of lists that they are divided by."""

    gradients: Any  # a `ListGradients` with `run`
    gains: np.ndarray  # of all documents
    ideals: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda gains, offsets: np.ones(1)


def labels_alone(lists: TrainingLists) -> ListGradients:
    """What the first tree is fitted to with `first_tree="labels"`."""
    return Residuals(False, lists.lists.labels, lists.lists.weights)


def objective_of(lists: TrainingLists) -> GpuObjective | None:
    """The objective on a GPU; None where it is one of the user's."""
    rule, metric, seed = lists.params.objective_rule, lists.metric, lists.params.seed
    labels, offsets, weights = lists.lists.labels, lists.lists.offsets, lists.lists.weights
    if isinstance(rule, LambdaObjective) and type(rule).__call__ is LambdaObjective.__call__:
        nothing = np.empty(0)
        gains = rule.gains(ObjectiveView(labels, nothing, offsets, None, 1, 0, metric, lists.highest_grade, {}))
        return GpuObjective(
            Lambdas(rule.kind, rule.normalize, rule.discounts(offsets, metric), gains, weights), gains,
            lambda gains, offsets: rule.ideals(gains, offsets, metric),
        )  # fmt: skip
    if type(rule) is SquaredError:
        return GpuObjective(Residuals(True, labels, weights), labels)
    if type(rule) is XeNdcg:
        gains = sparse_gains(labels, metric)
        return GpuObjective(CrossEntropy(seed, gains, weights), gains)
    if type(rule) is YetiLoss:
        gains, depth = sparse_gains(labels, metric), rule.truncation or metric.k or -1
        shape = lists.lists.n_docs if depth < 0 else depth, rule.neighbors, rule.permutations
        return GpuObjective(
            NoisyLambdas(seed, shape, gains, weights), gains,
            lambda gains, offsets: all_ideals(NDCG, gains, offsets, discounts_by_rank(offsets, ALL_RANKS)),
        )  # fmt: skip
    return None
