"""The start of a tree on a GPU: its integers from the gradients, one leaf with all rows, and that leaf's histogram."""

from __future__ import annotations

import numpy as np
from numba import cuda, int64, uint32

from ranksieve.cuda.bins import GROUP, WORDS
from ranksieve.cuda.blocks import sum_over_block
from ranksieve.cuda.device import kernel, shared
from ranksieve.cuda.histograms import CELLS, SHARED, add_word, cell_of, clear_sums, flush_sums
from ranksieve.cuda.splitting import NO_SPLIT
from ranksieve.cuda.tree_tables import (
    COUNT_BITS,
    GRAD_A,
    GRAD_B,
    HESS_A,
    HESS_B,
    HESS_BITS,
    IS_DONE,
    IS_SEARCHED,
    IS_SPLIT,
    KEY,
    LEAF,
    N_ROUNDS,
    N_ROWS,
    N_SLOTS,
    N_TASKS,
    SLOT,
    rules_of,
)
from ranksieve.kernels import growing, rounding

start_tree, packed_row = shared(growing.start_tree), shared(rounding.packed_row)


@kernel
def reset(state, features, settings, work, members):
    """A tree without leaves; the histograms that the last tree used are cleared."""
    i, step = cuda.grid(1), cuda.gridsize(1)
    n_groups, leaves = len(features.widest), work.leaves
    for part in range(cuda.blockIdx.x, work.plan.numbers[N_SLOTS] * n_groups, cuda.gridDim.x):
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
        leaves.sums[leaf, 0], leaves.sums[leaf, 1] = 0, 0
        leaves.is_ahead[leaf] = False
    if i < 2:
        state.pair[i], state.searched[i], state.found_cuts[i, 0] = 0, False, NO_SPLIT


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
    """A tree of one leaf, the root, which is searched next."""
    leaves, numbers, task = work.leaves, work.plan.numbers, work.plan.tasks[0]
    start_tree(state, rules_of(settings), state.totals[0], int64(0))
    leaves.bounds[0, 0], leaves.bounds[0, 1], leaves.bounds[0, 2] = 0, settings.numbers[N_ROWS], 0
    leaves.slots[0] = 0
    numbers[N_TASKS], numbers[N_SLOTS], numbers[N_ROUNDS], numbers[IS_DONE] = 1, 1, 0, 0
    task[LEAF], task[SLOT], task[SLOT + 1] = IS_SPLIT, 0, 0
    task[IS_SEARCHED], task[IS_SEARCHED + 1] = int64(state.searched[0]), 0
    work.plan.finished[0] = 0


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
