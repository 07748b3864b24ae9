"""Keeping scores up to date lazily: a document that cannot matter yet is not scored yet.

`done[d]` trees are in `scores[d]`. A tree adds at most its largest leaf, so with `ceilings[t]` the sum of the largest
leaves of the first t trees, document d cannot score above `scores[d] + ceilings[now] - ceilings[done[d]]`. What of this
does not change until d is scored again, `scores[d] - ceilings[done[d]]`, is kept as `heads[d]`, in single precision:
all heads are read for every tree, at the speed of memory.
"""

import numpy as np
from numba import prange, uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.traverse_binned import catch_up

ROUNDING = 1e-6  # heads are compared with so much room: they are rounded, and ceilings are rounded sums themselves


@njit(cache=True, nogil=True, parallel=True)
def fill_heads(scores, done, sign, ceilings, heads):
    for d in prange(len(heads)):
        heads[d] = sign * scores[d] - ceilings[done[d]]


@njit(cache=True, nogil=True)
def lowest_needed(values, threshold, low, high):
    """A score that the new choice cannot fall below, from the new scores of the last choice.

    The `low` best documents are at least as good as the `low` best of any set; the same holds for `high`.
    """
    values.sort()
    n = len(values)
    at_low = values[n - low] if 0 < low <= n else -np.inf
    at_high = values[n - high] if 0 < high <= n else -np.inf
    return max(min(threshold, at_low) if low > 0 else threshold, at_high)


@njit(cache=True, nogil=True, parallel=True)
def best_per_query(bins, forest, n_trees, sign, ceilings, candidates, lists, chosen, sizes, scores, done, heads):
    """The candidates of each query scored at least `thresholds[q]`: the best `highs[q]` if they are more, the best
    `lows[q]` if they are fewer, ties by row; into `chosen[starts[q]:]`, and their number into `sizes[q]`.

    Same as bringing every row up to date and sorting, and faster: the rows chosen last time, rescored, give a score
    that the new choice cannot fall below; only rows that might reach it are scored. `chosen` and `sizes` hold the last
    choice; sizes are 0 where there is none. With `sign` -1 scores count negated, and `ceilings` are theirs. Returns
    the number of tree walks.

    `lists` is (offsets, thresholds, lows, highs, starts), an entry per query each.
    """
    offsets, thresholds, lows, highs, starts = lists
    n_walks = 0
    for q in prange(len(offsets) - 1):
        low, high, first, walks = lows[q], highs[q], starts[q], 0
        walks += catch_up(bins, chosen, first, first + sizes[q], forest, n_trees, scores, done)
        known = np.empty(sizes[q], np.float64)
        for i in range(sizes[q]):
            known[i] = sign * scores[chosen[first + i]]
        floor = lowest_needed(known, thresholds[q], low, high)
        lowest_head = floor - ceilings[n_trees]
        if np.isfinite(floor):
            lowest_head -= ROUNDING * (1.0 + abs(floor) + abs(lowest_head))
        rows = np.empty(offsets[q + 1] - offsets[q], np.int32)
        n_near = 0
        for i in range(offsets[q], offsets[q + 1]):
            rows[n_near] = candidates[i]
            n_near += heads[uintp(candidates[i])] >= lowest_head
        walks += catch_up(bins, rows, 0, n_near, forest, n_trees, scores, done)
        values = np.empty(n_near, np.float64)
        n = n_above = 0
        for i in range(n_near):
            row = rows[i]
            score = sign * scores[row]
            heads[row] = score - ceilings[n_trees]
            if score >= floor:
                rows[n], values[n] = row, -score
                n += 1
                n_above += score >= thresholds[q]
        k = min(max(n_above, low), high)
        if k < n:
            order = np.argsort(values[:n], kind="mergesort")
            for i in range(k):
                chosen[first + i] = rows[order[i]]
            chosen[first : first + k].sort()
        else:
            chosen[first : first + k] = rows[:k]
        sizes[q] = k
        n_walks += walks
    return n_walks
