"""The largest gradients of all documents, and compact lists of marked documents: what GOSS selects by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, int32, int64

from ranksieve.cuda.device import SIMULATED, THREADS, empty, kernel, n_blocks, upload
from ranksieve.cuda.ranking import BUCKETS, find_bucket
from ranksieve.cuda.sorting import SORT_THREADS, start_parts
from ranksieve.cuda.thread_blocks import MOST_WARPS, rank_flags, sum_over_block

TOP, DRAWN, EQUAL = 1, 2, 4  # marks: among the largest, drawn at random, equal to the smallest of the largest
CHOSEN = TOP | DRAWN
PARTS = 4 if SIMULATED else 1024  # parts of all documents; each is counted and listed by one block
ABSOLUTE = (1 << 63) - 1  # mask of a float's bits without the sign: they are in the order of absolute values
DIGITS = (
    (52, 11),
    (41, 11),
    (30, 11),
    (19, 11),
    (8, 11),
    (0, 8),
)  # (shift, width) of each digit, the highest first


@kernel
def count_digits(bits, shift, width, state, counts):
    """How many values have each digit, among those whose higher digits are the ones found so far."""
    here = cuda.shared.array(BUCKETS, int32)
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        here[k] = 0
    cuda.syncthreads()
    above = shift + width
    for i in range(cuda.grid(1), len(bits), cuda.gridsize(1)):
        absolute = bits[i] & ABSOLUTE
        if above == 63 or absolute >> above == state[0] >> above:
            cuda.atomic.add(here, (absolute >> shift) & (BUCKETS - 1) if width == 11 else absolute & 255, 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        if here[k] > 0:
            cuda.atomic.add(counts, k, here[k])


@kernel
def find_digit(shift, counts, state):
    """Add the next digit of the `state[1]`-th largest value to `state[0]`; one block."""
    warps = cuda.shared.array(MOST_WARPS, int32)
    buckets = cuda.shared.array(BUCKETS, int32)
    found = cuda.shared.array(3, int32)
    for k in range(cuda.threadIdx.x, BUCKETS, cuda.blockDim.x):
        buckets[k], counts[k] = counts[k], 0
    cuda.syncthreads()
    find_bucket(buckets, warps, found, int32(state[1]))
    if cuda.threadIdx.x == 0:
        state[0] |= int64(found[0]) << shift
        state[1] = found[1]


@kernel
def mark_largest(bits, state, flags):
    """Mark values that are larger than the one found, and those that are equal to it."""
    for i in range(cuda.grid(1), len(bits), cuda.gridsize(1)):
        absolute = bits[i] & ABSOLUTE
        flags[i] = TOP if absolute > state[0] else EQUAL if absolute == state[0] else 0


@kernel
def take_first(listed, state, flags):
    """Mark the first of the equal values as being among the largest."""
    for i in range(cuda.grid(1), state[1], cuda.gridsize(1)):
        flags[listed[i]] = TOP


@kernel
def mark_drawn(others, places, flags):
    """Mark the documents at random places of `others`."""
    for i in range(cuda.grid(1), len(places), cuda.gridsize(1)):
        flags[others[places[i]]] = DRAWN


@kernel
def weigh(rows, n_rows, flags, weight, out):
    """The weights of rows: `weight` for those that were drawn, as they stand for others, too, and 1 for the largest."""
    for i in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        out[i] = weight if flags[rows[i]] == DRAWN else 1.0


@kernel
def count_parts(flags, marks, wanted, starts):
    """How many documents of each part have one of `marks`; without `wanted`, how many have none of them."""
    part = (len(flags) + PARTS - 1) // PARTS
    first, total = cuda.blockIdx.x * part, int64(0)
    for i in range(first + cuda.threadIdx.x, min(first + part, len(flags)), cuda.blockDim.x):
        total += int64((flags[i] & marks != 0) == wanted)
    total = sum_over_block(total)
    if cuda.threadIdx.x == 0:
        starts[cuda.blockIdx.x] = total


@kernel
def list_parts(flags, marks, wanted, starts, out):
    """List the documents that `count_parts` counts, ascending."""
    counts = cuda.shared.array(MOST_WARPS, int32)
    part, t = (len(flags) + PARTS - 1) // PARTS, cuda.threadIdx.x
    first, place = cuda.blockIdx.x * part, starts[cuda.blockIdx.x]
    n = max(min(part, len(flags) - first), 0)
    for tile in range(0, n, cuda.blockDim.x):
        i = first + min(tile + t, n - 1)
        is_wanted = tile + t < n and (flags[i] & marks != 0) == wanted
        before, n_here = rank_flags(is_wanted, counts)
        if is_wanted:
            out[place + before] = i
        place += n_here


class Largest:
    """Marks the largest values of all documents, and random others."""

    def __init__(self, flags: Any) -> None:
        self._flags, n_docs = flags, len(flags)
        self._listed = empty(n_docs, np.int32)
        self._starts = empty(PARTS, np.int32)
        self._counts = upload(np.zeros(BUCKETS, np.int32))
        self._blocks = n_blocks(4)

    def mark(self, values: Any, n: int) -> None:
        """Mark the n largest absolute values, equal ones by place."""
        bits, state = values.view(np.int64), upload(np.array([0, n]))
        for shift, width in DIGITS:
            count_digits[self._blocks, THREADS](bits, shift, width, state, self._counts)
            find_digit[1, SORT_THREADS](shift, self._counts, state)
        mark_largest[self._blocks, THREADS](bits, state, self._flags)
        self._list(EQUAL, True, self._listed)
        take_first[self._blocks, THREADS](self._listed, state, self._flags)

    def draw(self, places: np.ndarray) -> None:
        """Mark the documents at some places of the list of those that are not marked."""
        if len(places):
            self._list(CHOSEN, False, self._listed)
            mark_drawn[self._blocks, THREADS](self._listed, upload(places.astype(np.int32)), self._flags)

    def weigh(self, rows: Any, n_rows: int, weight: float, out: Any) -> None:
        """Write the weights of chosen documents: `weight` for those that were drawn, 1 for the others."""
        weigh[self._blocks, THREADS](rows, n_rows, self._flags, weight, out)

    def _list(self, marks: int, wanted: bool, out: Any) -> None:
        count_parts[PARTS, THREADS](self._flags, marks, wanted, self._starts)
        start_parts[1, SORT_THREADS](self._starts)
        list_parts[PARTS, THREADS](self._flags, marks, wanted, self._starts, out)
