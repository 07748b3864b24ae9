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
def best_per_query(
    bins, trees, split_offsets, leaf_values, leaf_offsets, n_trees, sign, ceilings, candidates, offsets, thresholds,
    lows, highs, starts, chosen, sizes, scores, done,
):  # fmt: skip
    """The candidates of each query scored at least `thresholds[q]`: the best `highs[q]` if they are more, the best
    `lows[q]` if they are fewer, ties by row; into `chosen[starts[q]:]`, and their number into `sizes[q]`.

    Same as bringing every row up to date and sorting, and faster: the rows chosen last time, rescored, give a score
    that the new choice cannot fall below; only rows that might reach it are scored. `chosen` and `sizes` hold the last
    choice; sizes are 0 where there is none. With `sign` -1 scores count negated, and `ceilings` are theirs. Returns
    the number of tree walks.
    """
    n_walks = 0
    for q in prange(len(offsets) - 1):
        low, high, first, walks = lows[q], highs[q], starts[q], 0
        known = np.empty(sizes[q], np.float64)
        for i in range(sizes[q]):
            row = chosen[first + i]
            walks += catch_up(bins, row, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done)
            known[i] = sign * scores[row]
        floor = lowest_needed(known, thresholds[q], low, high)
        # the ceiling is itself a rounded sum
        slack = floor - 1e-9 * (1.0 + abs(floor)) if np.isfinite(floor) else floor
        rows = np.empty(offsets[q + 1] - offsets[q], np.int32)
        values = np.empty(offsets[q + 1] - offsets[q], np.float64)
        n = n_above = 0
        for i in range(offsets[q], offsets[q + 1]):
            row = candidates[i]
            if sign * scores[row] + (ceilings[n_trees] - ceilings[done[row]]) >= slack:
                walks += catch_up(bins, row, trees, split_offsets, leaf_values, leaf_offsets, n_trees, scores, done)
                if sign * scores[row] >= floor:
                    rows[n], values[n] = row, -sign * scores[row]
                    n += 1
                    n_above += sign * scores[row] >= thresholds[q]
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


@njit(cache=True, nogil=True, parallel=True)
def largest_per_query(values, candidates, offsets, counts, starts, chosen):
    """The `counts[q]` candidates of each query with the largest values, ties by row, into `chosen[starts[q]:]`."""
    for q in prange(len(offsets) - 1):
        rows = candidates[offsets[q] : offsets[q + 1]]
        order = np.argsort(-values[rows], kind="mergesort")
        best = rows[order[: counts[q]]]
        best.sort()
        chosen[starts[q] : starts[q] + counts[q]] = best
