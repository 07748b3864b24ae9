"""YetiLoss: λ-gradients of NDCG averaged over noisy orders of each list (Gulin et al. 2011; Lyzhin et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import prange

from ranksieve.boosting.objectives.lambdas import ALL_RANKS, Truncated, all_ideals, discounts_by_rank, sparse_gains
from ranksieve.boosting.training_rows import Gradients, ObjectiveView
from ranksieve.kernels.counter_random import step_key, uniform
from ranksieve.kernels.jit import njit
from ranksieve.kernels.lambdas import NDCG
from ranksieve.rules import OBJECTIVES, Traits, integer


@OBJECTIVES.register("yetiloss")
@dataclass(frozen=True, kw_only=True)
class YetiLoss(Truncated):
    """λ-gradients of NDCG averaged over noisy orders of each list, as CatBoost's YetiLoss.

    Each list is ordered `permutations` times by score plus logistic noise. In each order the ranks p up to `truncation`
    pair with the next `neighbors` ranks, and a pair of different labels counts by its change of NDCG divided by the
    number of permutations. Gradients are those of the logistic pair loss on the scores without noise.
    """

    permutations: int = integer(10, "Noisy orders of each list", 1)
    neighbors: int = integer(5, "Number of ranks below a document that it is paired with", 1)

    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        n_docs = len(view.labels)
        if self not in view.cache:
            gains, by_rank = sparse_gains(view.labels, view.metric), discounts_by_rank(view.offsets, ALL_RANKS)
            view.cache[self] = gains, all_ideals(NDCG, gains, view.offsets, by_rank)
        gains, ideals = view.cache[self]
        depth = min(self.depth(view.metric), n_docs)
        grad, hess, key = np.empty(n_docs), np.empty(n_docs), np.uint64(step_key(view.seed, view.step))
        shape = np.array([depth, self.neighbors, self.permutations])
        all_gradients(gains, view.scores, view.offsets, view.rows, ideals, key, shape, grad, hess)
        return grad, hess


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
def list_gradients(gains, scores, rows, ideal, key, shape, grad, hess):
    """Gradients of one list; `shape` is truncation, number of neighbors and number of permutations."""
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
                discount = 1.0 / np.log2(p + 2.0) - 1.0 / np.log2(q + 2.0)
                weight = (gains[high] - gains[low]) * discount / (ideal * permutations)
                chance = 1.0 / (1.0 + np.exp(min(scores[high] - scores[low], 700.0)))
                grad[high] += weight * chance
                grad[low] -= weight * chance
                hess[high] += weight * chance * (1.0 - chance)
                hess[low] += weight * chance * (1.0 - chance)


@njit(cache=True, nogil=True, parallel=True)
def all_gradients(gains, scores, offsets, rows, ideals, key, shape, grad, hess):
    """Gradients of every list; lists are independent."""
    for q in prange(len(offsets) - 1):
        own = slice(offsets[q], offsets[q + 1])
        list_gradients(gains[own], scores[own], rows[own], ideals[q], key, shape, grad[own], hess[own])
