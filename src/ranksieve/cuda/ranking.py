"""The best documents of each list, equal ones by place; each block works on one list."""

from __future__ import annotations

import math

from numba import cuda, float64, int32, uint32

from ranksieve.cuda.device import kernel
from ranksieve.cuda.thread_blocks import (
    MAXIMA,
    MOST_WARPS,
    WARP,
    add_before_in_block,
    ballot,
    max_over_block,
    rank_flags,
)

BUCKETS = 2048
ROOM = 6144  # most documents of a list that is in shared memory
FEW = 256  # so many values are ordered by counting, for each, how many are larger
LARGEST_FINITE = 1.7976931348623157e308


@cuda.jit(device=True)
def selection_space():
    """Shared memory of a block that selects the best values: `counts`, one for each warp, and `scratch`."""
    counts = cuda.shared.array(MOST_WARPS, int32)
    buckets = cuda.shared.array(BUCKETS, int32)
    found = cuda.shared.array(3, int32)
    places_of_few = cuda.shared.array(FEW, int32)
    cut = cuda.shared.array(1, float64)
    maxima = cuda.shared.array(MAXIMA, float64)
    few = cuda.shared.array(FEW, float64)
    return counts, (buckets, found, places_of_few, cut, maxima, few)


@cuda.jit(device=True)
def find_bucket(buckets, counts, found, need):
    """Find the bucket of the `need`-th largest value; `found` is the bucket, the value's rank in it, and its size."""
    per_thread = (int32(BUCKETS - 1) + int32(cuda.blockDim.x)) // int32(cuda.blockDim.x)
    top, total = int32(BUCKETS - 1) - int32(cuda.threadIdx.x) * per_thread, int32(0)
    for bucket in range(top, max(top - per_thread, int32(-1)), -1):
        total += buckets[bucket]
    before = add_before_in_block(total, counts)
    if before < need <= before + total:
        bucket = top
        while before + buckets[bucket] < need:
            before += buckets[bucket]
            bucket -= 1
        found[0], found[1], found[2] = bucket, need - before, buckets[bucket]
    cuda.syncthreads()


@cuda.jit(device=True)
def bucket_of(value, low, scale):
    """The bucket of a value; larger values have no lower buckets."""
    return min(int32((value - low) * scale), int32(BUCKETS - 1))


@cuda.jit(device=True)
def last_of_equal(values, n, value, k, found, counts):
    """The place of the k-th document with this value."""
    t, taken = cuda.threadIdx.x, int32(0)
    for tile in range(0, n, cuda.blockDim.x):
        is_equal = tile + t < n and values[min(tile + t, n - 1)] == value
        before, n_equal = rank_flags(is_equal, counts)
        if is_equal and taken + before == k - 1:
            found[0] = tile + t
        taken += n_equal
    cuda.syncthreads()
    return found[0]


@cuda.jit(device=True)
def nth_of_few(values, n, bounds, need, scratch):
    """Write the `need`-th largest of the values in a bucket, at most FEW, to `cut`, and its place to `found`."""
    _, found, places, cut, _, few = scratch
    low, high, scale, bucket = bounds
    t, step, size = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x), uint32(n)
    cuda.syncthreads()
    if t == 0:
        found[0] = 0
    cuda.syncthreads()
    i = t
    while i < size:
        value = values[i]
        if low <= value <= high and (scale == 0.0 or bucket_of(value, low, scale) == bucket):
            k = cuda.atomic.add(found, 0, 1)
            few[k], places[k] = value, int32(i)
        i = uint32(i + step)
    cuda.syncthreads()
    taken = uint32(found[0])
    cuda.syncthreads()
    i = t
    while i < taken:
        rank, j = int32(0), uint32(0)
        while j < taken:
            rank += int32(few[j] > few[i] or (few[j] == few[i] and places[j] < places[i]))
            j = uint32(j + uint32(1))
        if rank == need - 1:
            cut[0], found[0] = few[i], places[i]
        i = uint32(i + step)
    cuda.syncthreads()


@cuda.jit(device=True)
def cut_of(values, n, k, counts, scratch):
    """The k-th largest finite value of n, and its place; equal values are ordered by place. There are at least k > 0.

    The range of values is divided into buckets until the bucket of the k-th has at most FEW values, which are ordered
    by counting. Indices are unsigned: to check whether signed ones are negative takes longer than to read a value.
    """
    buckets, found, _, cut, maxima, _ = scratch
    t, step, size = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x), uint32(n)
    need, n_here, bucket, low, high, scale = int32(k), int32(n), int32(0), -math.inf, math.inf, 0.0
    while n_here > FEW:
        smallest, largest = -math.inf, -math.inf  # `smallest` is negated
        i = t
        while i < size:
            value = values[i]
            if low <= value <= high and value < math.inf and (scale == 0.0 or bucket_of(value, low, scale) == bucket):
                smallest, largest = max(smallest, -value), max(largest, value)
            i = uint32(i + step)
        smallest, largest = max_over_block(smallest, largest, maxima)
        low, high = -smallest, largest
        if low == high:
            return low, last_of_equal(values, n, low, need, found, counts)
        scale = (BUCKETS - 1) / (high - low)
        i = t
        while i < BUCKETS:
            buckets[i] = 0
            i = uint32(i + step)
        cuda.syncthreads()
        i = t
        while i < size:
            value = values[i]
            if low <= value <= high:
                cuda.atomic.add(buckets, bucket_of(value, low, scale), 1)
            i = uint32(i + step)
        cuda.syncthreads()
        find_bucket(buckets, counts, found, need)
        bucket, need, n_here = found[0], found[1], found[2]
        cuda.syncthreads()
    nth_of_few(values, n, (low, min(high, LARGEST_FINITE), scale, bucket), need, scratch)
    return cut[0], found[0]


@cuda.jit(device=True)
def cut_list(values, n, k, counts, scratch):
    """A value and a place: `list_chosen` chooses larger values, and equal values up to the place."""
    cut, last = -math.inf, int32(n)
    if k < n:
        cut, last = cut_of(values, n, k, counts, scratch) if k > 0 else (math.inf, int32(n))
    return cut, last


@cuda.jit(device=True)
def list_chosen(values, n, k, out, offset, counts, scratch):
    """Write the places of all infinite and of the k largest finite values, ascending and plus `offset`, to `out`.

    Each warp takes a part of the list: it counts how many values are chosen there, and then writes their places.
    """
    cut, last = cut_list(values, n, k, counts, scratch)
    t, n_warps = int32(cuda.threadIdx.x), (int32(cuda.blockDim.x) + int32(WARP - 1)) // int32(WARP)
    warp, lane, size = t // int32(WARP), t % int32(WARP), int32(n)
    per_warp = (size // n_warps // int32(WARP) + int32(1)) * int32(WARP)
    high, taken, place = min((warp + int32(1)) * per_warp, size), int32(0), int32(0)
    i = warp * per_warp + lane
    while i - lane < high:
        value = values[uint32(i)] if i < high else -math.inf
        taken += int32(cuda.popc(ballot(i < high and (value > cut or (value == cut and i <= last)))))
        i += int32(WARP)
    if lane == 0:
        counts[warp] = taken
    cuda.syncthreads()
    for other in range(warp):
        place += counts[other]
    i = warp * per_warp + lane
    while i - lane < high:
        value = values[uint32(i)] if i < high else -math.inf
        chosen = i < high and (value > cut or (value == cut and i <= last))
        bits = ballot(chosen)
        if chosen:
            out[uint32(place + int32(cuda.popc(bits & ((1 << lane) - 1))))] = offset + i
        place += int32(cuda.popc(bits))
        i += int32(WARP)
    cuda.syncthreads()


@cuda.jit(device=True)
def order_chosen(values, places, n, order, scratch):
    """Sort chosen places of a list, best first, into `order`, by counting for each how many come before it."""
    few = scratch[5]
    for i in range(cuda.threadIdx.x, min(n, FEW), cuda.blockDim.x):
        few[i] = values[places[i]]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        place = places[i]
        value, rank = values[place], 0
        for j in range(n):
            other = few[j] if j < FEW else values[places[j]]
            rank += other > value or (other == value and j < i)
        order[rank] = place
    cuda.syncthreads()


@kernel
def best_of_lists(scores, offsets, starts, places, order):
    """The `starts[q + 1] - starts[q]` best documents of each list, best first, as places in the list."""
    counts, scratch = selection_space()
    q = cuda.blockIdx.x
    first = offsets[q]
    n, start = offsets[q + 1] - first, starts[q]
    k = starts[q + 1] - start
    list_chosen(scores[first:], n, k, places[start:], 0, counts, scratch)
    order_chosen(scores[first:], places[start:], k, order[start:], scratch)


@cuda.jit(device=True)
def negative_score(scores, positive, i, stop):
    """A document's score; infinite where it is positive."""
    inside = i < stop
    return math.inf if inside and positive[i] else scores[i] if inside else 0.0


@kernel(shared=8 * ROOM, registers=40)
def choose_rows(scores, positive, offsets, starts, n_negatives, values, rows):
    """All positives of each list and its best-scored `n_negatives[q]` negatives, ascending, to `rows[starts[q]:]`."""
    counts, scratch = selection_space()
    near = cuda.shared.array(0, float64)
    q, step = cuda.blockIdx.x, cuda.blockDim.x
    first, stop = offsets[q], offsets[q + 1]
    n = stop - first
    if n <= ROOM:
        for i in range(cuda.threadIdx.x, n, 4 * step):  # four loads at a time, which wait for memory together
            a = negative_score(scores, positive, first + i, stop)
            b = negative_score(scores, positive, first + i + step, stop)
            c = negative_score(scores, positive, first + i + 2 * step, stop)
            d = negative_score(scores, positive, first + i + 3 * step, stop)
            near[i] = a
            if i + step < n:
                near[i + step] = b
            if i + 2 * step < n:
                near[i + 2 * step] = c
            if i + 3 * step < n:
                near[i + 3 * step] = d
    else:
        for i in range(first + cuda.threadIdx.x, stop, step):
            values[i] = negative_score(scores, positive, i, stop)
    cuda.syncthreads()
    if n <= ROOM:
        list_chosen(near, n, n_negatives[q], rows[starts[q] :], first, counts, scratch)
    else:
        list_chosen(values[first:], n, n_negatives[q], rows[starts[q] :], first, counts, scratch)
