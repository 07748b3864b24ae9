"""Selections on a GPU: documents are marked, and then the marked ones are listed. Each block works on one list."""

from __future__ import annotations

import math

from numba import boolean, cuda, float64, int32, int64, uint64

from ranksieve.cuda.device import SIMULATED, kernel, shared
from ranksieve.cuda.ranking import ROOM, cut_list, selection_space
from ranksieve.cuda.thread_blocks import MAXIMA, MOST_WARPS, max_over_block, rank_flags, sum_over_block
from ranksieve.kernels import counter_random
from ranksieve.kernels.counter_random import GOLDEN

mixed = shared(counter_random.mixed)

HIGHEST, LOWEST, LARGEST = 0, 1, 2  # the best values are the highest, the lowest, or the largest absolute ones
DRAW_THREADS = 32 if SIMULATED else 128  # threads of a block of `draw_rows`


@kernel
def restart(positive, n_positive, flags):
    """Remove all marks, and mark the positives among the first `n_positive` documents."""
    for i in range(cuda.grid(1), len(flags), cuda.gridsize(1)):
        flags[i] = 1 if i < n_positive and positive[i] else 0


@cuda.jit(device=True)
def mark_list(values, n, k, flags, counts, scratch):
    """Mark the documents of a list with infinite values and the k best of the others."""
    cut, last = cut_list(values, n, k, counts, scratch)
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        if values[i] > cut or (values[i] == cut and i <= last):
            flags[i] = 1


@kernel(shared=8 * ROOM)
def mark_best(values, kind, positive, offsets, n_best, space, flags):
    """Mark all positives, and the `n_best[q]` negatives of each list with the best values, equal ones by place."""
    counts, scratch = selection_space()
    near = cuda.shared.array(0, float64)
    q = cuda.blockIdx.x
    first = offsets[q]
    n = offsets[q + 1] - first
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        value = values[first + i]
        value = -value if kind == LOWEST else abs(value) if kind == LARGEST else value
        value = math.inf if positive[first + i] else value
        if n <= ROOM:
            near[i] = value
        else:
            space[first + i] = value
    cuda.syncthreads()
    if n <= ROOM:
        mark_list(near, n, n_best[q], flags[first:], counts, scratch)
    else:
        mark_list(space[first:], n, n_best[q], flags[first:], counts, scratch)


@kernel
def draw_rows(key, offsets, sizes, n_drawn, flags):
    """Mark `n_drawn[q]` random documents of the `sizes[q]` of each list that are not marked, as `draw_per_query` does.

    The threads compute the random numbers of a tile together; then one thread decides, in the order of the documents.
    """
    counts = cuda.shared.array(MOST_WARPS, int32)
    chances = cuda.shared.array(DRAW_THREADS, float64)
    taken = cuda.shared.array(DRAW_THREADS, boolean)
    left = cuda.shared.array(1, int64)
    q, t = cuda.blockIdx.x, cuda.threadIdx.x
    first = offsets[q]
    n, seen = offsets[q + 1] - first, int64(0)
    state = mixed(uint64(key) + GOLDEN * uint64(q + 1))
    if t == 0:
        left[0] = n_drawn[q]
    cuda.syncthreads()
    for tile in range(0, n, cuda.blockDim.x):
        if left[0] == 0:
            break
        place = first + min(tile + t, n - 1)
        is_free = tile + t < n and flags[place] == 0
        before, n_free = rank_flags(is_free, counts)
        if is_free:
            bits = mixed(state + GOLDEN * uint64(seen + before + 1))
            chances[before] = float64(bits >> uint64(11)) * 2.0**-53
        cuda.syncthreads()
        if t == 0:
            rest = left[0]
            for k in range(n_free):
                taken[k] = rest > 0 and chances[k] * (sizes[q] - seen - k) < rest
                rest -= int64(taken[k])
            left[0] = rest
        cuda.syncthreads()
        if is_free and taken[before]:
            flags[place] = 1
        seen += n_free


@cuda.jit(device=True)
def threshold_of(scores, positive, first, stop, margin, maxima):
    """The lowest score of a list's positives, minus the margin; infinite where there is no positive."""
    lowest = -math.inf
    for i in range(first + cuda.threadIdx.x, stop, cuda.blockDim.x):
        if positive[i]:
            lowest = max(lowest, -scores[i])
    return -max_over_block(lowest, lowest, maxima)[0] - margin


@kernel
def count_near(scores, positive, offsets, margin, lows, highs, n_best):
    """How many negatives of each list score at least the threshold, within bounds; see `NearPositives`."""
    maxima = cuda.shared.array(MAXIMA, float64)
    q, n_above = cuda.blockIdx.x, int64(0)
    first, stop = offsets[q], offsets[q + 1]
    threshold = threshold_of(scores, positive, first, stop, margin, maxima)
    for i in range(first + cuda.threadIdx.x, stop, cuda.blockDim.x):
        n_above += int64(not positive[i] and scores[i] >= threshold)
    n_above = sum_over_block(n_above)
    if cuda.threadIdx.x == 0:
        n_best[q] = min(max(n_above, lows[q]), highs[q])


@kernel
def count_learned(scores, positive, offsets, rows, starts, margin, learned, selected):
    """How many negatives of each list were selected last, and how many of them score below the threshold."""
    maxima = cuda.shared.array(MAXIMA, float64)
    q, both = cuda.blockIdx.x, int64(0)
    threshold = threshold_of(scores, positive, offsets[q], offsets[q + 1], margin, maxima)
    for i in range(starts[q] + cuda.threadIdx.x, starts[q + 1], cuda.blockDim.x):
        if not positive[rows[i]]:
            both += (int64(1) << int64(32)) + int64(scores[rows[i]] < threshold)
    both = sum_over_block(both)
    if cuda.threadIdx.x == 0:
        learned[q], selected[q] = both & int64(0xFFFFFFFF), both >> int64(32)


@kernel
def count_marked(flags, marks, offsets, n_marked):
    """How many documents of each list have one of `marks`."""
    q, total = cuda.blockIdx.x, int64(0)
    for i in range(offsets[q] + cuda.threadIdx.x, offsets[q + 1], cuda.blockDim.x):
        total += int64(flags[i] & marks != 0)
    total = sum_over_block(total)
    if cuda.threadIdx.x == 0:
        n_marked[q] = total


@kernel
def list_marked(flags, marks, offsets, starts, rows):
    """Write the documents of each list that have one of `marks`, ascending, to `rows[starts[q]:]`."""
    counts = cuda.shared.array(MOST_WARPS, int32)
    q, t = cuda.blockIdx.x, cuda.threadIdx.x
    first, place = offsets[q], starts[q]
    n = offsets[q + 1] - first
    for tile in range(0, n, cuda.blockDim.x):
        i = first + min(tile + t, n - 1)
        is_marked = tile + t < n and flags[i] & marks != 0
        before, n_here = rank_flags(is_marked, counts)
        if is_marked:
            rows[place + before] = i
        place += n_here
