"""The best cut of a column of a leaf's histogram: the one that `kernels.splitting` and `kernels.scan_cuts` find."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda, int32, int64

from ranksieve.cuda.device import shared_formula
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains

NO_SPLIT = -1
COLUMNS = 16  # columns that a block searches, as many as are searched together on the CPU
CLOSE = 2.0**-48  # gains that differ by a smaller share are compared exactly, see `scan_columns`
NO_CUT = 1 << 62  # the key of no cut; keys order cuts of equal gain

count_of, cut_terms, gain_of_cut = (
    shared_formula(gains.count_of),
    shared_formula(gains.cut_terms),
    shared_formula(gains.gain_of_cut),
)
fraction_of_cut, gain_of_sides = shared_formula(gains.fraction_of_cut), shared_formula(gains.gain_of_sides)


@cuda.jit(device=True)
def value_of_cut(left, left_hess, node, rules, terms, bounded, sign):
    """The fraction by which cuts of a leaf are compared: numerator and denominator."""
    if bounded:
        return gain_of_sides(left, left_hess, node, rules, 0.0, True, sign), 1.0
    return fraction_of_cut(left, left_hess, rules, terms)


class ColumnCells(NamedTuple):
    """Sums of 16 columns of a histogram up to each bin, and sums of their missing bins, in shared memory."""

    sums: Any
    missing: Any
    separate_hess: bool  # whether second derivatives are summed on their own
    hess_sums: Any
    hess_missing: Any


@cuda.jit(device=True)
def left_hess(cells, column, split_bin, to_left):
    """The second derivatives left of a cut, if they are summed on their own; otherwise 0."""
    if not cells.separate_hess:
        return int64(0)
    return cells.hess_sums[split_bin * COLUMNS + column] + (cells.hess_missing[column] if to_left else int64(0))


@cuda.jit(device=True)
def scan_bins(cells, column, first, last, to_left, node, rules, terms, bounded, sign, least):
    """The first of the best cuts at bins first:last of a column: its value, bin and left sum.

    Missing values go left if `to_left`, otherwise right.
    """
    sums, missing = cells.sums, cells.missing[column] if to_left else int64(0)
    best_up, best_down, best_bin, best_left = least, 1.0, int32(NO_SPLIT), int64(0)
    for b in range(first, last):
        left = sums[b * COLUMNS + column]
        if b > 0 and left == sums[(b - 1) * COLUMNS + column]:
            continue  # no row has this bin: the cut is the same as the one before
        left += missing
        up, down = value_of_cut(left, left_hess(cells, column, b, to_left), node, rules, terms, bounded, sign)
        if down > 0.0 and up * best_down > best_up * down:
            best_up, best_down, best_bin, best_left = up, down, int32(b), left
    return best_up / best_down, best_bin, best_left


@cuda.jit(device=True)
def goes_left(value, cut, missing_left):
    """Whether a bin goes left of a cut."""
    return missing_left != 0 if value == MISSING_BIN else value <= cut


@cuda.jit(device=True)
def is_better(gain, key, other_gain, other_key):
    """Whether a cut has more gain than another one, or the same gain and a smaller key; the key of no cut is NO_CUT."""
    if key == NO_CUT or other_key == NO_CUT:
        return key < other_key
    return gain > other_gain or (gain == other_gain and key < other_key)
