"""`next_split` by itself: which leaf is split, what is written down, and what is searched next."""

import numpy as np

from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.growing import new_state, next_split, start_tree
from ranksieve.kernels.histograms import Columns
from ranksieve.kernels.splitting import NO_SPLIT

BITS = 10
RULES = SplitRules(
    count_bits=BITS, hess_bits=0, hess_unit=1.0, min_docs=2, min_hess=0.0, l2=0.0, newton=False, max_depth=0
)


def columns(signs=()):
    return Columns(np.full(16, 9), np.ones(16, np.int8), np.array(signs, np.int8), np.array([0, 16]))


def packed(grad, n):
    return (grad << BITS) + n


def find(state, side, gain, column, total, hess=0):
    """As the search of a leaf would."""
    state.found_gains[side], state.found_cuts[side, :5] = gain, (column, 3, 1, total, hess)


def test_the_leaf_with_the_largest_gain_is_split():
    state = new_state(4)
    start_tree(state, RULES, packed(0, 20), 0)
    assert state.searched.tolist() == [True, False]
    find(state, 0, 50.0, 5, packed(10, 6))
    assert next_split(state, columns(), RULES) == 0
    assert state.splits[0, :6].tolist() == [5, 3, 1, ~0, ~1, 20] and state.split_gains[0] == 50.0
    assert state.totals[:2].tolist() == [packed(10, 6), packed(-10, 14)]
    assert state.pair.tolist() == [0, 1] and state.searched.all() and state.depths[:2].tolist() == [1, 1]
    assert state.slots[state.pair[1]] == 0  # the larger leaf has the histogram of the parent

    find(state, 0, 10.0**2 / 6 + 3.0, 1, packed(2, 3))  # gains 3
    find(state, 1, 10.0**2 / 14 + 4.0, 2, packed(-9, 13))  # gains 4
    assert next_split(state, columns(), RULES) == 1
    assert state.splits[:2, 3:5].tolist() == [[~0, 1], [~1, ~2]]
    assert state.pair.tolist() == [2, 1] and state.searched.tolist() == [False, True]  # one document cannot be split
    state.found_cuts[:] = NO_SPLIT
    assert next_split(state, columns(), RULES) == 0
    assert not state.searched.any()  # the tree has all its leaves
    assert next_split(state, columns(), RULES) == -1
    assert state.splits[0, 3:5].tolist() == [2, 1] and state.n_leaves[0] == 4


def test_splits_that_gain_nothing_and_leaves_that_are_deep_enough_are_left():
    state = new_state(8)
    start_tree(state, RULES, packed(6, 9), 0)
    find(state, 0, 4.0, 5, packed(3, 4))  # as much as the leaf has before: 6² / 9
    assert next_split(state, columns(), RULES) == -1 and state.n_leaves[0] == 1
    state, flat = new_state(8), RULES._replace(max_depth=1)
    start_tree(state, flat, packed(6, 9), 0)
    find(state, 0, 5.0, 5, packed(3, 4))
    assert next_split(state, columns(), flat) == 0 and not state.searched.any()
    assert next_split(state, columns(), flat) == -1


def test_a_signed_column_bounds_both_sides_by_the_middle_of_their_values():
    for sign in (1, -1):
        state, signs = new_state(4), np.zeros(16, np.int8)
        signs[5] = sign
        start_tree(state, RULES, packed(0, 20), 20)
        find(state, 0, 50.0, 5, packed(-12 * sign, 6), 6)
        assert next_split(state, columns(signs), RULES) == 0
        middle = (-12 * sign / 6 + 12 * sign / 14) / 2
        below, above = (0, 1) if sign > 0 else (1, 0)
        assert state.limits[below].tolist() == [-np.inf, middle] and state.limits[above].tolist() == [middle, np.inf]
