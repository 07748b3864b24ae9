"""Gain: how much a leaf, or a split into two, reduces the loss; with and without bounds on leaf values.

A leaf whose rows have gradients that sum to G, second derivatives that sum to H and that are n rows has the gain
G² / (H + l2) (Newton) or G² / n (variance). A split gains what its two leaves gain, less what the leaf before it did.
Gradients are in units of the fixed-point sums, see `histograms`; so are leaf values and their bounds.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

SMALLEST_WEIGHT = 1e-12  # a leaf with a smaller sum of second derivatives has value 0
SMALLEST_GAIN = 1e-9  # relative: rounding of sums must not look like an improvement


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
def hess_of(total, hess, rules):
    """The sum of second derivatives in a packed sum and in a sum of their own: one of the two has none. No branches."""
    return np.float64(hess + ((total >> rules.count_bits) & ((np.int64(1) << rules.hess_bits) - 1))) * rules.hess_unit


@njit(cache=True, nogil=True)
def large_enough(n, hess, rules):
    """Whether a leaf may have these sums. No branches."""
    has_weight = (hess + rules.l2 > 0.0) | (not rules.newton)
    return (n >= rules.min_docs) & (hess >= rules.min_hess) & has_weight


@njit(cache=True, nogil=True, error_model="numpy")
def gain_of(grad, n, weight, newton):
    """The gain of a leaf; `weight` is H + l2. `scan_cuts` computes that of two leaves as one fraction."""
    return grad * grad / (weight if newton else n)


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
