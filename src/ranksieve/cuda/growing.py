"""Best-first growth of one tree on a GPU: `kernels.growing` with sums, searches and divisions on all multiprocessors.

A tree is a fixed series of launches, `Growth.run`: the CPU's `next_split`, called by the last block of a search, writes
down what the next launches do. The rows of a leaf are a range of one of two buffers; dividing a leaf moves them to the
other one, in no certain order: sums are integers and do not depend on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda, float64, int32, int64, uint32

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.cuda.blocks import MOST_WARPS, rank_flags, sum_over_block
from ranksieve.cuda.device import THREADS, kernel, shared, shared_formula
from ranksieve.cuda.histograms import CELLS, SHARED, add_word, cell_of, clear_sums, flush_sums, sum_listed
from ranksieve.cuda.splitting import NO_SPLIT, count_of, goes_left, scan_column, scan_column_bounded
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains
from ranksieve.kernels import growing, rounding
from ranksieve.kernels.gain import SMALLEST_GAIN, SplitRules
from ranksieve.kernels.histograms import Columns

leaf_node, sibling_slot = shared(growing.leaf_node), shared(growing.sibling_slot)
next_split, start_tree = shared(growing.next_split), shared(growing.start_tree)
node_gain, packed_row = shared_formula(gains.node_gain), shared(rounding.packed_row)

# what the next launches do
LEAF, COLUMN, CUT, MISSING_LEFT, SMALL_IS_LEFT, SLOT, START, STOP, BUFFER, IS_SUMMED = range(10)
DONE = -1  # of LEAF: the tree is complete

# the numbers of a tree, `Settings.numbers`; as many more are floats
COUNT_BITS, HESS_BITS, MIN_DOCS, NEWTON, MAX_DEPTH, KEY, N_ROWS, N_SIGNS = range(8)
HESS_UNIT, MIN_HESS, L2, GRAD_A, GRAD_B, HESS_A, HESS_B, EXACT_GRAD_A, EXACT_GRAD_B, EXACT_HESS_A, EXACT_HESS_B = range(
    11
)
N_SETTINGS = 16

SEARCHERS = 64  # threads that scan columns: those of a group, with missing values right and left
LEAST_ROWS = 4 * THREADS  # that a block divides


class Settings(NamedTuple):
    """The numbers that differ from tree to tree, on the device."""

    numbers: object  # int64
    floats: object  # float64


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    words: object  # see `bins`, laid out for `n_rows` rows
    bins: object  # the bytes that rows are divided by
    by_column: int  # whether those are by columns, or else in groups
    n_rows: int
    members: object  # two buffers of n_rows
    packed: object


class Work(NamedTuple):
    """Space of a growing tree."""

    hist: object  # leaf, group, bin, column
    task: object
    cursors: object  # where the next rows of the left and of the right side go
    bounds: object  # per leaf: start, stop, buffer
    found_gains: object  # side, group: of the best cut
    found_cuts: object  # side, group: column, bin, missing left, left sum, order among equals
    finished: object  # blocks of a search
    sums: object  # per leaf: exact sums of gradients and of second derivatives


class Features(NamedTuple):
    """The columns that a tree may split on."""

    n_bins: object
    allowed: object
    signs: object
    places: object  # a column's place among those that may ever be chosen: ties are decided by it
    widest: object  # per group: the most bins


@cuda.jit(device=True)
def rules_of(settings):
    """How splits are valued."""
    numbers, floats = settings.numbers, settings.floats
    return SplitRules(
        numbers[COUNT_BITS], numbers[HESS_BITS], floats[HESS_UNIT], numbers[MIN_DOCS], floats[MIN_HESS], floats[L2],
        numbers[NEWTON] != 0, numbers[MAX_DEPTH],
    )  # fmt: skip


@cuda.jit(device=True)
def columns_of(features, settings):
    """The columns as `next_split` takes them; no thread has columns of its own here."""
    return Columns(
        features.n_bins, features.allowed, features.signs[: settings.numbers[N_SIGNS]], features.n_bins
    )  # fmt: skip


@kernel
def reset(state, features, settings, work, members):
    """A tree without leaves."""
    i, step = cuda.grid(1), cuda.gridsize(1)
    n_groups = len(features.widest)
    for part in range(cuda.blockIdx.x, len(state.gains) * n_groups, cuda.gridDim.x):
        n_bins = features.widest[part % n_groups]
        for k in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
            work.hist[part * CELLS + cell_of(k, n_bins)] = 0
    for k in range(i, settings.numbers[N_ROWS], step):
        members[k] = k
    for leaf in range(i, len(state.gains), step):
        state.totals[leaf], state.hess_totals[leaf], state.depths[leaf] = 0, 0, 0
        state.parents[leaf], state.slots[leaf], state.gains[leaf] = -1, 0, 0.0
        state.limits[leaf, 0], state.limits[leaf, 1] = -np.inf, np.inf
        state.cuts[leaf, 0] = NO_SPLIT
        work.sums[leaf, 0], work.sums[leaf, 1] = 0, 0
    if i < 2:
        state.pair[i], state.searched[i], state.found_cuts[i, 0] = 0, False, NO_SPLIT
    if i == 0:
        work.finished[0] = 0


@kernel
def pack(grad, hess, row_numbers, numbered, settings, packed, totals):
    """The integers that histograms sum, and their total."""
    numbers, floats = settings.numbers, settings.floats
    count_bits, hess_bits = numbers[COUNT_BITS], numbers[HESS_BITS]
    total = int64(0)
    for i in range(cuda.grid(1), numbers[N_ROWS], cuda.gridsize(1)):
        g = grad[i] * floats[GRAD_A] * floats[GRAD_B]
        if hess_bits > 0:
            h = hess[i] * floats[HESS_A] * floats[HESS_B]
            number = int64(row_numbers[i]) if numbered else int64(i)
            value = packed_row(g, h, number, numbers[KEY], count_bits, hess_bits)
        else:
            value = (int64(round(g)) << count_bits) + 1
        packed[i] = value
        total += value
    total = sum_over_block(total)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(totals, 0, total)


@kernel
def begin(state, settings, work):
    """A tree of one leaf, the root."""
    start_tree(state, rules_of(settings), state.totals[0], int64(0))
    work.bounds[0, 0], work.bounds[0, 1], work.bounds[0, 2] = 0, settings.numbers[N_ROWS], 0
    work.task[LEAF] = 0


@kernel(shared=SHARED)
def sum_root(rows, features, settings, hist):
    """The histogram of all rows. Blocks are parts of the rows, and groups."""
    sums = cuda.shared.array(0, uint32)
    t, group, n = cuda.threadIdx.x, cuda.blockIdx.y, settings.numbers[N_ROWS]
    n_bins = features.widest[group]
    clear_sums(sums, n_bins)
    part = (n + cuda.gridDim.x - 1) // cuda.gridDim.x
    start = cuda.blockIdx.x * part
    stop = min(start + part, n)
    turn, place, step = (t // WORDS) & 3, t & (WORDS - 1), cuda.blockDim.x // WORDS
    words, packed, first = rows.words, rows.packed, group * rows.n_rows * WORDS + place
    i = start + t // WORDS
    while i + 3 * step < stop:  # four loads wait for memory together
        j, k, m = i + step, i + 2 * step, i + 3 * step
        a, b, c, d = (
            words[first + i * WORDS],
            words[first + j * WORDS],
            words[first + k * WORDS],
            words[first + m * WORDS],
        )
        p, q, r, s = packed[i], packed[j], packed[k], packed[m]
        add_word(sums, a, p, turn, place)
        add_word(sums, b, q, turn, place)
        add_word(sums, c, r, turn, place)
        add_word(sums, d, s, turn, place)
        i += 4 * step
    while i < stop:
        add_word(sums, words[first + i * WORDS], packed[i], turn, place)
        i += step
    flush_sums(sums, n_bins, hist, group * CELLS)


@cuda.jit(device=True)
def bin_of(rows, row, column):
    """A row's bin."""
    if rows.by_column:
        return rows.bins[column * rows.n_rows + row]
    return rows.bins[(column // GROUP * rows.n_rows + row) * GROUP + column % GROUP]


@kernel(shared=SHARED)
def divide(rows, features, work):
    """Divide the rows of a leaf, and sum the smaller side's histogram. Blocks are parts of the rows, and groups."""
    sums = cuda.shared.array(0, uint32)
    listed = cuda.shared.array(THREADS, int32)
    places = cuda.shared.array(2, int32)
    counts = cuda.shared.array(MOST_WARPS, int32)
    task, members = work.task, rows.members
    t, group = cuda.threadIdx.x, cuda.blockIdx.y
    start, stop = task[START], task[STOP]
    part = max((stop - start + cuda.gridDim.x - 1) // cuda.gridDim.x, LEAST_ROWS)
    low = start + cuda.blockIdx.x * part
    high = min(low + part, stop)
    summed = task[IS_SUMMED] != 0
    if task[LEAF] == DONE or low >= high or not (summed or group == 0):
        return
    n_bins = features.widest[group]
    if summed:
        clear_sums(sums, n_bins)
    column, cut, missing_left, small_is_left = task[COLUMN], task[CUT], task[MISSING_LEFT], task[SMALL_IS_LEFT] != 0
    source, target = task[BUFFER] * rows.n_rows, (1 - task[BUFFER]) * rows.n_rows
    first = group * rows.n_rows * WORDS
    for tile in range(low, high, cuda.blockDim.x):
        inside = tile + t < high
        row = int64(members[source + tile + t]) if inside else int64(0)
        left = inside and goes_left(bin_of(rows, row, column), cut, missing_left)
        small = inside and left == small_is_left
        place, n_small = rank_flags(small, counts)
        if small:
            listed[place] = row
        if group == 0:
            if t == 0:
                n_large = min(high - tile, int64(cuda.blockDim.x)) - n_small
                n_left, n_right = (n_small, n_large) if small_is_left else (n_large, n_small)
                places[0] = cuda.atomic.add(work.cursors, 0, int32(n_left))
                places[1] = cuda.atomic.add(work.cursors, 1, int32(n_right))
            cuda.syncthreads()
            if inside:
                members[target + places[0 if left else 1] + (place if small else t - place)] = row
        cuda.syncthreads()
        if summed:
            sum_listed(sums, listed, rows.words, rows.packed, first, n_small)
        cuda.syncthreads()
    if summed:
        flush_sums(sums, n_bins, work.hist, (task[SLOT] * cuda.gridDim.y + group) * CELLS)


@cuda.jit(device=True)
def load_cells(work, state, side, group, n_bins, cells):
    """A leaf's histogram of a group to shared memory; that of the larger leaf is its parent's minus the smaller's."""
    n_groups, hist = cuda.gridDim.x, work.hist
    sibling = sibling_slot(state)
    own = (state.slots[state.pair[0]] * n_groups + group) * CELLS
    other = (sibling * n_groups + group) * CELLS
    for i in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
        cell = cell_of(i, n_bins)
        if side == 0:
            cells[cell] = hist[own + cell]
        else:
            cells[cell] = hist[other + cell] - hist[own + cell]
            hist[other + cell] = cells[cell]


@cuda.jit(device=True)
def scan_group(state, features, settings, side, group, cells, gains, keys, bins, lefts):
    """The best cut of each column of a group, missing values right (threads 0 to 31) and left (32 to 63)."""
    rules, t = rules_of(settings), cuda.threadIdx.x
    n_signs, n_bins = settings.numbers[N_SIGNS], features.widest[group]
    for k in range(t, SEARCHERS, cuda.blockDim.x):
        lane, to_left = k % GROUP, k // GROUP
        column = group * GROUP + lane
        gains[k], bins[k], keys[k], lefts[k] = 0.0, NO_SPLIT, 0, int64(0)
        missing = cells[MISSING_BIN * GROUP + lane]
        if column >= len(features.allowed) or not features.allowed[column] or (to_left and missing == 0):
            continue
        node = leaf_node(state, state.pair[side])
        left = missing if to_left else int64(0)
        if n_signs > 0:
            gain = node_gain(node, rules, True)
            least = gain + SMALLEST_GAIN * abs(gain)
            gains[k], bins[k], lefts[k] = scan_column_bounded(
                cells, lane, n_bins, node, rules, features.signs[column], least, left
            )
        else:
            gains[k], bins[k], lefts[k] = scan_column(cells, lane, n_bins, node, rules, left)
        place = features.places[column]
        keys[k] = place // 16 * 32 + to_left * 16 + place % 16  # the CPU searches 16 columns at a time


@cuda.jit(device=True)
def is_better(gain, key, has_cut, other_gain, other_key, other_has_cut):
    """Whether a cut is better than another one, or as good and before it."""
    if not has_cut or not other_has_cut:
        return has_cut
    return gain > other_gain or (gain == other_gain and key < other_key)


@cuda.jit(device=True)
def best_of_group(state, work, settings, side, group, cells, gains, keys, bins, lefts):
    """Write down the best cut of a group."""
    best = 0
    for k in range(1, SEARCHERS):
        if is_better(gains[k], keys[k], bins[k] != NO_SPLIT, gains[best], keys[best], bins[best] != NO_SPLIT):
            best = k
    work.found_gains[side, group] = gains[best]
    cut = work.found_cuts[side, group]
    cut[0] = group * GROUP + best % GROUP if bins[best] != NO_SPLIT else NO_SPLIT
    cut[1], cut[2], cut[3], cut[4] = bins[best], best // GROUP, lefts[best], keys[best]
    if cells[MISSING_BIN * GROUP + best % GROUP] == 0:
        # nothing was missing here: later documents without the value follow the majority
        rules, total = rules_of(settings), state.totals[state.pair[side]]
        cut[2] = 1 if 2 * count_of(lefts[best], rules) >= count_of(total, rules) else 0


@cuda.jit(device=True)
def join_groups(state, work, n_groups):
    """The best cut of each of the two leaves over all groups."""
    for side in range(2):
        state.found_gains[side], state.found_cuts[side, 0] = 0.0, NO_SPLIT
        best = -1
        for group in range(n_groups if state.searched[side] else 0):
            cut = work.found_cuts[side, group]
            if cut[0] != NO_SPLIT and (
                best < 0
                or is_better(work.found_gains[side, group], cut[4], True, work.found_gains[side, best],
                             work.found_cuts[side, best, 4], True)
            ):  # fmt: skip
                best = group
        if best >= 0:
            state.found_gains[side] = work.found_gains[side, best]
            for k in range(4):
                state.found_cuts[side, k] = work.found_cuts[side, best, k]
            state.found_cuts[side, 4] = 0


@cuda.jit(device=True)
def plan_split(state, features, settings, work):
    """Choose the next split, and write down what it takes."""
    rules, task, bounds = rules_of(settings), work.task, work.bounds
    leaf = next_split(state, columns_of(features, settings), rules)
    task[LEAF] = leaf
    if leaf < 0:
        return
    new = state.n_leaves[0] - 1
    start, stop, buffer = bounds[leaf, 0], bounds[leaf, 1], bounds[leaf, 2]
    border = start + count_of(state.totals[leaf], rules)
    task[COLUMN], task[CUT], task[MISSING_LEFT] = (
        state.splits[new - 1, 0],
        state.splits[new - 1, 1],
        state.splits[new - 1, 2],
    )
    task[SMALL_IS_LEFT], task[SLOT] = 1 if state.pair[0] == leaf else 0, state.slots[state.pair[0]]
    task[START], task[STOP], task[BUFFER] = start, stop, buffer
    task[IS_SUMMED] = 1 if state.searched[0] or state.searched[1] else 0
    work.cursors[0], work.cursors[1] = int32(start), int32(border)
    bounds[leaf, 1], bounds[leaf, 2] = border, 1 - buffer
    bounds[new, 0], bounds[new, 1], bounds[new, 2] = border, stop, 1 - buffer


@kernel(shared=8 * CELLS)
def search(state, features, settings, work):
    """The best cuts of the two newest leaves, and then the next split. Blocks are groups, and the two leaves."""
    cells = cuda.shared.array(0, int64)
    gains = cuda.shared.array(SEARCHERS, float64)
    keys = cuda.shared.array(SEARCHERS, int64)
    bins = cuda.shared.array(SEARCHERS, int64)
    lefts = cuda.shared.array(SEARCHERS, int64)
    is_last = cuda.shared.array(1, int32)
    t, group, side = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    if work.task[LEAF] == DONE:
        return
    if state.searched[side]:
        load_cells(work, state, side, group, features.widest[group], cells)
        cuda.syncthreads()
        scan_group(state, features, settings, side, group, cells, gains, keys, bins, lefts)
        cuda.syncthreads()
        if t == 0:
            best_of_group(state, work, settings, side, group, cells, gains, keys, bins, lefts)
    if t == 0:
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(work.finished, 0, 1) == 2 * cuda.gridDim.x - 1
        if is_last[0]:
            cuda.threadfence()
            work.finished[0] = 0
            join_groups(state, work, cuda.gridDim.x)
            plan_split(state, features, settings, work)


@kernel
def sum_leaves(state, settings, work, members, n_rows, grad, hess):
    """The exact sums of each leaf. Blocks are leaves, and parts of their rows."""
    leaf, floats = cuda.blockIdx.x, settings.floats
    if leaf >= state.n_leaves[0]:
        return
    source = work.bounds[leaf, 2] * n_rows
    start = work.bounds[leaf, 0] + cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    grads, hesses = int64(0), int64(0)
    for i in range(start, work.bounds[leaf, 1], cuda.gridDim.y * cuda.blockDim.x):
        row = members[source + i]
        grads += int64(round(grad[row] * floats[EXACT_GRAD_A] * floats[EXACT_GRAD_B]))
        hesses += int64(round(hess[row] * floats[EXACT_HESS_A] * floats[EXACT_HESS_B]))
    grads, hesses = sum_over_block(grads), sum_over_block(hesses)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(work.sums, (leaf, 0), grads)
        cuda.atomic.add(work.sums, (leaf, 1), hesses)
