"""The best cuts of the sides of a round's nodes, searched in 16 columns at a time."""

from __future__ import annotations

import numpy as np
from numba import cuda, float64, int32, int64

from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import THREADS, Kernel, shared, shared_formula
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.splitting import (
    CLOSE,
    COLUMNS,
    NO_CUT,
    NO_SPLIT,
    ColumnCells,
    count_of,
    cut_terms,
    gain_of_cut,
    is_better,
    left_hess,
    scan_bins,
)
from ranksieve.cuda.tree_tables import IS_SEARCHED, N_SIGNS, N_TASKS, SIDE, SLOT, rules_of
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains
from ranksieve.kernels import growing
from ranksieve.kernels.gain import SMALLEST_GAIN

leaf_node, node_gain = shared(growing.leaf_node), shared_formula(gains.node_gain)

N_CUTS = 2 * COLUMNS  # the best cut of each column with missing values right, and with missing values left
TWO_SIDES = 2 * THREADS  # of missing values: a number for each thread and side
PER_PART = 256 // (THREADS // COLUMNS)  # most bins of a column that a thread scans


@cuda.jit(device=True)
def load_sums(hist, task, side, lane, n_bins, per_part, sums, totals, missing):
    """Write sums of a side's histogram up to each bin to shared memory. A thread has a part of the bins of a column.

    The histogram of the larger side is that of the node minus that of the smaller side.
    """
    loaded = cuda.local.array(PER_PART, int64)
    n_groups, t = cuda.gridDim.x * COLUMNS // GROUP, cuda.threadIdx.x
    column, part = t % COLUMNS, t // COLUMNS
    inside = lane // GROUP * CELLS + lane % GROUP + column
    small, large = task[SLOT] * n_groups * CELLS + inside, task[SLOT + 1] * n_groups * CELLS + inside
    first, last = part * per_part, min((part + 1) * per_part, n_bins)
    for k in range(PER_PART):  # a loop of its own, so that loads wait for memory together
        loaded[k] = hist[small + (first + k) * GROUP] if first + k < last else 0
    if side:
        for k in range(PER_PART):
            loaded[k] = (hist[large + (first + k) * GROUP] if first + k < last else 0) - loaded[k]
    total = int64(0)
    for k in range(PER_PART):
        if first + k < last:
            total += loaded[k]
            sums[(first + k) * COLUMNS + column] = total
            if side:
                hist[large + (first + k) * GROUP] = loaded[k]
    totals[t] = total
    if part == 0:
        cell = MISSING_BIN * GROUP
        missing[column] = hist[large + cell] - hist[small + cell] if side else hist[small + cell]
        if side:
            hist[large + cell] = missing[column]
    cuda.syncthreads()
    before = int64(0)
    for k in range(column, t, COLUMNS):
        before += totals[k]
    for b in range(first, last):
        sums[b * COLUMNS + column] += before
    cuda.syncthreads()


@cuda.jit(device=True)
def join_parts(values, seconds, tops, bins):
    """For each column and side of missing values: the value and place of the best part, and the second best value."""
    t, n_threads = cuda.threadIdx.x, cuda.blockDim.x
    for k in range(t, 2 * n_threads, n_threads):
        values[k] = values[k] if bins[k] != NO_SPLIT else -np.inf
        seconds[k], tops[k] = -np.inf, k
    half = n_threads // 2
    while half >= COLUMNS:
        cuda.syncthreads()
        for k in range(t, 2 * n_threads if t < half else 0, n_threads):
            a, b = values[k], values[k + half]
            seconds[k] = max(max(seconds[k], seconds[k + half]), min(a, b))
            if b > a:
                values[k], tops[k] = b, tops[k + half]
        half //= 2
    cuda.syncthreads()


@cuda.jit(device=True)
def scan_columns(node, features, settings, lane, per_part, cells, parts, found):
    """The best cut of each of 16 columns, with missing values right and with missing values left.

    Each thread scans its part of a column's bins; then the parts are joined. The CPU compares fractions by
    cross-multiplication. If two differ by more than a share of CLOSE, their quotients are in the same order. So where
    the best part is better than all others by so much, its cut is the best one; otherwise all bins are scanned.
    """
    values, seconds, tops, part_bins, part_lefts = parts
    gains, keys, bins, lefts = found
    rules, t, n_bins, n_threads = rules_of(settings), cuda.threadIdx.x, features.widest[lane // GROUP], cuda.blockDim.x
    bounded, column, part = settings.numbers[N_SIGNS] > 0, t % COLUMNS, t // COLUMNS
    number = lane + column
    allowed = number < len(features.allowed) and features.allowed[number]
    sign = features.signs[number] if allowed and bounded else 0
    least, terms = 0.0, cut_terms(node, rules)
    if bounded:
        least = node_gain(node, rules, True)
        least += SMALLEST_GAIN * abs(least)
    for to_left in range(2):
        k = to_left * n_threads + t
        part_bins[k] = NO_SPLIT
        if allowed and (to_left == 0 or cells.missing[column] != 0):
            values[k], part_bins[k], part_lefts[k] = scan_bins(
                cells, column, part * per_part, min((part + 1) * per_part, n_bins), to_left, node, rules, terms,
                bounded, sign, least,
            )  # fmt: skip
    join_parts(values, seconds, tops, part_bins)
    if t < N_CUTS:
        to_left = t // COLUMNS
        k = to_left * n_threads + column
        gains[t], bins[t], lefts[t] = values[k], part_bins[tops[k]], part_lefts[tops[k]]
        if bins[t] != NO_SPLIT and seconds[k] >= gains[t] - abs(gains[t]) * CLOSE:
            gains[t], bins[t], lefts[t] = scan_bins(
                cells, column, 0, n_bins, to_left, node, rules, terms, bounded, sign, least
            )
        if bins[t] != NO_SPLIT and not bounded:
            gains[t] = gain_of_cut(gains[t], node, rules, terms)
        place = features.places[number] if allowed else 0
        keys[t] = place // COLUMNS * N_CUTS + to_left * COLUMNS + place % COLUMNS
        keys[t] = keys[t] if bins[t] != NO_SPLIT else NO_CUT
    cuda.syncthreads()


@cuda.jit(device=True)
def best_of_columns(node, settings, lane, cells, found, order, cut):
    """Write the best cut of 16 columns to `cut`, and return its gain; the threads compare pairs of cuts."""
    gains, keys, bins, lefts = found
    t, half = cuda.threadIdx.x, N_CUTS // 2
    if t < N_CUTS:
        order[t] = t
    while half > 0:
        cuda.syncthreads()
        if t < half:
            a, b = order[t], order[t + half]
            if is_better(gains[b], keys[b], gains[a], keys[a]):
                order[t] = b
        half //= 2
    cuda.syncthreads()
    best = order[0]
    if t == 0:
        cut[0] = lane + best % COLUMNS if bins[best] != NO_SPLIT else NO_SPLIT
        cut[1], cut[2], cut[3], cut[4], cut[5] = bins[best], best // COLUMNS, lefts[best], int64(0), keys[best]
        if cut[0] != NO_SPLIT:
            cut[4] = left_hess(cells, best % COLUMNS, bins[best], best // COLUMNS)
        if cells.missing[best % COLUMNS] == 0:
            # no value is missing in this node: missing values go to the side with more documents
            rules = rules_of(settings)
            cut[2] = 1 if 2 * count_of(lefts[best], rules) >= count_of(node.total, rules) else 0
    return gains[best]


def _search_kernel(separate_hess: bool) -> Kernel:
    """The kernel for packed sums; with `separate_hess`, for two histograms."""

    def search(features, settings, work):
        """The best cuts of the sides of a round's nodes; each block searches 16 columns of one side of one node."""
        sums = cuda.shared.array(0, int64)
        hess_sums = sums[CELLS // 2 :] if separate_hess else sums
        totals = cuda.shared.array(THREADS, int64)
        values = cuda.shared.array(TWO_SIDES, float64)
        seconds = cuda.shared.array(TWO_SIDES, float64)
        tops = cuda.shared.array(TWO_SIDES, int32)
        part_bins = cuda.shared.array(TWO_SIDES, int32)
        part_lefts = cuda.shared.array(TWO_SIDES, int64)
        missing = cuda.shared.array(COLUMNS, int64)
        hess_missing = cuda.shared.array(COLUMNS, int64)
        gains = cuda.shared.array(N_CUTS, float64)
        keys = cuda.shared.array(N_CUTS, int64)
        bins = cuda.shared.array(N_CUTS, int32)
        lefts = cuda.shared.array(N_CUTS, int64)
        order = cuda.shared.array(N_CUTS, int32)
        t, lane, side, number = cuda.threadIdx.x, cuda.blockIdx.x * COLUMNS, cuda.blockIdx.y, cuda.blockIdx.z
        plan, found = work.plan, work.found
        if number >= plan.numbers[N_TASKS]:
            return
        task = plan.tasks[number]
        if task[IS_SEARCHED + side]:
            n_bins, n_parts, node = (
                features.widest[lane // GROUP],
                cuda.blockDim.x // COLUMNS,
                leaf_node(work.nodes, task[SIDE + side]),
            )
            per_part = (n_bins + n_parts - 1) // n_parts
            load_sums(work.hist, task, side, lane, n_bins, per_part, sums, totals, missing)
            if separate_hess:
                load_sums(work.hess_hist, task, side, lane, n_bins, per_part, hess_sums, totals, hess_missing)
            cells = ColumnCells(sums, missing, separate_hess, hess_sums, hess_missing)
            cuts, parts = (gains, keys, bins, lefts), (values, seconds, tops, part_bins, part_lefts)
            scan_columns(node, features, settings, lane, per_part, cells, parts, cuts)
            gain = best_of_columns(
                node, settings, lane, cells, cuts, order, found.cuts[number, side, cuda.blockIdx.x]
            )  # fmt: skip
            if t == 0:
                found.gains[number, side, cuda.blockIdx.x] = gain

    return Kernel(search, shared=(1 + separate_hess) * 8 * 256 * COLUMNS, registers=64)


search, search_with_hess = _search_kernel(separate_hess=False), _search_kernel(separate_hess=True)
