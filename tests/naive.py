"""The slow truth: plain Python that follows the definitions word by word, for tests of the compiled code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

# --- metrics of one list; `ranked` holds its labels in rank order -------------------------------------------------


def metric_gain(label, gain="exp"):
    if gain == "exp":
        return 2.0**label - 1
    return float(label) if gain == "linear" else gain[int(label)]


def dcg(ranked, k, gain="exp"):
    return sum(metric_gain(label, gain) / math.log2(1 + rank) for rank, label in enumerate(ranked[:k], start=1))


def ndcg(ranked, k, gain="exp"):
    return dcg(ranked, k, gain) / dcg(sorted(ranked, reverse=True), k, gain)


def precision(ranked, k):
    return sum(label > 0 for label in ranked[:k]) / k


def recall(ranked, k):
    return sum(label > 0 for label in ranked[:k]) / sum(label > 0 for label in ranked)


def average_precision(ranked, k):
    hits = [rank for rank, label in enumerate(ranked[:k], start=1) if label > 0]
    return sum(precision(ranked, rank) for rank in hits) / sum(label > 0 for label in ranked)


def reciprocal_rank(ranked, k):
    return max((1 / rank for rank, label in enumerate(ranked[:k], start=1) if label > 0), default=0.0)


def err(ranked, k, highest):
    total, reading = 0.0, 1.0
    for rank, label in enumerate(ranked[:k], start=1):
        stop = (2.0**label - 1) / 2.0**highest
        total += reading * stop / rank
        reading *= 1 - stop
    return total


def rbp(ranked, k, p=0.8):
    return (1 - p) * sum(p ** (rank - 1) for rank, label in enumerate(ranked[:k], start=1) if label > 0)


def metric_value(name, ranked, k, *, gain="exp", p=0.8, highest=None):
    """The metric of that name; k = None is the whole list, `highest` the highest label of all lists (ERR)."""
    values = {
        "ndcg": lambda: ndcg(ranked, k, gain),
        "dcg": lambda: dcg(ranked, k, gain),
        "map": lambda: average_precision(ranked, k),
        "mrr": lambda: reciprocal_rank(ranked, k),
        "p": lambda: precision(ranked, k),
        "recall": lambda: recall(ranked, k),
        "err": lambda: err(ranked, k, max(1, highest)),
        "rbp": lambda: rbp(ranked, k, p),
        "avg-ndcg": lambda: sum(ndcg(ranked, cut, gain) for cut in range(1, k + 1)) / k,
        "avg-p": lambda: sum(precision(ranked, cut) for cut in range(1, k + 1)) / k,
    }
    return values[name]()


def metric_order(labels, scores):
    """Labels in rank order; equal scores keep the input order."""
    return [labels[row] for row in sorted(range(len(labels)), key=lambda row: (-scores[row], row))]


def metric_orders(labels, scores) -> Iterator[list]:
    """Labels in every rank order that equal scores allow."""
    groups = [
        [label for label, other in zip(labels, scores, strict=True) if other == score]
        for score in sorted(set(scores), reverse=True)
    ]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain(*orders))


def metric_of_list(name, labels, scores, k, *, ties="order", **options):
    """One list measured under one of the three ways to treat ties; NaN without positives."""
    if not any(label > 0 for label in labels):
        return math.nan
    if ties == "order":
        return metric_value(name, metric_order(labels, scores), k, **options)
    values = [metric_value(name, ranked, k, **options) for ranked in metric_orders(labels, scores)]
    return min(values) if ties == "worst" else sum(values) / len(values)


def lambdas(labels, scores, offsets, truncation, normalize=False, value=None):
    """λ and w by the double loop over all pairs of each query (Wu et al. 2010, Algorithm 1).

    `value(ranked labels)` is the metric whose change counts where a pair changes places; NDCG where it is not given.
    """
    grad, hess = [0.0] * len(labels), [0.0] * len(labels)
    for start, stop in itertools.pairwise(offsets):
        rows = range(start, stop)
        ranking = sorted(rows, key=lambda row: (-scores[row], row))
        discount = {row: 1 / math.log2(rank + 2) if rank < truncation else 0.0 for rank, row in enumerate(ranking)}
        gain = {row: 2.0 ** float(labels[row]) - 1 for row in rows}
        ideal = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted(gain.values(), reverse=True)[:truncation]))
        total = 0.0
        spread = len({float(scores[row]) for row in rows}) > 1
        for i in rows:
            for j in rows:
                if labels[i] <= labels[j] or ideal == 0:
                    continue
                if value is None:
                    delta = abs((gain[i] - gain[j]) * (discount[i] - discount[j])) / ideal
                else:
                    swapped = [{i: j, j: i}.get(row, row) for row in ranking]
                    delta = abs(value([labels[row] for row in swapped]) - value([labels[row] for row in ranking]))
                if normalize and spread:
                    delta /= 0.01 + abs(scores[i] - scores[j])
                rho = 1 / (1 + math.exp(scores[i] - scores[j]))
                grad[i] += rho * delta
                grad[j] -= rho * delta
                hess[i] += rho * (1 - rho) * delta
                hess[j] += rho * (1 - rho) * delta
                total += 2 * rho * delta
        if normalize and total > 0:
            for row in rows:
                grad[row] *= math.log2(1 + total) / total
                hess[row] *= math.log2(1 + total) / total
    return grad, hess


def top_negatives(labels, scores, offsets, counts):
    """All positives and the counts[q] best-scored negatives of each query, equal scores by row."""
    return selection(labels, offsets, lambda q, negatives: best_first(negatives, scores)[: counts[q]])


def top_and_bottom(labels, scores, offsets, top, bottom):
    """All positives, the top[q] best-scored and the bottom[q] worst-scored negatives of each query."""

    def keep(q, negatives):
        return {*best_first(negatives, scores)[: top[q]], *best_first(negatives, -scores)[: bottom[q]]}

    return selection(labels, offsets, keep)


def selection(labels, offsets, keep):
    """Rows of all positives and of the negatives that `keep(query, negatives)` returns for each query."""
    rows = []
    for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
        rows += [row for row in range(start, stop) if labels[row] > 0]
        rows += keep(q, [row for row in range(start, stop) if labels[row] == 0])
    return sorted(rows)


def best_first(rows, values):
    """Rows by descending value, missing values last, equal values by row."""
    return sorted(rows, key=lambda row: (math.isnan(values[row]), -values[row], row))


def near_positives(labels, scores, offsets, margin, at_least, at_most):
    """Negatives above the lowest positive minus a margin, within bounds on their number."""

    def keep(q, negatives):
        positives = [scores[row] for row in range(offsets[q], offsets[q + 1]) if labels[row] > 0]
        floor = min(positives) - margin if positives else math.inf
        low = min(at_least, len(negatives))
        high = max(low, min(len(negatives), max(1, math.ceil(at_most * len(negatives) - 1e-9 * len(negatives)))))
        n = min(max(sum(scores[row] >= floor for row in negatives), low), high)
        return best_first(negatives, scores)[:n]

    return selection(labels, offsets, keep)


def by_progress(labels, scores, offsets, last, *, first, margin, at_least, at_most):
    """A share `first` of the negatives at first; then a fifth fewer where most are learned, else a quarter more.

    `last` are the rows selected before. A negative is learned where it is below the lowest positive minus a margin.
    """

    def keep(q, negatives):
        low = min(at_least, len(negatives))
        high = max(low, math.ceil(at_most * len(negatives)))
        if last is None:
            n = max(at_least, math.ceil(first * len(negatives) - 1e-9))
        else:
            selected = [row for row in last if row in set(negatives)]
            floor = min(scores[row] for row in range(offsets[q], offsets[q + 1]) if labels[row] > 0) - margin
            learned = sum(scores[row] < floor for row in selected)
            n = len(selected) * 4 // 5 if 2 * learned > len(selected) else -(-len(selected) * 5 // 4)
        return best_first(negatives, scores)[: min(max(n, low), high)]

    return selection(labels, offsets, keep)


def best_split(bins, n_bins, grad, hess, *, min_docs, newton=False, l2=0.0, signs=None):
    """The largest gain over every feature, bin and direction of missing values: (gain, feature, bin, missing left).

    With `signs`, cuts are passed over whose right leaf is on the wrong side of the left one.
    """
    best = (0.0, -1, -1, False)
    for feature, limit in enumerate(n_bins):
        column = bins[:, feature]
        for missing_left in (False, True) if (column == 255).any() else (False,):
            for b in range(limit):
                left = (column <= b) & (column != 255) | ((column == 255) & missing_left)
                if min(left.sum(), (~left).sum()) < min_docs:
                    continue
                low, high = (grad[side].sum() / (hess[side].sum() + l2) for side in (left, ~left))
                if signs is not None and signs[feature] * (high - low) < 0:
                    continue
                gain = 0.0
                for side in (left, ~left):
                    gain += grad[side].sum() ** 2 / ((hess[side].sum() + l2) if newton else side.sum())
                if gain > best[0] * (1 + 1e-12):
                    best = (gain, feature, b, missing_left)
    return best


def kept_rows(data, keep):
    """Rows of the lists that `keep(rows)` returns for each query."""
    return sorted(row for start, stop in itertools.pairwise(data.offsets) for row in keep(list(range(start, stop))))
