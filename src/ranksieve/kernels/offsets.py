"""The pieces into which offsets cut an array, lists of a data set or trees of a forest: sizes, and largest values."""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit


@njit(cache=True, nogil=True)
def longest_piece(offsets):
    """The size of the longest piece."""
    most = 0
    for i in range(len(offsets) - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    return most


@njit(cache=True, nogil=True, parallel=True)
def largest_per_query(values, candidates, offsets, counts, starts, chosen):
    """The `counts[q]` candidates of each query with the largest values, ties by row, into `chosen[starts[q]:]`.

    Candidates of a query are ascending rows; NaN is smaller than every number.
    """
    for q in prange(len(offsets) - 1):
        rows = candidates[offsets[q] : offsets[q + 1]]
        keys = np.empty(len(rows), np.float64)
        for i in range(len(rows)):
            keys[i] = -values[rows[i]]  # argsort puts NaN last
        order = np.argsort(keys, kind="mergesort")
        best = rows[order[: counts[q]]]
        best.sort()
        chosen[starts[q] : starts[q] + counts[q]] = best
