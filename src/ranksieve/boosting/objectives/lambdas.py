"""λ-gradients of NDCG, MAP, MRR and ERR."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve.boosting.training_rows import Gradients, ObjectiveView
from ranksieve.evaluation.metric_table import graded_gains, positive_gains, stopping
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels import lambdas as kernels
from ranksieve.kernels.metrics import weighted_gains
from ranksieve.rules import OBJECTIVES, Traits, choice, integer, switch

ALL_RANKS = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Truncated:
    """An objective of pairs with a document in the top ranks."""

    truncation: int = integer(
        30, "Truncation level of λ: each pair has a document in these top ranks (0: the metric's cut-off, -1: all)", -1
    )

    def depth(self, metric: Metric) -> int:
        """The number of these ranks."""
        truncation = self.truncation or metric.k or -1
        return ALL_RANKS if truncation < 0 else truncation


@dataclass(frozen=True, kw_only=True)
class LambdaObjective(Truncated):
    """λ-gradients: each pair of documents counts by how much the metric changes if they change places."""

    normalize: bool = switch(True, "Normalise λ by score distance and per query, as LightGBM does")
    first_tree: str = choice("lambdas", "What the first tree fits", ("lambdas", "labels"))

    kind: ClassVar[int]
    traits: ClassVar[Traits] = Traits(needs_pairs=True)

    def gains(self, view: ObjectiveView) -> np.ndarray:
        """What a document contributes to the metric."""
        return positive_gains(view.labels)

    def ideals(self, gains: np.ndarray, offsets: np.ndarray, metric: Metric) -> np.ndarray:
        """What the metric of every list is divided by."""
        return all_ideals(self.kind, gains, offsets, self.discounts(offsets, metric))

    def discounts(self, offsets: np.ndarray, metric: Metric) -> np.ndarray:
        """The discounts of the ranks that keep one."""
        return discounts_by_rank(offsets, self.depth(metric))

    def fits_labels(self, step: int) -> bool:
        """Whether the tree of this step fits the labels themselves (Lucchese et al. 2018, §4)."""
        return step == 0 and self.first_tree == "labels"

    def __call__(self, view: ObjectiveView) -> Gradients:
        n_docs = len(view.labels)
        if self.fits_labels(view.step):
            return view.labels.astype(np.float64), np.ones(n_docs)
        if self not in view.cache:
            gains, by_rank = self.gains(view), self.discounts(view.offsets, view.metric)
            view.cache[self] = gains, all_ideals(self.kind, gains, view.offsets, by_rank), by_rank
        gains, ideals, by_rank = view.cache[self]
        grad, hess = np.empty(n_docs), np.empty(n_docs)
        kernels.all_lambdas(self.kind, gains, view.scores, view.offsets, ideals, by_rank, self.normalize, grad, hess)
        return grad, hess


@OBJECTIVES.register("ndcg")
@dataclass(frozen=True)
class LambdaNdcg(LambdaObjective):
    """λ-gradients of NDCG (Burges; Wu et al. 2010), the default of λ-MART and of its selections."""

    kind: ClassVar[int] = kernels.NDCG
    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def gains(self, view: ObjectiveView) -> np.ndarray:
        return sparse_gains(view.labels, view.metric)


@OBJECTIVES.register("map")
@dataclass(frozen=True)
class LambdaMap(LambdaObjective):
    """λ-gradients of MAP."""

    kind: ClassVar[int] = kernels.PRECISION


@OBJECTIVES.register("mrr")
@dataclass(frozen=True)
class LambdaMrr(LambdaObjective):
    """λ-gradients of MRR: only pairs that move the first positive count."""

    kind: ClassVar[int] = kernels.RECIPROCAL


@OBJECTIVES.register("err")
@dataclass(frozen=True)
class LambdaErr(LambdaObjective):
    """λ-gradients of ERR."""

    kind: ClassVar[int] = kernels.STOPPING

    def gains(self, view: ObjectiveView) -> np.ndarray:
        return stopping(view.labels, view.highest_grade)


def discounts_by_rank(offsets: np.ndarray, truncation: int) -> np.ndarray:
    """Discounts of the ranks up to the truncation that some list has."""
    ranks = range(1, 1 + min(truncation, int(np.diff(offsets).max())))
    return np.array([1.0 / math.log2(1 + rank) for rank in ranks])


def all_ideals(kind: int, gains: np.ndarray, offsets: np.ndarray, by_rank: np.ndarray) -> np.ndarray:
    """What the metric of every list is divided by: the ideal DCG, the positives of MAP, or 1."""
    ideals = np.ones(len(offsets) - 1)
    positives = np.flatnonzero(gains > 0.0)
    bounds = np.searchsorted(positives, offsets)
    if kind == kernels.NDCG:
        query = np.repeat(np.arange(len(ideals)), np.diff(bounds))
        best_first = positives[np.lexsort((-gains[positives], query))]
        weighted_gains(gains[best_first], bounds, by_rank, ideals)
    elif kind == kernels.PRECISION:
        ideals[:] = np.diff(bounds)
    return ideals


def sparse_gains(labels: np.ndarray, metric: Metric) -> np.ndarray:
    """The gains of the labels; only positives are looked up, as most documents are negatives."""
    gains = np.zeros(len(labels))
    positive = np.flatnonzero(labels)
    gains[positive] = graded_gains(labels[positive], metric.gain)
    return gains


def batch_gradients(
    rule: LambdaObjective, metric: Metric, highest_grade: float
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], Gradients]:
    """The rule as a function of (labels, scores, offsets), for lists that are different at each call."""

    def gradients(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Gradients:
        rows = np.arange(len(labels))
        return rule(ObjectiveView(labels, scores, offsets, rows, 1, 0, metric, highest_grade, {}))

    return gradients
