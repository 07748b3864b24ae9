"""Histograms and split search, the two inner loops of tree growing.

A histogram is stored bin by bin, `hist[plane, bin, feature]`, so that one vector instruction handles several features.
Plane 0 packs two sums in one integer: gradient << count_bits | count. Plane 1, if present, sums second derivatives.
All sums are fixed point: integer addition is associative, so threads or machines may share rows in any way.
"""

import numpy as np
from numba import njit, uintp

from ranksieve.dtypes import MISSING_BIN

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
    n_planes = hist.shape[0]
    for plane in range(n_planes):
        for lane in range(first, last, LANES):
            for b in range(widest(n_bins, lane)):
                hist[plane, b, lane : lane + LANES] = 0
            hist[plane, MISSING_BIN, lane : lane + LANES] = 0
    # unsigned positions in flat arrays need no check for negative ones: half the time of `hist[0, bins[row, f], f]`
    flat_hist, flat_bins = hist.reshape(hist.size), bins.reshape(bins.size)
    width, plane_size = uintp(bins.shape[1]), uintp(hist.shape[1] * hist.shape[2])
    if n_planes == 2:
        for i in range(start, stop):
            row = rows[i]
            value, second, base = packed[row], hess[row], uintp(row) * width
            for f in range(uintp(first), uintp(last)):
                place = uintp(flat_bins[base + f]) * width + f
                flat_hist[place] += value
                flat_hist[plane_size + place] += second
    else:
        for i in range(start, stop):
            row = rows[i]
            value, base = packed[row], uintp(row) * width
            for f in range(uintp(first), uintp(last)):
                flat_hist[uintp(flat_bins[base + f]) * width + f] += value


@njit(cache=True, nogil=True)
def add_histogram(hist, other, n_bins, first, last, sign):
    """Add another histogram (sign 1), or subtract it (-1): parent minus one child is the other. Columns first:last."""
    flat, flat_other = hist.reshape(hist.size), other.reshape(other.size)
    for plane in range(hist.shape[0]):
        for lane in range(first, last, LANES):
            n = widest(n_bins, lane)
            for step in range(n + 1):
                b = step if step < n else MISSING_BIN
                start = uintp((plane * hist.shape[1] + b) * hist.shape[2] + lane)
                for k in range(uintp(LANES)):
                    flat[start + k] += sign * flat_other[start + k]


@njit(cache=True, nogil=True, error_model="numpy")
def search_lanes(hist, first, n_bins, left, total, count_bits, min_docs, gains, split_bins):
    """Best variance-gain cut of LANES features, scanning bins upwards from the sums in `left`."""
    mask = (np.int64(1) << count_bits) - 1
    all_sum = np.float64(total >> count_bits)
    n = total & mask
    for b in range(n_bins):
        row = hist[0, b, first : first + LANES]
        for k in range(LANES):
            left[k] += row[k]
            n_left = left[k] & mask
            n_right = n - n_left
            sum_left = np.float64(left[k] >> count_bits)
            sum_right = all_sum - sum_left
            x, y = np.float64(n_left), np.float64(n_right)
            gain = (sum_left * sum_left * y + sum_right * sum_right * x) / (x * y)
            better = (n_left >= min_docs) & (n_right >= min_docs) & (gain > gains[k])
            gains[k] = gain if better else gains[k]
            split_bins[k] = b if better else split_bins[k]


@njit(cache=True, nogil=True, error_model="numpy")
def search_lanes_hessian(
    hist, first, n_bins, left, left_hess, total, total_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton,
    gains, split_bins,
):  # fmt: skip
    """Like `search_lanes`, with second derivatives: in the gain (Newton), or only as a smallest sum per leaf."""
    mask = (np.int64(1) << count_bits) - 1
    all_sum = np.float64(total >> count_bits)
    n = total & mask
    all_hess = np.float64(total_hess) * hess_unit
    for b in range(n_bins):
        row = hist[0, b, first : first + LANES]
        row_hess = hist[1, b, first : first + LANES]
        for k in range(LANES):
            left[k] += row[k]
            left_hess[k] += row_hess[k]
            n_left = left[k] & mask
            n_right = n - n_left
            hess_left = np.float64(left_hess[k]) * hess_unit
            hess_right = all_hess - hess_left
            sum_left = np.float64(left[k] >> count_bits)
            sum_right = all_sum - sum_left
            x = hess_left + l2 if newton else np.float64(n_left)
            y = hess_right + l2 if newton else np.float64(n_right)
            gain = sum_left * sum_left / x + sum_right * sum_right / y
            better = (
                (x > 0.0) & (y > 0.0) & (n_left >= min_docs) & (n_right >= min_docs)
                & (hess_left >= min_hess) & (hess_right >= min_hess) & (gain > gains[k])
            )  # fmt: skip
            gains[k] = gain if better else gains[k]
            split_bins[k] = b if better else split_bins[k]


@njit(cache=True, nogil=True, error_model="numpy")
def best_split(
    hist, n_bins, allowed, first, last, total, total_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton,
    floats, ints,
):  # fmt: skip
    """The best cut over columns first:last: `floats[0]` is its gain, `ints` feature, bin, missing left, left sums.

    Ties go to the lowest column, then the lowest bin, then missing to the right.
    """
    left, left_hess = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    gains, cuts = np.empty(LANES, np.float64), np.empty(LANES, np.int64)
    floats[0], ints[0] = 0.0, NO_SPLIT
    for lane in range(first, last, LANES):
        most, any_missing = widest(n_bins, lane), False
        for k in range(LANES):
            any_missing |= hist[0, MISSING_BIN, lane + k] != 0
        for side in range(2 if any_missing else 1):
            for k in range(LANES):
                left[k] = hist[0, MISSING_BIN, lane + k] if side else 0
                gains[k], cuts[k] = 0.0, NO_SPLIT
            # with missing values on the right, "all values left" is a cut too
            scanned = most if any_missing and side == 0 else most - 1
            if hist.shape[0] == 2:
                for k in range(LANES):
                    left_hess[k] = hist[1, MISSING_BIN, lane + k] if side else 0
                search_lanes_hessian(
                    hist, lane, scanned, left, left_hess, total, total_hess, count_bits, hess_unit, min_docs,
                    min_hess, l2, newton, gains, cuts,
                )  # fmt: skip
            else:
                search_lanes(hist, lane, scanned, left, total, count_bits, min_docs, gains, cuts)
            for k in range(LANES):
                if cuts[k] != NO_SPLIT and allowed[lane + k] and gains[k] > floats[0]:
                    floats[0] = gains[k]
                    ints[0], ints[1], ints[2] = lane + k, cuts[k], side
    if ints[0] != NO_SPLIT:
        f = ints[0]
        sums = np.zeros(2, np.int64)
        for plane in range(hist.shape[0]):
            sums[plane] = hist[plane, MISSING_BIN, f] if ints[2] else 0
            for b in range(ints[1] + 1):
                sums[plane] += hist[plane, b, f]
        ints[3], ints[4] = sums[0], sums[1]
        if hist[0, MISSING_BIN, f] == 0:
            # nothing was missing here: later documents without the value follow the majority
            mask = (np.int64(1) << count_bits) - 1
            ints[2] = 1 if 2 * (sums[0] & mask) >= (total & mask) else 0
