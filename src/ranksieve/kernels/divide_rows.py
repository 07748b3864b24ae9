"""Dividing the rows of a leaf between its two children, in place and in their order.

    rows       3 5 6 8 9          5, 8 and 9 go left
    scratch    5 8 9 6 3          `sort_sides`: left rows from the front, right rows from the back
    rows       5 8 9 3 6          `put_back`: right rows in their old order again

This is a stable partition.
"""

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import prefetch
from ranksieve.kernels.parallel import run_parts

CHUNK = 4_096  # rows a thread moves at a time; all threads divide a larger leaf
AHEAD = 32  # rows between the one that is read and the one that is prefetched


@njit(cache=True, nogil=True)
def sort_sides(bins, rows, scratch, low, high, feature, goes_left):
    """Write rows low:high to `scratch`, left rows upwards from `low`, right rows downwards; returns how many go left.

    `goes_left` says for each bin whether it goes left.
    """
    flat_bins, width, column = bins.reshape(bins.size), np.int64(bins.shape[1]), np.int64(feature)
    left, right = low, high - 1
    scattered = low < high and rows[right] - rows[low] != right - low  # the processor does not prefetch scattered rows
    for i in range(low, high):
        if scattered:
            prefetch(flat_bins, np.int64(rows[min(i + AHEAD, high - 1)]) * width + column)
        row = rows[i]
        # the row is written to both ends and stays at one: a branch would be mispredicted half of the time
        scratch[uintp(left)], scratch[uintp(right)] = row, row
        if_left = np.int64(goes_left[flat_bins[uintp(np.int64(row) * width + column)]])
        left += if_left
        right -= 1 - if_left
    return left - low


@njit(cache=True, nogil=True)
def put_back(rows, scratch, low, high, n_left, left_to, right_to):
    """Copy what `sort_sides` wrote back in the old order: left rows to `left_to`, right rows to `right_to`."""
    for i in range(n_left):
        rows[left_to + i] = scratch[low + i]
    for i in range(high - low - n_left):
        rows[right_to + i] = scratch[high - 1 - i]


@njit(cache=True, nogil=True)
def sort_chunks(first, last, bins, rows, scratch, start, stop, feature, goes_left, counts):
    """`sort_sides` of the chunks first:last of start:stop; `counts[c + 1]` is how many rows of chunk c go left."""
    for c in range(first, last):
        low, high = start + c * CHUNK, min(start + (c + 1) * CHUNK, stop)
        counts[c + 1] = sort_sides(bins, rows, scratch, low, high, feature, goes_left)


@njit(cache=True, nogil=True)
def put_chunks_back(first, last, rows, scratch, start, stop, lefts):
    """`put_back` of the chunks first:last; `lefts[c]` rows of the chunks before c go left."""
    border = start + lefts[len(lefts) - 1]
    for c in range(first, last):
        low, high = start + c * CHUNK, min(start + (c + 1) * CHUNK, stop)
        right_to = border + c * CHUNK - lefts[c]
        put_back(rows, scratch, low, high, lefts[c + 1] - lefts[c], start + lefts[c], right_to)


@njit(cache=True, nogil=True)
def divide_many(bins, rows, scratch, start, stop, feature, goes_left):
    """`divide_rows` on all threads: each sorts some chunks. Then it is known where the rows of each chunk go."""
    n_chunks = -(-(stop - start) // CHUNK)
    lefts = np.zeros(n_chunks + 1, np.int64)
    run_parts(sort_chunks, n_chunks, (bins, rows, scratch, start, stop, feature, goes_left, lefts))
    for c in range(n_chunks):
        lefts[c + 1] += lefts[c]
    run_parts(put_chunks_back, n_chunks, (rows, scratch, start, stop, lefts))
    return start + lefts[n_chunks]


@njit(cache=True, nogil=True)
def divide_rows(bins, rows, scratch, start, stop, feature, goes_left):
    """Move the rows that go left to the front of start:stop, both sides in their old order; return the border."""
    if stop - start > CHUNK:
        return divide_many(bins, rows, scratch, start, stop, feature, goes_left)
    n_left = sort_sides(bins, rows, scratch, start, stop, feature, goes_left)
    put_back(rows, scratch, start, stop, n_left, start, start + n_left)
    return start + n_left
