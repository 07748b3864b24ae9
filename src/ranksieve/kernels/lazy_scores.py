"""Keeping scores up to date lazily: a document that cannot be chosen yet is not scored yet.

`scores[d]` is the score of document d under the first `done[d]` trees. A tree adds at most its largest leaf. Let
`ceilings[t]` be the sum of the largest leaves of the first t trees. Then document d cannot score above
`scores[d] - ceilings[done[d]] + ceilings[n_trees]`. The first two terms do not change until d is scored again: their
difference is the upper bound of d, `upper_bounds[d]`. It is relative to `ceilings[n_trees]`, which is the same for all
documents. Upper bounds have single precision: all of them are read for every tree, at the speed of memory.

Where only some rows are in memory, those of them that might be chosen are scored first. The best of them say how high
other rows would have to score. A query that needs rows that are not in memory is left as it is, and these rows are
marked as REQUESTED. There upper bounds are not kept but computed, which takes less memory.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import append_numbers, are_zero, at_least
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.row_slots import REQUESTED
from ranksieve.kernels.traverse_binned import catch_up

LARGEST = np.finfo(np.float64).max
TOGETHER = 16  # upper bounds that are compared at a time
ROUNDING = 1e-6  # relative tolerance of comparisons: upper bounds are rounded, and ceilings are rounded sums


class EligibleRows(NamedTuple):
    """Documents that may be chosen: of query q `rows[offsets[q]:offsets[q + 1]]`, ascending.

    Without rows, these are the documents `offsets[q]:offsets[q + 1]`; with marks, only those whose mark is 0.
    """

    rows: np.ndarray
    marks: np.ndarray


@njit(cache=True, nogil=True)
def fill_some_upper_bounds(first, last, scores, done, sign, ceilings, upper_bounds):
    """`fill_upper_bounds` of the documents first:last."""
    for d in range(first, last):
        upper_bounds[d] = sign * scores[d] - ceilings[done[d]]


@njit(cache=True, nogil=True)
def fill_upper_bounds(scores, done, sign, ceilings, upper_bounds):
    """`upper_bounds[d] = sign * scores[d] - ceilings[done[d]]` for every document."""
    run_parts(fill_some_upper_bounds, len(upper_bounds), (scores, done, sign, ceilings, upper_bounds))


@njit(cache=True, nogil=True)
def copy_some_scores(first, last, scores, n_trees, copies, done):
    """`copy_scores` of the documents first:last."""
    for d in range(first, last):
        copies[d], done[d] = scores[d], n_trees


@njit(cache=True, nogil=True)
def copy_scores(scores, n_trees, copies, done):
    """Copy the scores of all documents, which are those under `n_trees` trees."""
    run_parts(copy_some_scores, len(scores), (scores, n_trees, copies, done))


@njit(cache=True, nogil=True)
def kth_largest(values, k):
    """The k-th largest value, k from 1 on; the values are reordered. Takes linear time in most cases."""
    first, last, place = 0, len(values) - 1, k - 1
    while first < last:
        low, middle, high = values[first], values[(first + last) // 2], values[last]
        pivot = max(min(low, middle), min(max(low, middle), high))
        i, j = first, last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        # values up to j are at least the pivot, those from i on at most, those between are equal to it
        if place <= j:
            last = j
        elif place >= i:
            first = i
        else:
            break
    return values[place]


@njit(cache=True, nogil=True)
def value_at(values, rank):
    """The value at a rank from 1 on, largest first; -infinity where there is none."""
    if rank < 1 or rank > len(values):
        return -np.inf
    if rank < len(values):
        return kth_largest(values.copy(), rank)
    lowest = np.inf
    for i in range(len(values)):
        lowest = min(lowest, values[i])
    return lowest


@njit(cache=True, nogil=True)
def lowest_needed(values, threshold, low, high):
    """A score that the new choice cannot fall below; `values` are the new scores of the documents chosen last time.

    The n-th best of all documents scores at least as high as the n-th best of these, for n = `low` and n = `high`.
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
def score_present(rows, row_bins, forest, n_trees, sign, scores, done):
    """The scores of those rows that are in memory or already have all trees, and the number of traversals."""
    present, n_present = np.empty(len(rows), np.int32), 0
    for i in range(len(rows)):
        present[n_present] = rows[i]
        n_present += done[rows[i]] == n_trees or row_bins.slots[rows[i]] >= 0
    n_traversals = catch_up(0, n_present, row_bins, present, forest, n_trees, scores, done)
    values = np.empty(n_present, np.float64)
    for i in range(n_present):
        values[i] = sign * scores[present[i]]
    return values, n_traversals


@njit(cache=True, nogil=True)
def lowest_bound_for(floor, ceiling):
    """The lowest upper bound of documents that may score at least `floor`; `ceiling` is that of all trees."""
    upper_bound = floor - ceiling
    return upper_bound - ROUNDING * (1.0 + abs(floor) + abs(upper_bound)) if np.isfinite(floor) else upper_bound


@njit(cache=True, nogil=True)
def near_rows(candidates, start, stop, lowest_bound, sign, ceilings, scores, done, upper_bounds, out):
    """The candidates start..stop - 1 whose upper bounds are at least `lowest_bound`, and their number.

    `out` has room for TOGETHER more than all of them. Upper bounds are compared as float32; `lowest_bound_for` allows
    for their rounding.
    """
    rows, marks = candidates
    n = 0
    if len(upper_bounds) == 0:
        for i in range(start, stop):
            row = uintp(rows[i]) if len(rows) > 0 else uintp(i)
            out[n] = row
            is_near = sign * scores[row] - ceilings[done[row]] >= lowest_bound
            n += is_near and (len(marks) == 0 or marks[row] == 0)
    elif len(rows) > 0:
        for i in range(start, stop):
            out[n] = rows[i]
            n += upper_bounds[uintp(rows[i])] >= lowest_bound
    else:
        limit, whole = np.float32(lowest_bound), stop - (stop - start) % TOGETHER
        for row in range(start, whole, TOGETHER):
            near = at_least(upper_bounds, row, limit)
            if len(marks) > 0:
                near &= are_zero(marks, row)
            n = append_numbers(out, n, row, near)
        for row in range(whole, stop):
            out[n] = row
            n += upper_bounds[row] >= limit and (len(marks) == 0 or marks[row] == 0)
    return n


@njit(cache=True, nogil=True)
def margins(first, last, candidates, lists, floors, sign, scores, out):
    """How far each of the rows first..last - 1 is above the floor of its query; -infinity if it is no candidate.

    All scores of these rows are known, so that floors may be higher than those given. `lists` are as in
    `best_per_query`.
    """
    rows, marks = candidates
    offsets, thresholds, lows, highs, _ = lists
    out[:] = -np.inf
    start, stop = first, last
    if len(rows) > 0:
        start, stop = np.searchsorted(rows, first), np.searchsorted(rows, last)
    q = np.searchsorted(offsets, start, side="right") - 1
    high = np.empty(stop - start, np.float64)  # scores that may raise the floor: mostly few
    while start < stop:
        end, n, floor = min(offsets[q + 1], stop), 0, floors[q]
        for i in range(start, end):
            row = uintp(rows[i]) if len(rows) > 0 else uintp(i)
            high[n] = sign * scores[row]
            n += high[n] >= floor and (len(marks) == 0 or marks[row] == 0)
        floor = max(floor, lowest_needed(high[:n], thresholds[q], lows[q], highs[q]))
        for i in range(start, end):
            row = uintp(rows[i]) if len(rows) > 0 else uintp(i)
            if len(marks) == 0 or marks[row] == 0:
                out[row - uintp(first)] = min(sign * scores[row] - floor, LARGEST)
        start, q = end, q + 1


@njit(cache=True, nogil=True)
def best_of_some(first, last, row_bins, forest, n_trees, signed_ceilings, candidates, lists, chosen, given, waiting,
                 n_traversals):  # fmt: skip
    """`best_per_query` for some queries; `given` is (sizes, scores, done, upper_bounds)."""
    offsets, thresholds, lows, highs, starts = lists
    sizes, scores, done, upper_bounds = given
    sign, ceilings = signed_ceilings
    n_requested, lowest_bounds = waiting
    slots = row_bins.slots
    for q in range(first, last):
        if n_requested[q] == 0:
            continue
        low, high, start = lows[q], highs[q], starts[q]
        n_requested[q] = request_rows(chosen, start, start + sizes[q], n_trees, done, slots)
        if n_requested[q] > 0:
            continue
        traversals = catch_up(start, start + sizes[q], row_bins, chosen, forest, n_trees, scores, done)
        known = np.empty(sizes[q], np.float64)
        for i in range(sizes[q]):
            known[i] = sign * scores[chosen[start + i]]
        floor = lowest_needed(known, thresholds[q], low, high)
        lowest_bound = lowest_bound_for(floor, ceilings[n_trees])
        rows = np.empty(offsets[q + 1] - offsets[q] + TOGETHER, np.int32)
        n_near = near_rows(
            candidates, offsets[q], offsets[q + 1], lowest_bound, sign, ceilings, scores, done, upper_bounds, rows
        )
        if len(slots) > 0:
            known, more = score_present(rows[:n_near], row_bins, forest, n_trees, sign, scores, done)
            traversals += more
            floor = max(floor, lowest_needed(known, thresholds[q], low, high))
            lowest_bound = lowest_bound_for(floor, ceilings[n_trees])
            near = EligibleRows(rows[:n_near], candidates.marks)
            n_near = near_rows(near, 0, n_near, lowest_bound, sign, ceilings, scores, done, upper_bounds, rows)
        lowest_bounds[q], n_traversals[q] = lowest_bound, traversals
        n_requested[q] = request_rows(rows, 0, n_near, n_trees, done, slots)
        if n_requested[q] > 0:
            continue
        traversals += catch_up(0, n_near, row_bins, rows, forest, n_trees, scores, done)
        values = np.empty(n_near, np.float64)
        n = n_above = 0
        for i in range(n_near):
            row = rows[i]
            score = sign * scores[row]
            if len(upper_bounds) > 0:
                upper_bounds[row] = score - ceilings[n_trees]
            if score >= floor:
                rows[n], values[n] = row, score
                n += 1
                n_above += score >= thresholds[q]
        k = min(max(n_above, low), high, n)
        keep_best(values[:n], rows, k, chosen[start:])
        sizes[q], n_traversals[q] = k, traversals


@njit(cache=True, nogil=True)
def keep_best(values, rows, k, out):
    """The rows of the k largest values, ties by place, in their order."""
    if k == 0:
        return
    worst = kth_largest(values.copy(), k)
    n_equal, n = k, 0
    for i in range(len(values)):
        n_equal -= values[i] > worst
    for i in range(len(values)):
        is_equal = values[i] == worst
        if values[i] > worst or (is_equal and n_equal > 0):
            out[n] = rows[i]
            n += 1
            n_equal -= is_equal


@njit(cache=True, nogil=True)
def best_per_query(row_bins, forest, n_trees, signed_ceilings, candidates, lists, chosen, sizes, scores, done,
                   upper_bounds, waiting):  # fmt: skip
    """Choose the candidates of each query that score at least `thresholds[q]`: at least `lows[q]`, at most `highs[q]`.

    The best candidates are chosen, ties by row. Their rows are written to `chosen[starts[q]:]`, and their number to
    `sizes[q]`. The result is that of scoring and sorting all rows, but fewer rows are scored: the rows chosen last time
    are scored first. They give a score that the new choice cannot fall below. Only rows that might reach it are scored.

    `chosen` and `sizes` hold the last choice; sizes are 0 where there is none. `signed_ceilings` is (sign, ceilings):
    with the sign -1 scores count negated, and the ceilings are those of negated scores. `candidates` are
    `EligibleRows`. `lists` is (offsets, thresholds, lows, highs, starts), an entry per query each.

    `waiting` is (n_requested, lowest_bounds), an entry per query each. Queries whose `n_requested` is 0 are left out.
    Afterwards `n_requested` counts the rows that were marked as REQUESTED: the choice is made where it is 0. No row
    whose upper bound is below `lowest_bounds[q]` matters. Returns the number of traversals.
    """
    n_traversals = np.zeros(len(sizes), np.int64)
    given = sizes, scores, done, upper_bounds
    run_parts(
        best_of_some, len(sizes),
        (row_bins, forest, n_trees, signed_ceilings, candidates, lists, chosen, given, waiting, n_traversals),
    )  # fmt: skip
    total = 0
    for q in range(len(sizes)):
        total += n_traversals[q]
    return total
