"""The best cut of a leaf among the 16 features of one group of its histogram."""

import numpy as np

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.gain import (
    count_of,
    cut_terms,
    gain_of_cut,
    gain_within,
    sides_of,
)
from ranksieve.kernels.histograms import BY_BIN, LANES, widest
from ranksieve.kernels.jit import njit
from ranksieve.kernels.scan_cuts import scan_cuts, scan_cuts_of_packed, scan_cuts_of_two, scan_newton_cuts_of_packed

NO_SPLIT = -1


@njit(cache=True, nogil=True, error_model="numpy")
def scan_cuts_bounded(group, n_bins, node, rules, signs, left, left_hess, gains, cuts):
    """The best cuts with bounds on leaf values, by `gain.gain_of_sides`; the sums of the leaf are computed once."""
    two_planes = len(group) == 2
    for b in range(n_bins):
        for k in range(LANES):
            left[k] += group[0, b, k]
            if two_planes:
                left_hess[k] += group[1, b, k]
            sides = sides_of(left[k], left_hess[k], node, rules)
            if not sides.allowed:
                continue
            x, y = np.float64(sides.n_left), np.float64(sides.n_right)
            gain = gain_within(sides, x, y, rules.l2, node, rules.newton, signs[k])
            if gain > gains[k]:
                gains[k], cuts[k] = gain, b


@njit(cache=True, nogil=True, error_model="numpy")
def scan_free_cuts(group, n_bins, terms, rules, left, left_hess, fractions, cuts):
    """The cuts with the largest fractions, see `scan_cuts`, by what is in the planes of a histogram."""
    flat = group.reshape(group.size)
    least = terms.least_hess << rules.count_bits if rules.hess_bits else np.int64(0)
    for k in range(LANES):
        left[k] -= terms.fewest + least
        left_hess[k] -= terms.least_hess
    if len(group) == 2:
        scan_cuts_of_two(flat, n_bins, terms, rules, left, fractions, cuts, group.shape[1] * LANES, left_hess)
    elif rules.hess_bits and rules.newton:
        scan_newton_cuts_of_packed(flat, n_bins, terms, rules, left, fractions, cuts)
    elif rules.hess_bits:
        scan_cuts_of_packed(flat, n_bins, terms, rules, left, fractions, cuts)
    else:
        scan_cuts(flat, n_bins, terms, rules, left, fractions, cuts)


@njit(cache=True, nogil=True, error_model="numpy")
def improve_split(group, columns, lane, node, rules, gain, cut):
    """Look for a better cut among LANES columns: its gain in `gain[0]`; `cut` is column, bin, missing left, left sums.

    `group` is the part of a histogram with the columns from `lane` on. Ties go to the lowest column, then the lowest
    bin, then missing to the right. Where columns have signs, leaf values keep within the bounds of the node.
    """
    signs, terms = columns.signs, cut_terms(node, rules)
    left, left_hess = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    gains, cuts = np.empty(LANES, np.float64), np.empty(LANES, np.int64)
    most, any_missing, found = widest(columns.n_bins, lane), False, -1
    for k in range(LANES):
        any_missing |= group[0, MISSING_BIN, k] != 0
    for side in range(2 if any_missing else 1):
        for k in range(LANES):
            left[k] = group[0, MISSING_BIN, k] if side else 0
            left_hess[k] = group[1, MISSING_BIN, k] if side and len(group) == 2 else 0
            # not the best gain so far: then results could depend on which columns a thread has searched before
            gains[k], cuts[k] = gain[0] if len(signs) else 0.0, NO_SPLIT
        # with missing values on the right, a cut may have all values on the left
        scanned = most if any_missing and side == 0 else most - 1
        if len(signs):
            scan_cuts_bounded(group, scanned, node, rules, signs[lane : lane + LANES], left, left_hess, gains, cuts)
        elif terms.most_hess >= 0:
            scan_free_cuts(group, scanned, terms, rules, left, left_hess, gains, cuts)
            for k in range(LANES):
                gains[k] = gain_of_cut(gains[k], node, rules, terms)
        for k in range(LANES):
            if cuts[k] != NO_SPLIT and columns.allowed[lane + k] == BY_BIN and gains[k] > gain[0]:
                gain[0], found = gains[k], k
                cut[0], cut[1], cut[2] = lane + k, cuts[k], side
    if found >= 0:
        cut[4] = 0
        for plane in range(len(group)):
            cut[3 + plane] = group[plane, MISSING_BIN, found] if cut[2] else 0
            for b in range(cut[1] + 1):
                cut[3 + plane] += group[plane, b, found]
        if group[0, MISSING_BIN, found] == 0:
            # no value is missing in this leaf: missing values go to the side with more documents
            cut[2] = 1 if 2 * count_of(cut[3], rules) >= count_of(node.total, rules) else 0
