"""λ-gradients of a metric (Wu et al. 2010, eq. 2–5, Algorithm 1), one query at a time.

A pair counts by how much the metric changes if its two documents change places. Ranks beyond `truncation` count nothing
in the metric, so a pair needs one member within it.
"""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.metrics import top_k

NDCG, PRECISION, RECIPROCAL, STOPPING = 0, 1, 2, 3  # the metrics: NDCG, MAP, MRR, ERR


@njit(cache=True, nogil=True)
def ideal_dcg(gains, k):
    """DCG of the best order, cut at rank k."""
    best = np.sort(gains[gains > 0.0])
    total = 0.0
    for rank in range(min(k, len(best))):
        total += best[len(best) - 1 - rank] / np.log2(rank + 2.0)
    return total


@njit(cache=True, nogil=True)
def running_sums(kind, gains, ranked, above, sums):
    """What changes of MAP and ERR are read from, up to and including each rank from 1 on.

    MAP: the positives so far, and the sum of 1 / rank over them. ERR: the chance that a user has not stopped yet, and
    ERR itself.
    """
    above[0] = 1.0 if kind == STOPPING else 0.0
    sums[0] = 0.0
    for r in range(1, len(ranked) + 1):
        gain = gains[ranked[r - 1]]
        if kind == STOPPING:
            above[r] = above[r - 1] * (1.0 - gain)
            sums[r] = sums[r - 1] + above[r - 1] * gain / r
        else:
            above[r] = above[r - 1] + gain
            sums[r] = sums[r - 1] + gain / r


@njit(cache=True, nogil=True)
def first_positives(gains, ranked):
    """Ranks, from 1 on, of the two best-ranked positives; one beyond the last rank where there are fewer."""
    beyond = len(ranked) + 1
    first = second = beyond
    for r in range(len(ranked), 0, -1):
        if gains[ranked[r - 1]] > 0.0:
            first, second = r, first
    return first, second


@njit(cache=True, nogil=True)
def swap_change(kind, gain, other, rank, to, depth, above, sums, first, second):
    """How much MAP (times the positives), MRR or ERR changes if a document of rank `rank` goes `to` another's place.

    `gain > other` are their gains; `depth + 1` is any rank beyond the truncation.
    """
    upper, lower = min(rank, to), max(rank, to)
    at_upper = 1.0 / upper
    at_lower = 1.0 / lower if lower <= depth else 0.0
    if kind == RECIPROCAL:
        now = min(to, second) if rank == first else min(to, first)
        return abs((1.0 / now if now <= depth else 0.0) - (1.0 / first if first <= depth else 0.0))
    between = sums[lower - 1] - sums[upper]
    if kind == PRECISION:
        here, there = above[upper], above[lower] if lower <= depth else 0.0
        if rank == upper:  # a positive goes down past others, which lose it
            return abs(there * at_lower - here * at_upper - between)
        return abs((here + 1.0) * at_upper - there * at_lower + between)
    # ERR: what stands between is read by those who pass the upper document, whoever it is
    passing = max(1.0 - (gain if rank == upper else other), 1e-12)
    return (gain - other) * abs(above[upper - 1] * at_upper - (between + above[lower - 1] * at_lower) / passing)


@njit(cache=True, nogil=True)
def query_lambdas(kind, gains, scores, truncation, normalize, grad, hess):
    """λ and w of one list. Gains are those of NDCG, 1 for the positives of MAP and MRR, or ERR's chances to stop.

    Only positives head a pair, and one that is itself beyond the truncation pairs with the ranked documents alone.
    """
    n = len(gains)
    grad[:] = 0.0
    hess[:] = 0.0
    ideal = ideal_dcg(gains, truncation) if kind == NDCG else gains.sum() if kind == PRECISION else 1.0
    if ideal <= 0.0 or n < 2:
        return
    depth = min(truncation, n)
    ranked = np.empty(depth, np.int64)
    top_k(scores, 0, n, depth, ranked)
    discounts = np.zeros(n)
    ranks = np.full(0 if kind == NDCG else n, depth + 1)
    above, sums = np.empty(depth + 1), np.empty(depth + 1)
    first = second = depth + 1
    for rank in range(depth):
        discounts[ranked[rank]] = 1.0 / np.log2(rank + 2.0)
    if kind != NDCG:
        for rank in range(depth):
            ranks[ranked[rank]] = rank + 1
        running_sums(kind, gains, ranked, above, sums)
        first, second = first_positives(gains, ranked)
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
            if kind == NDCG:
                delta = (gains[i] - gains[j]) * abs(discounts[i] - discounts[j]) / ideal
            else:
                delta = swap_change(
                    kind, gains[i], gains[j], ranks[i], ranks[j], depth, above, sums, first, second
                ) / ideal  # fmt: skip
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
def all_lambdas(kind, gains, scores, offsets, truncation, normalize, grad, hess):
    """λ and w of every list; queries are independent."""
    for q in prange(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        query_lambdas(
            kind, gains[start:stop], scores[start:stop], truncation, normalize, grad[start:stop], hess[start:stop]
        )
