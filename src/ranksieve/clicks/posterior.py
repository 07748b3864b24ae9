"""The distribution of relevance over all documents, and of each document given its clicks: empirical Bayes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksieve.clicks.em import maximize

COVERAGE = 0.95  # of the intervals
GRID_POINTS = 40
MOST_PAIRS = 100_000  # that the distribution is estimated from; evenly spaced ones of more
AT_ONCE = 50_000
STEPS, TOLERANCE = 200, 1e-5


class Posterior(NamedTuple):
    """What is known of the relevance of each pair of query and document."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray


def posterior(successes: np.ndarray, trials: np.ndarray, *, limited: bool = True) -> Posterior:
    """Posterior distributions under a prior of any form that is estimated from all pairs.

    The prior has weights on a grid of relevances: those of the largest likelihood (Kiefer and Wolfowitz 1956).

    Parameters
    ----------
    successes, trials
        Clicks that count and expected examinations of each pair; they need not be whole numbers.
    limited
        Relevance is a probability (binomial likelihood); else it may exceed 1 (Poisson).

    Examples
    --------
    >>> found = posterior(np.array([0.0] * 8 + [9.0, 1.0]), np.full(10, 10.0))
    >>> bool(found.mean[8] > 0.8), bool(found.mean[9] < 0.1)
    (True, True)
    """
    top = 1.0 if limited else max(1.0, float(np.quantile(successes / np.maximum(trials, 1e-300), 0.99)))
    edges = np.linspace(0.0, top, GRID_POINTS + 1)
    grid = (edges[1:] + edges[:-1]) / 2

    def likelihoods(rows: slice) -> np.ndarray:
        clicked, others = successes[rows, None], np.maximum(trials - successes, 0.0)[rows, None]
        logs = clicked * np.log(grid) + (
            others * np.log1p(-grid) if limited else -grid * trials[rows, None]
        )  # fmt: skip
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    sample = likelihoods(slice(None, None, -(-len(successes) // MOST_PAIRS)))

    def step(weights: np.ndarray) -> tuple[np.ndarray, float]:
        joint = sample * weights
        totals = joint.sum(axis=1, keepdims=True)
        return (joint / totals).mean(axis=0), float(np.log(totals).sum() - len(sample) * np.log(weights.sum()))

    start = np.full(GRID_POINTS, 1.0 / GRID_POINTS)
    prior, _ = maximize(step, start, iterations=STEPS, tolerance=TOLERANCE, watched=0)
    prior = prior / prior.sum()
    spread = float(prior @ grid**2 - (prior @ grid) ** 2)
    parts = []
    for first in range(0, len(successes), AT_ONCE):
        weights = likelihoods(slice(first, first + AT_ONCE)) * prior
        weights /= weights.sum(axis=1, keepdims=True)
        means = weights @ grid
        variances = np.maximum(weights @ grid**2 - means**2, 0.0)
        below = weights.cumsum(axis=1)
        tail = (1.0 - COVERAGE) / 2
        low, high = (edges[np.minimum((below < share).sum(axis=1), GRID_POINTS)] for share in (tail, 1.0 - tail))
        parts.append((means, low, np.minimum(high + top / GRID_POINTS, top), 1.0 - variances / max(spread, 1e-300)))
    mean, low, high, confidence = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Posterior(mean, low, high, np.clip(confidence, 0.0, 1.0))
