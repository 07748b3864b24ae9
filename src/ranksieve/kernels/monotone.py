"""Split search under monotone constraints, by bounds on leaf values that are handed down (LightGBM's "basic" way).

`signs[c]` is 1 where scores must not fall as column c rises, -1 where they must not rise, 0 where they are free; no
signs at all mean no constraints. After a split on a constrained column the middle of its two leaves' values bounds all
that will ever grow below them: one side stays at or below it, the other at or above. Values and bounds are in units of
the fixed-point gradients.
"""

import numpy as np
from numba import njit

SMALLEST_WEIGHT = 1e-12  # a leaf with a smaller sum of second derivatives has nothing to say
SMALLEST_GAIN = 1e-9  # relative: rounding of sums must not look like an improvement


@njit(cache=True, nogil=True)
def bounded_value(total, weight, low, high):
    """A leaf's value from its sum of gradients and its regularised sum of second derivatives, within its bounds."""
    value = total / weight if weight > SMALLEST_WEIGHT else 0.0
    return min(max(value, low), high)


@njit(cache=True, nogil=True)
def bounded_gain(total, n, weight, newton, low, high):
    """What a leaf adds to the gain: total² / weight (variance: / n), less what its bounds cost.

    The loss that a value v takes away is 2 v total - v² weight, whose best is total² / weight; the variance gain
    is taken to lose the same share of itself.
    """
    value = bounded_value(total, weight, low, high)
    if weight > SMALLEST_WEIGHT and value == total / weight:
        return total * total / (weight if newton else n)
    gain = (2.0 * total - weight * value) * value
    return gain if newton else gain * weight / n


@njit(cache=True, nogil=True)
def leaf_floor(total, total_hess, count_bits, hess_unit, l2, newton, limits):
    """What a bounded leaf contributes to the gain before it is split, and what a split has to be above."""
    n = np.float64(total & ((np.int64(1) << count_bits) - 1))
    weight = np.float64(total_hess) * hess_unit + l2
    gain = bounded_gain(np.float64(total >> count_bits), n, weight, newton, limits[0], limits[1])
    return gain, gain + SMALLEST_GAIN * abs(gain)


@njit(cache=True, nogil=True, error_model="numpy")
def search_lanes_monotone(
    group, n_bins, left, left_hess, total, total_hess, count_bits, hess_unit, min_docs, min_hess, l2, newton,
    signs, limits, gains, split_bins,
):  # fmt: skip
    """Like `scanning.scan_cuts_of_two`, with bounded leaf values; cuts against their column's sign are passed over."""
    mask = (np.int64(1) << count_bits) - 1
    all_sum, n = np.float64(total >> count_bits), total & mask
    all_hess = np.float64(total_hess) * hess_unit
    low, high = limits[0], limits[1]
    for b in range(n_bins):
        for k in range(len(left)):
            left[k] += group[0, b, k]
            left_hess[k] += group[1, b, k]
            n_left = left[k] & mask
            n_right = n - n_left
            hess_left = np.float64(left_hess[k]) * hess_unit
            hess_right = all_hess - hess_left
            if n_left < min_docs or n_right < min_docs or hess_left < min_hess or hess_right < min_hess:
                continue
            sum_left = np.float64(left[k] >> count_bits)
            sum_right = all_sum - sum_left
            x, y = hess_left + l2, hess_right + l2
            if newton and (x <= 0.0 or y <= 0.0):
                continue
            rise = bounded_value(sum_right, y, low, high) - bounded_value(sum_left, x, low, high)
            if signs[k] * rise < 0.0:
                continue
            gain = bounded_gain(sum_left, np.float64(n_left), x, newton, low, high)
            gain += bounded_gain(sum_right, np.float64(n_right), y, newton, low, high)
            if gain > gains[k]:
                gains[k], split_bins[k] = gain, b


@njit(cache=True, nogil=True)
def hand_down(sign, leaf_totals, leaf_hess, old, new, count_bits, hess_unit, l2, limits):
    """Bounds of the two leaves of a split: the parent's, and the middle of their values where the column has a sign."""
    limits[new] = limits[old]
    if sign == 0:
        return
    low, high = limits[old, 0], limits[old, 1]
    ends = np.empty(2)
    for side in range(2):
        leaf = new if side else old
        weight = np.float64(leaf_hess[leaf]) * hess_unit + l2
        ends[side] = bounded_value(np.float64(leaf_totals[leaf] >> count_bits), weight, low, high)
    middle = (ends[0] + ends[1]) / 2.0
    lower, upper = (old, new) if sign > 0 else (new, old)
    limits[lower, 1], limits[upper, 0] = middle, middle
