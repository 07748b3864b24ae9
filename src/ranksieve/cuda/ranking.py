"""The best documents of each list; a block has one list.

Documents are ordered by keys: integers in the order of scores, equal ones by place.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, int32, int64

from ranksieve.cuda.blocks import MOST_WARPS, rank_flags
from ranksieve.cuda.device import kernel

LARGEST_KEY, SMALLEST_KEY = np.iinfo(np.int64).max, np.iinfo(np.int64).min
DIGITS = 256


@cuda.jit(device=True)
def key_of(bits):
    """The bits of a float as an integer of the same order; -0 is 0."""
    if bits == SMALLEST_KEY:
        return int64(0)
    return bits if bits >= 0 else bits ^ LARGEST_KEY


@cuda.jit(device=True)
def find_digit(digits, parts, found, need):
    """The digit that the `need`-th largest key has: into `found`, with how many of its keys are needed, and all."""
    t = cuda.threadIdx.x
    for part in range(t, 32, cuda.blockDim.x):
        total = int32(0)
        for digit in range(8 * part, 8 * part + 8):
            total += digits[digit]
        parts[part] = total
    cuda.syncthreads()
    if t == 0:
        part = 31
        while parts[part] < need:
            need -= parts[part]
            part -= 1
        digit = 8 * part + 7
        while digits[digit] < need:
            need -= digits[digit]
            digit -= 1
        found[0], found[1], found[2] = digit, need, digits[digit]
    cuda.syncthreads()


@cuda.jit(device=True)
def cut_of(keys, first, n, k):
    """A key, and how many of the keys that equal it, in order, join those above it to make the k largest of n."""
    digits = cuda.shared.array(DIGITS, int32)
    parts = cuda.shared.array(32, int32)
    found = cuda.shared.array(3, int32)
    t, prefix, need = cuda.threadIdx.x, int64(0), int32(k)
    if k >= n:
        return int64(SMALLEST_KEY), int32(n)
    if k <= 0:
        return int64(LARGEST_KEY), int32(0)
    for shift in range(56, -8, -8):
        for digit in range(t, DIGITS, cuda.blockDim.x):
            digits[digit] = 0
        cuda.syncthreads()
        for i in range(first + t, first + n, cuda.blockDim.x):
            key = keys[i]
            if shift == 56:
                cuda.atomic.add(digits, (key >> 56) + 128, 1)
            elif key >> (shift + 8) == prefix:
                cuda.atomic.add(digits, (key >> shift) & 255, 1)
        cuda.syncthreads()
        find_digit(digits, parts, found, need)
        prefix = int64(found[0]) - 128 if shift == 56 else (prefix << 8) | int64(found[0])
        need = found[1]
        is_whole = found[2] == need
        cuda.syncthreads()
        if is_whole and prefix << shift != SMALLEST_KEY:  # all keys that begin with these digits
            return (prefix << shift) - 1, int32(0)
    return prefix, need


@cuda.jit(device=True)
def list_chosen(keys, first, n, cut, n_equal, out, start, offset, counts):
    """Write the places of the chosen documents, ascending and plus `offset`, to `out[start:]`; return how many."""
    t, taken, equal = cuda.threadIdx.x, int32(0), int32(0)
    for tile in range(0, n, cuda.blockDim.x):
        inside = tile + t < n
        key = keys[first + tile + t] if inside else int64(SMALLEST_KEY)
        before, n_here = rank_flags(inside and key == cut, counts)
        chosen = inside and (key > cut or (key == cut and equal + before < n_equal))
        equal += n_here
        before, n_here = rank_flags(chosen, counts)
        if chosen:
            out[start + taken + before] = offset + tile + t
        taken += n_here
    cuda.syncthreads()
    return taken


@cuda.jit(device=True)
def order_chosen(keys, first, places, start, n, order):
    """Sort chosen places of a list, best first, into `order[start:]`: each counts those before it."""
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        place = places[start + i]
        key, rank = keys[first + place], 0
        for j in range(n):
            other = keys[first + places[start + j]]
            rank += other > key or (other == key and j < i)
        order[start + rank] = place
    cuda.syncthreads()


@kernel
def best_of_lists(score_bits, offsets, starts, keys, places, order):
    """The best documents of each list, best first: `starts[q + 1] - starts[q]` of them, as places in the list."""
    counts = cuda.shared.array(MOST_WARPS, int32)
    q = cuda.blockIdx.x
    first = offsets[q]
    n, start = offsets[q + 1] - first, starts[q]
    k = starts[q + 1] - start
    for i in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
        keys[i] = key_of(score_bits[i])
    cuda.syncthreads()
    cut, n_equal = cut_of(keys, first, n, k)
    list_chosen(keys, first, n, cut, n_equal, places, start, 0, counts)
    order_chosen(keys, first, places, start, k, order)


@kernel
def choose_rows(score_bits, positive, offsets, starts, keys, rows):
    """All positives of each list and its best-scored negatives: `starts[q + 1] - starts[q]` rows, ascending."""
    counts = cuda.shared.array(MOST_WARPS, int32)
    q = cuda.blockIdx.x
    first = offsets[q]
    n, start = offsets[q + 1] - first, starts[q]
    for i in range(first + cuda.threadIdx.x, first + n, cuda.blockDim.x):
        keys[i] = LARGEST_KEY if positive[i] else key_of(score_bits[i])
    cuda.syncthreads()
    cut, n_equal = cut_of(keys, first, n, starts[q + 1] - start)
    list_chosen(keys, first, n, cut, n_equal, rows, start, first, counts)
