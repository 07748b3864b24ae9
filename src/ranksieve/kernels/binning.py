"""Compiled loops of binning: distinct values, quantile cuts, values to bins."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.quantize import CHUNK, rank_column, take_features
from ranksieve.kernels.scoring import TILE
from ranksieve.kernels.transpose import transpose_tile


@njit(cache=True, nogil=True)
def find_odd(first, last, block, missing, bad_rows):
    """Which of the features first:last have missing values, and the first infinite row of each."""
    n_infinite = 0
    for i in range(len(block)):
        for f in range(first, last):  # along rows, as they lie in memory
            value = block[i, f]
            missing[f] |= value != value
            n_infinite += abs(value) == np.inf
    if n_infinite:
        for f in range(first, last):
            for i in range(len(block) - 1, -1, -1):
                if np.isinf(block[i, f]):
                    bad_rows[f] = i


@njit(cache=True, nogil=True)
def track_some(first, last, block, distinct, counts, missing, bad_rows):
    find_odd(first, last, block, missing, bad_rows)
    n_rows, capacity = len(block), distinct.shape[1]
    for f in range(first, last):
        known = counts[f]
        previous = np.float32(np.nan)
        for i in range(n_rows):
            if known > capacity:
                break
            value = block[i, f]
            if value == previous or np.isnan(value) or np.isinf(value):
                continue
            previous = value
            low, high = 0, known
            while low < high:
                middle = (low + high) >> 1
                if distinct[f, middle] < value:
                    low = middle + 1
                else:
                    high = middle
            if low < known and distinct[f, low] == value:
                continue
            if known == capacity:
                known = capacity + 1
                break
            for j in range(known, low, -1):
                distinct[f, j] = distinct[f, j - 1]
            distinct[f, low] = value
            known += 1
        counts[f] = known


@njit(cache=True, nogil=True)
def track_distinct(block, distinct, counts, missing, bad_rows):
    """Keep the sorted distinct values of each feature until there are more than fit; `bad_rows[f]` is an infinite row.

    A feature whose count exceeds the capacity of `distinct` is given up: its count stays at capacity + 1.
    """
    run_parts(track_some, block.shape[1], (block, distinct, counts, missing, bad_rows))


@njit(cache=True, nogil=True)
def between(low, high):
    """A float32 threshold t with low <= t < high, as near the middle as float32 allows."""
    middle = np.float32(0.5 * (np.float64(low) + np.float64(high)))
    if middle >= high or middle < low:
        return low
    return middle


@njit(cache=True, nogil=True)
def quantile_cuts(values, max_bins, out):
    """Cut sorted values into at most `max_bins` bins of about equal weight; return the number of cuts written.

    A value that alone outweighs a bin gets a bin of its own.
    """
    n = len(values)
    remaining, bins_left, n_cuts = n, max_bins, 0
    filled = 0
    i = 0
    while i < n:
        j = i
        while j < n and values[j] == values[i]:
            j += 1
        filled += j - i
        if j < n and bins_left > 1:
            following = j
            while following < n and values[following] == values[j]:
                following += 1
            target = remaining / bins_left
            if filled >= target or following - j >= target:
                out[n_cuts] = between(values[i], values[j])
                n_cuts += 1
                remaining -= filled
                bins_left -= 1
                filled = 0
        i = j
    return n_cuts


@njit(cache=True, nogil=True)
def chunks_to_bins(first_chunk, last_chunk, block, column_of, heaps, heap_starts, levels, out):
    n_rows, n_features = block.shape
    width, flat, flat_out = out.shape[1], block.reshape(block.size), out.reshape(out.size)
    positions, values = np.empty(CHUNK, np.int64), np.empty(TILE * CHUNK, np.float32)
    ranks, columns = np.zeros(width * CHUNK, np.uint8), CHUNK * np.arange(width)
    for chunk in range(first_chunk, last_chunk):
        start, n = chunk * CHUNK, min(CHUNK, n_rows - chunk * CHUNK)
        for i in range(-(-n // TILE) * TILE):  # whole tiles: the last row fills them up
            positions[i] = n_features * (start + min(i, n - 1))
        for tile in range(0, len(column_of), TILE):
            first = take_features(flat, 1, positions, n_features, tile, n, values)
            for f in range(tile, min(tile + TILE, len(column_of))):
                c = column_of[f]
                rank_column(values, (f - first) * CHUNK, n, heaps, heap_starts[c], levels[c], ranks, c * CHUNK)
        whole = n // TILE * TILE
        for i in range(0, whole, TILE):
            for c in range(0, width, TILE):
                transpose_tile(ranks, columns, c, i, flat_out, (start + i) * width + c, width)
        for i in range(whole, n):
            for c in range(width):
                out[start + i, c] = ranks[c * CHUNK + i]


@njit(cache=True, nogil=True)
def to_bins(block, column_of, heaps, heap_starts, levels, out):
    """Bin of each value: the number of its column's thresholds below it; NaN has the last bin.

    Feature f goes to column `column_of[f]`, whose thresholds are a heap (see `kernels.ranking`). Values are turned
    into columns within registers, searched 16 at a time, and their bins turned back into rows.
    """
    run_parts(chunks_to_bins, -(-len(block) // CHUNK), (block, column_of, heaps, heap_starts, levels, out))
