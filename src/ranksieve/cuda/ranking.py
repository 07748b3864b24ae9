"""The best documents of each list, equal ones by place; a block has one list."""

from __future__ import annotations

import math

from numba import cuda, float64, int32

from ranksieve.cuda.blocks import MOST_WARPS, max_over_block, rank_flags
from ranksieve.cuda.device import kernel

BUCKETS = 2048
PARTS = 64  # of the buckets
ROOM = 6144  # documents of a list that shared memory has room for
FEW = 256  # values that are ordered by counting, all at once


@cuda.jit(device=True)
def find_bucket(buckets, parts, found, need):
    """The bucket of the `need`-th largest value: into `found`, with how many of its values are needed, and all."""
    t, per_part = cuda.threadIdx.x, BUCKETS // PARTS
    for part in range(t, PARTS, cuda.blockDim.x):
        total = int32(0)
        for bucket in range(per_part * part, per_part * (part + 1)):
            total += buckets[bucket]
        parts[part] = total
    cuda.syncthreads()
    if t == 0:
        part = PARTS - 1
        while parts[part] < need:
            need -= parts[part]
            part -= 1
        bucket = per_part * (part + 1) - 1
        while buckets[bucket] < need:
            need -= buckets[bucket]
            bucket -= 1
        found[0], found[1], found[2] = bucket, need, buckets[bucket]
    cuda.syncthreads()


@cuda.jit(device=True)
def bucket_of(value, low, scale):
    """The bucket of a value; it never falls where the value rises."""
    return min(int32((value - low) * scale), int32(BUCKETS - 1))


@cuda.jit(device=True)
def last_of_equal(values, first, n, value, k, box, counts):
    """The place of the k-th document with this value."""
    t, taken = cuda.threadIdx.x, int32(0)
    for tile in range(0, n, cuda.blockDim.x):
        is_equal = tile + t < n and values[first + min(tile + t, n - 1)] == value
        before, n_equal = rank_flags(is_equal, counts)
        if is_equal and taken + before == k - 1:
            box[0] = tile + t
        taken += n_equal
    cuda.syncthreads()
    return box[0]


@cuda.jit(device=True)
def nth_of_few(values, first, n, low, high, need, few, places, cut, box):
    """The `need`-th largest of the few values from low to high, and its place, into `cut` and `box`."""
    t = cuda.threadIdx.x
    if t == 0:
        box[0] = 0
    cuda.syncthreads()
    for i in range(t, n, cuda.blockDim.x):
        value = values[first + i]
        if low <= value <= high:
            k = cuda.atomic.add(box, 0, 1)
            few[k], places[k] = value, i
    cuda.syncthreads()
    taken = box[0]
    cuda.syncthreads()
    for i in range(t, taken, cuda.blockDim.x):
        rank = 0
        for j in range(taken):
            rank += few[j] > few[i] or (few[j] == few[i] and places[j] < places[i])
        if rank == need - 1:
            cut[0], box[0] = few[i], places[i]
    cuda.syncthreads()


@cuda.jit(device=True)
def cut_of(values, first, n, k, counts, work):
    """The k-th largest of the finite ones of n values, of equal ones the first, and its place; k > 0, and not more.

    The range of values is divided into buckets until few values are in the bucket of the k-th; these are counted.
    """
    buckets, parts, found, places, cut, maxima, few = work
    t, need, n_here, bucket = cuda.threadIdx.x, int32(k), int32(n), int32(0)
    low, high, scale = -math.inf, math.inf, 0.0
    while True:
        smallest, largest = math.inf, -math.inf
        for i in range(first + t, first + n, cuda.blockDim.x):
            value = values[i]
            if low <= value <= high and value < math.inf and (scale == 0.0 or bucket_of(value, low, scale) == bucket):
                smallest, largest = min(smallest, value), max(largest, value)
        low, high = -max_over_block(-smallest, maxima), max_over_block(largest, maxima)
        if low == high or n_here <= FEW:
            break
        scale = (BUCKETS - 1) / (high - low)
        for i in range(t, BUCKETS, cuda.blockDim.x):
            buckets[i] = 0
        cuda.syncthreads()
        for i in range(first + t, first + n, cuda.blockDim.x):
            value = values[i]
            if low <= value <= high:
                cuda.atomic.add(buckets, bucket_of(value, low, scale), 1)
        cuda.syncthreads()
        find_bucket(buckets, parts, found, need)
        bucket, need, n_here = found[0], found[1], found[2]
        cuda.syncthreads()
    if n_here > FEW:
        return low, last_of_equal(values, first, n, low, need, found, counts)
    nth_of_few(values, first, n, low, high, need, few, places, cut, found)
    return cut[0], found[0]


@cuda.jit(device=True)
def list_chosen(values, first, n, k, out, start, offset, counts, work):
    """Write the places of the k largest finite values and of infinite ones, ascending and plus `offset`, to `out`."""
    cut, last = -math.inf, int32(n)
    if k < n:
        cut, last = cut_of(values, first, n, k, counts, work) if k > 0 else (math.inf, int32(n))
    t, taken = cuda.threadIdx.x, int32(0)
    for tile in range(0, n, cuda.blockDim.x):
        inside = tile + t < n
        value = values[first + tile + t] if inside else -math.inf
        chosen = inside and (value > cut or (value == cut and tile + t <= last))
        before, n_here = rank_flags(chosen, counts)
        if chosen:
            out[start + taken + before] = offset + tile + t
        taken += n_here
    cuda.syncthreads()


@cuda.jit(device=True)
def order_chosen(values, first, places, start, n, order):
    """Sort chosen places of a list, best first, into `order[start:]`: each counts those before it."""
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        place = places[start + i]
        value, rank = values[first + place], 0
        for j in range(n):
            other = values[first + places[start + j]]
            rank += other > value or (other == value and j < i)
        order[start + rank] = place
    cuda.syncthreads()


@kernel
def best_of_lists(scores, offsets, starts, places, order):
    """The best documents of each list, best first: `starts[q + 1] - starts[q]` of them, as places in the list."""
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
    first = offsets[q]
    n, start = offsets[q + 1] - first, starts[q]
    k = starts[q + 1] - start
    list_chosen(scores, first, n, k, places, start, 0, counts, work)
    order_chosen(scores, first, places, start, k, order)


@kernel(shared=8 * ROOM, registers=40)
def choose_rows(scores, positive, offsets, starts, n_negatives, values, rows):
    """All positives of each list and its best-scored `n_negatives[q]` negatives, ascending, to `rows[starts[q]:]`."""
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
    first = offsets[q]
    n = offsets[q + 1] - first
    near = cuda.shared.array(0, float64)
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        value = math.inf if positive[first + i] else scores[first + i]
        if n <= ROOM:
            near[i] = value
        else:
            values[first + i] = value
    cuda.syncthreads()
    if n <= ROOM:
        list_chosen(near, 0, n, n_negatives[q], rows, starts[q], first, counts, work)
    else:
        list_chosen(values, first, n, n_negatives[q], rows, starts[q], first, counts, work)
