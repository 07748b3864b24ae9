"""The rows of a round: nodes are divided, and histograms of their smaller sides are summed. At the end, sums of leaves.

The rows of a node are a range of one of two buffers. Dividing a node moves them to the other buffer, in any order: sums
are integers, which do not depend on it.
"""

from __future__ import annotations

from numba import cuda, int32, int64, uint32, uint64

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.cuda.device import THREADS, kernel
from ranksieve.cuda.histograms import CELLS, SHARED, clear_sums, flush_sums, sum_listed
from ranksieve.cuda.splitting import goes_left
from ranksieve.cuda.thread_blocks import MOST_WARPS, WARP, ballot, sum_over_block
from ranksieve.cuda.tree_tables import (
    BUFFER,
    COLUMN,
    CUT,
    EXACT_GRAD_A,
    EXACT_GRAD_B,
    EXACT_HESS_A,
    EXACT_HESS_B,
    FIRST_PART,
    FIRST_TILE,
    IS_DONE,
    MISSING_LEFT,
    N_NODES,
    N_PARTS,
    N_TASKS,
    N_TILES,
    PART_ROWS,
    SLOT,
    SMALL_START,
    SMALL_STOP,
    START,
    STOP,
    task_of,
)

PER_THREAD = 4  # rows that a thread moves at a time
COUNTS = 2 * MOST_WARPS  # left and right rows of each warp
TILE_ROWS = PER_THREAD * THREADS  # rows that a block moves at a time


@cuda.jit(device=True)
def move_tile(rows, task, cursors, first, counts, places):
    """Move the rows of one tile of a node to its two sides; the rows of a warp stay next to each other on each side."""
    kept = cuda.local.array(PER_THREAD, uint32)
    bits = cuda.local.array(PER_THREAD, int64)
    t, n = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    warp, lane, n_warps = int32(t // uint32(WARP)), int32(t & uint32(WARP - 1)), int32(n // uint32(WARP))
    n_here, cut, missing_left, buffer = int32(task[STOP] - first), task[CUT], task[MISSING_LEFT], task[BUFFER]
    source, target = rows.members[buffer * rows.n_rows + first :], rows.members[(1 - buffer) * rows.n_rows :]
    group, inside = task[COLUMN] // GROUP * GROUP, task[COLUMN] % GROUP
    column = (group + inside) * rows.n_rows if rows.by_column else group * rows.n_rows + inside
    bins, stride = rows.bins[column:], uint64(1) if rows.by_column else uint64(GROUP)
    for k in range(PER_THREAD):
        i = uint32(uint32(k) * n + t)
        kept[k] = uint32(source[i]) if int32(i) < n_here else uint32(0)
    n_left, n_right = int32(0), int32(0)
    for k in range(PER_THREAD):
        i = int32(uint32(uint32(k) * n + t))
        value = bins[uint64(kept[k]) * stride] if i < n_here else 0
        bits[k] = ballot(i < n_here and goes_left(value, cut, missing_left))
        n_left += int32(cuda.popc(bits[k]))
        n_right += min(max(n_here - (i - lane), int32(0)), int32(WARP))
    n_right -= n_left
    if lane == 0:
        counts[2 * warp], counts[2 * warp + 1] = n_left, n_right
    cuda.syncthreads()
    left, right, all_left, all_right = int32(0), int32(0), int32(0), int32(0)
    for other in range(n_warps):
        if other == warp:
            left, right = all_left, all_right
        all_left += counts[2 * other]
        all_right += counts[2 * other + 1]
    if t == 0:
        places[0] = cuda.atomic.add(cursors, 0, all_left)
        places[1] = cuda.atomic.add(cursors, 1, all_right)
    cuda.syncthreads()
    left += places[0]
    right += places[1]
    for k in range(PER_THREAD):
        before = int32(cuda.popc(bits[k] & ((int64(1) << int64(lane)) - 1)))
        if int32(uint32(uint32(k) * n + t)) < n_here:
            is_left = (bits[k] >> int64(lane)) & 1
            target[uint32(left + before if is_left else right + lane - before)] = int32(kept[k])
        here = int32(cuda.popc(bits[k]))
        left += here
        right += int32(WARP) - here
    cuda.syncthreads()


@kernel(registers=40)
def divide(rows, plan):
    """Divide the nodes of a round: rows that go left come first. A block moves one tile after another."""
    counts = cuda.shared.array(COUNTS, int32)
    places = cuda.shared.array(2, int32)
    n_tasks = plan.numbers[N_TASKS]
    for tile in range(cuda.blockIdx.x, plan.numbers[N_TILES] if n_tasks > 0 else 0, cuda.gridDim.x):
        number = task_of(plan.tasks, n_tasks, FIRST_TILE, tile)
        task = plan.tasks[number]
        first = task[START] + (tile - task[FIRST_TILE]) * TILE_ROWS
        move_tile(rows, task, plan.cursors[number], first, counts, places)


@kernel(shared=SHARED, registers=40)
def sum_sides(rows, features, plan, hist):
    """The histograms of the smaller sides, after `divide`; each block sums a part of the rows, a group of columns."""
    sums = cuda.shared.array(0, uint32)
    part, group, n_groups = cuda.blockIdx.x, cuda.blockIdx.y, cuda.gridDim.y
    n_tasks, part_rows = plan.numbers[N_TASKS], plan.numbers[PART_ROWS]
    if n_tasks == 0 or part >= plan.numbers[N_PARTS]:
        return
    task = plan.tasks[task_of(plan.tasks, n_tasks, FIRST_PART, part)]
    start = task[SMALL_START] + (part - task[FIRST_PART]) * part_rows
    n, size = min(part_rows, task[SMALL_STOP] - start), rows.n_rows * WORDS
    n_bins = features.widest[group]
    clear_sums(sums, n_bins)
    source = (1 - task[BUFFER]) * rows.n_rows + start
    sum_listed(sums, rows.members[source:], rows.words[group * size : (group + 1) * size], rows.packed, n)
    flush_sums(sums, n_bins, hist, (task[SLOT] * n_groups + group) * CELLS)


@kernel
def sum_nodes(settings, plan, nodes, members, n_rows, grad, hess):
    """The exact sums of the nodes of a complete tree that are not divided; each block sums a part of a node's rows."""
    node, floats, bounds = cuda.blockIdx.x, settings.floats, nodes.bounds
    if plan.numbers[IS_DONE] == 0 or node >= plan.numbers[N_NODES] or nodes.children[node] > 0:
        return
    source = bounds[node, 2] * n_rows
    start = bounds[node, 0] + cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    grads, hesses = int64(0), int64(0)
    for i in range(start, bounds[node, 1], cuda.gridDim.y * cuda.blockDim.x):
        row = members[source + i]
        grads += int64(round(grad[row] * floats[EXACT_GRAD_A] * floats[EXACT_GRAD_B]))
        hesses += int64(round(hess[row] * floats[EXACT_HESS_A] * floats[EXACT_HESS_B]))
    grads, hesses = sum_over_block(grads), sum_over_block(hesses)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(nodes.sums, (node, 0), grads)
        cuda.atomic.add(nodes.sums, (node, 1), hesses)
