"""The plan of a round of growing a tree; a round divides several nodes.

Best-first growth splits one leaf after another. A round divides the leaf that is split next, and also nodes that are
likely to be split soon: their rows are divided, and the histograms of their sides are summed and searched.

`choose_nodes` goes through the splits in the order of `next_split`. It goes on after a node that is not divided yet, as
if nothing below that node were split. When all nodes that the tree splits are divided, `next_split` on the CPU builds
the tree from them, see `kernels.searched_tree`. So the tree is the same as on the CPU, and takes fewer rounds.
"""

from __future__ import annotations

from numba import cuda, float64, int32, int64

from ranksieve.cuda.device import THREADS, kernel, shared
from ranksieve.cuda.dividing import TILE_ROWS
from ranksieve.cuda.splitting import NO_CUT, NO_SPLIT, count_of, is_better
from ranksieve.cuda.thread_blocks import WARP, exchange, place_of_largest, synchronize_warp
from ranksieve.cuda.tree_tables import (
    BUFFER,
    COLUMN,
    CUT,
    FIRST_PART,
    FIRST_TILE,
    IS_DONE,
    IS_SEARCHED,
    MISSING_LEFT,
    MOST_AHEAD,
    MOST_LEAVES,
    MOST_TASKS,
    N_LEAVES,
    N_NODES,
    N_PARTS,
    N_ROUNDS,
    N_SIGNS,
    N_TASKS,
    N_TILES,
    PART_ROWS,
    SIDE,
    SLOT,
    SMALL_START,
    SMALL_STOP,
    START,
    STOP,
    rules_of,
)
from ranksieve.kernels import growing

leaf_node, net_gain, set_bounds = shared(growing.leaf_node), shared(growing.net_gain), shared(growing.set_bounds)
may_split = shared(growing.may_split)

LEAST_ROWS = THREADS  # fewest rows that a block sums, except in the last part of a node
MOST_NODES = 2 * (MOST_LEAVES + MOST_AHEAD)


@cuda.jit(device=True)
def join_columns(settings, work):
    """Find the best cut of each side over all columns, and what it gains; a warp takes one side at a time."""
    found, nodes, tasks = work.found, work.nodes, work.plan.tasks
    t, n_parts = cuda.threadIdx.x, found.gains.shape[2]
    lane, n_warps = t % WARP, cuda.blockDim.x // WARP
    for number in range(t // WARP, 2 * work.plan.numbers[N_TASKS], n_warps):
        task, side = number // 2, number % 2
        gain, key, place = float64(0.0), int64(NO_CUT), int32(0)
        for part in range(lane, n_parts if tasks[task, IS_SEARCHED + side] else 0, WARP):
            cut = found.cuts[task, side, part]
            if cut[0] != NO_SPLIT and is_better(found.gains[task, side, part], cut[5], gain, key):
                gain, key, place = found.gains[task, side, part], cut[5], int32(part)
        for distance in (16, 8, 4, 2, 1):
            other_gain, other_key = exchange(gain, distance), exchange(key, distance)
            other_place = exchange(place, distance)
            if is_better(other_gain, other_key, gain, key):
                gain, key, place = other_gain, other_key, other_place
        if lane == 0 and key != NO_CUT:
            node, cut = tasks[task, SIDE + side], found.cuts[task, side, place]
            nodes.found[node] = gain
            nodes.gains[node] = net_gain(
                leaf_node(nodes, node), gain, rules_of(settings), settings.numbers[N_SIGNS] > 0
            )  # fmt: skip
            for k in range(5):
                nodes.cuts[node, k] = cut[k]


@cuda.jit(device=True)
def load_nodes(work, gains, children, leaf_gains, leaves):
    """Copy the gains and children of all nodes, and the nodes of leaves with their gains, to shared memory."""
    nodes, plan, t = work.nodes, work.plan, cuda.threadIdx.x
    for node in range(t, plan.numbers[N_NODES], cuda.blockDim.x):
        gains[node], children[node] = nodes.gains[node], nodes.children[node]
    cuda.syncthreads()
    for leaf in range(t, plan.numbers[N_LEAVES], cuda.blockDim.x):
        leaves[leaf] = plan.leaves[leaf]
        leaf_gains[leaf] = gains[leaves[leaf]]
    cuda.syncthreads()


@cuda.jit(device=True)
def choose_nodes(work, max_leaves, gains, children, leaf_gains, leaves, chosen):
    """Write the nodes to divide next to `chosen`, and their number to its place MOST_TASKS; called by one warp.

    A node that is not divided is chosen if the tree would split it even with one more split below each node chosen
    before it. All arrays are in shared memory.
    """
    plan, lane = work.plan, cuda.threadIdx.x
    n_leaves, n_chosen, most = int32(plan.numbers[N_LEAVES]), int32(0), int32(MOST_TASKS)
    n_divided = int32((plan.numbers[N_NODES] - 1) // 2)
    while n_leaves + 2 * n_chosen < max_leaves and n_chosen < most:
        gain, leaf = place_of_largest(leaf_gains, n_leaves)
        if gain <= 0.0:
            break
        node = leaves[leaf]
        child = children[node]
        if child > 0:
            synchronize_warp()
            if lane == 0:
                leaves[leaf], leaves[n_leaves] = child, child + 1
                leaf_gains[leaf], leaf_gains[n_leaves] = gains[child], gains[child + 1]
            n_leaves += int32(1)
        else:
            if n_chosen == 0:  # the tree has all splits before this one
                for k in range(lane, n_leaves, WARP):
                    plan.leaves[k] = leaves[k]
                most = min(most, int32(MOST_AHEAD) + n_leaves - n_divided)
                if lane == 0:
                    plan.numbers[N_LEAVES] = n_leaves
            synchronize_warp()
            if lane == 0:
                leaf_gains[leaf], chosen[n_chosen] = 0.0, node
            n_chosen += int32(1)
        synchronize_warp()
    if lane == 0:
        chosen[MOST_TASKS] = n_chosen


@cuda.jit(device=True)
def plan_task(features, settings, work, number, node, sizes):
    """Plan to divide a node into two new ones; called by one thread. Writes to `sizes` its rows, and those to sum."""
    nodes, task, cursors, rules = work.nodes, work.plan.tasks[number], work.plan.cursors[number], rules_of(settings)
    column, split_bin, missing_left, total_left = (
        nodes.cuts[node, 0], nodes.cuts[node, 1], nodes.cuts[node, 2], nodes.cuts[node, 3],
    )  # fmt: skip
    start, stop, buffer = nodes.bounds[node, 0], nodes.bounds[node, 1], nodes.bounds[node, 2]
    low, high, depth, slot = nodes.limits[node, 0], nodes.limits[node, 1], nodes.depths[node] + 1, nodes.slots[node]
    total, left = nodes.totals[node], work.plan.numbers[N_NODES] + 2 * number
    right, total_right = left + 1, total - total_left
    n_left, n_right = count_of(total_left, rules), count_of(total_right, rules)
    border, is_left = start + n_left, n_left <= n_right
    small, large, new_slot = left if is_left else right, right if is_left else left, (left + 1) // 2
    small_searched = may_split(min(n_left, n_right), depth, rules)
    large_searched = may_split(max(n_left, n_right), depth, rules)
    nodes.children[node] = left
    nodes.totals[left], nodes.totals[right] = total_left, total_right
    nodes.hess_totals[left] = nodes.cuts[node, 4]
    nodes.hess_totals[right] = nodes.hess_totals[node] - nodes.cuts[node, 4]
    nodes.bounds[left, 0], nodes.bounds[left, 1] = start, border
    nodes.bounds[right, 0], nodes.bounds[right, 1] = border, stop
    nodes.slots[small], nodes.slots[large] = new_slot, slot
    for child in range(left, left + 2):
        nodes.bounds[child, 2], nodes.depths[child], nodes.gains[child] = 1 - buffer, depth, 0.0
        nodes.cuts[child, 0], nodes.found[child] = NO_SPLIT, 0.0
        nodes.limits[child, 0], nodes.limits[child, 1] = low, high
    if settings.numbers[N_SIGNS] > 0:
        set_bounds(nodes, left, right, features.signs[column], rules)
    task[COLUMN], task[CUT], task[MISSING_LEFT] = column, split_bin, missing_left
    task[START], task[STOP], task[BUFFER] = start, stop, buffer
    task[SMALL_START], task[SMALL_STOP] = start if is_left else border, border if is_left else stop
    task[SIDE], task[SIDE + 1], task[SLOT], task[SLOT + 1] = small, large, new_slot, slot
    task[IS_SEARCHED], task[IS_SEARCHED + 1] = int64(small_searched), int64(large_searched)
    cursors[0], cursors[1] = int32(start), int32(border)
    sizes[2 * number] = int32(stop - start)
    sizes[2 * number + 1] = int32(min(n_left, n_right)) if small_searched or large_searched else int32(0)


@cuda.jit(device=True)
def share_out(plan, number, n_tasks, most_parts, sizes):
    """Number the tiles and parts of rows of all tasks, so that blocks can share them; each thread has a task."""
    n_summed = int32(0)
    for k in range(n_tasks):
        n_summed += sizes[2 * k + 1]
    most_parts = max(int32(most_parts) - n_tasks, int32(1))  # the last part of each task may have fewer rows
    part_rows = max((n_summed + most_parts - int32(1)) // most_parts, int32(LEAST_ROWS))
    n_tiles, n_parts = int32(0), int32(0)
    for k in range(n_tasks):
        if k == number:
            plan.tasks[k, FIRST_TILE], plan.tasks[k, FIRST_PART] = n_tiles, n_parts
        n_tiles += (sizes[2 * k] + int32(TILE_ROWS - 1)) // int32(TILE_ROWS)
        n_parts += (sizes[2 * k + 1] + part_rows - int32(1)) // part_rows
    if number == 0:
        plan.numbers[N_TILES], plan.numbers[N_PARTS], plan.numbers[PART_ROWS] = n_tiles, n_parts, part_rows


@kernel
def plan_round(features, settings, work, max_leaves, most_parts):
    """Plan the next round from what the last one found; one block."""
    gains = cuda.shared.array(MOST_NODES, float64)
    leaf_gains = cuda.shared.array(MOST_LEAVES, float64)
    children = cuda.shared.array(MOST_NODES, int32)
    leaves = cuda.shared.array(MOST_LEAVES, int32)
    chosen = cuda.shared.array(WARP, int32)
    plan, t = work.plan, cuda.threadIdx.x
    n_rounds, n_nodes = plan.numbers[N_ROUNDS], plan.numbers[N_NODES]
    if plan.numbers[N_TASKS] == 0:
        return
    join_columns(settings, work)
    cuda.syncthreads()
    load_nodes(work, gains, children, leaf_gains, leaves)
    if t < WARP:
        choose_nodes(work, max_leaves, gains, children, leaf_gains, leaves, chosen)
    cuda.syncthreads()
    n_tasks = chosen[MOST_TASKS]
    if t < n_tasks:
        plan_task(features, settings, work, t, chosen[t], children)
    cuda.syncthreads()
    if t < max(n_tasks, 1):
        share_out(plan, t, n_tasks, most_parts, children)
    if t == 0:
        plan.numbers[N_TASKS], plan.numbers[IS_DONE] = n_tasks, int64(n_tasks == 0)
        plan.numbers[N_NODES], plan.numbers[N_ROUNDS] = n_nodes + 2 * n_tasks, n_rounds + 1
