"""Gain: how much a leaf, or a split into two leaves, reduces the loss; with and without bounds on leaf values.

A leaf has n rows, whose gradients sum to G, and whose second derivatives sum to H. Its gain is G² / (H + l2) (Newton)
or G² / n (variance). The gain of a split is that of its two leaves, less that of the leaf that is split. Gradients,
leaf values and their bounds are in units of the fixed-point sums, see `histograms`.

Cuts of one leaf are compared without a division. Let the two sides have gradients l and r, and weights x and y, which
are H + l2 (Newton) or n (variance). Let G = l + r and S = x + y. Then l² / x + r² / y = G² / S + S d² / (x y) with
d = l - x G / S. The best cut has the largest d² / (x y). Two of these fractions are compared by cross-multiplication.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

SMALLEST_WEIGHT = 1e-12  # a leaf with a smaller sum of second derivatives has value 0
SMALLEST_GAIN = 1e-9  # relative: rounding of sums must not look like an improvement
MOST_UNITS = 2.0**61  # more units of second derivatives than any sum has


class SplitRules(NamedTuple):
    """Which splits are allowed, and how their gain is computed; the same for all leaves of a tree."""

    count_bits: int  # a packed sum is gradient << (hess_bits + count_bits) | second derivative << count_bits | count
    hess_bits: int  # 0: second derivatives are summed on their own, or not at all
    hess_unit: float  # the second derivative that is 1 in the fixed-point sums
    min_docs: int
    min_hess: float
    l2: float
    newton: bool
    max_depth: int  # 0: no limit


class Node(NamedTuple):
    """The sums of a leaf in fixed point, and the bounds on its value, see `growing.set_bounds`."""

    total: int  # packed sum
    hess: int  # 0 where second derivatives are in the packed sum
    low: float
    high: float


@njit(cache=True, nogil=True)
def count_of(total, rules):
    """The number of rows in a packed sum."""
    return total & ((np.int64(1) << rules.count_bits) - 1)


@njit(cache=True, nogil=True)
def grad_of(total, rules):
    """The sum of gradients in a packed sum."""
    return np.float64(total >> (rules.hess_bits + rules.count_bits))


@njit(cache=True, nogil=True)
def hess_units(total, hess, rules):
    """The sum of second derivatives, in units: they are in the packed sum or in one of their own. No branches."""
    return hess + ((total >> rules.count_bits) & ((np.int64(1) << rules.hess_bits) - 1))


@njit(cache=True, nogil=True)
def hess_of(total, hess, rules):
    """The sum of second derivatives, which are in the packed sum or in one of their own. No branches."""
    return np.float64(hess_units(total, hess, rules)) * rules.hess_unit


@njit(cache=True, nogil=True)
def large_enough(n, hess, rules):
    """Whether a leaf may have n rows and these second derivatives. No branches."""
    has_weight = (hess + rules.l2 > 0.0) | (not rules.newton)
    return (n >= rules.min_docs) & (hess >= rules.min_hess) & has_weight


@njit(cache=True, nogil=True, error_model="numpy")
def gain_of(grad, n, weight, newton):
    """The gain of a leaf; `weight` is H + l2."""
    return grad * grad / (weight if newton else n)


class CutTerms(NamedTuple):
    """What the cuts of a leaf have in common."""

    fewest: int | np.int64  # fewest rows of a side
    most_rows: int | np.int64  # a left side may have `fewest` to `fewest + most_rows` rows
    least_hess: int | np.int64  # fewest units of second derivatives of a side
    most_hess: int | np.int64  # and `least_hess` to `least_hess + most_hess` such units; -1: no cut is possible
    unit: float  # the weight of one row or of one unit of second derivatives
    least_weight: float  # weight of a side with `fewest` rows or with `least_hess`; x and y are at least this
    weight: float  # S
    mean: float  # G / S


@njit(cache=True, nogil=True, error_model="numpy")
def cut_terms(node, rules):
    """The terms of a leaf with at least 2 · `rules.min_docs` rows."""
    n, hess = count_of(node.total, rules), hess_units(node.total, node.hess, rules)
    units = min(rules.min_hess / rules.hess_unit, MOST_UNITS) if rules.min_hess > 0.0 else 0.0
    least = np.int64(units)
    if np.float64(least) < units:
        least += 1
    if rules.newton and rules.l2 <= 0.0:
        least = max(least, np.int64(1))  # a side without second derivatives has no gain
    most_hess = hess - 2 * least if hess >= 2 * least else np.int64(-1)
    fewest, unit = np.int64(rules.min_docs), rules.hess_unit if rules.newton else 1.0
    least_weight = np.float64(least) * unit + rules.l2 if rules.newton else np.float64(fewest)
    weight = np.float64(hess) * unit + 2.0 * rules.l2 if rules.newton else np.float64(n)
    mean = grad_of(node.total, rules) / weight if weight > 0.0 else 0.0
    return CutTerms(fewest, n - 2 * fewest, least, most_hess, unit, least_weight, weight, mean)


@njit(cache=True, nogil=True)
def fraction_of_cut(left, left_hess, rules, terms):
    """d² and x y of a cut with these left sums; 0 and 0 if it is not allowed. `scan_cuts` compares many cuts."""
    n, hess = count_of(left, rules) - terms.fewest, hess_units(left, left_hess, rules) - terms.least_hess
    if n < 0 or n > terms.most_rows or hess < 0 or hess > terms.most_hess:
        return 0.0, 0.0
    above, others = (hess, terms.most_hess - hess) if rules.newton else (n, terms.most_rows - n)
    x, y = np.float64(above) * terms.unit + terms.least_weight, np.float64(others) * terms.unit + terms.least_weight
    d = grad_of(left, rules) - terms.mean * x
    return d * d, x * y


@njit(cache=True, nogil=True)
def gain_of_cut(fraction, node, rules, terms):
    """The gain of both sides of a cut with this d² / (x y). The gain of the leaf is not subtracted."""
    return terms.mean * grad_of(node.total, rules) + terms.weight * fraction


@njit(cache=True, nogil=True)
def bounded_value(grad, weight, low, high):
    """The value of a leaf within its bounds."""
    value = grad / weight if weight > SMALLEST_WEIGHT else 0.0
    return min(max(value, low), high)


@njit(cache=True, nogil=True)
def bounded_gain(grad, n, weight, newton, low, high):
    """The gain of a leaf whose value is within bounds.

    A value v reduces the loss by 2 v G - v² (H + l2), at most by G² / (H + l2). The variance gain is reduced by the
    same factor.
    """
    value = bounded_value(grad, weight, low, high)
    if weight > SMALLEST_WEIGHT and value == grad / weight:
        return gain_of(grad, n, weight, newton)
    gain = (2.0 * grad - weight * value) * value
    return gain if newton else gain * weight / n


class Sides(NamedTuple):
    """Rows, gradients and second derivatives of the two sides of a cut."""

    n_left: int
    n_right: int
    grad_left: float
    grad_right: float
    hess_left: float
    hess_right: float
    allowed: bool  # whether both are large enough


@njit(cache=True, nogil=True)
def sides_of(left, left_hess, node, rules):
    """The sides of a cut with these left sums. No branches."""
    n_left, hess_left = count_of(left, rules), hess_of(left, left_hess, rules)
    n_right, hess_right = count_of(node.total, rules) - n_left, hess_of(node.total, node.hess, rules) - hess_left
    grad_left = grad_of(left, rules)
    grad_right = grad_of(node.total, rules) - grad_left
    allowed = large_enough(n_left, hess_left, rules) & large_enough(n_right, hess_right, rules)
    return Sides(n_left, n_right, grad_left, grad_right, hess_left, hess_right, allowed)


@njit(cache=True, nogil=True)
def free_gain(sides, x, y, l2, newton):
    """The gain of both sides without bounds, of weights x and y, or of second derivatives plus l2. No branches."""
    gain = gain_of(sides.grad_left, x, sides.hess_left + l2, newton)
    return gain + gain_of(sides.grad_right, y, sides.hess_right + l2, newton)


@njit(cache=True, nogil=True)
def gain_within(sides, x, y, l2, node, newton, sign):
    """The same with bounds on leaf values; -infinity if the cut is against the sign of its column."""
    hess_left, hess_right = sides.hess_left + l2, sides.hess_right + l2
    low, high = node.low, node.high
    rise = bounded_value(sides.grad_right, hess_right, low, high) - bounded_value(sides.grad_left, hess_left, low, high)
    if sign * rise < 0.0:
        return -np.inf
    gain = bounded_gain(sides.grad_left, x, hess_left, newton, low, high)
    return gain + bounded_gain(sides.grad_right, y, hess_right, newton, low, high)


@njit(cache=True, nogil=True)
def gain_of_sides(left, left_hess, node, rules, more, bounded, sign):
    """The gain of both sides of a cut with these left sums. The gain of the leaf is not subtracted.

    It is -infinity if a side is too small. `more` is added to the weight of each side. With bounds on leaf values, the
    gain may be negative, and it is -infinity if the cut is against the sign of its column.
    """
    sides = sides_of(left, left_hess, node, rules)
    if not sides.allowed:
        return -np.inf
    x, y, l2 = np.float64(sides.n_left) + more, np.float64(sides.n_right) + more, rules.l2 + more
    if bounded:
        return gain_within(sides, x, y, l2, node, rules.newton, sign)
    return free_gain(sides, x, y, l2, rules.newton)


@njit(cache=True, nogil=True)
def node_gain(node, rules, bounded):
    """The gain of a leaf before it is split."""
    grad, n = grad_of(node.total, rules), np.float64(count_of(node.total, rules))
    weight = hess_of(node.total, node.hess, rules) + rules.l2
    if bounded:
        return bounded_gain(grad, n, weight, rules.newton, node.low, node.high)
    return gain_of(grad, n, weight, rules.newton) if (weight if rules.newton else n) > 0.0 else 0.0


@njit(cache=True, nogil=True)
def node_value(node, rules):
    """The value of a leaf within its bounds."""
    weight = hess_of(node.total, node.hess, rules) + rules.l2
    return bounded_value(grad_of(node.total, rules), weight, node.low, node.high)
