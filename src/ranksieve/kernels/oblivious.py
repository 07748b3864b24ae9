"""Growth of oblivious trees: one test splits all leaves of a level, the one with the largest gain over all of them.

If a test leaves fewer than `min_docs` documents (or `min_hess` second derivatives) of a leaf on a side, this leaf adds
no gain, but it is split all the same. Child 2i of leaf i holds the documents that go left, child 2i + 1 the others.
"""

import numpy as np
from numba import prange

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.category_splits import WORDS, fill_goes_left
from ranksieve.kernels.divide_rows import divide_rows
from ranksieve.kernels.gain import SMALLEST_GAIN, Node, count_of, gain_of, grad_of, hess_of, large_enough, node_gain
from ranksieve.kernels.growing import sum_members
from ranksieve.kernels.histograms import LANES, sum_leaf, widest
from ranksieve.kernels.jit import njit
from ranksieve.kernels.splitting import NO_SPLIT


@njit(cache=True, nogil=True, error_model="numpy")
def add_gains(group, scanned, missing_left, node, rules, left, left_hess, gains):
    """Add what every cut of a group's features gains in one leaf to `gains[bin, lane]`. No branches."""
    two_planes = len(group) == 2
    unsplit, l2, newton = node_gain(node, rules, False), rules.l2, rules.newton
    all_grad, all_hess = grad_of(node.total, rules), hess_of(node.total, node.hess, rules)
    n = count_of(node.total, rules)
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
            n_left, hess_left = count_of(left[k], rules), hess_of(left[k], left_hess[k], rules)
            n_right, hess_right = n - n_left, all_hess - hess_left
            possible = large_enough(n_left, hess_left, rules) & large_enough(n_right, hess_right, rules)
            grad_left = grad_of(left[k], rules)
            gain = gain_of(grad_left, np.float64(n_left), hess_left + l2, newton)
            gain += gain_of(all_grad - grad_left, np.float64(n_right), hess_right + l2, newton)
            gains[b, k] += gain if possible else unsplit


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def search_level(hist, slots, totals, hess_totals, columns, rules, cut):
    """The test that gains most over all leaves of a level, into `cut`: column, bin, missing left; returns its gain.

    Ties go to the lowest column, then missing to the right, then the lowest bin.
    """
    n_bins, borders, n_leaves = columns.n_bins, columns.borders, len(slots)
    n_parts = len(borders) - 1
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
                # with missing values on the right, a cut may have all values on the left
                scanned = most if any_missing and side == 0 else most - 1
                gains[:scanned] = 0.0
                for leaf in range(n_leaves):
                    node = Node(totals[leaf], hess_totals[leaf], -np.inf, np.inf)
                    group = hist[slots[leaf], lane // LANES]
                    add_gains(group, scanned, side == 1, node, rules, left, left_hess, gains)
                for k in range(LANES):
                    for b in range(scanned):
                        better = gains[b, k] > part_gain[part]
                        better |= gains[b, k] == part_gain[part] and 0 <= lane + k < part_cut[part, 0]
                        if columns.allowed[lane + k] and better:
                            part_gain[part] = gains[b, k]
                            part_cut[part, 0], part_cut[part, 1], part_cut[part, 2] = lane + k, b, side
    best, gain = -1, 0.0
    for part in range(n_parts):
        if part_cut[part, 0] != NO_SPLIT and part_gain[part] > gain:
            best, gain = part, part_gain[part]
    unsplit = np.empty(n_leaves)
    leaf_gains(totals, hess_totals, rules, unsplit)
    base = unsplit.sum()
    if best < 0 or gain - base <= SMALLEST_GAIN * gain:
        return 0.0
    cut[:] = part_cut[best]
    follow_majority(hist, slots, totals, rules, cut)
    return gain - base


@njit(cache=True, nogil=True)
def leaf_gains(totals, hess_totals, rules, out):
    """The gains of leaves with these sums."""
    for leaf in range(len(totals)):
        out[leaf] = node_gain(Node(totals[leaf], hess_totals[leaf], -np.inf, np.inf), rules, False)


@njit(cache=True, nogil=True)
def follow_majority(hist, slots, totals, rules, cut):
    """If no value is missing in training, missing values go to the side with more documents."""
    n_missing, n_left, n_all = 0, 0, 0
    for leaf in range(len(slots)):
        column = hist[slots[leaf], cut[0] // LANES, 0, :, cut[0] % LANES]
        n_missing += count_of(column[MISSING_BIN], rules)
        n_all += count_of(totals[leaf], rules)
        for b in range(cut[1] + 1):
            n_left += count_of(column[b], rules)
    if n_missing == 0:
        cut[2] = 1 if 2 * n_left >= n_all else 0


@njit(cache=True, nogil=True)
def grow_oblivious(rows, columns, rules, hist, spare, cuts, bounds, totals):
    """Split whole levels, at most `len(cuts)`, while a split has a gain; returns the number of levels.

    `rows.members` is reordered: leaf l holds those from `bounds[l, 0]` to `bounds[l, 1]`; `totals[l]` is their sum.
    """
    goes_left, no_words = np.empty(256, np.bool_), np.zeros(WORDS, np.int64)
    n_leaves, n_rows, slots = 1, len(rows.members), np.zeros(len(bounds), np.int64)
    hess_totals = np.zeros(len(bounds), np.int64)
    bounds[0, 0], bounds[0, 1] = 0, n_rows
    totals[0], hess_totals[0] = sum_members(rows, 0, n_rows)
    if len(cuts):
        sum_leaf(rows, columns, 0, n_rows, hist, spare, 0, -1)
    for level in range(len(cuts)):
        gain = search_level(
            hist, slots[:n_leaves], totals[:n_leaves], hess_totals[:n_leaves], columns, rules, cuts[level]
        )
        if gain <= 0.0:
            return level
        feature, split_bin, missing_left = cuts[level]
        fill_goes_left(split_bin, missing_left == 1, no_words, goes_left)
        for leaf in range(n_leaves - 1, -1, -1):
            start, stop, slot = bounds[leaf, 0], bounds[leaf, 1], slots[leaf]
            border = divide_rows(rows.bins, rows.members, rows.scratch, start, stop, feature, goes_left)
            left, right = 2 * leaf, 2 * leaf + 1
            smaller = left if border - start <= stop - border else right
            low, high = (start, border) if smaller == left else (border, stop)
            total, hess_total = sum_members(rows, low, high)
            rest, hess_rest = totals[leaf] - total, hess_totals[leaf] - hess_total
            bounds[left, 0], bounds[left, 1], bounds[right, 0], bounds[right, 1] = start, border, border, stop
            larger = left + right - smaller
            totals[smaller], hess_totals[smaller] = total, hess_total
            totals[larger], hess_totals[larger] = rest, hess_rest
            # the parent's histogram becomes the larger child's by subtraction
            slots[smaller], slots[larger] = n_leaves + leaf, slot
            if level + 1 < len(cuts):
                sum_leaf(rows, columns, low, high, hist, spare, n_leaves + leaf, slot)
        n_leaves *= 2
    return len(cuts)
