"""The gain of leaves with and without bounds on their values."""

import numpy as np
import pytest

from ranksieve.kernels.gain import (
    Node,
    SplitRules,
    bounded_gain,
    bounded_value,
    count_of,
    cut_terms,
    fraction_of_cut,
    gain_of_cut,
    gain_of_sides,
    large_enough,
    node_gain,
    node_value,
)

BITS = 10


def rules(**changes):
    given = {"count_bits": BITS, "hess_bits": 0, "hess_unit": 0.25, "min_docs": 2, "min_hess": 0.5, "l2": 1.5}
    return SplitRules(**{**given, "newton": True, "max_depth": 0, **changes})


def node(grad, n, hess, low=-np.inf, high=np.inf):
    return Node((grad << BITS) + n, hess, low, high)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("grad", [-7, 0, 12])
def test_a_leaf_gains_its_squared_sum_over_its_weight(grad, bounded):
    one = node(grad, 5, 8)
    assert node_gain(one, rules(), bounded) == grad**2 / (8 * 0.25 + 1.5)
    assert node_gain(one, rules(newton=False), bounded) == grad**2 / 5
    assert node_value(one, rules()) == grad / 3.5


@pytest.mark.parametrize("grad", [-7, 0, 12])
def test_second_derivatives_in_the_packed_sum_count_as_those_of_their_own(grad):
    apart, packed = node(grad, 5, 8), Node((grad << (BITS + 6)) + (8 << BITS) + 5, 0, -np.inf, np.inf)
    assert count_of(packed.total, rules(hess_bits=6)) == 5
    for changes in ({}, {"newton": False}):
        assert node_gain(packed, rules(hess_bits=6, **changes), False) == node_gain(apart, rules(**changes), False)
    assert node_value(packed, rules(hess_bits=6)) == node_value(apart, rules())


def test_a_leaf_without_weight_gains_nothing():
    assert node_gain(node(3, 4, 0), rules(l2=0.0), False) == 0.0
    assert node_gain(node(3, 4, 0), rules(l2=0.0), True) == 0.0
    assert node_value(node(3, 4, 0), rules(l2=0.0)) == 0.0


@pytest.mark.parametrize("newton", [False, True])
def test_bounds_cost_gain(newton):
    free = last = bounded_gain(12.0, 5.0, 3.5, newton, -np.inf, np.inf)
    for high in (3.0, 1.0, 0.0, -1.0):
        value = bounded_value(12.0, 3.5, -np.inf, high)
        gain = bounded_gain(12.0, 5.0, 3.5, newton, -np.inf, high)
        assert value == high and gain < last
        loss = 2 * high * 12.0 - high**2 * 3.5  # what the value takes from the loss, at best 12² / 3.5
        assert gain == pytest.approx(free * loss / (12.0**2 / 3.5))
        last = gain


def test_leaves_need_documents_and_second_derivatives():
    assert large_enough(2, 0.5, rules()) and not large_enough(1, 0.5, rules()) and not large_enough(2, 0.4, rules())
    assert not large_enough(2, 0.0, rules(min_hess=0.0, l2=0.0))
    assert large_enough(2, 0.0, rules(min_hess=0.0, l2=0.0, newton=False))


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_a_cut_gains_what_its_sides_gain(newton, sign):
    given, whole = rules(newton=newton), node(9, 12, 40)
    left, right = node(4, 5, 16), node(5, 7, 24)
    expected = node_gain(left, given, False) + node_gain(right, given, False)
    for bounded in (False, True):  # bounds that are not reached cost nothing
        found = gain_of_sides(left.total, left.hess, whole, given, 0.0, bounded, sign)
        rises = node_value(right, given) > node_value(left, given)
        against = bounded and sign != 0 and rises != (sign > 0)
        assert found == (-np.inf if against else pytest.approx(expected))
    assert gain_of_sides(node(4, 1, 16).total, 16, whole, given, 0.0, False, sign) == -np.inf  # too few rows


@pytest.mark.parametrize("newton", [False, True])
def test_the_fraction_of_a_cut_gives_its_gain(newton):
    given, whole, left = rules(newton=newton), node(9, 12, 40), node(4, 5, 16)
    terms = cut_terms(whole, given)
    numerator, denominator = fraction_of_cut(left.total, left.hess, given, terms)
    expected = gain_of_sides(left.total, left.hess, whole, given, 0.0, False, 0)
    assert gain_of_cut(numerator / denominator, whole, given, terms) == pytest.approx(expected)
    assert fraction_of_cut(node(4, 1, 16).total, 16, given, terms) == (0.0, 0.0)  # too few rows
