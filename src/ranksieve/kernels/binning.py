"""Compiled loops of binning: distinct values, quantile cuts, values to bins."""

import numpy as np
from numba import carray

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import float_pointer
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.quantize import CHUNK, rank_column, take_features
from ranksieve.kernels.scoring import TILE
from ranksieve.kernels.transpose import transpose_tile

SEEN = 1024  # places of a table of values that were seen lately


@njit(cache=True, nogil=True)
def find_nonfinite(column):
    """Whether a column has missing values, and its first infinite row or -1."""
    n_nonfinite = 0
    for i in range(len(column)):
        n_nonfinite += not abs(column[i]) < np.inf
    missing, infinite = False, -1
    for i in range(len(column) - 1 if n_nonfinite else -1, -1, -1):
        missing |= np.isnan(column[i])
        if np.isinf(column[i]):
            infinite = i
    return missing, infinite


@njit(cache=True, nogil=True)
def track_some(first, last, columns, distinct, counts, missing, bad_rows):
    """`track_distinct` of the features first:last."""
    capacity, seen = distinct.shape[1], np.empty(SEEN, np.float32)
    for f in range(first, last):
        column, known = columns[f], counts[f]
        has_missing, bad_rows[f] = find_nonfinite(column)
        missing[f] |= has_missing
        if known > capacity:
            continue
        bits = column.view(np.uint32)
        seen.fill(np.nan)
        for i in range(len(column)):
            value = column[i]
            place = ((np.uint64(bits[i]) * np.uint64(0x9E3779B9)) >> np.uint64(22)) % np.uint64(SEEN)
            if seen[place] == value or not abs(value) < np.inf:
                continue
            seen[place] = value
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
def track_distinct(columns, distinct, counts, missing, bad_rows):
    """Collect the sorted distinct values of each feature, as long as they fit.

    A feature with more values than fit into `distinct` has the count capacity + 1, and is not tracked any more.
    `bad_rows[f]` is its first infinite row, or -1.
    """
    run_parts(track_some, len(columns), (columns, distinct, counts, missing, bad_rows))


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
def chunks_to_bins(first_chunk, last_chunk, flat, addresses, column_of, heaps, heap_starts, levels, out):
    """`to_bins` of the chunks first_chunk:last_chunk of rows, CHUNK rows each."""
    n_rows, n_features, by_column = len(out), len(column_of), len(addresses) > 0
    width, flat_out = out.shape[1], out.reshape(out.size)
    positions, values = np.empty(CHUNK, np.int64), np.empty(TILE * CHUNK, np.float32)
    ranks, columns = np.zeros(width * CHUNK, np.uint8), np.empty(width, np.int64)
    for c in range(width):
        columns[c] = c * CHUNK
    for chunk in range(first_chunk, last_chunk):
        start, n = chunk * CHUNK, min(CHUNK, n_rows - chunk * CHUNK)
        for i in range(-(-n // TILE) * TILE):  # tiles are whole: the last row is repeated
            positions[i] = n_features * (start + min(i, n - 1))
        for tile in range(0, n_features, TILE):
            first = 0 if by_column else take_features(flat, 1, positions, n_features, tile, n, values)
            for f in range(tile, min(tile + TILE, n_features)):
                c, source, place = column_of[f], values, (f - first) * CHUNK
                if by_column:
                    column = carray(float_pointer(addresses[f]), n_rows)
                    if n == CHUNK:
                        source, place = column, start
                    else:  # copied, as whole registers would be read beyond the end
                        for i in range(n):  # a slice takes seconds to compile, as it has an error message
                            values[i] = column[start + i]
                        place = 0
                rank_column(source, place, n, heaps, heap_starts[c], levels[c], ranks, c * CHUNK)
        whole = n // TILE * TILE
        for i in range(0, whole, TILE):
            for c in range(0, width, TILE):
                transpose_tile(ranks, columns, c, i, flat_out, (start + i) * width + c, width)
        for i in range(whole, n):
            for c in range(width):
                out[start + i, c] = ranks[c * CHUNK + i]


@njit(cache=True, nogil=True)
def to_bins(values, addresses, column_of, heaps, heap_starts, levels, out):
    """The bin of each value: how many of its column's thresholds are below it; NaN has the last bin.

    `values` are flat, row by row. Otherwise `addresses` are those of float32 arrays, one for each feature. Feature f is
    written to column `column_of[f]`, whose thresholds are a heap (see `kernels.quantize`). Rows are transposed to
    columns within registers. Columns are searched 16 values at a time, and their bins are transposed back to rows.
    """
    run_parts(chunks_to_bins, -(-len(out) // CHUNK), (values, addresses, column_of, heaps, heap_starts, levels, out))
