"""λ-gradients on a GPU, those of `kernels.lambdas`. Each block computes one list; see `pairs`.

Short lists, such as those of a selection, are in shared memory.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda, float64, int32

from ranksieve.cuda.device import Kernel, shared
from ranksieve.cuda.losses import document_at
from ranksieve.cuda.pairs import TOTALS, ListArrays, PairScale, SwapTerms, add_pairs
from ranksieve.cuda.ranking import list_chosen, order_chosen, selection_space
from ranksieve.cuda.thread_blocks import add_over_block, max_over_block, rank_flags
from ranksieve.kernels import lambdas as cpu
from ranksieve.kernels.lambdas import FURTHEST, NDCG

running_sums, first_positives = shared(cpu.running_sums), shared(cpu.first_positives)

NEAR = 512  # most documents of a list that is in shared memory
NEAR_FLOATS = 5  # float64 numbers of a document there; it has as many int32 numbers
NEAR_BYTES = NEAR_FLOATS * (8 + 4)  # bytes of a document there


class Space(NamedTuple):
    """Work space in global memory, a number for each place of the lists; see `pairs.ListArrays`."""

    scores: Any  # used only where documents are listed, as are gains
    gains: Any
    powers: Any
    places: Any
    order: Any
    ranks: Any
    unranked: Any
    ranked: Any
    ranked_gains: Any
    above: Any  # see `kernels.lambdas.running_sums`; a list has one number more than documents, here and in `sums`
    sums: Any


@cuda.jit(device=True)
def load_list(documents, docs, first, copied, maxima):
    """Copy a list where `copied`, and clear its gradients; returns the highest score, and minus the lowest score."""
    highest, lowest = -math.inf, -math.inf
    for i in range(cuda.threadIdx.x, docs.n, cuda.blockDim.x):
        if copied:
            row = document_at(documents, first + i)
            docs.scores[i], docs.gains[i] = documents.scores[row], documents.gains[row]
        score = docs.scores[i]
        docs.ranks[i] = 0
        docs.grad[i], docs.hess[i] = 0.0, 0.0
        highest, lowest = max(highest, score), max(lowest, -score)
    return max_over_block(highest, lowest, maxima)


@cuda.jit(device=True)
def rank_list(docs, depth, highest, counts, scratch):
    """Rank the documents up to `depth`, and compute the powers of all scores."""
    list_chosen(docs.scores, docs.n, depth, docs.places, 0, counts, scratch)
    order_chosen(docs.scores, docs.places, depth, docs.order, scratch)
    for rank in range(cuda.threadIdx.x, depth, cuda.blockDim.x):
        place = docs.order[rank]
        docs.ranks[place] = rank + 1
    for i in range(cuda.threadIdx.x, docs.n, cuda.blockDim.x):
        docs.powers[i] = math.exp(docs.scores[i] - highest)
    cuda.syncthreads()


@cuda.jit(device=True)
def find_unranked(docs, counts):
    """List the documents that have a gain and are not ranked; returns how many."""
    t, n_unranked = cuda.threadIdx.x, int32(0)
    for tile in range(0, docs.n, cuda.blockDim.x):
        i = min(tile + t, docs.n - 1)
        flag = tile + t < docs.n and docs.gains[i] > 0.0 and docs.ranks[i] == 0
        before, n_here = rank_flags(flag, counts)
        if flag:
            docs.unranked[n_unranked + before] = tile + t
        n_unranked += n_here
    cuda.syncthreads()
    return n_unranked


@cuda.jit(device=True)
def sort_ranked(docs, depth, counts):
    """List the ranked documents, those with a gain first; returns how many have a gain."""
    t, n_with, n_without = cuda.threadIdx.x, int32(0), int32(0)
    for tile in range(0, depth, cuda.blockDim.x):
        inside = tile + t < depth
        place = docs.order[min(tile + t, depth - 1)]
        has_gain = docs.gains[place] > 0.0
        before, n_here = rank_flags(inside and has_gain, counts)
        if inside and has_gain:
            docs.ranked[n_with + before] = place
        elif inside:
            docs.ranked[depth - 1 - (n_without + t - before)] = place
        n_without += min(depth - tile, cuda.blockDim.x) - n_here
        n_with += n_here
    cuda.syncthreads()
    return n_with


@cuda.jit(device=True)
def normal_factor(lambda_sum, totals):
    """log2(1 + s) / s of the sum s of all |λ|."""
    total = add_over_block(2.0 * lambda_sum, totals)
    return math.log2(1.0 + total) / total if total > 0.0 else 1.0


@cuda.jit(device=True)
def swap_terms_of(metric, docs, space, q, first, depth, positives):
    """The terms of swaps for MAP, MRR and ERR; those of NDCG are not used."""
    above, sums = space.above[first + q : first + q + depth + 1], space.sums[first + q : first + q + depth + 1]
    if metric.kind != NDCG:
        ranked = space.ranked_gains[first : first + depth]
        for rank in range(cuda.threadIdx.x, depth, cuda.blockDim.x):
            ranked[rank] = docs.gains[docs.order[rank]]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            running_sums(metric.kind, ranked, above, sums)
            positives[0], positives[1] = first_positives(ranked)
        cuda.syncthreads()
    return SwapTerms(depth, above, sums, positives[0], positives[1])


@cuda.jit(device=True)
def near_list(n, room, floats, integers):
    """A list in shared memory with room for `room` documents: five arrays of floats, then five of integers."""
    after = 2 * NEAR_FLOATS * room
    return ListArrays(
        n, floats[:room], floats[room : 2 * room], floats[2 * room : 3 * room], floats[3 * room : 4 * room],
        floats[4 * room : 5 * room], integers[after : after + room], integers[after + room : after + 2 * room],
        integers[after + 2 * room : after + 3 * room], integers[after + 3 * room : after + 4 * room],
        integers[after + 4 * room : after + 5 * room],
    )  # fmt: skip


@cuda.jit(device=True)
def far_list(documents, space, first, n, grad, hess):
    """A list in global memory."""
    scores = space.scores[first:] if documents.listed else documents.scores[first:]
    gains = space.gains[first:] if documents.listed else documents.gains[first:]
    return ListArrays(
        n, scores, gains, space.powers[first:], grad[first:], hess[first:], space.ranks[first:], space.unranked[first:],
        space.ranked[first:], space.places[first:], space.order[first:],
    )  # fmt: skip


def _lambda_kernel(near: bool) -> Kernel:
    """The kernel for lists that are all in shared memory, or all in global memory."""

    def lambdas(metric, documents, space, room, grad, hess):
        """λ and w of every list, at its places."""
        positives = cuda.shared.array(2, int32)
        counts, scratch = selection_space()
        totals = cuda.shared.array(TOTALS, float64)
        q = cuda.blockIdx.x
        first = documents.offsets[q]
        n = documents.offsets[q + 1] - first
        if metric.ideals[q] <= 0.0 or n < 2:
            for i in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
                grad[i], hess[i] = 0.0, 0.0
            return
        if near:
            docs = near_list(n, room, cuda.shared.array(0, float64), cuda.shared.array(0, int32))
        else:
            docs = far_list(documents, space, first, n, grad, hess)
        highest, lowest = load_list(documents, docs, first, near or documents.listed, scratch[4])
        depth = min(len(metric.by_rank), n)
        scale = PairScale(1.0 / metric.ideals[q], highest != -lowest, highest + lowest < FURTHEST)
        rank_list(docs, depth, highest, counts, scratch)
        swap = swap_terms_of(metric, docs, space, q, first, depth, positives)
        n_unranked = find_unranked(docs, counts)
        n_with = sort_ranked(docs, depth, counts)
        lambda_sum = add_pairs(metric, swap, scale, docs, depth, n_with, n_unranked, totals)
        factor = normal_factor(lambda_sum, totals) if metric.normalize else 1.0
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            weight = factor
            if documents.weighted:
                weight *= documents.weights[document_at(documents, first + i)]
            grad[first + i], hess[first + i] = docs.grad[i] * weight, docs.hess[i] * weight

    return Kernel(lambdas, registers=80)


near_lambdas, far_lambdas = _lambda_kernel(near=True), _lambda_kernel(near=False)
