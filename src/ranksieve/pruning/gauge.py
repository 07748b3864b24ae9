"""`Gauge`: a metric made ready to be read off changing scores thousands of times.

Values, times the weights of their lists, are counted in whole steps of 2^-40, so that their sums over lists are exact
and two equal metrics are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranksieve.data.lists import Lists
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError
from ranksieve.evaluation.measures import (
    by_rank_weights,
    depth_of,
    facts,
    graded_gains,
    ideal_gains,
    positive_gains,
    weighted_sums,
)
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels import pruning as kernels

STEP = 2.0**-40
LARGEST_TABLE = 1 << 24  # terms; lists so long with so many positives are measured the slow way


@dataclass(frozen=True)
class Gauge:
    """A metric on given lists; `kernels.pruning` says what the arrays mean.

    Where `terms` is empty the metric is no sum of terms, and only `total` can be asked.
    """

    metric: Metric
    lists: Lists
    grades: np.ndarray
    terms: np.ndarray
    width: int
    among: bool
    scales: np.ndarray
    weights: np.ndarray  # of the lists, at most 1; 0 for those without a value
    constant: int  # steps of the lists whose value no ranking changes

    @property
    def is_fast(self) -> bool:
        return len(self.terms) > 0

    @property
    def k(self) -> int:
        return self.width - 1

    def total(self, scores: np.ndarray, tie_bits: int) -> int:
        """The metric summed over lists, in steps; the lowest bits of a score are the document's place."""
        if self.is_fast:
            values = np.empty(self.lists.n_queries, np.int64)
            kernels.list_values(
                scores, self.lists.offsets, self.grades, self.terms, self.width, self.among, self.scales, values
            )
            return int(values.sum()) + self.constant
        values = self.metric.per_query(self.lists.labels, (scores >> tie_bits).astype(SCORE), self.lists.offsets)
        return _steps(values, self.weights, self.weights > 0)

    def mean(self, total: int) -> float:
        """The mean over the lists that count, by their weights."""
        return total * STEP / float(self.weights.sum())


def make_gauge(metric: Metric, lists: Lists, source: str) -> Gauge:
    """The gauge of a metric on lists; refuses lists on which it is undefined."""
    values = metric.per_query(lists.labels, np.zeros(lists.n_docs), lists.offsets)
    counted = ~np.isnan(values)
    if not counted.any():
        raise DataError(f"{source}: {metric} is undefined, no query has a positive document; use other data")
    weights = _list_weights(lists, counted, source)
    recipe = RECIPES.get(metric.name)
    if recipe is None or metric.ties == "mean":
        return _slow(metric, lists, weights)
    gains, weigh, norm = recipe
    document_gains = gains(metric, lists.labels)
    positives = facts(lists.labels, lists.offsets)[0]
    ranked = counted & (positives > 0)
    document_gains[np.repeat(~ranked, lists.sizes)] = 0.0
    depth = depth_of(metric, lists.offsets)
    grades, terms, among = weigh(metric, document_gains, depth, int(positives.max(initial=1)))
    if not 0 < terms.size <= LARGEST_TABLE:  # without any term no document gains
        return _slow(metric, lists, weights)
    exponent = 51 - int(np.ceil(np.log2(terms.max(axis=0).sum())))
    fixed = np.zeros((len(terms), depth + 1), np.int64)
    fixed[:, :depth] = np.rint(np.ldexp(terms, exponent))
    norms = np.where(ranked, norm(metric, lists), 1.0)
    return Gauge(
        metric,
        lists,
        grades,
        fixed.ravel(),
        depth + 1,
        among,
        np.ldexp(weights / norms, -exponent) / STEP,
        weights,
        _steps(values, weights, counted & ~ranked),
    )


def _list_weights(lists: Lists, counted: np.ndarray, source: str) -> np.ndarray:
    """The weight of every list that counts, the largest being 1; so steps stay fine and their sums exact."""
    if lists.query_weights is None:
        return counted.astype(SCORE)
    weights = np.where(counted, lists.query_weights, 0.0)
    if not weights.any():
        raise DataError(f"{source}: every query on which the metric is defined weighs 0; give one a weight above 0")
    return weights / weights.max()


def _steps(values: np.ndarray, weights: np.ndarray, among: np.ndarray) -> int:
    """The weighted sum over some lists."""
    return int(np.rint(values[among] * weights[among] / STEP).astype(np.int64).sum())


def _slow(metric: Metric, lists: Lists, weights: np.ndarray) -> Gauge:
    nothing = np.empty(0, np.int64)
    return Gauge(metric, lists, nothing, nothing, 1, False, np.empty(0), weights, 0)


def _by_grade(metric: Metric, gains: np.ndarray, depth: int, most: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Terms gain × weight of the rank; the rows are the gains that occur."""
    found, grades = np.unique(gains, return_inverse=True)
    n_zero = int(found[0] == 0)
    weights = by_rank_weights(metric, depth)
    return grades.astype(np.int32) - n_zero, np.outer(found[n_zero:], weights), False


def _by_positives(
    precision: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Metric, np.ndarray, int, int], tuple[np.ndarray, np.ndarray, bool]]:
    """Terms that ask how many positives stand above."""

    def weigh(metric: Metric, gains: np.ndarray, depth: int, most: int) -> tuple[np.ndarray, np.ndarray, bool]:
        above = precision(np.arange(min(most, depth)))
        return np.where(gains > 0, 0, -1).astype(np.int32), np.outer(above, 1 / np.arange(1, depth + 1)), True

    return weigh


def _graded(metric: Metric, labels: np.ndarray) -> np.ndarray:
    return graded_gains(labels, metric.gain)


def _positive(metric: Metric, labels: np.ndarray) -> np.ndarray:
    return positive_gains(labels)


def _ideal(metric: Metric, lists: Lists) -> np.ndarray:
    weights = by_rank_weights(metric, depth_of(metric, lists.offsets))
    return weighted_sums(*ideal_gains(metric, lists.labels, lists.offsets), weights)


def _one(metric: Metric, lists: Lists) -> np.ndarray:
    return np.ones(lists.n_queries)


def _positives(metric: Metric, lists: Lists) -> np.ndarray:
    return facts(lists.labels, lists.offsets)[0].astype(SCORE)


# metric: gain of a document, terms, what the sum is divided by
RECIPES = {
    "ndcg": (_graded, _by_grade, _ideal),
    "dcg": (_graded, _by_grade, _one),
    "p": (_positive, _by_grade, _one),
    "recall": (_positive, _by_grade, _positives),
    "rbp": (_positive, _by_grade, _one),
    "avg-p": (_positive, _by_grade, _one),
    "map": (_positive, _by_positives(lambda above: above + 1.0), _positives),
    "mrr": (_positive, _by_positives(lambda above: (above == 0) * 1.0), _one),
}
