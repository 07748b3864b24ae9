"""Best-first growth of one tree on a GPU: `kernels.growing` with sums, searches and divisions on all multiprocessors.

A tree is a fixed series of launches, `Growth.run`: the CPU's `next_split`, called by the last block of a search, writes
down what the next launches do. The rows of a leaf are a range of one of two buffers; dividing a leaf moves them to the
other one, in no certain order: sums are integers and do not depend on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float64, int32, int64, uint32

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.cuda.blocks import MOST_WARPS, WARP, ballot, sum_over_block
from ranksieve.cuda.device import THREADS, kernel, shared, shared_formula
from ranksieve.cuda.histograms import CELLS, SHARED, add_word, cell_of, clear_sums, flush_sums, sum_listed
from ranksieve.cuda.splitting import COLUMNS, NO_SPLIT, count_of, goes_left, join_bins, scan_bins
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains
from ranksieve.kernels import growing, rounding
from ranksieve.kernels.gain import SMALLEST_GAIN, SplitRules
from ranksieve.kernels.histograms import Columns

leaf_node, sibling_slot = shared(growing.leaf_node), shared(growing.sibling_slot)
next_split, start_tree = shared(growing.next_split), shared(growing.start_tree)
node_gain, packed_row = shared_formula(gains.node_gain), shared(rounding.packed_row)

# what the next launches do
LEAF, COLUMN, CUT, MISSING_LEFT, SLOT, START, STOP, BUFFER, IS_SUMMED = range(9)
SMALL_START, SMALL_STOP = 9, 10  # the rows of the smaller side
DONE = -1  # of LEAF: the tree is complete

# the numbers of a tree, `Settings.numbers`; as many more are floats
COUNT_BITS, HESS_BITS, MIN_DOCS, NEWTON, MAX_DEPTH, KEY, N_ROWS, N_SIGNS = range(8)
HESS_UNIT, MIN_HESS, L2, GRAD_A, GRAD_B, HESS_A, HESS_B, EXACT_GRAD_A, EXACT_GRAD_B, EXACT_HESS_A, EXACT_HESS_B = range(
    11
)
N_SETTINGS = 16

SEARCHERS = 2 * COLUMNS  # cuts to choose from: with missing values right and left
TWO_SIDES = 2 * THREADS
LEAST_ROWS = THREADS  # that a block sums
TILE = 4  # rows of a thread that `move_rows` moves at a time
TILE_COUNTS = TILE * MOST_WARPS


class Settings(NamedTuple):
    """The numbers that differ from tree to tree, on the device."""

    numbers: Any  # int64
    floats: Any  # float64


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    words: Any  # see `bins`, laid out for `n_rows` rows
    bins: Any  # the bytes that rows are divided by
    by_column: int  # whether those are by columns, or else in groups
    n_rows: int
    members: Any  # two buffers of n_rows
    packed: Any


class Work(NamedTuple):
    """Space of a growing tree."""

    hist: Any  # leaf, group, bin, column
    task: Any
    cursors: Any  # where the next rows of the left and of the right side go
    bounds: Any  # per leaf: start, stop, buffer
    found_gains: Any  # side, group: of the best cut
    found_cuts: Any  # side, group: column, bin, missing left, left sum, order among equals
    finished: Any  # blocks of a search
    sums: Any  # per leaf: exact sums of gradients and of second derivatives


class Features(NamedTuple):
    """The columns that a tree may split on."""

    n_bins: Any
    allowed: Any
    signs: Any
    places: Any  # a column's place among those that may ever be chosen: ties are decided by it
    widest: Any  # per group: the most bins


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


@kernel(shared=SHARED, registers=40)
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


@cuda.jit(device=True)
def take_places(work, places, n_left, n_right):
    """Take places for rows of both sides in the buffer that they move to; called by one thread."""
    places[0] = cuda.atomic.add(work.cursors, 0, int32(n_left))
    places[1] = cuda.atomic.add(work.cursors, 1, int32(n_right))


@kernel(registers=40)
def move_rows(rows, work):
    """Divide the rows of a leaf: those that go left to the front. A block moves TILE rows a thread at a time."""
    places = cuda.shared.array(2, int32)
    counts = cuda.shared.array(TILE_COUNTS, int32)
    kept = cuda.local.array(TILE, int32)
    bits = cuda.local.array(TILE, int64)
    task, members = work.task, rows.members
    if task[LEAF] == DONE:
        return
    t, n = cuda.threadIdx.x, cuda.blockDim.x
    warp, lane, n_warps = t // WARP, t % WARP, (n + WARP - 1) // WARP
    start, stop = task[START], task[STOP]
    column, cut, missing_left = task[COLUMN], task[CUT], task[MISSING_LEFT]
    source, target = task[BUFFER] * rows.n_rows, (1 - task[BUFFER]) * rows.n_rows
    for tile in range(start + cuda.blockIdx.x * n * TILE, stop, cuda.gridDim.x * n * TILE):
        for k in range(TILE):
            i = tile + k * n + t
            kept[k] = members[source + i] if i < stop else 0
        for k in range(TILE):
            inside = tile + k * n + t < stop
            bits[k] = ballot(inside and goes_left(bin_of(rows, int64(kept[k]), column), cut, missing_left))
            if lane == 0:
                counts[k * n_warps + warp] = cuda.popc(bits[k])
        cuda.syncthreads()
        if t == 0:
            total = int32(0)
            for k in range(TILE * n_warps):
                here = counts[k]
                counts[k] = total
                total += here
            take_places(work, places, total, min(stop - tile, n * TILE) - total)
        cuda.syncthreads()
        for k in range(TILE):
            i = k * n + t
            if tile + i < stop:
                before = counts[k * n_warps + warp] + cuda.popc(bits[k] & ((int64(1) << int64(lane)) - 1))
                is_left = (bits[k] >> int64(lane)) & 1
                members[target + (places[0] + before if is_left else places[1] + i - before)] = kept[k]
        cuda.syncthreads()


@kernel(shared=SHARED, registers=40)
def sum_side(rows, features, work):
    """The histogram of the smaller side, after `move_rows`. Blocks are parts of the rows, and groups."""
    sums = cuda.shared.array(0, uint32)
    task, group = work.task, cuda.blockIdx.y
    if task[LEAF] == DONE or task[IS_SUMMED] == 0:
        return
    start, stop = task[SMALL_START], task[SMALL_STOP]
    part = max((stop - start + cuda.gridDim.x - 1) // cuda.gridDim.x, LEAST_ROWS)
    low = start + cuda.blockIdx.x * part
    n = min(part, stop - low)
    if n <= 0:
        return
    n_bins = features.widest[group]
    clear_sums(sums, n_bins)
    source = (1 - task[BUFFER]) * rows.n_rows + low
    sum_listed(sums, rows.members, source, rows.words, rows.packed, group * rows.n_rows * WORDS, n)
    flush_sums(sums, n_bins, work.hist, (task[SLOT] * cuda.gridDim.y + group) * CELLS)


@cuda.jit(device=True)
def load_sums(work, state, side, lane, n_bins, per_part, sums, totals, missing):
    """Sums of a leaf's histogram up to each bin, to shared memory. A thread has a column and a part of its bins.

    The histogram of the larger leaf is its parent's minus that of the smaller one.
    """
    n_groups, hist, t = cuda.gridDim.x * COLUMNS // GROUP, work.hist, cuda.threadIdx.x
    column, part = t % COLUMNS, t // COLUMNS
    inside = lane % GROUP + column
    own = (state.slots[state.pair[0]] * n_groups + lane // GROUP) * CELLS + inside
    other = (sibling_slot(state) * n_groups + lane // GROUP) * CELLS + inside if side else own
    total = int64(0)
    first, last = part * per_part, min((part + 1) * per_part, n_bins)
    for b in range(first, last):  # apart from what follows: loads wait for memory together
        sums[b * COLUMNS + column] = hist[other + b * GROUP] - (hist[own + b * GROUP] if side else 0)
    for b in range(first, last):
        value = sums[b * COLUMNS + column]
        if side:
            hist[other + b * GROUP] = value
        total += value
        sums[b * COLUMNS + column] = total
    totals[t] = total
    if part == 0:
        cell = MISSING_BIN * GROUP
        missing[column] = hist[other + cell] - (hist[own + cell] if side else 0)
        if side:
            hist[other + cell] = missing[column]
    cuda.syncthreads()
    before = int64(0)
    for k in range(column, t, COLUMNS):
        before += totals[k]
    for b in range(first, last):
        sums[b * COLUMNS + column] += before
    cuda.syncthreads()


@cuda.jit(device=True)
def scan_columns(state, features, settings, side, lane, per_part, cells, parts, found):
    """The best cut of each of 16 columns, missing values right and left.

    Threads first scan their part of a column's bins; then one thread for each column and side joins the parts.
    """
    sums, missing = cells
    values, part_bins, part_lefts = parts
    gains, keys, bins, lefts = found
    rules, t, n_bins, n_threads = rules_of(settings), cuda.threadIdx.x, features.widest[lane // GROUP], cuda.blockDim.x
    node, bounded = leaf_node(state, state.pair[side]), settings.numbers[N_SIGNS] > 0
    column, part = t % COLUMNS, t // COLUMNS
    number = lane + column
    allowed = number < len(features.allowed) and features.allowed[number]
    sign = features.signs[number] if allowed and bounded else 0
    least = 0.0
    if bounded:
        least = node_gain(node, rules, True)
        least += SMALLEST_GAIN * abs(least)
    for to_left in range(2):
        k = to_left * n_threads + t
        part_bins[k] = NO_SPLIT
        if allowed and (to_left == 0 or missing[column] != 0):
            values[k], part_bins[k], part_lefts[k] = scan_bins(
                sums, column, part * per_part, min((part + 1) * per_part, n_bins),
                missing[column] if to_left else int64(0), node, rules, bounded, sign, least,
            )  # fmt: skip
    cuda.syncthreads()
    if t < SEARCHERS:
        to_left = t // COLUMNS
        first = to_left * n_threads
        gains[t], bins[t], lefts[t] = join_bins(
            sums, column, values[first:], part_bins[first:], part_lefts[first:], n_threads // COLUMNS, n_bins,
            missing[column] if to_left else int64(0), node, rules, bounded, sign, least,
        )  # fmt: skip
        place = features.places[number] if allowed else 0
        keys[t] = place // COLUMNS * SEARCHERS + to_left * COLUMNS + place % COLUMNS
    cuda.syncthreads()


@cuda.jit(device=True)
def is_better(gain, key, has_cut, other_gain, other_key, other_has_cut):
    """Whether a cut is better than another one, or as good and before it."""
    if not has_cut or not other_has_cut:
        return has_cut
    return gain > other_gain or (gain == other_gain and key < other_key)


@cuda.jit(device=True)
def best_of_columns(state, work, settings, side, lane, missing, found, order):
    """Write down the best cut of 16 columns; the threads compare pairs of cuts."""
    gains, keys, bins, lefts = found
    t, half, number = cuda.threadIdx.x, SEARCHERS // 2, lane // COLUMNS
    if t < SEARCHERS:
        order[t] = t
    while half > 0:
        cuda.syncthreads()
        if t < half:
            a, b = order[t], order[t + half]
            if is_better(gains[b], keys[b], bins[b] != NO_SPLIT, gains[a], keys[a], bins[a] != NO_SPLIT):
                order[t] = b
        half //= 2
    cuda.syncthreads()
    if t == 0:
        best = order[0]
        work.found_gains[side, number] = gains[best]
        cut = work.found_cuts[side, number]
        cut[0] = lane + best % COLUMNS if bins[best] != NO_SPLIT else NO_SPLIT
        cut[1], cut[2], cut[3], cut[4] = bins[best], best // COLUMNS, lefts[best], keys[best]
        if missing[best % COLUMNS] == 0:
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
    task[SLOT] = state.slots[state.pair[0]]
    task[START], task[STOP], task[BUFFER] = start, stop, buffer
    task[IS_SUMMED] = 1 if state.searched[0] or state.searched[1] else 0
    task[SMALL_START], task[SMALL_STOP] = (start, border) if state.pair[0] == leaf else (border, stop)
    work.cursors[0], work.cursors[1] = int32(start), int32(border)
    bounds[leaf, 1], bounds[leaf, 2] = border, 1 - buffer
    bounds[new, 0], bounds[new, 1], bounds[new, 2] = border, stop, 1 - buffer


@cuda.jit(device=True)
def read_ahead(state, work):
    """Read what one thread will read next, by all threads at once, so that it is in the cache."""
    t, total = cuda.threadIdx.x, int64(0)
    n_groups, n_leaves = work.found_gains.shape[1], state.n_leaves[0]
    for i in range(t, 2 * n_groups, cuda.blockDim.x):
        total ^= work.found_cuts[i // n_groups, i % n_groups, 0] ^ int64(
            work.found_gains[i // n_groups, i % n_groups] > 0
        )
    for leaf in range(t, n_leaves, cuda.blockDim.x):
        total ^= state.cuts[leaf, 0] ^ state.cuts[leaf, 4] ^ state.totals[leaf] ^ state.depths[leaf]
        total ^= state.parents[leaf] ^ state.slots[leaf] ^ work.bounds[leaf, 0] ^ work.bounds[leaf, 2]
        total ^= int64(state.gains[leaf] > 0.0) ^ int64(state.limits[leaf, 0] > 0.0)
    return total


@kernel(shared=8 * 256 * COLUMNS)
def search(state, features, settings, work):
    """The best cuts of the two newest leaves, and then the next split. Blocks are 16 columns each, and the leaves."""
    sums = cuda.shared.array(0, int64)
    totals = cuda.shared.array(THREADS, int64)
    values = cuda.shared.array(TWO_SIDES, float64)
    part_bins = cuda.shared.array(TWO_SIDES, int32)
    part_lefts = cuda.shared.array(TWO_SIDES, int64)
    missing = cuda.shared.array(COLUMNS, int64)
    gains = cuda.shared.array(SEARCHERS, float64)
    keys = cuda.shared.array(SEARCHERS, int64)
    bins = cuda.shared.array(SEARCHERS, int32)
    lefts = cuda.shared.array(SEARCHERS, int64)
    order = cuda.shared.array(SEARCHERS, int32)
    is_last = cuda.shared.array(1, int32)
    t, lane, side = cuda.threadIdx.x, cuda.blockIdx.x * COLUMNS, cuda.blockIdx.y
    if work.task[LEAF] == DONE:
        return
    if state.searched[side]:
        n_bins, n_parts = features.widest[lane // GROUP], cuda.blockDim.x // COLUMNS
        per_part = (n_bins + n_parts - 1) // n_parts
        load_sums(work, state, side, lane, n_bins, per_part, sums, totals, missing)
        found = gains, keys, bins, lefts
        parts = values, part_bins, part_lefts
        scan_columns(state, features, settings, side, lane, per_part, (sums, missing), parts, found)
        best_of_columns(state, work, settings, side, lane, missing, found, order)
    if t == 0:
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(work.finished, 0, 1) == 2 * cuda.gridDim.x - 1
        cuda.threadfence()
    cuda.syncthreads()
    if is_last[0]:
        totals[t] = read_ahead(state, work)
        cuda.syncthreads()
        if t == 0:
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
