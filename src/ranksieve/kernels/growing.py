"""Best-first growth of one regression tree on binned rows."""

import numpy as np
from numba import njit, prange

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.splitting import NO_SPLIT, add_histogram, best_split, build_histogram

CHUNK = 16_384  # rows a thread moves at a time when a leaf is divided
MANY_ROWS = 32_768  # leaves from this size on are summed by rows instead of by columns
SMALLEST_GAIN = 1e-9  # relative: rounding of sums must not look like an improvement


@njit(cache=True, nogil=True, parallel=True)
def divide_rows(bins, rows, scratch, start, stop, feature, split_bin, missing_left):
    """Move the rows that go left to the front of start:stop, both sides in their old order; return the border."""
    n_chunks = -(-(stop - start) // CHUNK)
    counts = np.zeros(n_chunks + 1, np.int64)
    for c in prange(n_chunks):
        low, high = start + c * CHUNK, min(start + (c + 1) * CHUNK, stop)
        n_left, n_right = 0, 0
        for i in range(low, high):
            b = bins[rows[i], feature]
            if missing_left if b == MISSING_BIN else b <= split_bin:
                scratch[low + n_left] = rows[i]
                n_left += 1
            else:
                n_right += 1
                scratch[high - n_right] = rows[i]
        counts[c + 1] = n_left
    n_left = 0
    for c in range(n_chunks):
        n_left += counts[c + 1]
        counts[c + 1] = n_left
    for c in prange(n_chunks):
        low, high = start + c * CHUNK, min(start + (c + 1) * CHUNK, stop)
        mine = counts[c + 1] - counts[c]
        to = start + counts[c]
        for i in range(mine):
            rows[to + i] = scratch[low + i]
        to = start + n_left + (low - start - counts[c])
        for i in range(high - low - mine):
            rows[to + i] = scratch[high - 1 - i]
    return start + n_left


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def search_leaf(
    bins, rows, packed, hess, n_bins, allowed, hist, spare, slot, sibling, start, stop, totals, hess_totals, searched,
    borders, count_bits, hess_unit, min_docs, min_hess, l2, newton, floats, ints,
):  # fmt: skip
    """Histogram of rows start:stop into `slot`; `sibling` ≥ 0 becomes its parent minus it; search the best splits.

    Side 0 is the leaf in `slot`, side 1 the sibling; `searched` says which are wanted. Each thread owns the columns
    `borders[part]:borders[part + 1]` from the first row to the best cut. Where the rows come from main memory, half a
    row costs as much as a whole one: there each thread first sums a range of rows into a histogram of its own.
    """
    n_parts, width = len(borders) - 1, bins.shape[1]
    by_rows = n_parts > 1 and stop - start >= MANY_ROWS
    if by_rows:
        for part in prange(n_parts):
            low = start + (stop - start) * part // n_parts
            high = start + (stop - start) * (part + 1) // n_parts
            mine = hist[slot] if part == 0 else spare[part - 1]
            build_histogram(bins, rows, low, high, packed, hess, n_bins, 0, width, mine)
    part_floats = np.zeros((n_parts, 2, 1), np.float64)
    part_ints = np.zeros((n_parts, 2, 5), np.int64)
    for part in prange(n_parts):
        first, last = borders[part], borders[part + 1]
        if by_rows:
            for other in range(n_parts - 1):
                add_histogram(hist[slot], spare[other], n_bins, first, last, 1)
        else:
            build_histogram(bins, rows, start, stop, packed, hess, n_bins, first, last, hist[slot])
        if sibling >= 0:
            add_histogram(hist[sibling], hist[slot], n_bins, first, last, -1)
        for side in range(2):
            if searched[side]:
                best_split(
                    hist[sibling if side else slot], n_bins, allowed, first, last, totals[side], hess_totals[side],
                    count_bits, hess_unit, min_docs, min_hess, l2, newton, part_floats[part, side],
                    part_ints[part, side],
                )  # fmt: skip
    for side in range(2):
        floats[side], ints[side, 0] = 0.0, NO_SPLIT
        for part in range(n_parts):
            if searched[side] and part_ints[part, side, 0] != NO_SPLIT and part_floats[part, side, 0] > floats[side]:
                floats[side] = part_floats[part, side, 0]
                ints[side] = part_ints[part, side]


@njit(cache=True, nogil=True, error_model="numpy")
def leaf_gain(total, total_hess, count_bits, hess_unit, l2, newton):
    """What a leaf contributes to the gain before it is split."""
    sum_all = np.float64(total >> count_bits)
    n = np.float64(total & ((np.int64(1) << count_bits) - 1))
    weight = np.float64(total_hess) * hess_unit + l2 if newton else n
    return sum_all * sum_all / weight if weight > 0 else 0.0


@njit(cache=True, nogil=True)
def grow_tree(
    bins, rows, scratch, packed, hess, n_bins, allowed, hist, spare, borders, count_bits, hess_unit, min_docs, min_hess,
    l2, newton, max_depth, split_ints, split_gain, leaf_bounds, leaf_totals,
):  # fmt: skip
    """Split the leaf with the largest gain until `len(leaf_bounds)` leaves; return how many there are.

    `rows` is reordered: leaf l holds `rows[leaf_bounds[l, 0]:leaf_bounds[l, 1]]`, in the order they came. A split's
    row in `split_ints` is feature, bin, missing left, left child, right child, count; a child < 0 is leaf ~child.
    """
    max_leaves = len(leaf_bounds)
    mask = (np.int64(1) << count_bits) - 1
    gain, cut = np.zeros(max_leaves), np.full((max_leaves, 5), NO_SPLIT, np.int64)
    depth, parent = np.zeros(max_leaves, np.int64), np.full(max_leaves, -1, np.int64)
    totals, hess_totals = np.zeros(2, np.int64), np.zeros(2, np.int64)
    leaf_hess, slots = np.zeros(max_leaves, np.int64), np.zeros(max_leaves, np.int64)
    searched = np.zeros(2, np.bool_)
    floats, ints = np.zeros(2), np.zeros((2, 5), np.int64)

    leaf_bounds[0, 0], leaf_bounds[0, 1] = 0, len(rows)
    for i in range(len(rows)):
        leaf_totals[0] += packed[rows[i]]
    for i in range(len(rows) if len(hess) else 0):
        leaf_hess[0] += hess[rows[i]]
    if max_leaves > 1 and len(rows) >= 2 * min_docs:
        totals[0], hess_totals[0], searched[0] = leaf_totals[0], leaf_hess[0], True
        search_leaf(
            bins, rows, packed, hess, n_bins, allowed, hist, spare, 0, -1, 0, len(rows), totals, hess_totals,
            searched, borders, count_bits, hess_unit, min_docs, min_hess, l2, newton, floats, ints,
        )  # fmt: skip
        gain[0] = floats[0] - leaf_gain(leaf_totals[0], leaf_hess[0], count_bits, hess_unit, l2, newton)
        cut[0] = ints[0]
        if gain[0] <= SMALLEST_GAIN * floats[0]:
            gain[0], cut[0, 0] = 0.0, NO_SPLIT

    n_leaves = 1
    while n_leaves < max_leaves:
        old = -1
        for leaf in range(n_leaves):
            if cut[leaf, 0] != NO_SPLIT and (old < 0 or gain[leaf] > gain[old]):
                old = leaf
        if old < 0:
            break
        new, split = n_leaves, n_leaves - 1
        start, stop = leaf_bounds[old]
        border = divide_rows(bins, rows, scratch, start, stop, cut[old, 0], cut[old, 1], cut[old, 2] == 1)
        split_ints[split, 0], split_ints[split, 1], split_ints[split, 2] = cut[old, 0], cut[old, 1], cut[old, 2]
        split_ints[split, 3], split_ints[split, 4], split_ints[split, 5] = ~old, ~new, stop - start
        split_gain[split] = gain[old]
        if parent[old] >= 0:
            side = 3 if split_ints[parent[old], 3] == ~old else 4
            split_ints[parent[old], side] = split
        parent[old], parent[new] = split, split
        depth[old] += 1
        depth[new] = depth[old]
        leaf_bounds[old, 1], leaf_bounds[new, 0], leaf_bounds[new, 1] = border, border, stop
        leaf_totals[new], leaf_hess[new] = leaf_totals[old] - cut[old, 3], leaf_hess[old] - cut[old, 4]
        leaf_totals[old], leaf_hess[old] = cut[old, 3], cut[old, 4]
        cut[old, 0] = NO_SPLIT
        n_leaves += 1

        # the parent's histogram becomes the larger child's by subtraction
        smaller, larger = (old, new) if leaf_totals[old] & mask <= leaf_totals[new] & mask else (new, old)
        if n_leaves == max_leaves or (max_depth > 0 and depth[old] >= max_depth):
            continue
        searched[0] = leaf_totals[smaller] & mask >= 2 * min_docs
        searched[1] = leaf_totals[larger] & mask >= 2 * min_docs
        if not searched[1]:
            continue
        slots[new] = new
        if smaller == old:
            slots[old], slots[new] = slots[new], slots[old]
        totals[0], totals[1] = leaf_totals[smaller], leaf_totals[larger]
        hess_totals[0], hess_totals[1] = leaf_hess[smaller], leaf_hess[larger]
        search_leaf(
            bins, rows, packed, hess, n_bins, allowed, hist, spare, slots[smaller], slots[larger],
            leaf_bounds[smaller, 0], leaf_bounds[smaller, 1], totals, hess_totals, searched, borders, count_bits,
            hess_unit, min_docs, min_hess, l2, newton, floats, ints,
        )  # fmt: skip
        for side in range(2):
            leaf = larger if side else smaller
            base = leaf_gain(leaf_totals[leaf], leaf_hess[leaf], count_bits, hess_unit, l2, newton)
            gain[leaf] = floats[side] - base
            if ints[side, 0] != NO_SPLIT and gain[leaf] > SMALLEST_GAIN * floats[side]:
                cut[leaf] = ints[side]
    return n_leaves


@njit(cache=True, nogil=True, parallel=True)
def sum_leaves(rows, leaf_bounds, values, out):
    """Fixed-point sum of `values` over the rows of each leaf."""
    for leaf in prange(len(leaf_bounds)):
        total = np.int64(0)
        for i in range(leaf_bounds[leaf, 0], leaf_bounds[leaf, 1]):
            total += values[rows[i]]
        out[leaf] = total


@njit(cache=True, nogil=True, parallel=True)
def add_leaf_values(rows, leaf_bounds, leaf_values, scores):
    """Add each leaf's value to the scores of its rows."""
    for leaf in prange(len(leaf_bounds)):
        for i in range(leaf_bounds[leaf, 0], leaf_bounds[leaf, 1]):
            scores[rows[i]] += leaf_values[leaf]
