"""Histograms of a leaf's rows: `kernels.histograms` on a GPU.

A block sums 32 columns, a group, in shared memory: `sums[bin, column]`, so that the 32 threads of a warp are in 32
banks. A 64-bit sum is two 32-bit sums with a carry: GPUs have no 64-bit addition there that is not a loop.
"""

from __future__ import annotations

from numba import cuda, int64, uint32, uint64

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.dtypes import MISSING_BIN

N_BINS = 256
CELLS = N_BINS * GROUP  # of a group
SHARED = 2 * 4 * CELLS  # bytes: the low halves of all sums, then the high halves
LOW = 0xFFFFFFFF


@cuda.jit(device=True)
def add_byte(sums, word, byte, place, low, high):
    """Add a value to the cell of one byte of a word; all numbers have 32 bits."""
    value = uint32(uint32(word >> uint32(byte << uint32(3))) & uint32(255))
    cell = uint32(uint32(value << uint32(5)) + uint32(place << uint32(2)) + byte)
    before = cuda.atomic.add(sums, cell, low)
    carry = uint32(1) if uint32((uint64(before) + uint64(low)) & uint64(LOW)) < low else uint32(0)
    cuda.atomic.add(sums, uint32(cell + uint32(CELLS)), uint32((uint64(high) + uint64(carry)) & uint64(LOW)))


@cuda.jit(device=True)
def add_word(sums, word, value, turn, place):
    """Add a row's value to the cells of four columns; by their `turn`, 0 to 3, threads of a warp share no bank."""
    low, high = uint32(uint64(value) & uint64(LOW)), uint32((uint64(value) >> uint64(32)) & uint64(LOW))
    turn, place = uint32(turn), uint32(place)
    for step in range(4):
        add_byte(sums, word, uint32((uint32(step) + turn) & uint32(3)), place, low, high)


@cuda.jit(device=True)
def cell_of(i, n_bins):
    """The i-th cell in use of a group with so many bins; those of the missing bin come last."""
    return i if i < n_bins * GROUP else i + (MISSING_BIN - n_bins) * GROUP


@cuda.jit(device=True)
def clear_sums(sums, n_bins):
    """Begin with sums of 0."""
    for i in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
        cell = cell_of(i, n_bins)
        sums[cell], sums[cell + CELLS] = uint32(0), uint32(0)
    cuda.syncthreads()


@cuda.jit(device=True)
def flush_sums(sums, n_bins, hist, start):
    """Add the block's sums to those in memory, from cell `start` on."""
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
        cell = cell_of(i, n_bins)
        value = int64((uint64(sums[cell + CELLS]) << uint64(32)) | uint64(sums[cell]))
        if value != 0:
            cuda.atomic.add(hist, start + cell, value)


@cuda.jit(device=True)
def sum_listed(sums, rows, start, words, packed, first, n):
    """Add the rows listed from `start` on, n of them; `first` is where the group's words begin.

    Eight threads have one row; four rows wait for memory together.
    """
    t, step = cuda.threadIdx.x, cuda.blockDim.x // WORDS
    turn, place = (t // WORDS) & 3, t & (WORDS - 1)
    last = start + n - 1
    for i in range(start + t // WORDS, start + n, 4 * step):
        j, k, m = i + step, i + 2 * step, i + 3 * step
        a, b = int64(rows[i]), int64(rows[min(j, last)])
        c, d = int64(rows[min(k, last)]), int64(rows[min(m, last)])
        u, v = words[first + a * WORDS + place], words[first + b * WORDS + place]
        w, x = words[first + c * WORDS + place], words[first + d * WORDS + place]
        p, q, r, s = packed[a], packed[b], packed[c], packed[d]
        add_word(sums, u, p, turn, place)
        if j <= last:
            add_word(sums, v, q, turn, place)
        if k <= last:
            add_word(sums, w, r, turn, place)
        if m <= last:
            add_word(sums, x, s, turn, place)
