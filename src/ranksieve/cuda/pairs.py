"""The pairs of one list that λ is summed over.

Every pair has a document above the truncation. These few are taken some at a time, against all documents that they pair
with: a thread adds to its own documents, and sums over all threads are added to the few. So every sum has one owner and
one order, and a run repeats bit for bit.
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

CHUNK = 4  # documents above the truncation that are taken at a time
TOTALS = MOST_WARPS * 2 * CHUNK
SINGLE = 2 * CHUNK


class ListMetric(NamedTuple):
    """What a pair counts by."""

    kind: int
    normalize: bool
    ideals: Any  # per list
    by_rank: Any  # discounts of ranks up to the truncation


class Swap(NamedTuple):
    """What the change of MAP, MRR or ERR depends on."""

    depth: int
    above: Any
    sums: Any
    first: int
    second: int


class List(NamedTuple):
    """One list: a number for each of its documents, and work space."""

    n: int
    scores: Any
    gains: Any
    powers: Any  # of scores, relative to the highest
    grad: Any
    hess: Any
    ranks: Any  # from 1 on; 0: beyond the truncation
    heads: Any  # places of the documents with a gain
    few: Any  # places of ranked documents with a gain, and then of those without
    places: Any  # of the ranked documents, ascending
    order: Any  # the same, best first


class PairScale(NamedTuple):
    """What the pairs of a list are scaled by."""

    inverse: float  # of the ideal value
    spread: bool  # scores are not all the same
    close: bool  # no power of a score difference overflows


@cuda.jit(device=True)
def change_of(metric, swap, head, other, inverse):
    """How much the metric changes if a document and one of smaller gain change places; both are gain, rank, …"""
    gain, rank, low, to = head[0], head[1], other[0], other[1]
    if metric.kind == NDCG:
        here = metric.by_rank[rank - 1] if rank > 0 else 0.0
        there = metric.by_rank[to - 1] if to > 0 else 0.0
        return (gain - low) * abs(here - there) * inverse
    rank, to = rank if rank > 0 else swap.depth + 1, to if to > 0 else swap.depth + 1
    change = swap_change(metric.kind, gain, low, rank, to, swap.depth, swap.above, swap.sums, swap.first, swap.second)
    return change * inverse


@cuda.jit(device=True)
def pair_of(metric, swap, scale, head, other):
    """λ and w of a pair of documents, each gain, rank, score and power; the head has the larger gain."""
    change, distance = change_of(metric, swap, head, other, scale.inverse), head[2] - other[2]
    width = 0.01 + abs(distance) if metric.normalize and scale.spread else 1.0
    if scale.close:
        total = head[3] + other[3]
        both = 1.0 / (total * width)  # one division for two
        chance = other[3] * (both * width)
        push = chance * change * (both * total)
    else:
        chance = 1.0 / (1.0 + math.exp(distance))
        push = chance * (change / width)
    return push, push * (1.0 - chance)


@cuda.jit(device=True)
def add_chunk(metric, swap, scale, docs, few, n_few, heads, n_many, totals):
    """Add the pairs of up to CHUNK ranked documents, from `few` of `docs.few`, with many; returns a thread's sum of λ.

    Many are the documents at `heads`, none of which is ranked, or else all of the list.
    """
    pushed = 0.0
    sums = cuda.local.array(SINGLE, float64)
    for k in range(SINGLE):
        sums[k] = 0.0
    for m in range(cuda.threadIdx.x, n_many, cuda.blockDim.x):
        j = docs.heads[m] if heads else m
        gain, rank, pushes, bends, any_pair = docs.gains[j], docs.ranks[j], 0.0, 0.0, False
        other = gain, rank, docs.scores[j], docs.powers[j]
        for c in range(CHUNK):
            i = docs.few[few + min(c, n_few - 1)]
            here, at = docs.gains[i], docs.ranks[i]
            # of two ranked documents with a gain, the pair is that of the better one
            if c < n_few and here != gain and not (rank > 0 and gain > 0.0 and here > 0.0 and rank < at):
                one = here, at, docs.scores[i], docs.powers[i]
                is_head = here > gain
                push, bend = pair_of(metric, swap, scale, one if is_head else other, other if is_head else one)
                pushed += push
                push = push if is_head else -push
                sums[2 * c] += push
                sums[2 * c + 1] += bend
                pushes -= push
                bends += bend
                any_pair = True
        if any_pair:
            docs.grad[j] += pushes
            docs.hess[j] += bends
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    for k in range(SINGLE):
        total = add_over_warp(sums[k])
        if lane == 0:
            totals[warp * SINGLE + k] = total
    cuda.syncthreads()
    c = cuda.threadIdx.x
    if c < n_few:
        i = docs.few[few + c]
        for other_warp in range((cuda.blockDim.x + WARP - 1) // WARP):
            docs.grad[i] += totals[other_warp * SINGLE + 2 * c]
            docs.hess[i] += totals[other_warp * SINGLE + 2 * c + 1]
    cuda.syncthreads()
    return pushed


@cuda.jit(device=True)
def add_pairs(metric, swap, scale, docs, depth, n_with, n_heads, totals):
    """Add all pairs of a list; returns this thread's sum of λ.

    Ranked documents with a gain pair with all others; those without, with documents that are not ranked and have one.
    """
    pushed = 0.0
    for few in range(0, n_with, CHUNK):
        pushed += add_chunk(metric, swap, scale, docs, few, min(n_with - few, CHUNK), False, docs.n, totals)
    for few in range(n_with, depth if n_heads > 0 else 0, CHUNK):
        pushed += add_chunk(metric, swap, scale, docs, few, min(depth - few, CHUNK), True, n_heads, totals)
    return pushed
