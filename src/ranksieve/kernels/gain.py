"""Gain: how much a leaf, or a split into two, reduces the loss; with and without bounds on leaf values.

A leaf whose rows have gradients that sum to G, second derivatives that sum to H and that are n rows has the gain
G² / (H + l2) (Newton) or G² / n (variance). A split gains what its two leaves gain, less what the leaf before it did.
Gradients are in units of the fixed-point sums, see `histograms`; so are leaf values and their bounds.

Cuts of one leaf are compared without a division: let its two sides have gradients l and r and weights x and y, which
are H + l2 (Newton) or n (variance), and let G = l + r and S = x + y. Then l² / x + r² / y = G² / S + S d² / (x y) with
d = l - x G / S. The best cut is that with the largest d² / (x y), and two of these fractions are compared by
cross-multiplication.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

SMALLEST_WEIGHT = 1e-12  # a leaf with a smaller sum of second derivatives has value 0
SMALLEST_GAIN = 1e-9  # relative: rounding of sums must not look like an improvement
MOST_UNITS = 2.0**61  # of second derivatives: more than any sum has


class SplitRules(NamedTuple):
    """How splits are valued and which are allowed, the same for all leaves of a tree."""

    count_bits: int  # a packed sum is gradient << (hess_bits + count_bits) | second derivative << count_bits | count
    hess_bits: int  # 0: second derivatives are summed on their own, or not at all
    hess_unit: float  # second derivative that is 1 in the fixed-point sums
    min_docs: int
    min_hess: float
    l2: float
    newton: bool
    max_depth: int  # 0: no limit


class Node(NamedTuple):
    """The sums of a leaf in fixed point, and the bounds on its value, see `growing.set_bounds`."""

    total: int  # packed
    hess: int  # 0 where second derivatives are in the packed sum
    low: float
    high: float


@njit(cache=True, nogil=True)
def count_of(total, rules):
    """How many rows a packed sum is of."""
    return total & ((np.int64(1) << rules.count_bits) - 1)


@njit(cache=True, nogil=True)
def grad_of(total, rules):
    """The sum of gradients in a packed sum."""
    return np.float64(total >> (rules.hess_bits + rules.count_bits))


@njit(cache=True, nogil=True)
def hess_units(total, hess, rules):
    """Second derivatives in a packed sum and in a sum of their own: one of the two has none. No branches."""
    return hess + ((total >> rules.count_bits) & ((np.int64(1) << rules.hess_bits) - 1))


@njit(cache=True, nogil=True)
def hess_of(total, hess, rules):
    """The sum of second derivatives in a packed sum and in a sum of their own. No branches."""
    return np.float64(hess_units(total, hess, rules)) * rules.hess_unit


@njit(cache=True, nogil=True)
def large_enough(n, hess, rules):
    """Whether a leaf may have these sums. No branches."""
    has_weight = (hess + rules.l2 > 0.0) | (not rules.newton)
    return (n >= rules.min_docs) & (hess >= rules.min_hess) & has_weight


@njit(cache=True, nogil=True, error_model="numpy")
def gain_of(grad, n, weight, newton):
    """The gain of a leaf; `weight` is H + l2."""
    return grad * grad / (weight if newton else n)


class CutTerms(NamedTuple):
    """What the cuts of a leaf have in common."""

    fewest: int | np.int64  # rows on a side
    most_rows: int | np.int64  # a left side may have from `fewest` to `fewest + most_rows`
    least_hess: int | np.int64  # units of second derivatives on a side
    most_hess: int | np.int64  # likewise from `least_hess` to `least_hess + most_hess`; -1: no cut is possible
    unit: float  # the weight of one row or of one unit of second derivatives
    least_weight: float  # of a side with `fewest` rows or with `least_hess`; x and y are this and what is above it
    weight: float  # S
    mean: float  # G / S


@njit(cache=True, nogil=True, error_model="numpy")
def cut_terms(node, rules):
    """The terms of a leaf with at least two times `rules.min_docs` rows."""
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
def gain_of_cut(fraction, node, rules, terms):
    """The gain of both sides of a cut with this d² / (x y); that of the leaf is not subtracted."""
    return terms.mean * grad_of(node.total, rules) + terms.weight * fraction


@njit(cache=True, nogil=True)
def bounded_value(grad, weight, low, high):
    """The value of a leaf within its bounds."""
    value = grad / weight if weight > SMALLEST_WEIGHT else 0.0
    return min(max(value, low), high)


@njit(cache=True, nogil=True)
def bounded_gain(grad, n, weight, newton, low, high):
    """The gain of a leaf, less what the bounds on its value cost.

    A value v reduces the loss by 2 v G - v² (H + l2), at best by G² / (H + l2); the variance gain is taken to lose the
    same share of itself.
    """
    value = bounded_value(grad, weight, low, high)
    if weight > SMALLEST_WEIGHT and value == grad / weight:
        return gain_of(grad, n, weight, newton)
    gain = (2.0 * grad - weight * value) * value
    return gain if newton else gain * weight / n


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
