"""λ-gradients of rates: labels are chances of documents to be relevant, with weights by how well they are known."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lambdas import DISTANCE_OFFSET
from ranksieve.kernels.metrics import top_k
from ranksieve.kernels.parallel import run_parts


@njit(cache=True, nogil=True, error_model="numpy")
def query_rate_lambdas(rates, weights, scores, by_rank, grad, hess):
    """λ and w of one list. A document's own weight is not part of its λ and w: training multiplies by it.

    `by_rank` are the discounts of the ranks up to the truncation.
    """
    n = len(rates)
    grad[:] = 0.0
    hess[:] = 0.0
    if n < 2:
        return
    depth = min(len(by_rank), n)
    ranked = np.empty(depth, np.int32)
    top_k(scores, 0, n, depth, ranked)
    discounts = np.zeros(n)
    for rank in range(depth):
        discounts[ranked[rank]] = by_rank[rank]
    offset = DISTANCE_OFFSET if scores.max() != scores.min() else 1.0
    total = 0.0
    for rank in range(depth):
        i = ranked[rank]
        for j in range(n):
            if discounts[j] >= discounts[i]:
                continue  # each pair is added once, for its document of better rank
            distance = scores[i] - scores[j]
            change = (discounts[i] - discounts[j]) / (offset + distance)
            behind = 1.0 / (1.0 + np.exp(distance))
            up = change * rates[i] * (1.0 - rates[j]) * behind
            down = change * rates[j] * (1.0 - rates[i]) * (1.0 - behind)
            pair_hess = up * (1.0 - behind) + down * behind
            grad[i] += weights[j] * (up - down)
            grad[j] -= weights[i] * (up - down)
            hess[i] += weights[j] * pair_hess
            hess[j] += weights[i] * pair_hess
            total += 2.0 * weights[i] * weights[j] * (up + down)
    if total > 0.0:
        factor = np.log2(1.0 + total) / total
        for i in range(n):
            grad[i] *= factor
            hess[i] *= factor


@njit(cache=True, nogil=True)
def some_rate_lambdas(first, last, rates, weights, scores, offsets, by_rank, grad, hess):
    """`all_rate_lambdas` of the queries first:last."""
    for q in range(first, last):
        own = slice(offsets[q], offsets[q + 1])
        query_rate_lambdas(rates[own], weights[own], scores[own], by_rank, grad[own], hess[own])


@njit(cache=True, nogil=True)
def all_rate_lambdas(rates, weights, scores, offsets, by_rank, grad, hess):
    """λ and w of every list; queries are independent."""
    given = rates, weights, scores, offsets, by_rank, grad, hess
    run_parts(some_rate_lambdas, len(offsets) - 1, given)
