"""The start of a tree on a GPU: gradients as integers, a root with all rows, and the histogram of the root."""

from __future__ import annotations

import numpy as np
from numba import cuda, int64, uint32

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.cuda.device import kernel, shared
from ranksieve.cuda.fixed_point import set_scales
from ranksieve.cuda.histograms import CELLS, SHARED, cell_of, clear_sums, flush_sums, sum_rows
from ranksieve.cuda.splitting import NO_SPLIT, count_of
from ranksieve.cuda.thread_blocks import sum_over_block
from ranksieve.cuda.tree_tables import (
    COUNT_BITS,
    GRAD_A,
    GRAD_B,
    HESS_A,
    HESS_B,
    HESS_BITS,
    IS_DONE,
    IS_SEARCHED,
    KEY,
    N_LEAVES,
    N_NODES,
    N_ROUNDS,
    N_ROWS,
    N_TASKS,
    SIDE,
    SLOT,
    WITH_HESS,
    rules_of,
)
from ranksieve.kernels import rounding

packed_row = shared(rounding.packed_row)


@kernel
def reset(features, settings, work, members, extent):
    """Set a tree without nodes, and its scales, and clear the histograms that the last tree used."""
    i, step = cuda.grid(1), cuda.gridsize(1)
    n_groups, nodes = len(features.widest), work.nodes
    for part in range(cuda.blockIdx.x, (work.plan.numbers[N_NODES] + 1) // 2 * n_groups, cuda.gridDim.x):
        n_bins = features.widest[part % n_groups]
        for k in range(cuda.threadIdx.x, (n_bins + 1) * GROUP, cuda.blockDim.x):
            work.hist[part * CELLS + cell_of(k, n_bins)] = 0
    for k in range(i, settings.numbers[N_ROWS], step):
        members[k] = k
    for node in range(i, len(nodes.gains), step):
        nodes.children[node], nodes.sums[node, 0], nodes.sums[node, 1] = 0, 0, 0
    if i == 0:
        nodes.totals[0], nodes.hess_totals[0], nodes.depths[0], nodes.slots[0] = 0, 0, 0, 0
        nodes.limits[0, 0], nodes.limits[0, 1] = -np.inf, np.inf
        set_scales(extent, settings.numbers, settings.float_bits, work.plan.numbers)


@kernel
def pack(grad, hess, row_numbers, numbered, settings, rows, nodes):
    """Compute the integers that histograms sum, and their totals."""
    numbers, floats = settings.numbers, settings.floats
    count_bits, hess_bits = numbers[COUNT_BITS], numbers[HESS_BITS]
    total, hess_total = int64(0), int64(0)
    for i in range(cuda.grid(1), numbers[N_ROWS], cuda.gridsize(1)):
        g = grad[i] * floats[GRAD_A] * floats[GRAD_B]
        if hess_bits > 0:
            h = hess[i] * floats[HESS_A] * floats[HESS_B]
            number = int64(row_numbers[i]) if numbered else int64(i)
            value = packed_row(g, h, number, numbers[KEY], count_bits, hess_bits)
        else:
            value = (int64(round(g)) << count_bits) + 1
            if numbers[WITH_HESS]:
                second = int64(round(hess[i] * floats[HESS_A] * floats[HESS_B]))
                rows.hess[i] = second
                hess_total += second
        rows.packed[i] = value
        total += value
    total, hess_total = sum_over_block(total), sum_over_block(hess_total)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(nodes.totals, 0, total)
        cuda.atomic.add(nodes.hess_totals, 0, hess_total)


@kernel
def begin(settings, work):
    """Set a tree of one leaf, the root, and plan to search it next."""
    nodes, numbers, task, rules = work.nodes, work.plan.numbers, work.plan.tasks[0], rules_of(settings)
    nodes.bounds[0, 0], nodes.bounds[0, 1], nodes.bounds[0, 2] = 0, settings.numbers[N_ROWS], 0
    nodes.gains[0], nodes.cuts[0, 0] = 0.0, NO_SPLIT
    work.plan.leaves[0] = 0
    numbers[N_TASKS], numbers[N_NODES], numbers[N_LEAVES], numbers[N_ROUNDS], numbers[IS_DONE] = 1, 1, 1, 0, 0
    task[SIDE], task[SLOT] = 0, 0
    task[IS_SEARCHED] = int64(count_of(nodes.totals[0], rules) >= 2 * rules.min_docs)
    task[IS_SEARCHED + 1] = 0


@kernel(shared=SHARED, registers=40)
def sum_root(rows, features, settings, hist):
    """The histogram of all rows; each block sums a part of the rows, a group of columns."""
    sums = cuda.shared.array(0, uint32)
    group, n, size = cuda.blockIdx.y, settings.numbers[N_ROWS], rows.n_rows * WORDS
    n_bins = features.widest[group]
    clear_sums(sums, n_bins)
    part = (n + cuda.gridDim.x - 1) // cuda.gridDim.x
    start = min(cuda.blockIdx.x * part, n)
    sum_rows(sums, rows.words[group * size : (group + 1) * size], rows.packed, start, min(start + part, n))
    flush_sums(sums, n_bins, hist, group * CELLS)
