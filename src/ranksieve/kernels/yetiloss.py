"""Gradients of YetiLoss; see `objectives.yetiloss`."""

import numpy as np
from numba import prange

from ranksieve.kernels.counter_random import step_key, uniform
from ranksieve.kernels.jit import njit


@njit(cache=True, nogil=True)
def best_by_noise(scores, rows, key, noisy, n_best):
    """The documents with the largest score plus logistic noise, best first."""
    for i in range(len(scores)):
        u = uniform(key, rows[i])
        noisy[i] = np.log((1.0 - u) / u) - scores[i]
    bar = np.partition(noisy, n_best - 1)[n_best - 1]
    best = np.flatnonzero(noisy <= bar)
    return best[np.argsort(noisy[best], kind="mergesort")][:n_best]


@njit(cache=True, nogil=True)
def list_gradients(gains, scores, rows, ideal, by_rank, key, shape, grad, hess):
    """Gradients of one list; `shape` is truncation, number of neighbors and permutations, `by_rank` are discounts."""
    n = len(gains)
    grad[:] = 0.0
    hess[:] = 0.0
    if n < 2 or ideal <= 0.0:
        return
    depth, neighbors, permutations = shape
    noisy = np.empty(n)
    for draw in range(permutations):
        order = best_by_noise(scores, rows, step_key(key, draw), noisy, min(n, depth + neighbors))
        for p in range(min(depth, len(order))):
            for q in range(p + 1, min(p + 1 + neighbors, len(order))):
                high, low = order[p], order[q]
                if gains[high] == gains[low]:
                    continue
                if gains[high] < gains[low]:
                    high, low = low, high
                weight = (gains[high] - gains[low]) * (by_rank[p] - by_rank[q]) / (ideal * permutations)
                chance = 1.0 / (1.0 + np.exp(min(scores[high] - scores[low], 700.0)))
                grad[high] += weight * chance
                grad[low] -= weight * chance
                hess[high] += weight * chance * (1.0 - chance)
                hess[low] += weight * chance * (1.0 - chance)


@njit(cache=True, nogil=True, parallel=True)
def all_gradients(gains, scores, offsets, rows, ideals, by_rank, key, shape, grad, hess):
    """Gradients of every list; lists are independent."""
    for q in prange(len(offsets) - 1):
        own = slice(offsets[q], offsets[q + 1])
        list_gradients(gains[own], scores[own], rows[own], ideals[q], by_rank, key, shape, grad[own], hess[own])
