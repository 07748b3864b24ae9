"""What the threads of a block do together; all of them call these functions.

The simulator has no warps: there, votes and exchanges within a warp pass through shared memory.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, cuda, float64, int32, int64

from ranksieve.cuda.device import SIMULATED

WARP = 32
MOST_WARPS = 32  # of a block
ALL = 0xFFFFFFFF

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
    def exchange(value, distance):
        """The value of the thread whose number in the warp differs in this bit."""
        if isinstance(value, int | np.integer):  # a line is an array there
            values = cuda.shared.array(1024, int64)
        else:
            values = cuda.shared.array(1024, float64)
        values[cuda.threadIdx.x] = value
        cuda.syncthreads()
        other = values[cuda.threadIdx.x ^ distance]
        cuda.syncthreads()
        return other

else:

    @cuda.jit(device=True)
    def ballot(flag):
        """The flags of the threads of a warp as the bits of a number."""
        return int64(cuda.ballot_sync(ALL, flag)) & ALL  # 32 bits, which are signed there

    @cuda.jit(device=True)
    def exchange(value, distance):
        """The value of the thread whose number in the warp differs in this bit."""
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
def rank_flags(flag, counts):
    """How many threads before this one have their flag set, and how many in the block.

    `counts` is shared memory of the kernel, an integer for each warp: two functions that a kernel calls cannot both
    call one with shared memory of its own.
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
def sum_over_block(value):
    """The sum of an integer over the threads of the block."""
    sums = cuda.shared.array(MOST_WARPS, int64)
    t = cuda.threadIdx.x
    value = add_over_warp(value)
    if t % WARP == 0:
        sums[t // WARP] = value
    cuda.syncthreads()
    total = int64(0)
    for warp in range((cuda.blockDim.x + WARP - 1) // WARP):
        total += sums[warp]
    cuda.syncthreads()
    return total


@cuda.jit(device=True)
def max_over_block(value, values):
    """The largest float over the threads of the block; `values` is shared memory of the kernel, see `rank_flags`."""
    t = cuda.threadIdx.x
    value = max_over_warp(value)
    if t % WARP == 0:
        values[t // WARP] = value
    cuda.syncthreads()
    largest = values[0]
    for warp in range(1, (cuda.blockDim.x + WARP - 1) // WARP):
        largest = max(largest, values[warp])
    cuda.syncthreads()
    return largest
