"""`IncrementalMetric`: a metric of lists that is computed thousands of times while scores change.

Values, times the weights of their lists, are whole multiples of a step, a power of two. So their sums over lists are
exact, and equal metrics compare as equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.data.lists import Lists
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError
from ranksieve.evaluation.metric_table import METRICS, count_positives, norms, rank_weights
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels.metric_kinds import PRECISION, STOPPING, WEIGHTED
from ranksieve.kernels.pruning import Terms, list_values

SMALLEST_STEP = -40  # as a power of two; steps of large values are larger
SUM_BITS = 62  # bits of a sum over lists, in steps
LARGEST_TABLE = 1 << 24  # terms; lists that need a larger table are measured without one, which is slower


@dataclass(frozen=True)
class IncrementalMetric:
    """A metric on given lists.

    Where there are no `terms` the metric is not a sum of terms, and only `total` is available.
    """

    metric: Metric
    lists: Lists
    terms: Terms
    weights: np.ndarray  # of the lists, at most 1; 0 for those without a value
    constant: int  # steps of the lists whose value no ranking changes
    step: float

    @property
    def is_fast(self) -> bool:
        return len(self.terms.values) > 0

    def total(self, scores: np.ndarray, tie_bits: int) -> int:
        """The metric summed over lists, in steps; the lowest bits of a score are the document's place."""
        if self.is_fast:
            values = np.empty(self.lists.n_queries, np.int64)
            list_values(scores, self.lists.offsets, self.terms, values)
            return int(values.sum()) + self.constant
        values = self.metric.per_query(self.lists.labels, (scores >> tie_bits).astype(SCORE), self.lists.offsets)
        return _steps(values, self.weights, self.weights > 0, self.step)

    def mean(self, total: int) -> float:
        """The mean over the lists that count, by their weights."""
        return total * self.step / float(self.weights.sum())


def incremental_metric(metric: Metric, lists: Lists, source: str) -> IncrementalMetric:
    """The metric on lists; an error if it is undefined on all of them."""
    values = metric.per_query(lists.labels, np.zeros(lists.n_docs), lists.offsets)
    counted = ~np.isnan(values)
    if not counted.any():
        raise DataError(f"{source}: {metric} is undefined because no query has a positive document; use other data")
    weights = _list_weights(lists, counted, source)
    definition = METRICS[metric.name]
    if not definition.is_sum or definition.kind == STOPPING or metric.ties == "mean":
        return _slow(metric, lists, weights)
    assert definition.gain is not None
    gains = definition.gain(metric, lists.labels)(lists.labels)
    positives = count_positives(metric, lists.labels, lists.offsets)
    ranked = counted & (positives > 0)
    gains[np.repeat(~ranked, lists.sizes)] = 0.0
    by_rank = rank_weights(metric, lists.offsets)
    depth = len(by_rank)
    if definition.kind == WEIGHTED:
        grades, terms = _terms_by_grade(gains, by_rank)
    else:
        grades, terms = _terms_by_positives(gains, definition.kind, depth, int(positives.max(initial=1)))
    if not 0 < terms.size <= LARGEST_TABLE:  # without any term no document gains
        return _slow(metric, lists, weights)
    exponent = 51 - int(np.ceil(np.log2(terms.max(axis=0).sum())))
    fixed = np.zeros((len(terms), depth + 1), np.int64)
    fixed[:, :depth] = np.rint(np.ldexp(terms, exponent))
    step = _step_of(1.0 if definition.norm else terms.max(axis=0).sum(), lists.n_queries)
    scales = np.ldexp(weights / np.where(ranked, norms(metric, lists.labels, lists.offsets), 1.0), -exponent) / step
    found = Terms(grades, fixed.ravel(), depth + 1, definition.kind != WEIGHTED, scales)
    return IncrementalMetric(metric, lists, found, weights, _steps(values, weights, counted & ~ranked, step), step)


def _list_weights(lists: Lists, counted: np.ndarray, source: str) -> np.ndarray:
    """The weight of every list that counts, the largest being 1; so steps stay fine and their sums exact."""
    if lists.query_weights is None:
        return counted.astype(SCORE)
    weights = np.where(counted, lists.query_weights, 0.0)
    if not weights.any():
        raise DataError(f"{source}: every query on which the metric is defined has weight 0; give one a weight above 0")
    return weights / weights.max()


def _step_of(largest: float, n_lists: int) -> float:
    """The step for values up to the largest: sums over lists fit 64 bits."""
    bits = int(np.ceil(np.log2(max(largest * n_lists, 1.0))))
    return float(np.ldexp(1.0, max(SMALLEST_STEP, bits - SUM_BITS)))


def _steps(values: np.ndarray, weights: np.ndarray, among: np.ndarray, step: float) -> int:
    """The weighted sum over some lists."""
    return int(np.rint(values[among] * weights[among] / step).astype(np.int64).sum())


def _slow(metric: Metric, lists: Lists, weights: np.ndarray) -> IncrementalMetric:
    nothing = np.empty(0, np.int64)
    ends = (metric.per_query(lists.labels, sign * lists.labels, lists.offsets) for sign in (1.0, -1.0))
    step = _step_of(max(float(np.nanmax(np.abs(values), initial=0.0)) for values in ends), lists.n_queries)
    return IncrementalMetric(metric, lists, Terms(nothing, nothing, 1, False, np.empty(0)), weights, 0, step)


def _terms_by_grade(gains: np.ndarray, by_rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of every document, and the terms gain × weight of the rank; a row is a gain that occurs."""
    found, grades = np.unique(gains, return_inverse=True)
    n_zero = int(found[0] == 0)
    return grades.astype(np.int32) - n_zero, np.outer(found[n_zero:], by_rank)


def _terms_by_positives(gains: np.ndarray, kind: int, depth: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The same where a term depends on the number of positives above, which is its row."""
    above = np.arange(min(most, depth))
    precision = above + 1.0 if kind == PRECISION else (above == 0) * 1.0
    return np.where(gains > 0, 0, -1).astype(np.int32), np.outer(precision, 1 / np.arange(1, depth + 1))
