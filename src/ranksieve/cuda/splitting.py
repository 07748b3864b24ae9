"""The best cut of a column of a leaf's histogram; the same cut as `kernels.splitting` and `kernels.scan_cuts` find."""

from __future__ import annotations

from numba import cuda, float64, int64

from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import shared_formula
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels import gain as gains

NO_SPLIT = -1

bounded_gain, bounded_value = shared_formula(gains.bounded_gain), shared_formula(gains.bounded_value)
count_of, grad_of, hess_of = (
    shared_formula(gains.count_of),
    shared_formula(gains.grad_of),
    shared_formula(gains.hess_of),
)
large_enough = shared_formula(gains.large_enough)


@cuda.jit(device=True)
def least_hess(rules):
    """The least sum of second derivatives on a side; with Newton gain, a side that has none has no gain."""
    least = rules.min_hess
    if rules.newton and rules.l2 <= 0.0 and least <= 0.0:
        least = rules.hess_unit
    return least


@cuda.jit(device=True)
def scan_column(cells, column, n_bins, node, rules, left):
    """The best cut of a column, scanning bins upwards from the sum `left`: its gain, bin and left sum.

    Two gains are compared as fractions by cross-multiplication, as on the CPU.
    """
    all_docs, all_grad, all_hess = (
        count_of(node.total, rules),
        grad_of(node.total, rules),
        hess_of(node.total, 0, rules),
    )
    least, with_hess, newton = least_hess(rules), rules.hess_bits > 0, rules.newton
    best_up, best_down, best_bin, best_left = 0.0, 1.0, NO_SPLIT, int64(0)
    for b in range(n_bins):
        left += cells[b * GROUP + column]
        n_left = count_of(left, rules)
        n_right = all_docs - n_left
        if n_left < rules.min_docs or n_right < rules.min_docs:
            continue
        x, y = float64(n_left), float64(n_right)
        if with_hess:
            hess_left = hess_of(left, 0, rules)
            hess_right = all_hess - hess_left
            if hess_left < least or hess_right < least:
                continue
            if newton:
                x, y = hess_left + rules.l2, hess_right + rules.l2
        grad_left = grad_of(left, rules)
        grad_right = all_grad - grad_left
        up = grad_left * grad_left * y + grad_right * grad_right * x
        down = x * y
        if up * best_down > best_up * down:
            best_up, best_down, best_bin, best_left = up, down, b, left
    return best_up / best_down, best_bin, best_left


@cuda.jit(device=True)
def scan_column_bounded(cells, column, n_bins, node, rules, sign, least_gain, left):
    """The same with bounds on leaf values, like `kernels.splitting.scan_cuts_bounded`."""
    all_docs, all_grad, all_hess = (
        count_of(node.total, rules),
        grad_of(node.total, rules),
        hess_of(node.total, 0, rules),
    )
    low, high, l2, newton = node.low, node.high, rules.l2, rules.newton
    best, best_bin, best_left = least_gain, NO_SPLIT, int64(0)
    for b in range(n_bins):
        left += cells[b * GROUP + column]
        n_left, hess_left = count_of(left, rules), hess_of(left, 0, rules)
        n_right, hess_right = all_docs - n_left, all_hess - hess_left
        if not (large_enough(n_left, hess_left, rules) and large_enough(n_right, hess_right, rules)):
            continue
        grad_left = grad_of(left, rules)
        grad_right = all_grad - grad_left
        x, y = hess_left + l2, hess_right + l2
        rise = bounded_value(grad_right, y, low, high) - bounded_value(grad_left, x, low, high)
        if sign * rise < 0.0:
            continue
        gain = bounded_gain(grad_left, float64(n_left), x, newton, low, high)
        gain += bounded_gain(grad_right, float64(n_right), y, newton, low, high)
        if gain > best:
            best, best_bin, best_left = gain, b, left
    return best, best_bin, best_left


@cuda.jit(device=True)
def goes_left(value, cut, missing_left):
    """Whether a bin goes left of a cut."""
    return missing_left != 0 if value == MISSING_BIN else value <= cut
