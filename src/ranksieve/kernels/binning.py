"""Compiled loops of binning: distinct values, quantile cuts, values to bins."""

import numpy as np
from numba import njit, prange, uintp

from ranksieve.dtypes import MISSING_BIN

TILE = 256  # rows binned together


@njit(cache=True, nogil=True, parallel=True)
def track_distinct(block, distinct, counts, missing, bad_rows):
    """Keep the sorted distinct values of each feature until there are more than fit; `bad_rows[f]` is an infinite row.

    A feature whose count exceeds the capacity of `distinct` is given up: its count stays at capacity + 1.
    """
    n_rows, n_features = block.shape
    capacity = distinct.shape[1]
    for f in prange(n_features):
        known = counts[f]
        last = np.float32(np.nan)
        for i in range(n_rows):
            value = block[i, f]
            if value == last:
                continue
            if np.isnan(value):
                missing[f] = True
                continue
            if np.isinf(value):
                if bad_rows[f] < 0:
                    bad_rows[f] = i
                continue
            last = value
            if known > capacity:
                continue
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
                continue
            for j in range(known, low, -1):
                distinct[f, j] = distinct[f, j - 1]
            distinct[f, low] = value
            known += 1
        counts[f] = known


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


@njit(cache=True, nogil=True, parallel=True)
def to_bins(block, thresholds, offsets, features, out):
    """Bin of each value: the number of thresholds below it; NaN has the last bin. Column c holds `features[c]`.

    A binary search of TILE values at once, all taking every step: no branch depends on a value, so the steps become
    vector instructions, and a column's thresholds stay in the nearest cache. Seven times as fast as one by one.
    """
    n_rows = len(block)
    for tile in prange(-(-n_rows // TILE)):
        start, n = tile * TILE, min(TILE, n_rows - tile * TILE)
        values, low = np.empty(TILE, np.float32), np.empty(TILE, np.uint32)
        cuts = np.empty(256, np.float32)
        for c in range(len(features)):
            size = offsets[c + 1] - offsets[c]
            cuts[:size] = thresholds[offsets[c] : offsets[c + 1]]
            cuts[size:] = np.float32(np.inf)
            for k in range(n):
                values[k] = block[start + k, features[c]]
                low[k] = 0
            half = np.uint32(1)
            while half * 2 <= size:
                half *= np.uint32(2)
            while half > 0:
                for k in range(n):
                    low[k] += half * np.uint32(cuts[uintp(low[k] + half - np.uint32(1))] < values[k])
                half >>= np.uint32(1)
            for k in range(n):
                out[start + k, c] = np.uint8(MISSING_BIN) if np.isnan(values[k]) else np.uint8(low[k])
