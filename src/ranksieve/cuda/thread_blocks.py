"""Functions that all threads of a block, or of a warp, call together.

The simulator has no warps: its versions exchange values through shared memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, cuda, float64, int32, int64

from ranksieve.cuda.device import SIMULATED

WARP = 32
MOST_WARPS = 32  # most warps of a block
MAXIMA = 2 * MOST_WARPS  # numbers of shared memory that `max_over_block` needs
ALL = 0xFFFFFFFF  # mask of all threads of a warp

if SIMULATED:

    @cuda.jit(device=True)
    def ballot(flag):
        """The flags of the threads of a warp as the bits of a number."""
        flags = cuda.shared.array(1024, boolean)
        t = cuda.threadIdx.x
        flags[t] = flag
        cuda.syncthreads()
        bits = 0
        for lane in range(WARP):
            bits |= int(flags[t - t % WARP + lane]) << lane
        cuda.syncthreads()
        return bits

    @cuda.jit(device=True)
    def _values_of_warp(value):
        """The values of the threads of a warp."""
        if isinstance(value, int | np.integer):  # each of these lines is one array in the simulator
            values = cuda.shared.array(1024, int64)
        else:
            values = cuda.shared.array(1024, float64)
        t = cuda.threadIdx.x
        values[t] = value
        cuda.syncthreads()
        found = [values[i] for i in range(t - t % WARP, t - t % WARP + WARP)]
        cuda.syncthreads()
        return found

    @cuda.jit(device=True)
    def exchange(value, distance):
        """The value of the thread whose number in the warp differs from this one's in the bit `distance`."""
        return _values_of_warp(value)[cuda.threadIdx.x % WARP ^ distance]

    @cuda.jit(device=True)
    def add_over_warp(value):
        """The sum over the threads of a warp, in the same order each time."""
        return sum(_values_of_warp(value))

    @cuda.jit(device=True)
    def max_over_warp(value):
        """The largest value of the threads of a warp."""
        return max(_values_of_warp(value))

    @cuda.jit(device=True)
    def add_before(value):
        """The sum over the threads of a warp before this one, and over all of them."""
        values = _values_of_warp(value)
        return sum(values[: cuda.threadIdx.x % WARP]), sum(values)

    @cuda.jit(device=True)
    def place_of_largest(values, n):
        """The largest of n values in shared memory, and its first place; called by one warp."""
        largest, place = values[0], 0
        for i in range(1, n):
            if values[i] > largest:
                largest, place = values[i], i
        return largest, place

    @cuda.jit(device=True)
    def synchronize_warp():
        """Wait for the other threads of a warp, which is the only one of its block here."""
        cuda.syncthreads()

else:

    @cuda.jit(device=True)
    def ballot(flag):
        """The flags of the threads of a warp as the bits of a number."""
        return int64(cuda.ballot_sync(ALL, flag)) & ALL  # `ballot_sync` returns a signed number of 32 bits

    @cuda.jit(device=True)
    def exchange(value, distance):
        """The value of the thread whose number in the warp differs from this one's in the bit `distance`."""
        return cuda.shfl_xor_sync(ALL, value, distance)

    @cuda.jit(device=True)
    def add_over_warp(value):
        """The sum over the threads of a warp, in the same order each time."""
        for distance in (16, 8, 4, 2, 1):
            value = value + exchange(value, distance)
        return value

    @cuda.jit(device=True)
    def max_over_warp(value):
        """The largest value of the threads of a warp."""
        for distance in (16, 8, 4, 2, 1):
            value = max(value, exchange(value, distance))
        return value

    @cuda.jit(device=True)
    def add_before(value):
        """The sum over the threads of a warp before this one, and over all of them."""
        lane, total = int32(cuda.threadIdx.x) & int32(WARP - 1), value
        for distance in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL, total, distance)
            if lane >= distance:
                total += other
        return total - value, cuda.shfl_sync(ALL, total, WARP - 1)

    @cuda.jit(device=True)
    def place_of_largest(values, n):
        """The largest of n values in shared memory, and its first place; called by one warp."""
        lane, largest, place = int32(cuda.threadIdx.x) & int32(WARP - 1), -math.inf, int32(n)
        for i in range(lane, n, WARP):
            if values[i] > largest:
                largest, place = values[i], int32(i)
        most = max_over_warp(largest)
        ties = cuda.ballot_sync(ALL, largest == most)
        if cuda.popc(ties) == 1:
            return most, cuda.shfl_sync(ALL, place, cuda.ffs(ties) - 1)
        place = place if largest == most else int32(n)
        for distance in (16, 8, 4, 2, 1):
            place = min(place, exchange(place, distance))
        return most, place

    @cuda.jit(device=True)
    def synchronize_warp():
        """Wait for the other threads of a warp."""
        cuda.syncwarp()


@cuda.jit(device=True)
def rank_flags(flag, counts):
    """How many threads before this one have their flag set, and how many in the block.

    `counts` is shared memory of the kernel, an integer for each warp. It cannot be allocated here: two functions of a
    kernel cannot both call a function that allocates shared memory.
    """
    t = int32(cuda.threadIdx.x)
    warp, lane = t // WARP, t % WARP
    bits = int64(ballot(flag))
    if lane == 0:
        counts[warp] = cuda.popc(bits)
    cuda.syncthreads()
    before, total = int32(0), int32(0)
    for other in range((cuda.blockDim.x + WARP - 1) // WARP):
        if other == warp:
            before = total
        total += counts[other]
    cuda.syncthreads()
    return before + int32(cuda.popc(bits & ((int64(1) << int64(lane)) - 1))), total


@cuda.jit(device=True)
def add_over_block(value, sums):
    """The sum over the threads of the block, in the same order each time; `sums` is shared memory of its type."""
    value = add_over_warp(value)
    if cuda.threadIdx.x % WARP == 0:
        sums[cuda.threadIdx.x // WARP] = value
    cuda.syncthreads()
    total = sums[0]
    for warp in range(1, (cuda.blockDim.x + WARP - 1) // WARP):
        total += sums[warp]
    cuda.syncthreads()
    return total


@cuda.jit(device=True)
def sum_over_block(value):
    """The sum of an integer over the threads of the block."""
    return add_over_block(value, cuda.shared.array(MOST_WARPS, int64))


@cuda.jit(device=True)
def add_before_in_block(value, counts):
    """The sum of a 32-bit integer over the threads before this one; for `counts` see `rank_flags`."""
    warp = int32(cuda.threadIdx.x) // int32(WARP)
    before, total = add_before(value)
    if int32(cuda.threadIdx.x) % int32(WARP) == 0:
        counts[warp] = total
    cuda.syncthreads()
    for other in range(warp):
        before += counts[other]
    cuda.syncthreads()
    return before


@cuda.jit(device=True)
def max_over_block(value, other, maxima):
    """The largest `value` and the largest `other` of the block's threads; `maxima` is shared memory of the kernel."""
    t = int32(cuda.threadIdx.x)
    value, other = max_over_warp(value), max_over_warp(other)
    if t % int32(WARP) == 0:
        maxima[2 * (t // WARP)], maxima[2 * (t // WARP) + 1] = value, other
    cuda.syncthreads()
    for warp in range((cuda.blockDim.x + WARP - 1) // WARP):
        value, other = max(value, maxima[2 * warp]), max(other, maxima[2 * warp + 1])
    cuda.syncthreads()
    return value, other
