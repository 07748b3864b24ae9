"""The pairs of one list that λ is summed over.

Every pair has a document that is ranked within the truncation. CHUNK ranked documents are paired with all others at a
time. A thread adds λ to its own documents; the sums over all threads are added to the ranked documents. So every sum is
added by one thread in one order, and a run repeats bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda, float64

from ranksieve.cuda.device import shared
from ranksieve.cuda.thread_blocks import MOST_WARPS, WARP, add_over_warp
from ranksieve.kernels import lambdas as cpu
from ranksieve.kernels.lambdas import NDCG

swap_change = shared(cpu.swap_change)

CHUNK = 4  # ranked documents that are paired at a time
TOTALS = MOST_WARPS * 2 * CHUNK  # the same for each warp
CHUNK_SUMS = 2 * CHUNK  # λ and w of each


class ListMetric(NamedTuple):
    """The metric that weights pairs."""

    kind: int
    normalize: bool
    ideals: Any  # per list
    by_rank: Any  # discounts of the ranks up to the truncation


class SwapTerms(NamedTuple):
    """What `kernels.lambdas.swap_change` needs of a list."""

    depth: int
    above: Any
    sums: Any
    first: int
    second: int


class ListArrays(NamedTuple):
    """One list: arrays with a number for each document. A document is ranked if it is within the truncation."""

    n: int
    scores: Any
    gains: Any
    powers: Any  # exp(score - highest)
    grad: Any
    hess: Any
    ranks: Any  # from 1 on; 0: beyond the truncation
    unranked: Any  # places of the documents with a gain that are not ranked
    ranked: Any  # places of the ranked documents, those with a gain first
    places: Any  # places of the ranked documents, ascending
    order: Any  # places of the ranked documents, best first


class PairScale(NamedTuple):
    """What scales the pairs of a list."""

    inverse: float  # 1 / the ideal value of the metric
    spread: bool  # whether scores differ
    close: bool  # whether no power of a score difference overflows


@cuda.jit(device=True)
def change_of(metric, swap, high, low, inverse):
    """How much the metric changes if the documents of a pair change places; see `pair_of`."""
    gain, rank, other_gain, other_rank = high[0], high[1], low[0], low[1]
    if metric.kind == NDCG:
        here = metric.by_rank[rank - 1] if rank > 0 else 0.0
        there = metric.by_rank[other_rank - 1] if other_rank > 0 else 0.0
        return (gain - other_gain) * abs(here - there) * inverse
    rank, other_rank = rank if rank > 0 else swap.depth + 1, other_rank if other_rank > 0 else swap.depth + 1
    change = swap_change(
        metric.kind, gain, other_gain, rank, other_rank, swap.depth, swap.above, swap.sums, swap.first, swap.second
    )
    return change * inverse


@cuda.jit(device=True)
def pair_of(metric, swap, scale, high, low):
    """λ and w of a pair. Each document is (gain, rank, score, power), and `high` has the larger gain."""
    change, distance = change_of(metric, swap, high, low, scale.inverse), high[2] - low[2]
    width = 0.01 + abs(distance) if metric.normalize and scale.spread else 1.0
    if scale.close:
        total = high[3] + low[3]
        both = 1.0 / (total * width)  # one division instead of two
        chance = low[3] * (both * width)
        pair_lambda = chance * change * (both * total)
    else:
        chance = 1.0 / (1.0 + math.exp(distance))
        pair_lambda = chance * (change / width)
    return pair_lambda, pair_lambda * (1.0 - chance)


@cuda.jit(device=True)
def add_chunk(metric, swap, scale, docs, first, n_ranked, with_unranked, n_others, totals):
    """Add the pairs of `n_ranked` documents, up to CHUNK, with `n_others` others; returns this thread's sum of λ.

    The ranked documents are those from `first` on in `docs.ranked`. The others are those of `docs.unranked`; without
    `with_unranked`, they are all documents of the list.
    """
    lambda_sum = 0.0
    sums = cuda.local.array(CHUNK_SUMS, float64)
    for k in range(CHUNK_SUMS):
        sums[k] = 0.0
    for m in range(cuda.threadIdx.x, n_others, cuda.blockDim.x):
        j = docs.unranked[m] if with_unranked else m
        gain, rank, grad_sum, hess_sum, any_pair = docs.gains[j], docs.ranks[j], 0.0, 0.0, False
        other = gain, rank, docs.scores[j], docs.powers[j]
        for c in range(CHUNK):
            i = docs.ranked[first + min(c, n_ranked - 1)]
            here, at = docs.gains[i], docs.ranks[i]
            # a pair of two ranked documents with a gain is added once, where i is the one that is ranked better
            if c < n_ranked and here != gain and not (rank > 0 and gain > 0.0 and here > 0.0 and rank < at):
                one = here, at, docs.scores[i], docs.powers[i]
                is_high = here > gain
                pair_lambda, pair_hess = pair_of(
                    metric, swap, scale, one if is_high else other, other if is_high else one
                )
                lambda_sum += pair_lambda
                pair_lambda = pair_lambda if is_high else -pair_lambda
                sums[2 * c] += pair_lambda
                sums[2 * c + 1] += pair_hess
                grad_sum -= pair_lambda
                hess_sum += pair_hess
                any_pair = True
        if any_pair:
            docs.grad[j] += grad_sum
            docs.hess[j] += hess_sum
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    for k in range(CHUNK_SUMS):
        total = add_over_warp(sums[k])
        if lane == 0:
            totals[warp * CHUNK_SUMS + k] = total
    cuda.syncthreads()
    c = cuda.threadIdx.x
    if c < n_ranked:
        i = docs.ranked[first + c]
        for other_warp in range((cuda.blockDim.x + WARP - 1) // WARP):
            docs.grad[i] += totals[other_warp * CHUNK_SUMS + 2 * c]
            docs.hess[i] += totals[other_warp * CHUNK_SUMS + 2 * c + 1]
    cuda.syncthreads()
    return lambda_sum


@cuda.jit(device=True)
def add_pairs(metric, swap, scale, docs, depth, n_with, n_unranked, totals):
    """Add all pairs of a list; returns this thread's sum of λ.

    The first `n_with` of the `depth` ranked documents have a gain: they are paired with all documents. The other ranked
    documents are paired with those that have a gain and are not ranked.
    """
    lambda_sum = 0.0
    for first in range(0, n_with, CHUNK):
        lambda_sum += add_chunk(metric, swap, scale, docs, first, min(n_with - first, CHUNK), False, docs.n, totals)
    for first in range(n_with, depth if n_unranked > 0 else 0, CHUNK):
        lambda_sum += add_chunk(metric, swap, scale, docs, first, min(depth - first, CHUNK), True, n_unranked, totals)
    return lambda_sum
