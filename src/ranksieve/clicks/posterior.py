"""The distribution of relevance over all documents, and of each document given its clicks: empirical Bayes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.special

from ranksieve.clicks.em import maximize

COVERAGE = 0.95  # probability that an interval has the true value
RELATIVE_WIDTH, MOST_CELLS = 0.25, 40  # cells are this share of their lower edge wide, but no wider than the top / 40
LOWEST = 1e-7  # upper edge of the first cell at the least
MOST_PAIRS = 50_000  # most pairs that the distribution is estimated from; of more, evenly spaced ones
AT_ONCE = 20_000
STEPS, TOLERANCE = 200, 1e-5
LEAST_WEIGHT = 1e-12  # least weight of a cell, for pairs that the distribution was not estimated from


class Posterior(NamedTuple):
    """What is known of the relevance of each pair of query and document."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray


def posterior(successes: np.ndarray, trials: np.ndarray, *, limited: bool = True) -> Posterior:
    """Posterior distributions under a prior of nearly any form that is estimated from all pairs.

    The prior is a mixture of Beta distributions (Gamma where relevance may exceed 1), one for each cell of a grid, with
    the mean and variance of a uniform distribution on the cell. The weights are those of the largest likelihood, as in
    nonparametric maximum likelihood (Kiefer and Wolfowitz 1956). Cells are narrow near 0, so that small relevances are
    told apart. The posterior is such a mixture, too, so that its mean tends to successes / trials with many trials.

    Parameters
    ----------
    successes, trials
        Clicks that count and expected examinations of each pair; they need not be integers.
    limited
        Relevance is a probability (binomial likelihood); else it may exceed 1 (Poisson).

    Examples
    --------
    >>> found = posterior(np.array([0.0] * 8 + [9.0, 1.0]), np.full(10, 10.0))
    >>> bool(found.mean[8] > 0.8), bool(found.mean[9] < 0.1)
    (True, True)
    """
    successes, trials = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    mixture = _Mixture.of_cells(_cells(successes, trials, limited=limited), limited=limited)
    chosen = slice(None, None, -(-len(successes) // MOST_PAIRS))
    sample = mixture.likelihoods(successes[chosen], trials[chosen])

    def step(weights: np.ndarray) -> tuple[np.ndarray, float]:
        joint = sample * weights
        totals = joint.sum(axis=1, keepdims=True)
        return (joint / totals).mean(axis=0), float(np.log(totals).sum() - len(sample) * np.log(weights.sum()))

    start = np.full(sample.shape[1], 1.0 / sample.shape[1])
    prior, _ = maximize(step, start, iterations=STEPS, tolerance=TOLERANCE, watched=0)
    prior = np.maximum(prior / prior.sum(), LEAST_WEIGHT)
    _, spread = mixture.moments(prior[None, :] / prior.sum(), np.zeros(1), np.zeros(1))
    parts = []
    for first in range(0, len(successes), AT_ONCE):
        own = successes[first : first + AT_ONCE], trials[first : first + AT_ONCE]
        weights = mixture.likelihoods(*own) * prior
        parts.append(mixture.moments(weights / weights.sum(axis=1, keepdims=True), *own))
    mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    low, high = interval(mean, variance, limited=limited)
    return Posterior(mean, low, high, np.clip(1.0 - variance / spread, 0.0, 1.0))


def interval(mean: np.ndarray, variance: np.ndarray, *, limited: bool) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the Beta (else Gamma) distribution with this mean and variance; it holds the mean."""
    mixture = _Mixture.with_moments(mean, variance, limited=limited)
    tails = (1.0 - COVERAGE) / 2, (1.0 + COVERAGE) / 2
    if limited:
        low, high = (scipy.special.betaincinv(mixture.clicks, mixture.others, share) for share in tails)
    else:
        low, high = (scipy.special.gammaincinv(mixture.clicks, share) / mixture.others for share in tails)
    return np.minimum(low, mean), np.maximum(high, mean)


def _cells(successes: np.ndarray, trials: np.ndarray, *, limited: bool) -> np.ndarray:
    """Edges of the cells: from 0 over the smallest relevance that the trials can show to the largest plausible one."""
    top = 1.0
    if not limited:  # as if each pair had one more trial, with the mean: rates of tiny trials say nothing
        mean = successes.sum() / max(float(trials.sum()), 1e-300)
        top = max(top, float(((successes + mean) / (trials + 1.0)).max()))
    widest = top / MOST_CELLS
    edges = [0.0, float(np.clip(0.5 / max(float(trials.max()), 1.0), LOWEST, widest))]
    while edges[-1] < top - widest / 2:
        edges.append(edges[-1] + min(RELATIVE_WIDTH * edges[-1], widest))
    return np.array([*edges[:-1], top])


class _Mixture(NamedTuple):
    """Components: Beta distributions with parameters `clicks` and `others`, or Gamma with shape and rate."""

    clicks: np.ndarray
    others: np.ndarray
    limited: bool

    @classmethod
    def of_cells(cls, edges: np.ndarray, *, limited: bool) -> _Mixture:
        return cls.with_moments((edges[1:] + edges[:-1]) / 2, np.diff(edges) ** 2 / 12, limited=limited)

    @classmethod
    def with_moments(cls, mean: np.ndarray, variance: np.ndarray, *, limited: bool) -> _Mixture:
        trials = mean * (1.0 - mean) / variance - 1.0 if limited else mean / variance
        return cls(mean * trials, (1.0 - mean) * trials if limited else trials, limited)

    def likelihoods(self, successes: np.ndarray, trials: np.ndarray) -> np.ndarray:
        """The likelihood of each component (columns) for each pair (rows), relative to the row's largest."""
        clicked = successes[:, None]
        if self.limited:
            others = np.maximum(trials - successes, 0.0)[:, None]
            logs = scipy.special.betaln(self.clicks + clicked, self.others + others)
            logs -= scipy.special.betaln(self.clicks, self.others)
        else:
            shapes = self.clicks + clicked
            logs = scipy.special.gammaln(shapes) - shapes * np.log(self.others + trials[:, None])
            logs += self.clicks * np.log(self.others) - scipy.special.gammaln(self.clicks)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def moments(self, weights: np.ndarray, successes: np.ndarray, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each pair's posterior, of the components' weights."""
        clicks = self.clicks + successes[:, None]
        if self.limited:
            totals = clicks + self.others + np.maximum(trials - successes, 0.0)[:, None]
            means = clicks / totals
            variances = means * (1.0 - means) / (totals + 1.0)
        else:
            totals = self.others + trials[:, None]
            means, variances = clicks / totals, clicks / totals**2
        mean = (weights * means).sum(axis=1)
        return mean, (weights * (variances + (means - mean[:, None]) ** 2)).sum(axis=1)
