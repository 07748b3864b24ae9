"""Keeping scores up to date lazily: a document that cannot matter yet is not scored yet.

`done[d]` trees are in `scores[d]`. A tree adds at most its largest leaf, so with `ceilings[t]` the sum of the largest
leaves of the first t trees, document d cannot score above `scores[d] + ceilings[now] - ceilings[done[d]]`.
"""

import numpy as np
from numba import njit, prange, uintp

from ranksieve.dtypes import MISSING_BIN


@njit(cache=True, nogil=True)
def catch_up(bins, row, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done):
    """Add the trees a row lacks, in order: the sum is the one a fresh scoring of the forest gives, bit for bit.

    Returns how many they were.
    """
    score, first = scores[row], done[row]
    flat_bins, start = bins.reshape(bins.size), uintp(row) * uintp(bins.shape[1])
    splits = trees.reshape(trees.size)
    for t in range(first, n_trees):
        base = uintp(5 * split_offsets[t])
        node = 0 if split_offsets[t + 1] > split_offsets[t] else -1
        while node >= 0:
            place = base + uintp(5 * node)
            b = flat_bins[start + uintp(splits[place])]
            left = splits[place + uintp(2)] == 1 if b == MISSING_BIN else b <= splits[place + uintp(1)]
            node = splits[place + uintp(3)] if left else splits[place + uintp(4)]
        score += leaf_values[uintp(leaf_offsets[t] + ~node)]
    scores[row] = score
    done[row] = n_trees
    return n_trees - first


@njit(cache=True, nogil=True, parallel=True)
def catch_up_rows(bins, rows, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done):
    """Bring the given rows up to date."""
    for i in prange(len(rows)):
        catch_up(bins, rows[i], trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done)


@njit(cache=True, nogil=True, parallel=True)
def top_per_query(
    bins, trees, split_offsets, leaf_values, leaf_offsets, n_trees, ceilings, candidates, offsets, counts, starts,
    chosen, scores, done,
):  # fmt: skip
    """The `counts[q]` best-scored candidates of each query, ties by row, into `chosen[starts[q]:starts[q + 1]]`.

    Same as bringing every row up to date and sorting, and faster: the rows chosen last time, rescored, give a score
    that the new choice cannot fall below; only rows that might reach it are scored. `chosen` holds the last choice,
    or starts with -1 where there is none. Returns the number of tree walks.
    """
    n_walks = 0
    for q in prange(len(offsets) - 1):
        k = counts[q]
        if k == 0:
            continue
        first, walks = starts[q], 0
        floor = -np.inf
        if chosen[first] >= 0:
            floor = np.inf
            for i in range(first, first + k):
                row = chosen[i]
                walks += catch_up(bins, row, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done)
                floor = min(floor, scores[row])
        # the ceiling is itself a rounded sum
        slack = floor - 1e-9 * (1.0 + abs(floor)) if floor > -np.inf else floor
        rows = np.empty(offsets[q + 1] - offsets[q], np.int32)
        values = np.empty(offsets[q + 1] - offsets[q], np.float64)
        n = 0
        for i in range(offsets[q], offsets[q + 1]):
            row = candidates[i]
            if scores[row] + (ceilings[n_trees] - ceilings[done[row]]) >= slack:
                walks += catch_up(bins, row, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done)
                if scores[row] >= floor:
                    rows[n], values[n] = row, -scores[row]
                    n += 1
        order = np.argsort(values[:n], kind="mergesort")
        for i in range(k):
            chosen[first + i] = rows[order[i]]
        chosen[first : first + k].sort()
        n_walks += walks
    return n_walks
