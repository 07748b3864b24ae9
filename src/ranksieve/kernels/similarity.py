"""In how many trees two documents end in the same leaf, counted for all pairs of a list."""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit

WIDTH = 512  # documents that are compared with another at a time; their counts fit into the first-level cache
MOST = 255  # so many matches fit into one byte


@njit(cache=True, nogil=True)
def count_matches(leaves, one, first, width, matches, total):
    """Of the documents first:first + width, how many trees end in the same leaf as for document `one`.

    Matches of up to 255 trees are summed in bytes, 64 of which fit a vector register.
    """
    n_trees = leaves.shape[0]
    total[:width] = 0
    for start in range(0, n_trees, MOST):
        matches[:width] = 0
        for t in range(start, min(start + MOST, n_trees)):
            theirs, mine = leaves[t, first : first + width], leaves[t, one]
            for j in range(width):
                matches[j] += np.uint8(theirs[j] == mine)
        for j in range(width):
            total[j] += matches[j]


@njit(cache=True, nogil=True, parallel=True)
def count_pairs(leaves, offsets, counts):
    """Add to `counts[q, s]` the number of pairs of query q's documents that share s leaves; `leaves` is trees × docs.

    Same as comparing every pair in every tree.
    """
    for q in prange(len(offsets) - 1):
        matches, total = np.empty(WIDTH, np.uint8), np.empty(WIDTH, np.int32)
        for one in range(offsets[q], offsets[q + 1]):
            for first in range(one + 1, offsets[q + 1], WIDTH):
                width = min(WIDTH, offsets[q + 1] - first)
                count_matches(leaves, one, first, width, matches, total)
                for j in range(width):
                    counts[q, total[j]] += 1
