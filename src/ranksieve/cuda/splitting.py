"""The best cut of a column of a leaf's histogram; the same cut as `kernels.splitting` and `kernels.scan_cuts` find."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda, float64, int32, int64

from ranksieve.cuda.device import shared_formula
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains

NO_SPLIT = -1
COLUMNS = 16  # searched by a block, as on the CPU
CLOSE = 2.0**-48
LAST = 1 << 62  # in the order among equals: no cut

bounded_gain, bounded_value = shared_formula(gains.bounded_gain), shared_formula(gains.bounded_value)
count_of, grad_of, hess_of, hess_units = (
    shared_formula(gains.count_of),
    shared_formula(gains.grad_of),
    shared_formula(gains.hess_of),
    shared_formula(gains.hess_units),
)
large_enough, cut_terms = shared_formula(gains.large_enough), shared_formula(gains.cut_terms)
gain_of_cut = shared_formula(gains.gain_of_cut)


@cuda.jit(device=True)
def fraction_of_cut(left, left_hess, rules, terms):
    """d² and x y of a cut with these left sums, see `kernels.gain`; 0 and 0 where it is not allowed."""
    n, hess = count_of(left, rules) - terms.fewest, hess_units(left, left_hess, rules) - terms.least_hess
    if n < 0 or n > terms.most_rows or hess < 0 or hess > terms.most_hess:
        return 0.0, 0.0
    if rules.newton:
        above, others = hess, terms.most_hess - hess
    else:
        above, others = n, terms.most_rows - n
    x, y = float64(above) * terms.unit + terms.least_weight, float64(others) * terms.unit + terms.least_weight
    d = grad_of(left, rules) - terms.mean * x
    return d * d, x * y


@cuda.jit(device=True)
def value_of_cut(left, left_hess, node, rules, terms, bounded, sign):
    """What cuts of a leaf are compared by, numerator and denominator; 0 and 0 where the cut is not allowed."""
    if not bounded:
        return fraction_of_cut(left, left_hess, rules, terms)
    n_left, hess_left = count_of(left, rules), hess_of(left, left_hess, rules)
    n_right, hess_right = count_of(node.total, rules) - n_left, hess_of(node.total, node.hess, rules) - hess_left
    grad_left = grad_of(left, rules)
    grad_right = grad_of(node.total, rules) - grad_left
    return bounded_cut(grad_left, grad_right, n_left, n_right, hess_left, hess_right, node, rules, sign)


@cuda.jit(device=True)
def bounded_cut(grad_left, grad_right, n_left, n_right, hess_left, hess_right, node, rules, sign):
    """The gain of a cut with bounds on leaf values, like `kernels.splitting.scan_cuts_bounded`."""
    if not (large_enough(n_left, hess_left, rules) and large_enough(n_right, hess_right, rules)):
        return 0.0, 0.0
    low, high, x, y = node.low, node.high, hess_left + rules.l2, hess_right + rules.l2
    rise = bounded_value(grad_right, y, low, high) - bounded_value(grad_left, x, low, high)
    if sign * rise < 0.0:
        return 0.0, 0.0
    gain = bounded_gain(grad_left, float64(n_left), x, rules.newton, low, high)
    return gain + bounded_gain(grad_right, float64(n_right), y, rules.newton, low, high), 1.0


class ColumnCells(NamedTuple):
    """Sums of 16 columns of a histogram up to each bin, and of their missing bins, in shared memory."""

    sums: Any
    missing: Any
    separate_hess: bool  # whether second derivatives are summed on their own
    hess_sums: Any
    hess_missing: Any


@cuda.jit(device=True)
def left_hess(cells, column, split_bin, to_left):
    """The second derivatives left of a cut that are summed on their own."""
    if not cells.separate_hess:
        return int64(0)
    return cells.hess_sums[split_bin * COLUMNS + column] + (cells.hess_missing[column] if to_left else int64(0))


@cuda.jit(device=True)
def scan_bins(cells, column, first, last, to_left, node, rules, terms, bounded, sign, least):
    """The first of the best cuts at bins first:last of a column, missing values right or left: value, bin, left sum."""
    sums, missing = cells.sums, cells.missing[column] if to_left else int64(0)
    best_up, best_down, best_bin, best_left = least, 1.0, int32(NO_SPLIT), int64(0)
    for b in range(first, last):
        left = sums[b * COLUMNS + column]
        if b > 0 and left == sums[(b - 1) * COLUMNS + column]:
            continue  # no row has this bin: the same cut
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
    """Whether a cut is better than another one, or as good and before it; the key of no cut is LAST."""
    if key == LAST or other_key == LAST:
        return key < other_key
    return gain > other_gain or (gain == other_gain and key < other_key)
