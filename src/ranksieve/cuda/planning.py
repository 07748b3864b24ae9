"""What a round of growing does: the CPU's `next_split` chooses, and several leaves are divided at once.

Best-first growth splits one leaf after another. Here a round divides the leaf that `next_split` has just split, and
those with the largest gains after it: their sides are divided, summed and searched, but they stay leaves. When
`next_split` chooses such a leaf later, all is known of its two sides. So the tree is the same, in fewer rounds.
"""

from __future__ import annotations

from numba import cuda, float64, int32, int64

from ranksieve.cuda.blocks import WARP, exchange
from ranksieve.cuda.device import THREADS, shared
from ranksieve.cuda.dividing import TILE_ROWS
from ranksieve.cuda.splitting import NO_SPLIT, count_of
from ranksieve.cuda.tree_tables import (
    BUFFER,
    COLUMN,
    CUT,
    FIRST_PART,
    FIRST_TILE,
    IS_DONE,
    IS_SEARCHED,
    IS_SPLIT,
    LEAF,
    MISSING_LEFT,
    MOST_TASKS,
    N_PARTS,
    N_ROUNDS,
    N_SIGNS,
    N_SLOTS,
    N_TASKS,
    N_TILES,
    PART_ROWS,
    SLOT,
    SMALL_START,
    SMALL_STOP,
    SPARE_SLOTS,
    START,
    STOP,
    TOTAL,
    columns_of,
    rules_of,
)
from ranksieve.kernels import growing

next_split = shared(growing.next_split)

LEAST_ROWS = THREADS  # that a block sums
LAST = 1 << 62  # in the order among equals: no cut


@cuda.jit(device=True)
def is_better(gain, key, other_gain, other_key):
    """Whether a cut is better than another one, or as good and before it; the key of no cut is LAST."""
    if key == LAST or other_key == LAST:
        return key < other_key
    return gain > other_gain or (gain == other_gain and key < other_key)


@cuda.jit(device=True)
def join_columns(state, work):
    """The best cut of each side over all columns; a warp has a side."""
    found, leaves, tasks = work.found, work.leaves, work.plan.tasks
    t, n_parts = cuda.threadIdx.x, found.gains.shape[2]
    lane, n_warps = t % WARP, cuda.blockDim.x // WARP
    for number in range(t // WARP, 2 * work.plan.numbers[N_TASKS], n_warps):
        task, side = number // 2, number % 2
        gain, key, place = float64(0.0), int64(LAST), int32(0)
        for part in range(lane, n_parts if tasks[task, IS_SEARCHED + side] else 0, WARP):
            cut = found.cuts[task, side, part]
            if cut[0] != NO_SPLIT and is_better(found.gains[task, side, part], cut[4], gain, key):
                gain, key, place = found.gains[task, side, part], cut[4], int32(part)
        for distance in (16, 8, 4, 2, 1):
            other_gain, other_key, other_place = (
                exchange(gain, distance),
                exchange(key, distance),
                exchange(place, distance),
            )
            if is_better(other_gain, other_key, gain, key):
                gain, key, place = other_gain, other_key, other_place
        if lane == 0:
            leaf, cut = tasks[task, LEAF], found.cuts[task, side, place]
            cut[4] = 0
            if leaf == IS_SPLIT:
                state.found_gains[side], state.found_cuts[side, 0] = gain, NO_SPLIT
                for k in range(5 if key != LAST else 0):
                    state.found_cuts[side, k] = cut[k]
            else:
                leaves.side_gains[leaf, side], leaves.side_cuts[leaf, side, 0] = gain, NO_SPLIT
                for k in range(5 if key != LAST else 0):
                    leaves.side_cuts[leaf, side, k] = cut[k]


@cuda.jit(device=True)
def split_leaves(state, features, settings, work):
    """Split leaves, as long as both sides of each are searched; returns the first one of which they are not, or -1."""
    rules, leaves = rules_of(settings), work.leaves
    columns, bounds = columns_of(features, settings), leaves.bounds
    while True:
        leaf = next_split(state, columns, rules)
        if leaf < 0 or not leaves.is_ahead[leaf]:
            return leaf
        new = state.n_leaves[0] - 1
        leaves.is_ahead[leaf], leaves.is_ahead[new] = False, False
        for side in range(2):
            leaves.slots[state.pair[side]] = leaves.side_slots[leaf, side]
            state.found_gains[side] = leaves.side_gains[leaf, side]
            for k in range(5):
                state.found_cuts[side, k] = leaves.side_cuts[leaf, side, k]
        divide_bounds(bounds, leaf, new, leaves.borders[leaf], bounds[leaf, 2])


@cuda.jit(device=True)
def divide_bounds(bounds, leaf, new, border, buffer):
    """Where the rows of the two leaves are that a leaf was split into."""
    bounds[new, 0], bounds[new, 1], bounds[new, 2] = border, bounds[leaf, 1], buffer
    bounds[leaf, 1], bounds[leaf, 2] = border, buffer


@cuda.jit(device=True)
def plan_task(number, work, bounds, cut, n_left, n_right, slot, new_slot):
    """Write down how the rows of a leaf are divided, and where the histograms of its sides are."""
    task, cursors, start = work.plan.tasks[number], work.plan.cursors[number], bounds[0]
    border, is_left = start + n_left, n_left <= n_right
    task[COLUMN], task[CUT], task[MISSING_LEFT] = cut[0], cut[1], cut[2]
    task[START], task[STOP], task[BUFFER] = start, bounds[1], bounds[2]
    task[SMALL_START] = start if is_left else border
    task[SMALL_STOP] = border if is_left else bounds[1]
    task[SLOT], task[SLOT + 1] = new_slot, slot
    cursors[0], cursors[1] = int32(start), int32(border)


@cuda.jit(device=True)
def plan_split(state, settings, work, leaf):
    """The first task of a round: the leaf that is split already, into itself and the newest one."""
    leaves, task, rules = work.leaves, work.plan.tasks[0], rules_of(settings)
    bounds, new, new_slot = leaves.bounds, state.n_leaves[0] - 1, work.plan.numbers[N_SLOTS]
    n_left, n_right = count_of(state.totals[leaf], rules), count_of(state.totals[new], rules)
    plan_task(0, work, bounds[leaf], state.splits[new - 1], n_left, n_right, leaves.slots[leaf], new_slot)
    task[LEAF] = IS_SPLIT
    task[IS_SEARCHED], task[IS_SEARCHED + 1] = int64(state.searched[0]), int64(state.searched[1])
    divide_bounds(bounds, leaf, new, bounds[leaf, 0] + n_left, 1 - bounds[leaf, 2])
    leaves.slots[state.pair[0]], leaves.slots[state.pair[1]] = new_slot, task[SLOT + 1]
    leaves.is_ahead[new] = False


@cuda.jit(device=True)
def plan_ahead(state, settings, work, leaf, number):
    """Another task of a round: a leaf that may be split later."""
    leaves, task, rules = work.leaves, work.plan.tasks[number], rules_of(settings)
    bounds, cut, total = leaves.bounds[leaf], state.cuts[leaf], state.totals[leaf]
    n_left, n_right = count_of(cut[3], rules), count_of(total - cut[3], rules)
    new_slot = work.plan.numbers[N_SLOTS] + number
    plan_task(number, work, bounds, cut, n_left, n_right, leaves.slots[leaf], new_slot)
    may_split = rules.max_depth == 0 or state.depths[leaf] + 1 < rules.max_depth
    task[LEAF], is_left = leaf, n_left <= n_right
    task[TOTAL] = cut[3] if is_left else total - cut[3]
    task[TOTAL + 1] = total - task[TOTAL]
    task[IS_SEARCHED] = int64(may_split and min(n_left, n_right) >= 2 * rules.min_docs)
    task[IS_SEARCHED + 1] = int64(may_split and max(n_left, n_right) >= 2 * rules.min_docs)
    leaves.borders[leaf], leaves.is_ahead[leaf] = bounds[0] + n_left, True
    leaves.side_slots[leaf, 0], leaves.side_slots[leaf, 1] = new_slot, task[SLOT + 1]
    bounds[2] = 1 - bounds[2]


@cuda.jit(device=True)
def choose_ahead(state, settings, work):
    """Plan to divide the leaves with the largest gains: half as many as can still be split, up to MOST_TASKS - 1.

    Each thread has a leaf and counts those before it. Bounds on leaf values follow from splits, so with monotone
    constraints nothing is divided ahead.
    """
    leaves, gains, n_leaves = work.leaves, state.gains, state.n_leaves[0]
    room = SPARE_SLOTS + n_leaves - 1 - work.plan.numbers[N_SLOTS]
    limit = min(min(MOST_TASKS - 1, (len(gains) - n_leaves) // 2), room)
    limit = limit if settings.numbers[N_SIGNS] == 0 else 0
    for leaf in range(cuda.threadIdx.x, n_leaves, cuda.blockDim.x):
        rank, gain = limit, gains[leaf]
        if gain > 0.0 and not leaves.is_ahead[leaf]:
            rank = 0
            for other in range(n_leaves):
                is_first = gains[other] > gain or (gains[other] == gain and other < leaf)
                rank += is_first and not leaves.is_ahead[other]
        leaves.ranks[leaf] = rank
    cuda.syncthreads()
    for leaf in range(cuda.threadIdx.x, n_leaves, cuda.blockDim.x):
        if leaves.ranks[leaf] < limit:
            plan_ahead(state, settings, work, leaf, leaves.ranks[leaf] + 1)
            cuda.atomic.add(work.plan.numbers, N_TASKS, int64(1))
    cuda.syncthreads()


@cuda.jit(device=True)
def share_out(work, most_parts):
    """Share the tiles and the parts of rows of all tasks out to blocks; called by one thread."""
    numbers, tasks = work.plan.numbers, work.plan.tasks
    n_tasks, n_summed = numbers[N_TASKS], int64(0)
    for k in range(n_tasks):
        if tasks[k, IS_SEARCHED] or tasks[k, IS_SEARCHED + 1]:
            n_summed += tasks[k, SMALL_STOP] - tasks[k, SMALL_START]
    most_parts = max(most_parts - n_tasks, 1)  # the last part of each task may be a small one
    part_rows, n_tiles, n_parts = max((n_summed + most_parts - 1) // most_parts, LEAST_ROWS), int64(0), int64(0)
    for k in range(n_tasks):
        tasks[k, FIRST_TILE], tasks[k, FIRST_PART] = n_tiles, n_parts
        n_tiles += (tasks[k, STOP] - tasks[k, START] + TILE_ROWS - 1) // TILE_ROWS
        if tasks[k, IS_SEARCHED] or tasks[k, IS_SEARCHED + 1]:
            n_parts += (tasks[k, SMALL_STOP] - tasks[k, SMALL_START] + part_rows - 1) // part_rows
    numbers[N_TILES], numbers[N_PARTS], numbers[PART_ROWS] = n_tiles, n_parts, part_rows
    numbers[N_SLOTS] += n_tasks
    numbers[N_ROUNDS] += 1


@cuda.jit(device=True)
def plan_round(state, features, settings, work, most_parts, box):
    """Split leaves by what the last round found, and plan the next one; called by all threads of one block."""
    numbers = work.plan.numbers
    join_columns(state, work)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        leaf = split_leaves(state, features, settings, work)
        box[0] = leaf
        if leaf < 0:
            numbers[N_TASKS], numbers[IS_DONE] = 0, 1
        else:
            plan_split(state, settings, work, leaf)
            numbers[N_TASKS] = 1
    cuda.syncthreads()
    if box[0] >= 0:
        choose_ahead(state, settings, work)
        if cuda.threadIdx.x == 0:
            share_out(work, most_parts)
