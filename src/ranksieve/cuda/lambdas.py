"""λ-gradients on a GPU: `kernels.lambdas`, where a block has one list.

A pair is computed twice: for the partner, by a thread that goes through its heads, and for the head, by a warp that
goes through its partners. So every sum has one owner and one order, and a run repeats bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda, float64, int32

from ranksieve.cuda.blocks import MOST_WARPS, WARP, add_over_warp, max_over_block, rank_flags
from ranksieve.cuda.device import kernel, shared
from ranksieve.cuda.ranking import BUCKETS, FEW, PARTS, list_chosen, order_chosen
from ranksieve.kernels import lambdas as cpu
from ranksieve.kernels.lambdas import FURTHEST, NDCG

running_sums, first_positives, swap_change = (
    shared(cpu.running_sums), shared(cpu.first_positives), shared(cpu.swap_change),
)  # fmt: skip


class Metric(NamedTuple):
    """What a pair counts by."""

    kind: int
    normalize: bool
    ideals: Any  # per list
    by_rank: Any  # discounts of ranks up to the truncation


class Documents(NamedTuple):
    """The lists, and all documents' scores."""

    scores: Any
    gains: Any  # per document
    weights: Any  # per document
    weighted: bool
    rows: Any  # documents of the lists
    listed: bool  # or these are all documents
    offsets: Any


class Space(NamedTuple):
    """Work space, a number for each place of the lists."""

    scores: Any
    gains: Any
    powers: Any
    places: Any  # of the ranked documents, ascending
    order: Any  # the same, best first
    ranks: Any  # from 1 on; 0: beyond the truncation
    heads: Any  # places of the documents with a gain
    ranked_heads: Any
    pushes: Any  # per head
    ranked_gains: Any
    above: Any  # see `kernels.lambdas.running_sums`; one number more for each list
    sums: Any


class Swap(NamedTuple):
    """What the change of MAP, MRR or ERR depends on."""

    depth: int
    above: Any
    sums: Any
    first: int
    second: int


@cuda.jit(device=True)
def load_list(documents, space, q, grad, hess, maxima):
    """A list's scores and gains; returns the highest score and minus the lowest one."""
    first, stop = documents.offsets[q], documents.offsets[q + 1]
    highest, lowest = -math.inf, -math.inf
    for i in range(first + cuda.threadIdx.x, stop, cuda.blockDim.x):
        row = documents.rows[i] if documents.listed else i
        score = documents.scores[row]
        space.scores[i], space.gains[i] = score, documents.gains[row]
        space.ranks[i] = 0
        grad[i], hess[i] = 0.0, 0.0
        highest, lowest = max(highest, score), max(lowest, -score)
    return max_over_block(highest, maxima), max_over_block(lowest, maxima)


@cuda.jit(device=True)
def rank_list(space, first, n, depth, highest, counts, work):
    """Ranks up to `depth`; the powers of all scores."""
    list_chosen(space.scores, first, n, depth, space.places, first, 0, counts, work)
    order_chosen(space.scores, first, space.places, first, depth, space.order)
    for rank in range(cuda.threadIdx.x, depth, cuda.blockDim.x):
        place = first + space.order[first + rank]
        space.ranks[place] = rank + 1
        space.ranked_gains[first + rank] = space.gains[place]
    for i in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
        space.powers[i] = math.exp(space.scores[i] - highest)
    cuda.syncthreads()


@cuda.jit(device=True)
def find_heads(space, first, n, by_order, out, counts):
    """The places of documents with a gain: of all n, or of the n best; returns how many."""
    t, found = cuda.threadIdx.x, int32(0)
    for tile in range(0, n, cuda.blockDim.x):
        inside = tile + t < n
        place = int32(0)
        if inside:
            place = space.order[first + tile + t] if by_order else int32(tile + t)
        flag = inside and space.gains[first + place] > 0.0
        before, n_here = rank_flags(flag, counts)
        if flag:
            out[first + found + before] = place
        found += n_here
    cuda.syncthreads()
    return found


@cuda.jit(device=True)
def change_of(metric, space, swap, i, j, inverse):
    """How much the metric changes if document i, of the larger gain, and j change places."""
    gain, other, rank, to = space.gains[i], space.gains[j], space.ranks[i], space.ranks[j]
    if metric.kind == NDCG:
        here = metric.by_rank[rank - 1] if rank > 0 else 0.0
        there = metric.by_rank[to - 1] if to > 0 else 0.0
        return (gain - other) * abs(here - there) * inverse
    rank, to = rank if rank > 0 else swap.depth + 1, to if to > 0 else swap.depth + 1
    change = swap_change(metric.kind, gain, other, rank, to, swap.depth, swap.above, swap.sums, swap.first, swap.second)
    return change * inverse


@cuda.jit(device=True)
def pair_of(metric, space, swap, i, j, inverse, spread, close):
    """λ and w of the pair of document i, of the larger gain, and j."""
    change = change_of(metric, space, swap, i, j, inverse)
    distance = space.scores[i] - space.scores[j]
    if metric.normalize and spread:
        change /= 0.01 + abs(distance)
    chance = space.powers[j] / (space.powers[i] + space.powers[j]) if close else 1.0 / (1.0 + math.exp(distance))
    push = chance * change
    return push, push * (1.0 - chance)


@cuda.jit(device=True)
def add_partners(metric, space, swap, first, n, n_heads, n_ranked_heads, inverse, spread, close, grad, hess):
    """What each document gets as a partner."""
    for j in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
        is_ranked = space.ranks[j] > 0
        pushes, bends = 0.0, 0.0
        for k in range(first, first + (n_heads if is_ranked else n_ranked_heads)):
            i = first + (space.heads[k] if is_ranked else space.ranked_heads[k])
            if space.gains[i] > space.gains[j]:
                push, bend = pair_of(metric, space, swap, i, j, inverse, spread, close)
                pushes += push
                bends += bend
        grad[j], hess[j] = -pushes, bends
    cuda.syncthreads()


@cuda.jit(device=True)
def add_heads(metric, space, swap, first, n, n_heads, inverse, spread, close, grad, hess):
    """What each head gets from its partners: all documents, or the ranked ones where it is not ranked itself."""
    warp, lane, n_warps = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP, (cuda.blockDim.x + WARP - 1) // WARP
    for base in range(0, n_heads, n_warps):
        pushes, bends, head = 0.0, 0.0, base + warp
        i = first + (space.heads[first + head] if head < n_heads else 0)
        is_ranked = space.ranks[i] > 0
        n_partners = 0 if head >= n_heads else n if is_ranked else swap.depth
        for k in range(first + lane, first + n_partners, WARP):
            j = k if is_ranked else first + space.order[k]
            if space.gains[i] > space.gains[j]:
                push, bend = pair_of(metric, space, swap, i, j, inverse, spread, close)
                pushes += push
                bends += bend
        pushes, bends = add_over_warp(pushes), add_over_warp(bends)
        if lane == 0 and head < n_heads:
            grad[i] += pushes
            hess[i] += bends
            space.pushes[first + head] = pushes
    cuda.syncthreads()


@cuda.jit(device=True)
def normal_factor(space, first, n_heads):
    """log2(1 + s) / s of the sum s of all |λ|."""
    factor = cuda.shared.array(1, float64)
    total = 0.0
    for head in range(cuda.threadIdx.x, n_heads if cuda.threadIdx.x < WARP else 0, WARP):
        total += 2.0 * space.pushes[first + head]
    total = add_over_warp(total)
    if cuda.threadIdx.x == 0:
        factor[0] = math.log2(1.0 + total) / total if total > 0.0 else 1.0
    cuda.syncthreads()
    return factor[0]


@cuda.jit(device=True)
def swap_of(metric, space, q, first, depth, box):
    """What changes of MAP, MRR and ERR are read from."""
    above, sums = space.above[first + q : first + q + depth + 1], space.sums[first + q : first + q + depth + 1]
    if metric.kind != NDCG:
        if cuda.threadIdx.x == 0:
            ranked = space.ranked_gains[first : first + depth]
            running_sums(metric.kind, ranked, above, sums)
            box[0], box[1] = first_positives(ranked)
        cuda.syncthreads()
    return Swap(depth, above, sums, box[0], box[1])


@kernel
def lambdas(metric, documents, space, grad, hess):
    """λ and w of every list, at its places."""
    box = cuda.shared.array(2, int32)
    counts = cuda.shared.array(MOST_WARPS, int32)
    buckets = cuda.shared.array(BUCKETS, int32)
    parts = cuda.shared.array(PARTS, int32)
    found = cuda.shared.array(3, int32)
    places_of_few = cuda.shared.array(FEW, int32)
    cut = cuda.shared.array(1, float64)
    maxima = cuda.shared.array(MOST_WARPS, float64)
    few = cuda.shared.array(FEW, float64)
    work = buckets, parts, found, places_of_few, cut, maxima, few
    q = cuda.blockIdx.x
    first = documents.offsets[q]
    n = documents.offsets[q + 1] - first
    highest, lowest = load_list(documents, space, q, grad, hess, maxima)
    if metric.ideals[q] <= 0.0 or n < 2:
        return
    inverse, depth = 1.0 / metric.ideals[q], min(len(metric.by_rank), n)
    spread, close = highest != -lowest, highest + lowest < FURTHEST
    rank_list(space, first, n, depth, highest, counts, work)
    swap = swap_of(metric, space, q, first, depth, box)
    n_heads = find_heads(space, first, n, False, space.heads, counts)
    n_ranked_heads = find_heads(space, first, depth, True, space.ranked_heads, counts)
    add_partners(metric, space, swap, first, n, n_heads, n_ranked_heads, inverse, spread, close, grad, hess)
    add_heads(metric, space, swap, first, n, n_heads, inverse, spread, close, grad, hess)
    factor = normal_factor(space, first, n_heads) if metric.normalize else 1.0
    for i in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
        weight = factor
        if documents.weighted:
            weight *= documents.weights[documents.rows[i] if documents.listed else i]
        grad[i] *= weight
        hess[i] *= weight
