"""Gradients of XE-NDCG; see `objectives.xendcg`."""

import numpy as np
from numba import prange

from ranksieve.kernels.counter_random import uniform
from ranksieve.kernels.jit import njit

SMALLEST = 1e-15  # smallest denominator, as in LightGBM


@njit(cache=True, nogil=True)
def list_gradients(gains, scores, rows, key, grad, hess):
    """Gradients of one list: three terms of a series, as in Bruch 2021, §4 (grad is minus the derivative)."""
    n = len(gains)
    grad[:] = 0.0
    hess[:] = 0.0
    if n < 2:
        return
    chance = np.exp(scores - scores.max())
    chance /= chance.sum()
    terms = np.empty(n)
    for i in range(n):
        terms[i] = gains[i] + 1.0 - uniform(key, rows[i])
    total = max(terms.sum(), SMALLEST)
    last = 0.0  # the sum of term / (1 - chance) of the order before
    for order in range(3):
        weighted = 0.0
        for i in range(n):
            term = chance[i] * (last - terms[i]) if order else chance[i] - terms[i] / total
            grad[i] -= term
            terms[i] = term / max(1.0 - chance[i], SMALLEST)
            weighted += terms[i]
        last = weighted
    for i in range(n):
        hess[i] = chance[i] * (1.0 - chance[i])


@njit(cache=True, nogil=True, parallel=True)
def all_gradients(gains, scores, offsets, rows, key, grad, hess):
    """Gradients of every list; lists are independent."""
    for q in prange(len(offsets) - 1):
        own = slice(offsets[q], offsets[q + 1])
        list_gradients(gains[own], scores[own], rows[own], key, grad[own], hess[own])
