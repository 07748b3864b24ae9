"""λ-gradients of a metric (Wu et al. 2010, eq. 2–5, Algorithm 1), one query at a time.

A pair is two documents of different gains: one of higher gain, and one of lower gain. Its weight is how much the metric
changes if the two change places. Ranks beyond the truncation add nothing to the metric, so at least one document of a
pair is ranked within the truncation.

An outer loop goes through the documents of higher gain, inner loops through those that it is paired with. A document
within the truncation is paired with all others. A document beyond it is paired with those within, whose values are
copied into arrays of their own. The inner loops are simple enough to be vectorised.
"""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metric_kinds import PRECISION, RECIPROCAL, STOPPING, WEIGHTED
from ranksieve.kernels.metrics import top_k
from ranksieve.kernels.parallel import run_parts

NDCG = WEIGHTED  # the other kinds are MAP, MRR and ERR
DISTANCE_OFFSET = 0.01  # added to the distance of two scores, as in LightGBM
FURTHEST = 700.0  # exp of a score difference above 709 overflows


@njit(cache=True, nogil=True)
def taken(values, rows):
    """`values[rows]`."""
    out = np.empty(len(rows))
    for i in range(len(rows)):
        out[i] = values[rows[i]]
    return out


@njit(cache=True, nogil=True)
def running_sums(kind, gains, above, sums):
    """Sums over the ranks up to each rank, from 1 on, for `swap_change`; `gains` are those of the ranks.

    For MAP, `above` is the number of positives, and `sums` the sum of 1 / rank over them. For ERR, `above` is the
    chance that a user has not stopped yet, and `sums` is ERR.
    """
    above[0] = 1.0 if kind == STOPPING else 0.0
    sums[0] = 0.0
    for r in range(1, len(gains) + 1):
        gain = gains[r - 1]
        if kind == STOPPING:
            above[r] = above[r - 1] * (1.0 - gain)
            sums[r] = sums[r - 1] + above[r - 1] * gain / r
        else:
            above[r] = above[r - 1] + gain
            sums[r] = sums[r - 1] + gain / r


@njit(cache=True, nogil=True)
def first_positives(gains):
    """Ranks, from 1 on, of the two best-ranked positives; one beyond the last rank where there are fewer."""
    first = second = len(gains) + 1
    for r in range(len(gains), 0, -1):
        if gains[r - 1] > 0.0:
            first, second = r, first
    return first, second


@njit(cache=True, nogil=True)
def swap_change(kind, gain, other, rank, to, depth, above, sums, first, second):
    """How much MAP (times its positives), MRR or ERR changes if the documents at ranks `rank` and `to` are swapped.

    Their gains are `gain` and `other`, and `gain` is larger. `depth + 1` is any rank beyond the truncation.
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
        if rank == upper:  # the positive goes down; positives in between have one less above them
            return abs(there * at_lower - here * at_upper - between)
        return abs((here + 1.0) * at_upper - there * at_lower + between)
    # ERR: users reach the documents in between only if they do not stop at the upper rank; its document changes
    passing = max(1.0 - (gain if rank == upper else other), 1e-12)
    return (gain - other) * abs(above[upper - 1] * at_upper - (between + above[lower - 1] * at_lower) / passing)


@njit(cache=True, nogil=True, error_model="numpy")
def ndcg_changes(gain, discount, gains, discounts, inverse, out):
    """|ΔNDCG| of the pairs of a document with each other one of lower gain; 0 for others."""
    for j in range(len(out)):
        change = (gain - gains[j]) * abs(discount - discounts[j]) * inverse
        out[j] = change if gains[j] < gain else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def swap_changes(kind, gain, rank, gains, ranks, depth, above, sums, first, second, inverse, out):
    """|ΔMAP|, |ΔMRR| or |ΔERR| of the pairs of a document with each other one of lower gain; 0 for others."""
    for j in range(len(out)):
        out[j] = 0.0
        if gains[j] < gain:
            change = swap_change(kind, gain, gains[j], rank, ranks[j], depth, above, sums, first, second)
            out[j] = change * inverse


@njit(cache=True, nogil=True, error_model="numpy")
def win_chances(score, power, scores, powers, close, out):
    """1 / (1 + exp(score - s)) for each score s; if `close`, from the powers exp(s - highest), which is faster."""
    for j in range(len(out)):
        out[j] = powers[j] / (power + powers[j]) if close else 1.0 / (1.0 + np.exp(score - scores[j]))


@njit(cache=True, nogil=True)
def sum_of(values):
    """The sum of values, as four partial sums: additions need not wait for each other."""
    a = b = c = d = 0.0
    whole = len(values) // 4 * 4
    for j in range(0, whole, 4):
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
    for j in range(whole, len(values)):
        a += values[j]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, error_model="numpy")
def add_pairs(deltas, chances, grad, hess):
    """Add λ and w of a document's pairs to the other documents; returns the sums for it. Overwrites its inputs."""
    for j in range(len(deltas)):
        pair_lambda = chances[j] * deltas[j]
        deltas[j] = pair_lambda
        chances[j] = pair_lambda * (1.0 - chances[j])
    for j in range(len(deltas)):
        grad[j] -= deltas[j]
        hess[j] += chances[j]
    return sum_of(deltas), sum_of(chances)


@njit(cache=True, nogil=True, error_model="numpy")
def query_lambdas(kind, gains, scores, ideal, by_rank, normalize, grad, hess):
    """λ and w of one list. Gains are those of NDCG, 1 for the positives of MAP and MRR, or ERR's chances to stop.

    The metric is divided by `ideal`; `by_rank` are the discounts of the ranks up to the truncation.
    """
    n = len(gains)
    grad[:] = 0.0
    hess[:] = 0.0
    if ideal <= 0.0 or n < 2:
        return
    inverse, depth = 1.0 / ideal, min(len(by_rank), n)
    ranked = np.empty(depth, np.int32)
    top_k(scores, 0, n, depth, ranked)
    discounts, ranked_ranks = np.zeros(n), np.empty(depth, np.int64)
    ranks = np.full(0 if kind == NDCG else n, depth + 1)
    for rank in range(depth):
        discounts[ranked[rank]], ranked_ranks[rank] = by_rank[rank], rank + 1
    above, sums = np.empty(depth + 1), np.empty(depth + 1)
    first = second = depth + 1
    ranked_gains = taken(gains, ranked)
    if kind != NDCG:
        for rank in range(depth):
            ranks[ranked[rank]] = rank + 1
        running_sums(kind, ranked_gains, above, sums)
        first, second = first_positives(ranked_gains)
    highest = lowest = scores[ranked[0]]
    for i in range(n):
        lowest = min(lowest, scores[i])
    spread, close = highest != lowest, False
    # powers of all documents save time where a document is paired with all others
    for rank in range(depth if highest - lowest < FURTHEST else 0):
        close |= ranked_gains[rank] > 0.0
    powers = np.exp(scores - highest) if close else scores
    ranked_scores, ranked_powers = taken(scores, ranked), taken(powers, ranked)
    ranked_discounts = taken(discounts, ranked)
    ranked_grad, ranked_hess = np.zeros(depth), np.zeros(depth)
    all_deltas, all_chances = np.empty(n), np.empty(n)
    total = 0.0
    for i in range(n):
        gain = gains[i]
        if gain <= 0.0:
            continue
        # it is paired with all documents, or with those within the truncation
        if discounts[i] > 0.0:
            g, s, d, p, r, m = gains, scores, discounts, powers, ranks, n
            to_grad, to_hess = grad, hess
        else:
            g, s, d, p, r, m = ranked_gains, ranked_scores, ranked_discounts, ranked_powers, ranked_ranks, depth
            to_grad, to_hess = ranked_grad, ranked_hess
        deltas, chances = all_deltas[:m], all_chances[:m]
        if kind == NDCG:
            ndcg_changes(gain, discounts[i], g, d, inverse, deltas)
        else:
            swap_changes(kind, gain, ranks[i], g, r, depth, above, sums, first, second, inverse, deltas)
        if normalize and spread:
            for j in range(m):
                deltas[j] /= DISTANCE_OFFSET + abs(scores[i] - s[j])
        win_chances(scores[i], powers[i], s, p, close, chances)
        lambda_sum, hess_sum = add_pairs(deltas, chances, to_grad, to_hess)
        grad[i] += lambda_sum
        hess[i] += hess_sum
        total += 2.0 * lambda_sum
    for rank in range(depth):
        grad[ranked[rank]] += ranked_grad[rank]
        hess[ranked[rank]] += ranked_hess[rank]
    if normalize and total > 0.0:
        factor = np.log2(1.0 + total) / total
        for i in range(n):
            grad[i] *= factor
            hess[i] *= factor


@njit(cache=True, nogil=True)
def some_lambdas(first, last, kind, gains, scores, offsets, ideals, by_rank, normalize, grad, hess):
    """`all_lambdas` of the queries first:last."""
    for q in range(first, last):
        own = slice(offsets[q], offsets[q + 1])
        query_lambdas(kind, gains[own], scores[own], ideals[q], by_rank, normalize, grad[own], hess[own])


@njit(cache=True, nogil=True)
def all_lambdas(kind, gains, scores, offsets, ideals, by_rank, normalize, grad, hess):
    """λ and w of every list; queries are independent."""
    given = kind, gains, scores, offsets, ideals, by_rank, normalize, grad, hess
    run_parts(some_lambdas, len(offsets) - 1, given)
