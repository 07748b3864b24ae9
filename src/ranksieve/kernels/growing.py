"""Best-first growth of one regression tree on binned rows."""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.dividing import divide_rows
from ranksieve.kernels.monotone import SMALLEST_GAIN, hand_down, leaf_floor
from ranksieve.kernels.splitting import LANES, NO_SPLIT, add_histogram, build_histogram, improve_split

MANY_ROWS = 32_768  # leaves from this size on are summed by rows instead of by columns
FEW_ROWS = 512  # up to this size, a leaf's rows stay in the cache from one group of columns to the next


@njit(cache=True, nogil=True, error_model="numpy")
def search_columns(
    hist, n_bins, allowed, slot, sibling, first, last, totals, hess_totals, searched, count_bits, hess_unit, min_docs,
    min_hess, l2, newton, signs, limits, floats, ints,
):  # fmt: skip
    """Better splits among columns first:last; `sibling` ≥ 0, its parent's histogram so far, becomes it minus `slot`'s.

    Side 0 is the leaf in `slot`, side 1 the sibling; `searched` says which are wanted. Where there are `signs` (see
    `kernels.monotone`), `limits` are the bounds on the values of the two.
    """
    for lane in range(first, last, LANES):
        if sibling >= 0:
            add_histogram(hist[sibling], hist[slot], n_bins, lane, lane + LANES, -1)
        for side in range(2):
            if searched[side]:
                improve_split(
                    hist[sibling if side else slot], n_bins, allowed, lane, totals[side], hess_totals[side], count_bits,
                    hess_unit, min_docs, min_hess, l2, newton, signs, limits[side], floats[side], ints[side],
                )  # fmt: skip


@njit(cache=True, nogil=True)
def best_of_parts(part_floats, part_ints, floats, ints):
    """The best split of each side over the parts of the columns; ties go to the first part."""
    for side in range(2):
        floats[side], ints[side, 0] = 0.0, NO_SPLIT
        for part in range(len(part_floats)):
            found = part_ints[part, side, 0] != NO_SPLIT
            if found and (ints[side, 0] == NO_SPLIT or part_floats[part, side, 0] > floats[side]):
                floats[side] = part_floats[part, side, 0]
                ints[side] = part_ints[part, side]


@njit(cache=True, nogil=True)
def set_floors(totals, hess_totals, count_bits, hess_unit, l2, newton, signs, limits, part_floats):
    """What splits of the two leaves have to be above, where their values are bounded."""
    for side in range(2 if len(signs) else 0):
        floor = leaf_floor(totals[side], hess_totals[side], count_bits, hess_unit, l2, newton, limits[side])
        part_floats[:, side] = floor[1]


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def search_leaf(
    bins, rows, packed, hess, n_bins, allowed, hist, spare, slot, sibling, start, stop, totals, hess_totals, searched,
    borders, count_bits, hess_unit, min_docs, min_hess, l2, newton, signs, limits, floats, ints,
):  # fmt: skip
    """Histogram of rows start:stop into `slot`, then the best splits of it and of its sibling: see `search_columns`.

    Each thread owns the columns `borders[part]:borders[part + 1]` from the first row to the best cut. Where the rows
    come from main memory, half a row costs as much as a whole one: there each thread first sums a range of rows into a
    histogram of its own.
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
    part_ints = np.full((n_parts, 2, 5), NO_SPLIT, np.int64)
    set_floors(totals, hess_totals, count_bits, hess_unit, l2, newton, signs, limits, part_floats)
    step = LANES if stop - start <= FEW_ROWS else width
    for part in prange(n_parts):
        if by_rows:
            for other in range(n_parts - 1):
                add_histogram(hist[slot], spare[other], n_bins, borders[part], borders[part + 1], 1)
        for first in range(borders[part], borders[part + 1], step):
            last = min(first + step, borders[part + 1])
            if not by_rows:
                build_histogram(bins, rows, start, stop, packed, hess, n_bins, first, last, hist[slot])
            search_columns(
                hist, n_bins, allowed, slot, sibling, first, last, totals, hess_totals, searched, count_bits, hess_unit,
                min_docs, min_hess, l2, newton, signs, limits, part_floats[part], part_ints[part],
            )  # fmt: skip
    best_of_parts(part_floats, part_ints, floats, ints)


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def search_sums(
    n_bins, allowed, hist, slot, sibling, totals, hess_totals, searched, borders, count_bits, hess_unit, min_docs,
    min_hess, l2, newton, signs, limits, floats, ints,
):  # fmt: skip
    """Like `search_leaf`, where the histogram in `slot` is there already, summed elsewhere."""
    n_parts = len(borders) - 1
    part_floats = np.zeros((n_parts, 2, 1), np.float64)
    part_ints = np.full((n_parts, 2, 5), NO_SPLIT, np.int64)
    set_floors(totals, hess_totals, count_bits, hess_unit, l2, newton, signs, limits, part_floats)
    for part in prange(n_parts):
        search_columns(
            hist, n_bins, allowed, slot, sibling, borders[part], borders[part + 1], totals, hess_totals, searched,
            count_bits, hess_unit, min_docs, min_hess, l2, newton, signs, limits, part_floats[part], part_ints[part],
        )  # fmt: skip
    best_of_parts(part_floats, part_ints, floats, ints)


@njit(cache=True, nogil=True, error_model="numpy")
def leaf_gain(total, total_hess, count_bits, hess_unit, l2, newton):
    """What a leaf contributes to the gain before it is split."""
    sum_all = np.float64(total >> count_bits)
    n = np.float64(total & ((np.int64(1) << count_bits) - 1))
    weight = np.float64(total_hess) * hess_unit + l2 if newton else n
    return sum_all * sum_all / weight if weight > 0 else 0.0


@njit(cache=True, nogil=True)
def split_best_leaf(
    n_leaves, count_bits, hess_unit, min_docs, l2, max_depth, signs, limits, gain, cut, depth, parent, slots,
    leaf_totals, leaf_hess, split_ints, split_gain, pair, searched,
):  # fmt: skip
    """Write down the split of the leaf with the largest gain; return that leaf, or -1 where none can be split.

    The leaf keeps its number for the left child, the right one gets number `n_leaves`. `pair` is the smaller and the
    larger child, and `searched` which of the two may be split again. The larger takes over the parent's histogram.
    `limits` are the bounds on every leaf's value, where there are `signs`.
    """
    old, new, split = -1, n_leaves, n_leaves - 1
    for leaf in range(n_leaves):
        if cut[leaf, 0] != NO_SPLIT and (old < 0 or gain[leaf] > gain[old]):
            old = leaf
    if old < 0:
        return old
    mask = (np.int64(1) << count_bits) - 1
    split_ints[split, 0], split_ints[split, 1], split_ints[split, 2] = cut[old, 0], cut[old, 1], cut[old, 2]
    split_ints[split, 3], split_ints[split, 4], split_ints[split, 5] = ~old, ~new, leaf_totals[old] & mask
    split_gain[split] = gain[old]
    if parent[old] >= 0:
        side = 3 if split_ints[parent[old], 3] == ~old else 4
        split_ints[parent[old], side] = split
    parent[old], parent[new] = split, split
    depth[old] += 1
    depth[new] = depth[old]
    leaf_totals[new], leaf_hess[new] = leaf_totals[old] - cut[old, 3], leaf_hess[old] - cut[old, 4]
    leaf_totals[old], leaf_hess[old] = cut[old, 3], cut[old, 4]
    if len(signs):
        hand_down(signs[cut[old, 0]], leaf_totals, leaf_hess, old, new, count_bits, hess_unit, l2, limits)
    cut[old, 0] = NO_SPLIT
    pair[0], pair[1] = (old, new) if leaf_totals[old] & mask <= leaf_totals[new] & mask else (new, old)
    is_last = n_leaves + 1 == len(gain) or (max_depth > 0 and depth[old] >= max_depth)
    for side in range(2):
        searched[side] = not is_last and leaf_totals[pair[side]] & mask >= 2 * min_docs
    slots[new] = new
    if pair[0] == old:
        slots[old], slots[new] = slots[new], slots[old]
    return old


@njit(cache=True, nogil=True)
def note_cuts(
    pair, searched, floats, ints, leaf_totals, leaf_hess, count_bits, hess_unit, l2, newton, signs, limits, gain, cut
):  # fmt: skip
    """Keep the best splits found of the leaves in `pair`, where they gain anything."""
    for side in range(2):
        if searched[side]:
            leaf = pair[side]
            total, total_hess = leaf_totals[leaf], leaf_hess[leaf]
            if len(signs):
                base = leaf_floor(total, total_hess, count_bits, hess_unit, l2, newton, limits[leaf])[0]
            else:
                base = leaf_gain(total, total_hess, count_bits, hess_unit, l2, newton)
            gain[leaf] = floats[side] - base
            if ints[side, 0] != NO_SPLIT and gain[leaf] > SMALLEST_GAIN * floats[side]:
                cut[leaf] = ints[side]


@njit(cache=True, nogil=True)
def grow_tree(
    bins, rows, scratch, packed, hess, n_bins, allowed, hist, spare, borders, count_bits, hess_unit, min_docs, min_hess,
    l2, newton, max_depth, signs, split_ints, split_gain, leaf_bounds, leaf_totals, limits,
):  # fmt: skip
    """Split the leaf with the largest gain until `len(leaf_bounds)` leaves; return how many there are.

    `rows` is reordered: leaf l holds `rows[leaf_bounds[l, 0]:leaf_bounds[l, 1]]`, in the order they came. A split's
    row in `split_ints` is feature, bin, missing left, left child, right child, count; a child < 0 is leaf ~child.
    `limits` come as -∞, ∞ and leave as the bounds on each leaf's value, where there are `signs`.
    """
    max_leaves = len(leaf_bounds)
    gain, cut = np.zeros(max_leaves), np.full((max_leaves, 5), NO_SPLIT, np.int64)
    depth, parent = np.zeros(max_leaves, np.int64), np.full(max_leaves, -1, np.int64)
    leaf_hess, slots = np.zeros(max_leaves, np.int64), np.zeros(max_leaves, np.int64)
    pair, searched = np.zeros(2, np.int64), np.zeros(2, np.bool_)
    floats, ints = np.zeros(2), np.zeros((2, 5), np.int64)

    leaf_bounds[0, 0], leaf_bounds[0, 1] = 0, len(rows)
    for i in range(len(rows)):
        leaf_totals[0] += packed[rows[i]]
    for i in range(len(rows) if len(hess) else 0):
        leaf_hess[0] += hess[rows[i]]
    searched[0] = max_leaves > 1 and len(rows) >= 2 * min_docs
    n_leaves, sibling = 1, -1
    while True:
        if searched[0] or searched[1]:
            start, stop = leaf_bounds[pair[0]]
            search_leaf(
                bins, rows, packed, hess, n_bins, allowed, hist, spare, slots[pair[0]], sibling, start, stop,
                leaf_totals[pair], leaf_hess[pair], searched, borders, count_bits, hess_unit, min_docs, min_hess, l2,
                newton, signs, limits[pair], floats, ints,
            )  # fmt: skip
            note_cuts(
                pair, searched, floats, ints, leaf_totals, leaf_hess, count_bits, hess_unit, l2, newton, signs, limits,
                gain, cut,
            )  # fmt: skip
        if n_leaves == max_leaves:
            break
        old = split_best_leaf(
            n_leaves, count_bits, hess_unit, min_docs, l2, max_depth, signs, limits, gain, cut, depth, parent, slots,
            leaf_totals, leaf_hess, split_ints, split_gain, pair, searched,
        )  # fmt: skip
        if old < 0:
            break
        feature, split_bin, missing_left = split_ints[n_leaves - 1, :3]
        start, stop = leaf_bounds[old]
        border = divide_rows(bins, rows, scratch, start, stop, feature, split_bin, missing_left == 1)
        leaf_bounds[old, 1], leaf_bounds[n_leaves, 0], leaf_bounds[n_leaves, 1] = border, border, stop
        n_leaves += 1
        sibling = slots[pair[1]]
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
