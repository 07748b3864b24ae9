"""λ-gradients of NDCG, MAP, MRR and ERR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.kernels.metric_kinds import PRECISION, RECIPROCAL, STOPPING, WEIGHTED
from ranksieve.rules import OBJECTIVES, Traits, choice, integer, switch

if TYPE_CHECKING:
    from ranksieve.boosting.views import Gradients, ObjectiveView
    from ranksieve.evaluation.metrics import Metric

ALL_RANKS = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Truncated:
    """An objective of pairs with a document in the top ranks."""

    truncation: int = integer(
        30,
        "Truncation level of λ: only pairs with a document in these top ranks count (0: the metric's cut-off, -1: all)",
        -1,
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
        from ranksieve.evaluation.metric_table import positive_gains

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
        from ranksieve.kernels.lambdas import all_lambdas

        n_docs = len(view.labels)
        if self.fits_labels(view.step):
            return view.labels.astype(np.float64), np.ones(n_docs)
        if self not in view.cache:
            gains, by_rank = self.gains(view), self.discounts(view.offsets, view.metric)
            view.cache[self] = gains, all_ideals(self.kind, gains, view.offsets, by_rank), by_rank
        gains, ideals, by_rank = view.cache[self]
        grad, hess = np.empty(n_docs), np.empty(n_docs)
        all_lambdas(self.kind, gains, view.scores, view.offsets, ideals, by_rank, self.normalize, grad, hess)
        return grad, hess


@OBJECTIVES.register("ndcg")
@dataclass(frozen=True)
class LambdaNdcg(LambdaObjective):
    """λ-gradients of NDCG (Burges; Wu et al. 2010), the default of λ-MART and of its selections."""

    kind: ClassVar[int] = WEIGHTED
    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def gains(self, view: ObjectiveView) -> np.ndarray:
        return sparse_gains(view.labels, view.metric)


@OBJECTIVES.register("map")
@dataclass(frozen=True)
class LambdaMap(LambdaObjective):
    """λ-gradients of MAP."""

    kind: ClassVar[int] = PRECISION


@OBJECTIVES.register("mrr")
@dataclass(frozen=True)
class LambdaMrr(LambdaObjective):
    """λ-gradients of MRR: only pairs that move the first positive count."""

    kind: ClassVar[int] = RECIPROCAL


@OBJECTIVES.register("err")
@dataclass(frozen=True)
class LambdaErr(LambdaObjective):
    """λ-gradients of ERR."""

    kind: ClassVar[int] = STOPPING

    def gains(self, view: ObjectiveView) -> np.ndarray:
        from ranksieve.evaluation.metric_table import stopping

        return stopping(view.labels, view.highest_grade)


def discounts_by_rank(offsets: np.ndarray, truncation: int) -> np.ndarray:
    """Discounts of the ranks up to the truncation that some list has."""
    from ranksieve.evaluation.metric_table import log2_discounts

    return log2_discounts(range(1, 1 + min(truncation, int(np.diff(offsets).max()))))


def all_ideals(kind: int, gains: np.ndarray, offsets: np.ndarray, by_rank: np.ndarray) -> np.ndarray:
    """What the metric of every list is divided by: the ideal DCG, the positives of MAP, or 1."""
    from ranksieve.kernels.metrics import weighted_gains

    ideals = np.ones(len(offsets) - 1)
    positives = np.flatnonzero(gains > 0.0)
    bounds = np.searchsorted(positives, offsets)
    if kind == WEIGHTED:
        query = np.repeat(np.arange(len(ideals)), np.diff(bounds))
        best_first = positives[np.lexsort((-gains[positives], query))]
        weighted_gains(gains[best_first], bounds, by_rank, ideals)
    elif kind == PRECISION:
        ideals[:] = np.diff(bounds)
    return ideals


def sparse_gains(labels: np.ndarray, metric: Metric) -> np.ndarray:
    """The gains of the labels; only positives are looked up, as most documents are negatives."""
    from ranksieve.evaluation.metric_table import graded_gains

    gains = np.zeros(len(labels))
    positive = np.flatnonzero(labels)
    gains[positive] = graded_gains(labels[positive], metric.gain)
    return gains


def batch_gradients(
    rule: LambdaObjective, metric: Metric, highest_grade: float
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], Gradients]:
    """The rule as a function of (labels, scores, offsets), for lists that are different at each call."""
    from ranksieve.boosting.views import ObjectiveView

    def gradients(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Gradients:
        rows = np.arange(len(labels))
        return rule(ObjectiveView(labels, scores, offsets, rows, 1, 0, metric, highest_grade, {}))

    return gradients
