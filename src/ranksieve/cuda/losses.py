"""Gradients of squared error, XE-NDCG and YetiLoss on a GPU; see `boosting.objectives`.

Each block computes one list. Each sum of floats is added by one thread in one order, so a run repeats bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda, float64, uint64

from ranksieve.cuda.device import kernel, shared
from ranksieve.cuda.ranking import list_chosen, order_chosen, selection_space
from ranksieve.cuda.thread_blocks import MAXIMA, MOST_WARPS, add_over_block, max_over_block
from ranksieve.kernels import counter_random
from ranksieve.kernels.lambdas import FURTHEST

step_key, uniform = shared(counter_random.step_key), shared(counter_random.uniform)

SMALLEST = 1e-15  # smallest denominator, as in `kernels.xendcg`


class Documents(NamedTuple):
    """The scores of all documents, and the lists that gradients are computed for."""

    scores: Any
    gains: Any  # per document; labels for squared error
    weights: Any  # per document
    weighted: bool  # whether gradients are multiplied by the weights
    rows: Any  # the documents of the lists
    listed: bool  # whether `rows` are used; otherwise the lists have all documents
    offsets: Any  # where each list begins, and the end


@cuda.jit(device=True)
def document_at(documents, place):
    """The document at a place of the lists."""
    return documents.rows[place] if documents.listed else place


@kernel
def residuals(documents, with_scores, grad, hess):
    """Labels minus scores; without `with_scores`, labels alone."""
    for i in range(cuda.grid(1), documents.offsets[len(documents.offsets) - 1], cuda.gridsize(1)):
        row = document_at(documents, i)
        weight = documents.weights[row] if documents.weighted else 1.0
        score = documents.scores[row] if with_scores else 0.0
        grad[i], hess[i] = (documents.gains[row] - score) * weight, weight


@kernel
def cross_entropies(documents, key, terms, grad, hess):
    """Gradients of XE-NDCG; `terms` is work space. `hess` first holds powers of scores, and then chances."""
    maxima = cuda.shared.array(MAXIMA, float64)
    sums = cuda.shared.array(MOST_WARPS, float64)
    first, stop = documents.offsets[cuda.blockIdx.x], documents.offsets[cuda.blockIdx.x + 1]
    start, step, highest = first + cuda.threadIdx.x, cuda.blockDim.x, -math.inf
    for i in range(start, stop, step):
        highest = max(highest, documents.scores[document_at(documents, i)])
    highest = max_over_block(highest, highest, maxima)[0]
    power, total = 0.0, 0.0
    for i in range(start, stop, step):
        row = document_at(documents, i)
        hess[i], terms[i] = math.exp(documents.scores[row] - highest), documents.gains[row] + 1.0 - uniform(key, row)
        power += hess[i]
        total += terms[i]
    power, total = add_over_block(power, sums), max(add_over_block(total, sums), SMALLEST)
    last = 0.0  # the sum of term / (1 - chance) of the order before
    for order in range(3):
        weighted = 0.0
        for i in range(start, stop, step):
            if order == 0:
                hess[i], grad[i] = hess[i] / power, 0.0
            term = hess[i] * (last - terms[i]) if order else hess[i] - terms[i] / total
            grad[i] -= term
            terms[i] = term / max(1.0 - hess[i], SMALLEST)
            weighted += terms[i]
        last = add_over_block(weighted, sums)
    for i in range(start, stop, step):
        weight = documents.weights[document_at(documents, i)] if documents.weighted else 1.0
        weight = 0.0 if stop - first < 2 else weight
        grad[i], hess[i] = grad[i] * weight, hess[i] * (1.0 - hess[i]) * weight


class NoisyPairs(NamedTuple):
    """What `noisy_lambdas` reads and writes besides the documents."""

    depth: int
    neighbors: int
    permutations: int
    ideals: Any  # per list
    by_rank: Any  # discounts
    noisy: Any  # work space: scores with noise
    places: Any  # work space: places of the best of these, ascending
    order: Any  # work space: the same places, best first


@cuda.jit(device=True)
def add_neighbors(documents, pairs, first, n_best, rank, scale, grad, hess):
    """Add the pairs of the document at a rank to the gradient of this document."""
    here = first + pairs.order[first + rank]
    row, lambda_sum, hess_sum = document_at(documents, here), 0.0, 0.0
    for other in range(max(rank - pairs.neighbors, 0), min(rank + pairs.neighbors + 1, n_best)):
        row_of_other = document_at(documents, first + pairs.order[first + other])
        gain = documents.gains[row] - documents.gains[row_of_other]
        if min(rank, other) < pairs.depth and gain != 0.0:
            discount = abs(pairs.by_rank[rank] - pairs.by_rank[other])
            sign = 1.0 if gain > 0.0 else -1.0
            distance = sign * (documents.scores[row] - documents.scores[row_of_other])
            chance = 1.0 / (1.0 + math.exp(min(distance, FURTHEST)))
            weight = abs(gain) * discount * scale
            lambda_sum += sign * weight * chance
            hess_sum += weight * chance * (1.0 - chance)
    grad[here] += lambda_sum
    hess[here] += hess_sum


@kernel
def noisy_lambdas(documents, pairs, key, grad, hess):
    """Gradients of YetiLoss. A thread adds the pairs of one rank of a noisy order, and so of one document."""
    counts, scratch = selection_space()
    q, t = cuda.blockIdx.x, cuda.threadIdx.x
    first = documents.offsets[q]
    n = documents.offsets[q + 1] - first
    for i in range(first + t, first + n, cuda.blockDim.x):
        grad[i], hess[i] = 0.0, 0.0
    if n < 2 or pairs.ideals[q] <= 0.0:
        return
    n_best, scale = min(n, pairs.depth + pairs.neighbors), 1.0 / (pairs.ideals[q] * pairs.permutations)
    noisy, places = pairs.noisy[first:], pairs.places[first:]
    for draw in range(pairs.permutations):
        own = uint64(step_key(key, draw))
        for i in range(t, n, cuda.blockDim.x):
            row = document_at(documents, first + i)
            u = uniform(own, row)
            noisy[i] = documents.scores[row] - math.log((1.0 - u) / u)
        cuda.syncthreads()
        list_chosen(noisy, n, n_best, places, 0, counts, scratch)
        order_chosen(noisy, places, n_best, pairs.order[first:], scratch)
        for rank in range(t, n_best, cuda.blockDim.x):
            add_neighbors(documents, pairs, first, n_best, rank, scale, grad, hess)
        cuda.syncthreads()
    if documents.weighted:
        for i in range(first + t, first + n, cuda.blockDim.x):
            weight = documents.weights[document_at(documents, i)]
            grad[i], hess[i] = grad[i] * weight, hess[i] * weight
