"""How each built-in metric is computed: (metric, labels, scores, offsets) → one float64 per query, NaN = undefined.

Arrays are taken as checked; `Metric.per_query` is the door.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from ranksieve.dtypes import OFFSET, ROW, SCORE
from ranksieve.errors import DataError
from ranksieve.kernels import metrics as kernels

if TYPE_CHECKING:
    from ranksieve.evaluation.metrics import Metric

MAX_EXP_LABEL = 1000  # 2^1000 times the length of any list still fits float64
WHOLE_LIST = np.iinfo(np.int64).max

GRADED = "gain"
POSITIVE = "labels above 0 are positive"
STOPPING = "users stop with probability (2^label - 1) / 2^(highest label of the data, at least 1)"
OWN = "the user's own function"

Measure = Callable[["Metric", np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Known:
    """What the registry keeps of a metric."""

    measure: Measure
    relevance: str = POSITIVE  # what it reads of a label, as `Metric.describe` says it; GRADED reads `Metric.gain`
    needs_k: bool = False
    mean_ties: bool = True  # knows the expectation over tied orders
    function: Callable[..., Any] | None = None  # the user's own


@dataclass(frozen=True)
class Ranking:
    """Gains in rank order, flat; query q stands at `bounds[q]:bounds[q + 1]`, tied groups stop at `ends`."""

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
                f"the gain 2^label - 1 overflows for label {highest:g}; "
                'use gain="linear", or gain=(0, 1, 3, …) with one entry per grade'
            )
        return np.exp2(labels) - 1
    grades = labels.astype(np.int64)
    if (grades != labels).any() or highest >= len(gain):
        odd = labels[np.argmax((grades != labels) | (labels >= len(gain)))]
        raise DataError(
            f"label {odd:g} has no entry in the gain table of {len(gain)} entries, which is for labels "
            f'0 to {len(gain) - 1}; add entries, or use gain="linear" or "exp"'
        )
    return np.asarray(gain, dtype=SCORE)[grades]


def positive_gains(labels: np.ndarray) -> np.ndarray:
    return (labels > 0).astype(SCORE)


def facts(labels: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query the number of positives, and whether it has only one label."""
    positives = np.empty(len(offsets) - 1, dtype=OFFSET)
    one_label = np.empty(len(offsets) - 1, dtype=bool)
    kernels.label_facts(labels, offsets, positives, one_label)
    return positives, one_label


def best_rows(scores: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the `counts[q]` best of every query, flat and best first, and the bounds of each query in them."""
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(OFFSET)
    rows = np.empty(bounds[-1], dtype=ROW)
    kernels.rank_queries(scores, offsets, bounds, rows)
    return rows, bounds


def counts_of(metric: Metric, offsets: np.ndarray) -> np.ndarray:
    """How many documents of each query the metric looks at."""
    sizes = np.diff(offsets)
    return sizes if metric.k is None else np.minimum(sizes, metric.k)


def rank(
    metric: Metric,
    labels: np.ndarray,
    scores: np.ndarray,
    offsets: np.ndarray,
    gain: Callable[[np.ndarray], np.ndarray],
) -> Ranking:
    """The ranking by score, cut at the metric's k; under ties="mean" the last tied group is kept whole."""
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
    return Ranking(gain(labels[rows]), bounds, ends)


def expected_gains(
    metric: Metric,
    labels: np.ndarray,
    scores: np.ndarray,
    offsets: np.ndarray,
    gain: Callable[[np.ndarray], np.ndarray],
) -> Ranking:
    """The ranking with the expected gain at each rank: all that a metric linear in the gains needs."""
    ranking = rank(metric, labels, scores, offsets, gain)
    if metric.ties == "mean":
        kernels.average_ties(ranking.gains, ranking.ends, ranking.bounds)
    return ranking


def ideal_gains(metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest gains of every query, up to k, and their bounds; gains never fall with the label."""
    rows, bounds = best_rows(labels, offsets, counts_of(metric, offsets))
    return graded_gains(labels[rows], metric.gain), bounds


def depth_of(metric: Metric, offsets: np.ndarray) -> int:
    """The deepest rank that counts in any query."""
    return int(counts_of(metric, offsets).max(initial=0))


def discounts(depth: int) -> np.ndarray:
    """`1 / log2(1 + rank)` of the ranks 1 to depth."""
    return 1 / np.log2(np.arange(2, depth + 2))


def weighted_sums(gains: np.ndarray, bounds: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty(len(bounds) - 1)
    kernels.weighted_sums(gains, bounds, weights, out)
    return out


def divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Quotients, NaN where the divisor is 0."""
    return np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)


def dcg(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    ranking = expected_gains(metric, labels, scores, offsets, lambda some: graded_gains(some, metric.gain))
    return weighted_sums(ranking.gains, ranking.bounds, discounts(depth_of(metric, offsets)))


def ndcg(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    ideal = weighted_sums(*ideal_gains(metric, labels, offsets), discounts(depth_of(metric, offsets)))
    return divide(dcg(metric, labels, scores, offsets), ideal)


def average_ndcg(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    ranking = expected_gains(metric, labels, scores, offsets, lambda some: graded_gains(some, metric.gain))
    ideal, ideal_bounds = ideal_gains(metric, labels, offsets)
    out = np.empty(len(offsets) - 1)
    weights = discounts(depth_of(metric, offsets))
    kernels.average_ndcgs(ranking.gains, ranking.bounds, ideal, ideal_bounds, weights, metric.k, out)
    return out


def positives_by_rank(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum over positives of the weights of their ranks."""
    ranking = expected_gains(metric, labels, scores, offsets, positive_gains)
    return weighted_sums(ranking.gains, ranking.bounds, by_rank_weights(metric, depth_of(metric, offsets)))


def by_rank_weights(metric: Metric, depth: int) -> np.ndarray:
    """What a gain of 1 adds at the ranks 1 to depth, before the metric is normalised."""
    return RANK_WEIGHTS[metric.name](metric, np.arange(1, depth + 1))


def _discounts(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return discounts(len(ranks))


def _recall_weights(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return np.ones(len(ranks))


def _precision_weights(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return np.full(len(ranks), 1 / metric.k)  # type: ignore[operator]


def _average_precision_weights(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    # A positive at rank r adds 1/c to P at each cut-off c from r to k; digamma(k + 1) - digamma(r) sums those.
    return (digamma(metric.k + 1) - digamma(ranks)) / metric.k  # type: ignore[operator]


def _rbp_weights(metric: Metric, ranks: np.ndarray) -> np.ndarray:
    return (1 - metric.p) * metric.p ** (ranks - 1)


RANK_WEIGHTS: dict[str, Callable[[Metric, np.ndarray], np.ndarray]] = {
    "ndcg": _discounts,
    "dcg": _discounts,
    "p": _precision_weights,
    "recall": _recall_weights,
    "rbp": _rbp_weights,
    "avg-p": _average_precision_weights,
}


def recall(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    found = positives_by_rank(metric, labels, scores, offsets)
    return divide(found, facts(labels, offsets)[0])


def average_precision(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    ranking = rank(metric, labels, scores, offsets, positive_gains)
    out = np.empty(len(offsets) - 1)
    kernels.precision_sums(ranking.gains, ranking.ends, ranking.bounds, metric.k or WHOLE_LIST, out)
    return divide(out, facts(labels, offsets)[0])


def reciprocal_rank(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    ranking = rank(metric, labels, scores, offsets, positive_gains)
    out = np.empty(len(offsets) - 1)
    kernels.reciprocal_ranks(ranking.gains, ranking.ends, ranking.bounds, metric.k or WHOLE_LIST, out)
    return out


def highest_grade(labels: np.ndarray) -> float:
    """The grade at which users of ERR are most likely to stop."""
    return max(1.0, float(labels.max(initial=0.0)))


def stopping(labels: np.ndarray, highest: float) -> np.ndarray:
    """The chance that a user stops at a document, (2^label - 1) / 2^highest, written so that no label overflows."""
    return np.exp2(labels.astype(SCORE) - highest) - np.exp2(-highest)


def err(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    highest = highest_grade(labels)
    ranking = rank(metric, labels, scores, offsets, lambda some: stopping(some, highest))
    out = np.empty(len(offsets) - 1)
    kernels.expected_reciprocal_ranks(ranking.gains, ranking.ends, ranking.bounds, metric.k or WHOLE_LIST, out)
    return out


def without_empty(measure: Measure) -> Measure:
    """The measure, undefined for queries without positives."""

    def measure_queries(metric: Metric, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        values = measure(metric, labels, scores, offsets)
        values[facts(labels, offsets)[0] == 0] = np.nan
        return values

    return measure_queries


BUILT_IN = {
    "ndcg": Known(without_empty(ndcg), relevance=GRADED),
    "dcg": Known(without_empty(dcg), relevance=GRADED),
    "map": Known(without_empty(average_precision)),
    "mrr": Known(without_empty(reciprocal_rank)),
    "p": Known(without_empty(positives_by_rank), needs_k=True),
    "recall": Known(without_empty(recall), needs_k=True),
    "err": Known(without_empty(err), relevance=STOPPING),
    "rbp": Known(without_empty(positives_by_rank)),
    "avg-ndcg": Known(without_empty(average_ndcg), relevance=GRADED, needs_k=True),
    "avg-p": Known(without_empty(positives_by_rank), needs_k=True),
}
