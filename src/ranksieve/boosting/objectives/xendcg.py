"""XE-NDCG: cross entropy of a distribution of gains and of the scores (Bruch 2021), as LightGBM's `rank_xendcg`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import prange

from ranksieve.boosting.objectives.lambdas import sparse_gains
from ranksieve.boosting.training_rows import Gradients, ObjectiveView
from ranksieve.kernels.counter_random import step_key, uniform
from ranksieve.kernels.jit import njit
from ranksieve.rules import OBJECTIVES, Traits

SMALLEST = 1e-15  # of a denominator, as in LightGBM


@OBJECTIVES.register("xendcg")
@dataclass(frozen=True)
class XeNdcg:
    """Cross entropy between softmax(scores) and the gains (Bruch 2021), as LightGBM's `rank_xendcg`.

    A document's target is its gain plus 1 minus a uniform random number, new for each tree, divided by the list's sum.
    """

    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        if self not in view.cache:
            view.cache[self] = sparse_gains(view.labels, view.metric)
        grad, hess = np.empty(len(view.labels)), np.empty(len(view.labels))
        key = np.uint64(step_key(view.seed, view.step))
        all_gradients(view.cache[self], view.scores, view.offsets, view.rows, key, grad, hess)
        return grad, hess


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
    last = 0.0  # the sum of the terms before, each over 1 - chance
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
