"""Keeping scores up to date lazily: a document that cannot matter yet is not scored yet.

`done[d]` trees are in `scores[d]`. A tree adds at most its largest leaf, so with `ceilings[t]` the sum of the largest
leaves of the first t trees, document d cannot score above `scores[d] + ceilings[now] - ceilings[done[d]]`. What of this
does not change until d is scored again, `scores[d] - ceilings[done[d]]`, is kept as `heads[d]`, in single precision:
all heads are read for every tree, at the speed of memory.

Where only some rows are in memory, a query that needs others is left as it is, and these rows are marked as REQUESTED.
There heads are not kept but computed, which takes less memory.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metrics import top_k
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.row_slots import REQUESTED
from ranksieve.kernels.traverse_binned import catch_up

ROUNDING = 1e-6  # heads are compared with so much room: they are rounded, and ceilings are rounded sums themselves


class Candidates(NamedTuple):
    """Documents that may be chosen: of query q `rows[offsets[q]:offsets[q + 1]]`, ascending.

    Without rows, these are the documents `offsets[q]:offsets[q + 1]`; with labels, only those whose label is 0.
    """

    rows: np.ndarray
    labels: np.ndarray


@njit(cache=True, nogil=True)
def fill_heads(scores, done, sign, ceilings, heads):
    for d in range(len(heads)):
        heads[d] = sign * scores[d] - ceilings[done[d]]


@njit(cache=True, nogil=True)
def value_at(values, rank):
    """The value at a rank from 1 on, largest first; -infinity where there is none."""
    if rank < 1 or rank > len(values):
        return -np.inf
    if rank == len(values):
        return values.min()
    best = np.empty(rank, np.int32)
    top_k(values, 0, len(values), rank, best)
    return values[best[rank - 1]]


@njit(cache=True, nogil=True)
def lowest_needed(values, threshold, low, high):
    """A score that the new choice cannot fall below, from the new scores of the last choice.

    The `low` best documents are at least as good as the `low` best of any set; the same holds for `high`.
    """
    at_low = value_at(values, low)
    at_high = at_low if high == low else value_at(values, high)
    return max(min(threshold, at_low) if low > 0 else threshold, at_high)


@njit(cache=True, nogil=True)
def request_rows(rows, start, stop, n_trees, done, slots):
    """Mark those of rows[start:stop] that lack a tree and are not in memory; returns how many there are."""
    n_requested = 0
    for i in range(start, stop if len(slots) > 0 else start):
        if done[rows[i]] < n_trees and slots[rows[i]] < 0:
            slots[rows[i]] = REQUESTED
            n_requested += 1
    return n_requested


@njit(cache=True, nogil=True)
def near_rows(candidates, start, stop, lowest_head, sign, ceilings, scores, done, heads, out):
    """The candidates start..stop - 1 whose heads are at least `lowest_head`, and their number."""
    rows, labels = candidates
    n = 0
    if len(heads) == 0:
        for i in range(start, stop):
            row = uintp(rows[i]) if len(rows) > 0 else uintp(i)
            out[n] = row
            is_near = sign * scores[row] - ceilings[done[row]] >= lowest_head
            n += is_near and (len(labels) == 0 or labels[row] == 0.0)
    elif len(rows) > 0:
        for i in range(start, stop):
            out[n] = rows[i]
            n += heads[uintp(rows[i])] >= lowest_head
    else:
        for row in range(start, stop):
            out[n] = row
            n += heads[row] >= lowest_head and (len(labels) == 0 or labels[row] == 0.0)
    return n


@njit(cache=True, nogil=True)
def margins(first, last, candidates, offsets, floors, sign, scores, out):
    """How far each of the rows first..last - 1 is above the floor of its query; -infinity if it is no candidate."""
    rows, labels = candidates
    out[:] = -np.inf
    start, stop = first, last
    if len(rows) > 0:
        start, stop = np.searchsorted(rows, first), np.searchsorted(rows, last)
    q = np.searchsorted(offsets, start, side="right") - 1
    for i in range(start, stop):
        while i >= offsets[q + 1]:
            q += 1
        row = uintp(rows[i]) if len(rows) > 0 else uintp(i)
        if len(labels) == 0 or labels[row] == 0.0:
            out[row - uintp(first)] = sign * scores[row] - floors[q]


@njit(cache=True, nogil=True)
def best_of_some(first, last, row_bins, forest, n_trees, bounds, candidates, lists, chosen, given, waiting, n_walks):
    """`best_per_query` for some queries; `given` is (sizes, scores, done, heads)."""
    offsets, thresholds, lows, highs, starts = lists
    sizes, scores, done, heads = given
    sign, ceilings = bounds
    n_requested, lowest_heads = waiting
    slots = row_bins.slots
    for q in range(first, last):
        if n_requested[q] == 0:
            continue
        low, high, start = lows[q], highs[q], starts[q]
        n_requested[q] = request_rows(chosen, start, start + sizes[q], n_trees, done, slots)
        if n_requested[q] > 0:
            continue
        walks = catch_up(start, start + sizes[q], row_bins, chosen, forest, n_trees, scores, done)
        known = np.empty(sizes[q], np.float64)
        for i in range(sizes[q]):
            known[i] = sign * scores[chosen[start + i]]
        floor = lowest_needed(known, thresholds[q], low, high)
        lowest_head = floor - ceilings[n_trees]
        if np.isfinite(floor):
            lowest_head -= ROUNDING * (1.0 + abs(floor) + abs(lowest_head))
        rows = np.empty(offsets[q + 1] - offsets[q], np.int32)
        n_near = near_rows(
            candidates, offsets[q], offsets[q + 1], lowest_head, sign, ceilings, scores, done, heads, rows
        )
        lowest_heads[q], n_walks[q] = lowest_head, walks
        n_requested[q] = request_rows(rows, 0, n_near, n_trees, done, slots)
        if n_requested[q] > 0:
            continue
        walks += catch_up(0, n_near, row_bins, rows, forest, n_trees, scores, done)
        values = np.empty(n_near, np.float64)
        n = n_above = 0
        for i in range(n_near):
            row = rows[i]
            score = sign * scores[row]
            if len(heads) > 0:
                heads[row] = score - ceilings[n_trees]
            if score >= floor:
                rows[n], values[n] = row, score
                n += 1
                n_above += score >= thresholds[q]
        k = min(max(n_above, low), high)
        keep_best(values[:n], rows, k, chosen[start:])
        sizes[q], n_walks[q] = k, walks


@njit(cache=True, nogil=True)
def keep_best(values, rows, k, out):
    """The rows of the k largest values, ties by place, in their order."""
    worst = len(values)
    if 0 < k < len(values):
        best = np.empty(k, np.int32)
        top_k(values, 0, len(values), k, best)
        worst = best[k - 1]
    n = 0
    for i in range(len(values) if k > 0 else 0):
        if k == len(values) or values[i] > values[worst] or (values[i] == values[worst] and i <= worst):
            out[n] = rows[i]
            n += 1


@njit(cache=True, nogil=True)
def best_per_query(row_bins, forest, n_trees, bounds, candidates, lists, chosen, sizes, scores, done, heads, waiting):
    """The candidates of each query scored at least `thresholds[q]`: the best `highs[q]` if they are more, the best
    `lows[q]` if they are fewer, ties by row; into `chosen[starts[q]:]`, and their number into `sizes[q]`.

    Same as bringing every row up to date and sorting, and faster: the rows chosen last time, rescored, give a score
    that the new choice cannot fall below; only rows that might reach it are scored. `chosen` and `sizes` hold the last
    choice; sizes are 0 where there is none. `bounds` is (sign, ceilings); with the sign -1 scores count negated, and
    the ceilings are theirs. `candidates` are `Candidates`. `lists` is (offsets, thresholds, lows, highs, starts), an
    entry per query each.

    `waiting` is (n_requested, lowest_heads), an entry per query each. Queries whose `n_requested` is 0 are left out.
    Afterwards `n_requested` counts the rows that were marked as REQUESTED: the choice is made where it is 0. No row
    whose head is below `lowest_heads` matters. Returns the number of tree walks.
    """
    n_walks = np.zeros(len(sizes), np.int64)
    given = sizes, scores, done, heads
    run_parts(
        best_of_some, len(sizes),
        (row_bins, forest, n_trees, bounds, candidates, lists, chosen, given, waiting, n_walks),
    )  # fmt: skip
    return n_walks.sum()
