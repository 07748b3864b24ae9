"""Histograms of a leaf's rows on a GPU, as in `kernels.histograms`.

A block sums a group of 32 columns in shared memory, `sums[bin, column]`, so that the 32 threads of a warp use 32
different banks. A 64-bit sum is two 32-bit sums with a carry: 64-bit additions in shared memory are loops on GPUs.
"""

from __future__ import annotations

from numba import cuda, int64, uint32, uint64

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.dtypes import MISSING_BIN

N_BINS = 256
CELLS = N_BINS * GROUP  # sums of a group: one for each bin and column
SHARED = 2 * 4 * CELLS  # bytes of shared memory: the low halves of all sums, then the high halves
LOW = 0xFFFFFFFF


@cuda.jit(device=True)
def with_carry(before, low, high):
    """The high half of a number that is added, plus 1 where adding its low half to `before` passed 2^32."""
    carry = uint32(1) if uint32((uint64(before) + uint64(low)) & uint64(LOW)) < low else uint32(0)
    return uint32((uint64(high) + uint64(carry)) & uint64(LOW))


@cuda.jit(device=True)
def add_word(sums, word, value, turn, place):
    """Add a row's value to the sums of four columns, whose bins are the bytes of `word`.

    Threads begin with different columns, by their `turn` from 0 to 3, so that the threads of a warp use different
    banks. The bytes of the word are rotated, so that each is read at a constant place. All low halves are added before
    the first high half, which waits for the carry. All numbers have 32 bits: indices of 64 bits cost more than sums.
    """
    low, high = uint32(uint64(value) & uint64(LOW)), uint32((uint64(value) >> uint64(32)) & uint64(LOW))
    turn, first = uint32(turn), uint32(uint32(place) << uint32(2))
    twice = uint64(word) | (uint64(word) << uint64(32))
    turned = uint32((twice >> uint64(turn << uint32(3))) & uint64(LOW))
    a = uint32(uint32(uint32(turned << uint32(5)) & uint32(8160)) + first + turn)
    b = uint32(
        uint32(uint32(turned >> uint32(3)) & uint32(8160)) + first + uint32(uint32(turn + uint32(1)) & uint32(3))
    )
    c = uint32(uint32(uint32(turned >> uint32(11)) & uint32(8160)) + first + uint32(turn ^ uint32(2)))
    d = uint32(
        uint32(uint32(turned >> uint32(19)) & uint32(8160)) + first + uint32(uint32(turn + uint32(3)) & uint32(3))
    )
    p, q = cuda.atomic.add(sums, a, low), cuda.atomic.add(sums, b, low)
    r, s = cuda.atomic.add(sums, c, low), cuda.atomic.add(sums, d, low)
    cuda.atomic.add(sums, uint32(a + uint32(CELLS)), with_carry(p, low, high))
    cuda.atomic.add(sums, uint32(b + uint32(CELLS)), with_carry(q, low, high))
    cuda.atomic.add(sums, uint32(c + uint32(CELLS)), with_carry(r, low, high))
    cuda.atomic.add(sums, uint32(d + uint32(CELLS)), with_carry(s, low, high))


@cuda.jit(device=True)
def cell_of(i, n_bins):
    """The i-th cell that is used in a group with so many bins; the cells of the missing bin come last."""
    return i if i < n_bins * GROUP else i + (MISSING_BIN - n_bins) * GROUP


@cuda.jit(device=True)
def clear_sums(sums, n_bins):
    """Set the sums to 0."""
    for i in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
        cell = cell_of(i, n_bins)
        sums[cell], sums[cell + CELLS] = uint32(0), uint32(0)
    cuda.syncthreads()


@cuda.jit(device=True)
def flush_sums(sums, n_bins, hist, start):
    """Add the block's sums to the histogram in global memory, from cell `start` on."""
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
        cell = cell_of(i, n_bins)
        value = int64((uint64(sums[cell + CELLS]) << uint64(32)) | uint64(sums[cell]))
        if value != 0:
            cuda.atomic.add(hist, start + cell, value)


@cuda.jit(device=True)
def sum_rows(sums, words, packed, start, stop):
    """Add the rows start:stop; `words` are the group's. Eight threads add a row; four rows are loaded at a time."""
    t, step = uint32(cuda.threadIdx.x), uint32(uint32(cuda.blockDim.x) // uint32(WORDS))
    turn, place = uint32(uint32(t // uint32(WORDS)) & uint32(3)), uint32(t & uint32(WORDS - 1))
    i, end = uint32(uint32(start) + uint32(t // uint32(WORDS))), uint32(stop)
    ahead = uint32(uint32(3) * step)
    while uint32(i + ahead) < end:
        j, k = uint32(i + step), uint32(i + uint32(2) * step)
        m = uint32(i + ahead)
        a, b = words[uint32(i * uint32(WORDS) + place)], words[uint32(j * uint32(WORDS) + place)]
        c, d = words[uint32(k * uint32(WORDS) + place)], words[uint32(m * uint32(WORDS) + place)]
        p, q, r, s = packed[i], packed[j], packed[k], packed[m]
        add_word(sums, a, p, turn, place)
        add_word(sums, b, q, turn, place)
        add_word(sums, c, r, turn, place)
        add_word(sums, d, s, turn, place)
        i = uint32(m + step)
    while i < end:
        add_word(sums, words[uint32(i * uint32(WORDS) + place)], packed[i], turn, place)
        i = uint32(i + step)


@cuda.jit(device=True)
def sum_listed(sums, rows, words, packed, n):
    """Add the first n of `rows`, like `sum_rows`."""
    t, step = uint32(cuda.threadIdx.x), uint32(uint32(cuda.blockDim.x) // uint32(WORDS))
    turn, place = uint32(uint32(t // uint32(WORDS)) & uint32(3)), uint32(t & uint32(WORDS - 1))
    i, end = uint32(t // uint32(WORDS)), uint32(n)
    last = uint32(end - uint32(1))
    while i < end:
        j, k, m = uint32(i + step), uint32(i + uint32(2) * step), uint32(i + uint32(3) * step)
        a, b = uint32(rows[i]), uint32(rows[min(j, last)])
        c, d = uint32(rows[min(k, last)]), uint32(rows[min(m, last)])
        u, v = words[uint32(a * uint32(WORDS) + place)], words[uint32(b * uint32(WORDS) + place)]
        w, x = words[uint32(c * uint32(WORDS) + place)], words[uint32(d * uint32(WORDS) + place)]
        p, q, r, s = packed[a], packed[b], packed[c], packed[d]
        add_word(sums, u, p, turn, place)
        if j < end:
            add_word(sums, v, q, turn, place)
        if k < end:
            add_word(sums, w, r, turn, place)
        if m < end:
            add_word(sums, x, s, turn, place)
        i = uint32(m + step)
