"""The best set of categories of a leaf, as LightGBM finds it.

Categories are sorted by G / (H + smooth), which is about the value of a leaf with this category alone. For a convex
loss, one of the best divisions into two sets cuts this order in two (Fisher 1958). So the sets that are tried are the
first categories in order, and the last ones. For a feature with few categories they are single categories. The set goes
left; all other categories, and missing values, go right.
"""

import numpy as np

from ranksieve.kernels.gain import count_of, gain_of_sides, grad_of, hess_of
from ranksieve.kernels.histograms import BY_SET, LANES
from ranksieve.kernels.jit import njit
from ranksieve.kernels.metrics import sort_rows

A_SET = -1  # in place of the bin of a cut: the cut is a set of categories
SET = 5  # where the words of the set begin in a cut
WORDS = 4  # words of a set, 64 bits each: one bit for each of 256 bins
WIDTH = SET + WORDS  # length of a cut


@njit(cache=True, nogil=True)
def try_single(sums, n_bins, node, rules, bounded, best):
    """Try each single category. `best` is (gain, place of the first category, number of categories, direction)."""
    for b in range(n_bins):
        gain = gain_of_sides(sums[b, 0], sums[b, 1], node, rules, 0.0, bounded, 0)
        if gain > best[0]:
            best[0], best[1], best[2], best[3] = gain, b, 1, 1


@njit(cache=True, nogil=True)
def try_sorted(sums, order, node, rules, columns, bounded, best):
    """Try the first categories in order, and the last ones."""
    most, n_docs = min(columns.most, (len(order) + 1) // 2), count_of(node.total, rules)
    for direction in (1, -1):
        first = 0 if direction == 1 else len(order) - 1
        left = left_hess = np.int64(0)
        n_new = 0  # documents since the last set that was tried
        for i in range(most):
            b = order[first + direction * i]
            left, left_hess = left + sums[b, 0], left_hess + sums[b, 1]
            n_new += count_of(sums[b, 0], rules)
            if n_docs - count_of(left, rules) < columns.group:
                break
            if n_new < columns.group:
                continue
            n_new = 0
            gain = gain_of_sides(left, left_hess, node, rules, columns.set_l2, bounded, 0)
            if gain > best[0]:
                best[0], best[1], best[2], best[3] = gain, first, i + 1, direction


@njit(cache=True, nogil=True)
def sorted_bins(sums, n_bins, rules, smooth):
    """The bins with enough documents, sorted by falling G / (H + smooth), equal ones by number."""
    order, values, n = np.empty(n_bins, np.int32), np.empty(n_bins), 0
    for b in range(n_bins):
        count = np.float64(count_of(sums[b, 0], rules))
        if count >= max(smooth, 1.0):
            weight = hess_of(sums[b, 0], sums[b, 1], rules) if rules.newton else count
            order[n], values[b] = b, grad_of(sums[b, 0], rules) / (weight + smooth)
            n += 1
    sort_rows(values, order[:n], np.empty(n, np.int32))
    return order[:n]


@njit(cache=True, nogil=True)
def improve_by_set(group, columns, column, node, rules, gain, cut):
    """Look for a better cut by a set of categories of a column; see `splitting.improve_split`."""
    lane, n_bins = column % LANES, columns.n_bins[column]
    sums, bounded = np.zeros((n_bins, 2), np.int64), len(columns.signs) > 0
    for plane in range(len(group)):
        for b in range(n_bins):
            sums[b, plane] = group[plane, b, lane]
    best = np.zeros(4)
    best[0] = gain[0]
    order = np.empty(n_bins, np.int32)
    for b in range(n_bins):
        order[b] = b
    if n_bins <= columns.one_hot:
        try_single(sums, n_bins, node, rules, bounded, best)
    else:
        order = sorted_bins(sums, n_bins, rules, columns.smooth)
        try_sorted(sums, order, node, rules, columns, bounded, best)
    if best[0] > gain[0]:
        gain[0] = best[0]
        cut[0], cut[1], cut[2] = column, A_SET, 0
        for k in range(3, WIDTH):
            cut[k] = 0
        for i in range(np.int64(best[2])):
            b = order[np.int64(best[1]) + np.int64(best[3]) * i]
            cut[3] += sums[b, 0]
            cut[4] += sums[b, 1]
            cut[SET + b // 64] |= np.int64(1) << (b % 64)


@njit(cache=True, nogil=True)
def improve_by_sets(group, columns, lane, node, rules, gain, cut):
    """`improve_by_set` for the categorical ones of LANES columns."""
    for column in range(lane, lane + LANES):
        if columns.allowed[column] == BY_SET:
            improve_by_set(group, columns, column, node, rules, gain, cut)


@njit(cache=True, nogil=True)
def fill_goes_left(split_bin, missing_left, words, goes_left):
    """Write which bins go left: those up to a bin, or those in a set. The last bin is that of missing values."""
    for b in range(len(goes_left)):
        goes_left[b] = (words[b // 64] >> (b % 64)) & 1 if split_bin == A_SET else b <= split_bin
    goes_left[len(goes_left) - 1] = missing_left
