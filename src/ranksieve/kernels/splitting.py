"""Histograms and split search, the two inner loops of tree growing.

A histogram is stored in groups of LANES features, and in a group bin by bin, `hist[group, plane, bin, lane]`, so that
one vector instruction handles several features, and a group, 32 KB, stays in the nearest cache while it is summed,
subtracted and searched. Plane 0 packs two sums in one integer: gradient << count_bits | count. Plane 1, if present,
sums second derivatives.
All sums are fixed point: integer addition is associative, so threads or machines may share rows in any way.
"""

import numpy as np
from numba import njit, uintp

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.monotone import search_lanes_monotone
from ranksieve.kernels.scanning import scan_cuts, scan_cuts_of_two

LANES = 16  # features searched together
NO_SPLIT = -1


@njit(cache=True, nogil=True)
def widest(n_bins, lane):
    """The most bins among LANES columns."""
    most = 0
    for k in range(LANES):
        most = max(most, n_bins[lane + k])
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def build_histogram(bins, rows, start, stop, packed, hess, n_bins, first, last, hist):
    """Sum the rows' gradients into the histogram columns first:last, zeroing them before."""
    n_planes, group_size = hist.shape[1], uintp(hist.shape[1] * hist.shape[2] * LANES)
    for lane in range(first, last, LANES):
        for plane in range(n_planes):
            hist[lane // LANES, plane, : widest(n_bins, lane)] = 0
            hist[lane // LANES, plane, MISSING_BIN] = 0
    # unsigned positions in flat arrays need no check for negative ones: half the time of `hist[g, 0, bins[row, f], k]`
    flat_hist, flat_bins = hist.reshape(hist.size), bins.reshape(bins.size)
    width, plane_size, lanes = uintp(bins.shape[1]), uintp(hist.shape[2] * LANES), uintp(LANES)
    for i in range(start, stop):
        row = rows[i]
        value, base = packed[row], uintp(row) * width
        group = uintp(first // LANES) * group_size
        for lane in range(uintp(first), uintp(last), lanes):
            for k in range(lanes):
                flat_hist[group + uintp(flat_bins[base + lane + k]) * lanes + k] += value
            group += group_size
        if n_planes == 2:
            second = hess[row]
            group = uintp(first // LANES) * group_size + plane_size
            for lane in range(uintp(first), uintp(last), lanes):
                for k in range(lanes):
                    flat_hist[group + uintp(flat_bins[base + lane + k]) * lanes + k] += second
                group += group_size


@njit(cache=True, nogil=True)
def add_histogram(hist, other, n_bins, first, last, sign):
    """Add another histogram (sign 1), or subtract it (-1): parent minus one child is the other. Columns first:last."""
    flat, flat_other = hist.reshape(hist.size), other.reshape(other.size)
    for lane in range(first, last, LANES):
        n = widest(n_bins, lane) * LANES
        for plane in range(hist.shape[1]):
            start = uintp((lane // LANES * hist.shape[1] + plane) * hist.shape[2] * LANES)
            for k in range(start, start + uintp(n)):
                flat[k] += sign * flat_other[k]
            start += uintp(MISSING_BIN * LANES)
            for k in range(start, start + uintp(LANES)):
                flat[k] += sign * flat_other[k]


@njit(cache=True, nogil=True, error_model="numpy")
def cut_gain(left, left_hess, all_sum, n, all_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton):
    """What a cut gains, from the packed sums left of it, and whether both sides are large enough. No branches."""
    n_left = left & ((np.int64(1) << count_bits) - 1)
    n_right = n - n_left
    hess_left = np.float64(left_hess) * hess_unit
    hess_right = all_hess - hess_left
    sum_left = np.float64(left >> count_bits)
    sum_right = all_sum - sum_left
    x = hess_left + l2 if newton else np.float64(n_left)
    y = hess_right + l2 if newton else np.float64(n_right)
    possible = (
        (x > 0.0) & (y > 0.0) & (n_left >= min_docs) & (n_right >= min_docs)
        & (hess_left >= min_hess) & (hess_right >= min_hess)
    )  # fmt: skip
    return sum_left * sum_left / x + sum_right * sum_right / y, possible


@njit(cache=True, nogil=True, error_model="numpy")
def improve_split(
    hist, n_bins, allowed, lane, total, total_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton, signs,
    limits, floats, ints,
):  # fmt: skip
    """Look for a better cut among LANES columns: `floats[0]` is its gain, `ints` feature, bin, missing left, left sums.

    Ties go to the lowest column, then the lowest bin, then missing to the right. Where there are `signs`, see
    `kernels.monotone`, leaf values keep within `limits`.
    """
    group = hist[lane // LANES]
    left, left_hess = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    gains, cuts = np.empty(LANES, np.float64), np.empty(LANES, np.int64)
    most, any_missing, found = widest(n_bins, lane), False, -1
    for k in range(LANES):
        any_missing |= group[0, MISSING_BIN, k] != 0
    for side in range(2 if any_missing else 1):
        for k in range(LANES):
            left[k] = group[0, MISSING_BIN, k] if side else 0
            # not from the best so far: which columns a thread has seen before would decide what rounds to equal
            gains[k], cuts[k] = floats[0] if len(signs) else 0.0, NO_SPLIT
        # with missing values on the right, "all values left" is a cut too
        scanned = most if any_missing and side == 0 else most - 1
        if len(group) == 2:
            for k in range(LANES):
                left_hess[k] = group[1, MISSING_BIN, k] if side else 0
        if len(signs):
            search_lanes_monotone(
                group, scanned, left, left_hess, total, total_hess, count_bits, hess_unit, min_docs, min_hess, l2,
                newton, signs[lane : lane + LANES], limits, gains, cuts,
            )  # fmt: skip
        elif len(group) == 2:
            scan_cuts_of_two(
                group.reshape(group.size), 0, scanned, total, count_bits, min_docs, left, gains, cuts,
                group.shape[1] * LANES, total_hess, hess_unit, min_hess, l2, newton, left_hess,
            )  # fmt: skip
        else:
            scan_cuts(group.reshape(group.size), 0, scanned, total, count_bits, min_docs, left, gains, cuts)
        for k in range(LANES):
            if cuts[k] != NO_SPLIT and allowed[lane + k] and gains[k] > floats[0]:
                floats[0], found = gains[k], k
                ints[0], ints[1], ints[2] = lane + k, cuts[k], side
    if found >= 0:
        for plane in range(len(group)):
            ints[3 + plane] = group[plane, MISSING_BIN, found] if ints[2] else 0
            for b in range(ints[1] + 1):
                ints[3 + plane] += group[plane, b, found]
        if group[0, MISSING_BIN, found] == 0:
            # nothing was missing here: later documents without the value follow the majority
            mask = (np.int64(1) << count_bits) - 1
            ints[2] = 1 if 2 * (ints[3] & mask) >= (total & mask) else 0
