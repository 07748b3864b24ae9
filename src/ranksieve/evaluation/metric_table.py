"""The metric table: gain of a document, weight of its rank, norm of the sum; and metrics computed from it.

`evaluate`, pruning, the exact line search and the λ-objectives read NDCG, MAP, MRR and the others from this table.
Arrays are taken as checked; `Metric.per_query` checks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from ranksieve.data.lists import starts_of
from ranksieve.dtypes import LABEL, OFFSET, ROW, SCORE
from ranksieve.errors import DataError, param
from ranksieve.kernels import metrics as kernels
from ranksieve.kernels.metric_kinds import PRECISION, RECIPROCAL, STOPPING, WEIGHTED

if TYPE_CHECKING:
    from ranksieve.evaluation.metrics import Metric

MAX_EXP_LABEL = 52  # 2^53 - 1 is the largest gain that float64 can add to gains of 1 without losing them
WHOLE_LIST = np.iinfo(np.int64).max

GainOf = Callable[[np.ndarray], np.ndarray]  # labels of some documents → their gains
Gain = Callable[["Metric", np.ndarray], GainOf]  # the metric and the labels of all documents → the gain of a label
RankWeights = Callable[["Metric", np.ndarray], np.ndarray]  # the metric and ranks from 1 → what a gain of 1 adds there
Norm = Callable[["Metric", np.ndarray, np.ndarray], np.ndarray]  # metric, labels, offsets → one divisor per query
Measure = Callable[["Metric", np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Definition:
    """What a metric is made of.

    A query's value is the sum of gain × weight over its ranks, divided by the norm. `kind` is how the weight of a
    rank depends on the documents above it, one of `kernels.metric_kinds`:

    - `WEIGHTED`: it does not; the weight is given by `weights`.
    - `PRECISION`: the weight is the precision at that rank, as in MAP.
    - `RECIPROCAL`: the weight is 1 / rank for the first positive and 0 for the others, as in MRR.
    - `STOPPING`: the weight is the probability that a user reaches the rank, divided by the rank, as in ERR.
    """

    gain: Gain | None = None  # None: of the user's own function
    weights: RankWeights | None = None
    kind: int = WEIGHTED
    norm: Norm | None = None  # None: 1
    needs_k: bool = False
    measure: Measure | None = None  # computes a metric that is not such a sum
    function: Callable[..., Any] | None = None  # the user's own

    @property
    def is_graded(self) -> bool:
        """True if the metric reads `Metric.gain`."""
        return self.gain is graded

    @property
    def is_sum(self) -> bool:
        """True if the metric is the sum that the table describes."""
        return self.measure is None

    @property
    def mean_ties(self) -> bool:
        """True if the expectation over tied orders is known."""
        return self.function is None


@dataclass(frozen=True)
class Ranking:
    """Gains in rank order, flat; query q has `bounds[q]:bounds[q + 1]`, tied groups end at `ends`."""

    gains: np.ndarray
    bounds: np.ndarray
    ends: np.ndarray


def graded_gains(labels: np.ndarray, gain: str | tuple[float, ...]) -> np.ndarray:
    """Gain of each label in float64: `2^label - 1`, the label itself, or the label's entry in a table."""
    labels = labels.astype(SCORE)
    if gain == "linear":
        return labels
    highest = labels.max(initial=0.0)
    if gain == "exp":
        if highest > MAX_EXP_LABEL:
            raise DataError(
                f"label {highest:g} is too large for the gain 2^label - 1, which is for grades up to {MAX_EXP_LABEL}; "
                "use ", param("metric", "nDCG@10"), " (its gain is the label; ndcg@10 has 2^label - 1), or map the "
                "labels to fewer grades",
            )  # fmt: skip
        return np.exp2(labels) - 1
    grades = labels.astype(np.int64)
    if (grades != labels).any() or highest >= len(gain):
        odd = labels[np.argmax((grades != labels) | (labels >= len(gain)))]
        raise DataError(
            f"label {odd:g} has no entry in the gain table of {len(gain)} entries, which is for labels "
            f"0 to {len(gain) - 1}; give one gain for every label from 0 to the largest, or leave the table out"
        )
    return np.asarray(gain, dtype=SCORE)[grades]


def positive_gains(labels: np.ndarray) -> np.ndarray:
    return (labels > 0).astype(SCORE)


def highest_grade(labels: np.ndarray) -> float:
    """The grade at which users of ERR are most likely to stop."""
    return max(1.0, float(labels.max(initial=0.0)))


def stopping(labels: np.ndarray, highest: float) -> np.ndarray:
    """The chance that a user stops at a document, (2^label - 1) / 2^highest, written so that no label overflows."""
    return np.exp2(labels.astype(SCORE) - highest) - np.exp2(-highest)


def graded(metric: Metric, labels: np.ndarray) -> GainOf:
    """Gains of the grades, given by `Metric.gain`."""
    return lambda some: graded_gains(some, metric.gain)


def positive(metric: Metric, labels: np.ndarray) -> GainOf:
    """1 for positives, 0 for negatives."""
    return lambda some: is_positive(metric, some).astype(SCORE)


def is_positive(metric: Metric, labels: np.ndarray) -> np.ndarray:
    """Which documents are positive: labels from `Metric.rel` on, or above 0."""
    return labels > 0 if metric.rel is None else labels >= metric.rel


def stop_chances(metric: Metric, labels: np.ndarray) -> GainOf:
    """The chances that a user stops at documents."""
    highest = highest_grade(labels) if metric.highest is None else metric.highest
    if labels.max(initial=0.0) > highest:
        raise DataError(
            f"a label is {labels.max():g}, and the highest grade of {metric} is {highest:g}; use err, which takes the "
            "highest label of the data"
        )
    return lambda some: stopping(some, highest)


def label_counts(labels: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query the number of positives, and whether it has only one label."""
    positives = np.empty(len(offsets) - 1, dtype=OFFSET)
    one_label = np.empty(len(offsets) - 1, dtype=bool)
    kernels.label_facts(labels, offsets, positives, one_label)
    return positives, one_label


def count_positives(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Per query the number of documents that the metric takes for positives."""
    return label_counts(labels if metric.rel is None else is_positive(metric, labels).astype(LABEL), offsets)[0]


def best_rows(scores: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the `counts[q]` best of every query, flat and best first, and the bounds of each query in them."""
    bounds = starts_of(counts)
    rows = np.empty(bounds[-1], dtype=ROW)
    kernels.rank_queries(np.asarray(scores, SCORE), offsets, bounds, rows)
    return rows, bounds


def counts_of(metric: Metric, offsets: np.ndarray) -> np.ndarray:
    """How many documents of each query the metric looks at."""
    sizes = np.diff(offsets)
    return sizes if metric.k is None else np.minimum(sizes, metric.k)


def rank(
    metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray, gain: GainOf, *, is_linear: bool
) -> Ranking:
    """The ranking by score, cut at the metric's k; under ties="mean" the last tied group is kept whole.

    A metric that is linear in the gains needs only the expected gain at each rank: the gains are then the means of
    their tied groups.
    """
    counts = counts_of(metric, offsets)
    rows, bounds = best_rows(scores, offsets, counts)
    if metric.ties == "mean":
        if metric.k is not None:
            kernels.reaches_of_ties(scores, offsets, rows, bounds, counts)
            rows, bounds = best_rows(scores, offsets, counts)
        ends = np.empty(len(rows), dtype=OFFSET)
        kernels.tie_ends(scores, rows, bounds, ends)
    else:
        ends = np.arange(1, len(rows) + 1) - np.repeat(bounds[:-1], np.diff(bounds))
    gains = gain(labels[rows])
    if is_linear and metric.ties == "mean":
        kernels.average_ties(gains, ends, bounds)
    return Ranking(gains, bounds, ends)


def ideal_gains(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest gains of every query, up to k, and their bounds; gains never fall with the label."""
    rows, bounds = best_rows(labels, offsets, counts_of(metric, offsets))
    return graded_gains(labels[rows], metric.gain), bounds


def depth_of(metric: Metric, offsets: np.ndarray) -> int:
    """The deepest rank that counts in any query."""
    return int(counts_of(metric, offsets).max(initial=0))


def weighted_gains(gains: np.ndarray, bounds: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty(len(bounds) - 1)
    kernels.weighted_gains(gains, bounds, weights, out)
    return out


def divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Quotients, NaN where the divisor is 0."""
    return np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)


def rank_weights(metric: Metric, offsets: np.ndarray) -> np.ndarray:
    """What a gain of 1 adds at every rank that counts in some query; 1 where the kind has its own weights."""
    depth = depth_of(metric, offsets)
    weights = METRICS[metric.name].weights
    return np.ones(depth) if weights is None else weights(metric, np.arange(1, depth + 1))


def norms(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """What the sum of every query is divided by; 0 where the metric is undefined."""
    norm = METRICS[metric.name].norm
    return np.ones(len(offsets) - 1) if norm is None else norm(metric, labels, offsets)


def measure(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """One float64 per query; NaN where it has no positives or the metric is undefined."""
    definition = METRICS[metric.name]
    if definition.measure is not None:
        values = definition.measure(metric, labels, scores, offsets)
    else:
        by = norms(metric, labels, offsets)  # first: its errors are about the largest labels
        values = divide(sums(metric, labels, scores, offsets), by)
    if definition.function is None:
        values[count_positives(metric, labels, offsets) == 0] = np.nan
    return values


def sums(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum of gain × weight over the ranks of every query."""
    definition = METRICS[metric.name]
    assert definition.gain is not None
    gain = definition.gain(metric, labels)
    ranking = rank(metric, labels, scores, offsets, gain, is_linear=definition.kind == WEIGHTED)
    return sums_of(metric, ranking, rank_weights(metric, offsets))


def sums_of(metric: Metric, ranking: Ranking, weights: np.ndarray) -> np.ndarray:
    """The sums of a ranking; `weights` are those of `rank_weights`."""
    kind = METRICS[metric.name].kind
    if kind == WEIGHTED:
        return weighted_gains(ranking.gains, ranking.bounds, weights)
    out = np.empty(len(ranking.bounds) - 1)
    kernels.expected_sums(kind, ranking.gains, ranking.ends, ranking.bounds, metric.k or WHOLE_LIST, out)
    return out


def _average_ndcg(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The mean of NDCG over the cut-offs 1 to k; each cut-off has its own norm."""
    ranking = rank(metric, labels, scores, offsets, graded(metric, labels), is_linear=True)
    ideal, ideal_bounds = ideal_gains(metric, labels, offsets)
    out = np.empty(len(offsets) - 1)
    weights = rank_weights(metric, offsets)
    kernels.average_ndcgs(ranking.gains, ranking.bounds, ideal, ideal_bounds, weights, metric.k, out)
    return out


def log2_discounts(ranks: Iterable[int]) -> np.ndarray:
    """The weights 1 / log2(1 + rank) of DCG. They have the same bits on every CPU, which those of `np.log2` do not."""
    return np.array([1.0 / math.log2(1 + rank) for rank in ranks])


def _discounts(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return log2_discounts(ranks.tolist())


def _mean_of_precisions(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    # A positive at rank r adds 1/c to P at each cut-off c from r to k; digamma(k + 1) - digamma(r) sums those.
    return (digamma(metric.k + 1) - digamma(ranks)) / metric.k  # type: ignore[operator]


def _one_in_k(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return np.full(len(ranks), 1 / metric.k)  # type: ignore[operator]


def _equal(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return np.ones(len(ranks))


def _geometric(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return (1 - metric.p) * metric.p ** (ranks - 1)


def _ideal(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum in the best order."""
    return weighted_gains(*ideal_gains(metric, labels, offsets), rank_weights(metric, offsets))


def _positives(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return count_positives(metric, labels, offsets).astype(SCORE)


BUILT_IN = {
    "ndcg": Definition(graded, _discounts, norm=_ideal),
    "dcg": Definition(graded, _discounts),
    "map": Definition(positive, kind=PRECISION, norm=_positives),
    "mrr": Definition(positive, kind=RECIPROCAL),
    "p": Definition(positive, _one_in_k, needs_k=True),
    "recall": Definition(positive, _equal, norm=_positives, needs_k=True),
    "err": Definition(stop_chances, kind=STOPPING),
    "rbp": Definition(positive, _geometric),
    "avg-ndcg": Definition(graded, _discounts, needs_k=True, measure=_average_ndcg),
    "avg-p": Definition(positive, _mean_of_precisions, needs_k=True),
}

METRICS: dict[str, Definition] = dict(BUILT_IN)  # the built-in metrics, and those that users register
