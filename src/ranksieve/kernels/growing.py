"""Best-first growth of one regression tree on binned rows.

`next_split` decides what is split; it is the same whether the sums come from rows here (`grow_tree`) or from the
workers of a cluster.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.category_splits import SET, WIDTH, fill_goes_left, improve_by_sets
from ranksieve.kernels.divide_rows import divide_rows
from ranksieve.kernels.gain import SMALLEST_GAIN, Node, count_of, node_gain, node_value
from ranksieve.kernels.histograms import (
    LANES,
    add_histogram,
    build_histogram,
    finish_columns,
    groups_of,
    is_summed_by_rows,
    sum_by_rows,
)
from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.splitting import NO_SPLIT, improve_split

FEW_ROWS = 512  # leaves of up to so many rows keep no histogram, see `search_rows`; less than LARGE_LEAF
BLOCK = 4 * LANES  # columns of such leaves that are summed and searched at a time: 64 bytes of a row


class Histograms(NamedTuple):
    """Where histograms are summed."""

    leaves: np.ndarray  # histograms of leaves, by slot
    spare: np.ndarray  # for each thread but one, the histogram of its rows, where threads sum some of the rows each
    blocks: np.ndarray  # for each thread, BLOCK columns of a leaf of few rows


class GrowState(NamedTuple):
    """A tree that grows. The left child of a split leaf keeps its number; the right child gets the next number."""

    n_leaves: np.ndarray  # an array of one number
    splits: np.ndarray  # per split: column, bin, missing left, left child, right child, count, words of its set
    split_gains: np.ndarray
    totals: np.ndarray  # per leaf: packed sums
    hess_totals: np.ndarray  # per leaf: sums of second derivatives, where these are summed on their own
    limits: np.ndarray  # per leaf: bounds on its value
    depths: np.ndarray
    parents: np.ndarray  # per leaf: the split above it, or -1
    slots: np.ndarray  # per leaf: where its histogram is
    gains: np.ndarray  # per leaf: the gain of its best split; 0 where it has none
    cuts: np.ndarray  # per leaf, its best split: column or NO_SPLIT, bin, missing left, left sums, words of its set
    pair: np.ndarray  # the two newest leaves, the smaller one first
    searched: np.ndarray  # whether each of the pair may be split again
    found_gains: np.ndarray  # gains of the best cuts of the pair
    found_cuts: np.ndarray  # the best cuts of the pair


def new_state(max_leaves: int) -> GrowState:
    """The state of a tree without splits; `start_tree` makes it a tree of one leaf."""
    limits = np.empty((max_leaves, 2))
    limits[:, 0], limits[:, 1] = -np.inf, np.inf
    return GrowState(
        n_leaves=np.zeros(1, np.int64),
        splits=np.empty((max_leaves - 1, 1 + WIDTH), np.int64),
        split_gains=np.empty(max_leaves - 1),
        totals=np.zeros(max_leaves, np.int64),
        hess_totals=np.zeros(max_leaves, np.int64),
        limits=limits,
        depths=np.zeros(max_leaves, np.int64),
        parents=np.full(max_leaves, -1, np.int64),
        slots=np.zeros(max_leaves, np.int64),
        gains=np.zeros(max_leaves),
        cuts=np.full((max_leaves, WIDTH), NO_SPLIT, np.int64),
        pair=np.zeros(2, np.int64),
        searched=np.zeros(2, np.bool_),
        found_gains=np.zeros(2),
        found_cuts=np.full((2, WIDTH), NO_SPLIT, np.int64),
    )


@njit(cache=True, nogil=True)
def leaf_node(state, leaf):
    """The sums of a leaf and its bounds."""
    return Node(state.totals[leaf], state.hess_totals[leaf], state.limits[leaf, 0], state.limits[leaf, 1])


@njit(cache=True, nogil=True)
def start_tree(state, rules, total, hess_total):
    """A tree of one leaf with these sums."""
    state.n_leaves[0], state.totals[0], state.hess_totals[0] = 1, total, hess_total
    state.searched[0] = len(state.gains) > 1 and may_split(count_of(total, rules), 0, rules)


@njit(cache=True, nogil=True)
def may_split(n, depth, rules):
    """Whether a leaf of n rows at this depth may be split."""
    return n >= 2 * rules.min_docs and (rules.max_depth == 0 or depth < rules.max_depth)


@njit(cache=True, nogil=True)
def net_gain(node, found, rules, bounded):
    """The gain of a cut, `found`, less that of the leaf; 0 if it is negative or no larger than rounding errors."""
    gain = found - node_gain(node, rules, bounded)
    return gain if gain > 0.0 and gain > SMALLEST_GAIN * found else 0.0


@njit(cache=True, nogil=True)
def keep_cuts(state, columns, rules):
    """Keep the cuts that were found for the newest leaves, if they have a gain."""
    for side in range(2):
        if state.searched[side]:
            leaf = state.pair[side]
            gain = net_gain(leaf_node(state, leaf), state.found_gains[side], rules, len(columns.signs) > 0)
            if state.found_cuts[side, 0] != NO_SPLIT and gain > 0.0:
                state.gains[leaf] = gain
                for k in range(state.cuts.shape[1]):
                    state.cuts[leaf, k] = state.found_cuts[side, k]


@njit(cache=True, nogil=True)
def next_split(state, columns, rules):
    """Split the leaf with the largest gain; return its number, or -1 if the tree is complete.

    First, the cuts that were found last are kept. Afterwards `state.pair` has the two new leaves, the smaller one
    first, and `state.searched` says which of them may be split again. The larger one gets the histogram of the parent.
    """
    keep_cuts(state, columns, rules)
    old, new, cuts, best = -1, state.n_leaves[0], state.cuts, 0.0
    for leaf in range(new if new < len(state.gains) else 0):
        gain = state.gains[leaf]
        if gain > best:
            old, best = leaf, gain
    if old < 0:
        return old
    write_split(state, old, new, rules)
    if len(columns.signs):
        set_bounds(state, old, new, columns.signs[cuts[old, 0]], rules)
    cuts[old, 0], state.gains[old] = NO_SPLIT, 0.0
    state.n_leaves[0] += 1
    n_old, n_new = count_of(state.totals[old], rules), count_of(state.totals[new], rules)
    is_last, depth = new + 1 == len(state.gains), state.depths[old]
    state.pair[0], state.pair[1] = (old, new) if n_old <= n_new else (new, old)
    state.searched[0] = not is_last and may_split(min(n_old, n_new), depth, rules)
    state.searched[1] = not is_last and may_split(max(n_old, n_new), depth, rules)
    state.slots[new] = new
    if state.pair[0] == old:
        state.slots[old], state.slots[new] = new, state.slots[old]
    return old


@njit(cache=True, nogil=True)
def write_split(state, old, new, rules):
    """Write the best split of leaf `old`, and the sums, depths and bounds of its two children."""
    split, cut, splits, totals, hess_totals = new - 1, state.cuts[old], state.splits, state.totals, state.hess_totals
    splits[split, 0], splits[split, 1], splits[split, 2] = cut[0], cut[1], cut[2]
    splits[split, 3], splits[split, 4], splits[split, 5] = ~old, ~new, count_of(totals[old], rules)
    for k in range(SET, len(cut)):
        splits[split, 1 + k] = cut[k]
    state.split_gains[split] = state.gains[old]
    parent = state.parents[old]
    if parent >= 0:
        splits[parent, 3 if splits[parent, 3] == ~old else 4] = split
    state.parents[old], state.parents[new] = split, split
    state.depths[old] += 1
    state.depths[new] = state.depths[old]
    totals[new], hess_totals[new] = totals[old] - cut[3], hess_totals[old] - cut[4]
    totals[old], hess_totals[old] = cut[3], cut[4]
    state.limits[new, 0], state.limits[new, 1] = state.limits[old, 0], state.limits[old, 1]


@njit(cache=True, nogil=True)
def set_bounds(state, left, right, sign, rules):
    """After a split on a column with a sign, the mean of the two leaf values bounds the values below both leaves.

    Values on one side are at most this mean, and on the other side at least. This is LightGBM's method "basic".
    """
    if sign != 0:
        middle = (node_value(leaf_node(state, left), rules) + node_value(leaf_node(state, right), rules)) / 2.0
        lower, upper = (left, right) if sign > 0 else (right, left)
        state.limits[lower, 1], state.limits[upper, 0] = middle, middle


@njit(cache=True, nogil=True)
def sibling_slot(state):
    """The slot of the larger of the two newest leaves, or -1 for the root."""
    return state.slots[state.pair[1]] if state.n_leaves[0] > 1 else -1


@njit(cache=True, nogil=True)
def least_gains(state, columns, rules, n_parts):
    """For each thread and newest leaf, the gain that splits have to exceed; with bounds, that of the leaf itself."""
    gains = np.zeros((n_parts, 2, 1))
    for side in range(2 if len(columns.signs) else 0):
        gain = node_gain(leaf_node(state, state.pair[side]), rules, True)
        gains[:, side] = gain + SMALLEST_GAIN * abs(gain)
    return gains


@njit(cache=True, nogil=True, error_model="numpy")
def search_leaf(state, columns, rules, side, sums, first, gains, cuts):
    """Look for better splits of one of the two newest leaves; `sums` are its groups of columns from `first` on."""
    if state.searched[side]:
        node = leaf_node(state, state.pair[side])
        for g in range(len(sums)):
            lane = first + g * LANES
            improve_split(sums[g], columns, lane, node, rules, gains[side], cuts[side])
            improve_by_sets(sums[g], columns, lane, node, rules, gains[side], cuts[side])


@njit(cache=True, nogil=True, error_model="numpy")
def search_both(state, columns, rules, hist, smaller, first, last, gains, cuts):
    """Look for better splits of the two newest leaves among columns first:last.

    `smaller` are the sums of the smaller leaf in these columns. The sums of the larger leaf are computed in place: they
    are those of the parent, from which the smaller ones are subtracted.
    """
    sibling = sibling_slot(state)
    for lane in range(first, last, LANES):
        sums = groups_of(smaller, lane - first, lane - first + LANES)
        if sibling >= 0:
            add_histogram(groups_of(hist[sibling], lane, lane + LANES), sums, columns.n_bins, lane, -1)
        for side in range(2 if sibling >= 0 else 1):  # a loop, as two calls take twice as long to compile
            if side == 1:
                sums = groups_of(hist[sibling], lane, lane + LANES)
            search_leaf(state, columns, rules, side, sums, lane, gains, cuts)


@njit(cache=True, nogil=True)
def join_parts(state, gains, cuts):
    """The best split of each of the two leaves over the parts of the columns; ties go to the first part."""
    for side in range(2):
        state.found_gains[side], state.found_cuts[side, 0] = 0.0, NO_SPLIT
        for part in range(len(gains)):
            first = state.found_cuts[side, 0] == NO_SPLIT
            if cuts[part, side, 0] != NO_SPLIT and (first or gains[part, side, 0] > state.found_gains[side]):
                state.found_gains[side] = gains[part, side, 0]
                for i in range(WIDTH):
                    state.found_cuts[side, i] = cuts[part, side, i]


@njit(cache=True, nogil=True)
def newest_rows(state, bounds):
    """How many rows the two newest leaves have together; before the first split, how many the root has."""
    n = bounds[state.pair[0], 1] - bounds[state.pair[0], 0]
    return n + bounds[state.pair[1], 1] - bounds[state.pair[1], 0] if state.n_leaves[0] > 1 else n


@njit(cache=True, nogil=True, error_model="numpy")
def search_few(rows, state, columns, rules, bounds, first, last, block, gains, cuts):
    """Look for better splits of the two newest leaves among columns first:last, from sums over the rows of each."""
    for side in range(2):
        if state.searched[side]:
            start, stop = bounds[state.pair[side]]
            build_histogram(rows, start, stop, columns.n_bins, first, last, block)
            search_leaf(state, columns, rules, side, block, first, gains, cuts)


@njit(cache=True, nogil=True, error_model="numpy")
def search_some_columns(first_part, last_part, rows, state, columns, rules, bounds, has_sums, sums, gains, cuts):
    """`search_rows` of the parts first_part:last_part of the columns, without joining them."""
    start, stop = bounds[state.pair[0]]
    in_block = stop - start <= FEW_ROWS and not has_sums  # the smaller leaf needs no histogram of its own
    step = BLOCK if in_block else rows.bins.shape[1]
    for part in range(first_part, last_part):
        for first in range(columns.borders[part], columns.borders[part + 1], step):
            last = min(first + step, columns.borders[part + 1])
            if in_block:
                smaller = groups_of(sums.blocks[part], 0, last - first)
            else:
                smaller = groups_of(sums.leaves[state.slots[state.pair[0]]], first, last)
            if in_block and newest_rows(state, bounds) <= FEW_ROWS:
                search_few(rows, state, columns, rules, bounds, first, last, smaller, gains[part], cuts[part])
                continue
            if not has_sums:
                finish_columns(rows, columns, start, stop, first, last, sums.spare, smaller)
            search_both(state, columns, rules, sums.leaves, smaller, first, last, gains[part], cuts[part])


@njit(cache=True, nogil=True)
def search_rows(rows, state, columns, rules, bounds, has_sums, sums):
    """The best splits of the two newest leaves, leaf l of which holds the members bounds[l, 0]:bounds[l, 1].

    Each thread sums and searches its own columns. With `has_sums`, the histogram of the smaller leaf is there already.
    The histogram of a leaf with at most FEW_ROWS rows is not kept: the histograms of all leaves do not fit into a
    cache, and to sum the rows of its children takes less time than to fetch its histogram.
    """
    start, stop = bounds[state.pair[0]]
    if not has_sums and is_summed_by_rows(columns, start, stop):
        sum_by_rows(rows, columns, start, stop, sums.spare, sums.leaves[state.slots[state.pair[0]]])
    n_parts = len(columns.borders) - 1
    gains, cuts = least_gains(state, columns, rules, n_parts), np.full((n_parts, 2, WIDTH), NO_SPLIT, np.int64)
    run_parts(search_some_columns, n_parts, (rows, state, columns, rules, bounds, has_sums, sums, gains, cuts))
    join_parts(state, gains, cuts)


@njit(cache=True, nogil=True, error_model="numpy")
def search_some_sums(first, last, state, columns, rules, hist, gains, cuts):
    """`search_sums` of the parts first:last of the columns, without joining them."""
    slot = state.slots[state.pair[0]]
    for part in range(first, last):
        low, high = columns.borders[part], columns.borders[part + 1]
        smaller = groups_of(hist[slot], low, high)
        search_both(state, columns, rules, hist, smaller, low, high, gains[part], cuts[part])


@njit(cache=True, nogil=True)
def search_sums(state, columns, rules, hist):
    """Like `search_rows`, but the histogram of the smaller leaf was summed elsewhere, and there are no rows."""
    n_parts = len(columns.borders) - 1
    gains, cuts = least_gains(state, columns, rules, n_parts), np.full((n_parts, 2, WIDTH), NO_SPLIT, np.int64)
    run_parts(search_some_sums, n_parts, (state, columns, rules, hist, gains, cuts))
    join_parts(state, gains, cuts)


@njit(cache=True, nogil=True)
def sum_members(rows, start, stop):
    """The fixed-point sums of the members start:stop."""
    total, hess_total = np.int64(0), np.int64(0)
    for i in range(start, stop):
        total += rows.packed[rows.members[i]]
    for i in range(start, stop if len(rows.hess) else start):
        hess_total += rows.hess[rows.members[i]]
    return total, hess_total


@njit(cache=True, nogil=True)
def grow_tree(rows, columns, rules, sums, bounds, state, has_root):
    """Split the leaf with the largest gain until there are `len(bounds)` leaves, or no split has a gain.

    `rows.members` is reordered: leaf l has those from `bounds[l, 0]` to `bounds[l, 1]`, in their old order.
    With `has_root`, `sums.leaves[0]` is the histogram of all members.
    """
    n_rows = len(rows.members)
    bounds[0, 0], bounds[0, 1] = 0, n_rows
    total, hess_total = sum_members(rows, 0, n_rows)
    start_tree(state, rules, total, hess_total)
    goes_left = np.empty(256, np.bool_)
    while True:
        if state.searched[0] or state.searched[1]:
            search_rows(rows, state, columns, rules, bounds, has_root and state.n_leaves[0] == 1, sums)
        leaf = next_split(state, columns, rules)
        if leaf < 0:
            break
        new = state.n_leaves[0] - 1
        split, low, high = state.splits[new - 1], bounds[leaf, 0], bounds[leaf, 1]
        fill_goes_left(split[1], split[2] == 1, split[1 + SET :], goes_left)
        border = divide_rows(rows.bins, rows.members, rows.scratch, low, high, split[0], goes_left)
        bounds[leaf, 1], bounds[new, 0], bounds[new, 1] = border, border, high
