"""Growth of oblivious trees: all leaves of a level are split by one test, the one that gains most over all of them.

A leaf of which a test would leave fewer than `min_docs` documents (or `min_hess` second derivatives) on a side gains
nothing by it, but is split all the same. Child 2i of leaf i holds the documents that go left, child 2i + 1 the others.
"""

import numpy as np
from numba import njit, prange

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.dividing import divide_rows
from ranksieve.kernels.growing import MANY_ROWS, SMALLEST_GAIN, leaf_gain
from ranksieve.kernels.splitting import LANES, NO_SPLIT, add_histogram, build_histogram, cut_gain, widest


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def sum_child(bins, rows, start, stop, packed, hess, n_bins, hist, spare, slot, parent, borders):
    """Histogram of rows start:stop into `slot`; `parent` ≥ 0 becomes its histogram minus that one."""
    n_parts, width = len(borders) - 1, bins.shape[1]
    by_rows = n_parts > 1 and stop - start >= MANY_ROWS
    if by_rows:  # see `growing.search_leaf`
        for part in prange(n_parts):
            low = start + (stop - start) * part // n_parts
            high = start + (stop - start) * (part + 1) // n_parts
            mine = hist[slot] if part == 0 else spare[part - 1]
            build_histogram(bins, rows, low, high, packed, hess, n_bins, 0, width, mine)
    for part in prange(n_parts):
        first, last = borders[part], borders[part + 1]
        if by_rows:
            for other in range(n_parts - 1):
                add_histogram(hist[slot], spare[other], n_bins, first, last, 1)
        else:
            build_histogram(bins, rows, start, stop, packed, hess, n_bins, first, last, hist[slot])
        if parent >= 0:
            add_histogram(hist[parent], hist[slot], n_bins, first, last, -1)


@njit(cache=True, nogil=True, error_model="numpy")
def add_gains(
    group, scanned, missing_left, total, total_hess, unsplit, count_bits, hess_unit, min_docs, min_hess, l2,
    newton, left, left_hess, gains,
):  # fmt: skip
    """Add what every cut of a group's features gains in one leaf to `gains[bin, lane]`."""
    two_planes, mask = len(group) == 2, (np.int64(1) << count_bits) - 1
    all_sum, n, all_hess = np.float64(total >> count_bits), total & mask, np.float64(total_hess) * hess_unit
    for k in range(LANES):
        left[k] = group[0, MISSING_BIN, k] if missing_left else 0
        left_hess[k] = group[1, MISSING_BIN, k] if missing_left and two_planes else 0
    for b in range(scanned):
        row = group[0, b]
        for k in range(LANES):
            left[k] += row[k]
        if two_planes:
            row_hess = group[1, b]
            for k in range(LANES):
                left_hess[k] += row_hess[k]
        for k in range(LANES):
            gain, possible = cut_gain(
                left[k], left_hess[k], all_sum, n, all_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton
            )
            gains[b, k] += gain if possible else unsplit


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def search_level(
    hist, slots, totals, hess_totals, n_bins, allowed, borders, count_bits, hess_unit, min_docs, min_hess, l2, newton,
    cut,
):  # fmt: skip
    """The test that gains most over all leaves of a level, into `cut`: column, bin, missing left; returns its gain.

    Ties go to the lowest column, then missing to the right, then the lowest bin.
    """
    n_parts, n_leaves = len(borders) - 1, len(slots)
    unsplit = np.zeros(n_leaves)
    for leaf in range(n_leaves):
        unsplit[leaf] = leaf_gain(totals[leaf], hess_totals[leaf], count_bits, hess_unit, l2, newton)
    part_gain, part_cut = np.zeros(n_parts), np.full((n_parts, 3), NO_SPLIT, np.int64)
    for part in prange(n_parts):
        left, left_hess = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
        gains = np.empty((256, LANES))
        for lane in range(borders[part], borders[part + 1], LANES):
            most, any_missing = widest(n_bins, lane), False
            for leaf in range(n_leaves):
                for k in range(LANES):
                    any_missing |= hist[slots[leaf], lane // LANES, 0, MISSING_BIN, k] != 0
            for side in range(2 if any_missing else 1):
                # with missing values on the right, "all values left" is a cut too
                scanned = most if any_missing and side == 0 else most - 1
                gains[:scanned] = 0.0
                for leaf in range(n_leaves):
                    add_gains(
                        hist[slots[leaf], lane // LANES], scanned, side == 1, totals[leaf], hess_totals[leaf],
                        unsplit[leaf], count_bits, hess_unit, min_docs, min_hess, l2, newton, left, left_hess, gains,
                    )  # fmt: skip
                for k in range(LANES):
                    for b in range(scanned):
                        better = gains[b, k] > part_gain[part]
                        better |= gains[b, k] == part_gain[part] and 0 <= lane + k < part_cut[part, 0]
                        if allowed[lane + k] and better:
                            part_gain[part] = gains[b, k]
                            part_cut[part, 0], part_cut[part, 1], part_cut[part, 2] = lane + k, b, side
    best, gain = -1, 0.0
    for part in range(n_parts):
        if part_cut[part, 0] != NO_SPLIT and part_gain[part] > gain:
            best, gain = part, part_gain[part]
    base = unsplit.sum()
    if best < 0 or gain - base <= SMALLEST_GAIN * gain:
        return 0.0
    cut[:] = part_cut[best]
    n_missing, n_left, n_all, mask = 0, 0, 0, (np.int64(1) << count_bits) - 1
    for leaf in range(n_leaves):
        column = hist[slots[leaf], cut[0] // LANES, 0, :, cut[0] % LANES]
        n_missing += column[MISSING_BIN] & mask
        n_all += totals[leaf] & mask
        for b in range(cut[1] + 1):
            n_left += column[b] & mask
    if n_missing == 0:  # later documents without the value follow the majority
        cut[2] = 1 if 2 * n_left >= n_all else 0
    return gain - base


@njit(cache=True, nogil=True)
def grow_oblivious(
    bins, rows, scratch, packed, hess, n_bins, allowed, hist, spare, borders, count_bits, hess_unit, min_docs, min_hess,
    l2, newton, cuts, bounds, totals,
):  # fmt: skip
    """Split whole levels, at most `len(cuts)`, while there is anything to gain; return how many were.

    `rows` is reordered: leaf l holds `rows[bounds[l, 0]:bounds[l, 1]]`; `totals[l]` is its sum of `packed`.
    """
    n_leaves, slots = 1, np.zeros(len(bounds), np.int64)
    hess_totals = np.zeros(len(bounds), np.int64)
    bounds[0, 0], bounds[0, 1] = 0, len(rows)
    totals[0] = 0
    for i in range(len(rows)):
        totals[0] += packed[rows[i]]
    for i in range(len(rows) if len(hess) else 0):
        hess_totals[0] += hess[rows[i]]
    if len(cuts):
        sum_child(bins, rows, 0, len(rows), packed, hess, n_bins, hist, spare, 0, -1, borders)
    for level in range(len(cuts)):
        gain = search_level(
            hist, slots[:n_leaves], totals[:n_leaves], hess_totals[:n_leaves], n_bins, allowed, borders, count_bits,
            hess_unit, min_docs, min_hess, l2, newton, cuts[level],
        )  # fmt: skip
        if gain <= 0.0:
            return level
        for leaf in range(n_leaves - 1, -1, -1):
            start, stop, slot = bounds[leaf, 0], bounds[leaf, 1], slots[leaf]
            border = divide_rows(bins, rows, scratch, start, stop, cuts[level, 0], cuts[level, 1], cuts[level, 2] == 1)
            left, right = 2 * leaf, 2 * leaf + 1
            smaller = left if border - start <= stop - border else right
            low, high = (start, border) if smaller == left else (border, stop)
            sum_packed, sum_hess = np.int64(0), np.int64(0)
            for i in range(low, high):
                sum_packed += packed[rows[i]]
            for i in range(low, high if len(hess) else low):
                sum_hess += hess[rows[i]]
            rest_packed, rest_hess = totals[leaf] - sum_packed, hess_totals[leaf] - sum_hess
            bounds[left, 0], bounds[left, 1], bounds[right, 0], bounds[right, 1] = start, border, border, stop
            larger = left + right - smaller
            totals[smaller], hess_totals[smaller] = sum_packed, sum_hess
            totals[larger], hess_totals[larger] = rest_packed, rest_hess
            # the parent's histogram becomes the larger child's by subtraction
            slots[smaller], slots[larger] = n_leaves + leaf, slot
            if level + 1 < len(cuts):
                sum_child(bins, rows, low, high, packed, hess, n_bins, hist, spare, n_leaves + leaf, slot, borders)
        n_leaves *= 2
    return len(cuts)
