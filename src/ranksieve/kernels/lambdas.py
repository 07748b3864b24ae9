"""λ-gradients of NDCG (Wu et al. 2010, eq. 2–5, Algorithm 1), one query at a time."""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.metrics import top_k


@njit(cache=True, nogil=True)
def ideal_dcg(gains, k):
    """DCG of the best order, cut at rank k."""
    best = np.sort(gains[gains > 0.0])
    total = 0.0
    for rank in range(min(k, len(best))):
        total += best[len(best) - 1 - rank] / np.log2(rank + 2.0)
    return total


@njit(cache=True, nogil=True)
def query_lambdas(gains, scores, truncation, normalize, grad, hess):
    """λ and w of one list; ranks beyond `truncation` have discount 0, so a pair needs one member within it.

    Only positives head a pair, and one that is itself beyond the truncation pairs with the ranked documents alone.
    """
    n = len(gains)
    grad[:] = 0.0
    hess[:] = 0.0
    ideal = ideal_dcg(gains, truncation)
    if ideal <= 0.0 or n < 2:
        return
    depth = min(truncation, n)
    ranked = np.empty(depth, np.int64)
    top_k(scores, 0, n, depth, ranked)
    discounts = np.zeros(n)
    for rank in range(depth):
        discounts[ranked[rank]] = 1.0 / np.log2(rank + 2.0)
    spread = scores.max() != scores.min()
    total = 0.0
    for i in range(n):
        if gains[i] <= 0.0:
            continue
        inside = discounts[i] > 0.0
        for step in range(n if inside else depth):
            j = step if inside else ranked[step]
            if gains[j] >= gains[i] or (discounts[i] == 0.0 and discounts[j] == 0.0):
                continue
            distance = scores[i] - scores[j]
            delta = (gains[i] - gains[j]) * abs(discounts[i] - discounts[j]) / ideal
            if normalize and spread:
                delta /= 0.01 + abs(distance)
            rho = 1.0 / (1.0 + np.exp(distance))
            weight = rho * (1.0 - rho) * delta
            rho *= delta
            grad[i] += rho
            grad[j] -= rho
            hess[i] += weight
            hess[j] += weight
            total += 2.0 * rho
    if normalize and total > 0.0:
        factor = np.log2(1.0 + total) / total
        for i in range(n):
            grad[i] *= factor
            hess[i] *= factor


@njit(cache=True, nogil=True, parallel=True)
def all_lambdas(gains, scores, offsets, truncation, normalize, grad, hess):
    """λ and w of every list; queries are independent."""
    for q in prange(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        query_lambdas(gains[start:stop], scores[start:stop], truncation, normalize, grad[start:stop], hess[start:stop])
