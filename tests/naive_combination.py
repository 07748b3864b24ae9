"""The slow truth about combinations of two rankers: every crossing of every pair, and the metric between them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from ranksieve.evaluation.metrics import Metric, mean


def crossings(scores: np.ndarray, direction: np.ndarray, offsets: np.ndarray, low: float, high: float) -> list[float]:
    """All places inside the range at which two documents of one query have equal scores, exactly."""
    found = set()
    for start, stop in itertools.pairwise(offsets):
        own = slice(start, stop)
        lines = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(scores[own], direction[own], strict=True)]
        for i, (a, b) in enumerate(lines):
            for c, d in lines[:i]:
                if b != d:
                    found.add((c - a) / (b - d))
    return sorted(place for place in found if low < place < high)


def sweep(
    metric: Metric,
    labels: np.ndarray,
    scores: np.ndarray,
    direction: np.ndarray,
    offsets: np.ndarray,
    low: float,
    high: float,
) -> tuple[list[float], list[float]]:
    """Borders, and the metric's mean between each two of them, measured at the middle in exact arithmetic."""
    borders = [Fraction(low), *crossings(scores, direction, offsets, low, high), Fraction(high)]
    values = []
    for left, right in itertools.pairwise(borders):
        middle = (left + right) / 2
        exact = [Fraction(float(a)) + middle * Fraction(float(b)) for a, b in zip(scores, direction, strict=True)]
        ranks = {value: rank for rank, value in enumerate(sorted(set(exact)))}
        values.append(mean(metric.per_query(labels, np.array([ranks[value] for value in exact], float), offsets)))
    return [float(border) for border in borders], values


def weighted_sum(intercepts, slopes, gains, place, weights, k):
    """Weighted gains of the first k ranks at a place of a line of scores; equal lines share the mean of their gains."""
    scores = intercepts + place * slopes
    order = np.argsort(-scores, kind="stable")
    total, i = 0.0, 0
    while i < min(k, len(order)):
        tied = [row for row in order[i:] if (intercepts[row], slopes[row]) == (intercepts[order[i]], slopes[order[i]])]
        shared = sum(gains[row] for row in tied) / len(tied)
        total += sum(shared * weights[j] for j in range(i, min(i + len(tied), k)))
        i += len(tied)
    return total
