"""`next_split` by itself: which leaf is split, what is written down, and what is searched next; then whole trees."""

import numpy as np
import pytest
from numba import config

from naive_trees import grow_with_all_histograms
from ranksieve.kernels.category_splits import A_SET
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.growing import (
    BLOCK,
    FEW_ROWS,
    Histograms,
    grow_tree,
    new_state,
    next_split,
    start_tree,
)
from ranksieve.kernels.histograms import BY_SET, LANES, Columns, TreeRows, sum_leaf
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


needs_registers = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="registers exist in compiled code alone")
WIDE = 2 * BLOCK + LANES  # columns: blocks, and what is left of them
N_LEAVES = 24


def rows_of(n, n_planes):
    rng = np.random.default_rng(n)
    bins, members = rng.integers(0, 9, (n, WIDE)).astype(np.uint8), np.arange(n, dtype=np.int32)
    bins[:, 5::7] %= 4
    bins[rng.random((n, WIDE)) < 0.1] = 255
    grad = rng.integers(-50, 50, n) + 40 * (bins[:, 3] > 6) - 20 * (bins[:, BLOCK + 1] < 2)
    hess = rng.integers(1, 5, n) if n_planes == 2 else np.zeros(0, np.int64)
    return TreeRows(bins, members, np.empty_like(members), (grad << 20) + 1, hess.astype(np.int64))


@pytest.mark.parametrize(
    ("n_planes", "is_signed"),
    [pytest.param(1, False, marks=needs_registers), pytest.param(2, False, marks=needs_registers), (2, True)],
)
@pytest.mark.parametrize("n", [FEW_ROWS // 2, FEW_ROWS, FEW_ROWS + 1, 4 * FEW_ROWS])
def test_leaves_of_few_rows_need_no_histogram(n, n_planes, is_signed):
    rules = RULES._replace(count_bits=20, newton=n_planes == 2, l2=1.0, min_docs=7)
    borders, n_bins, allowed = np.array([0, BLOCK + LANES, WIDE]), np.full(WIDE, 9), np.ones(WIDE, np.int8)
    n_bins[5::7], allowed[4::9], allowed[6::9] = 4, BY_SET, 0
    signs = np.where(allowed == BY_SET, 0, np.arange(WIDE) % 3 - 1).astype(np.int8)
    columns = Columns(n_bins, allowed, signs if is_signed else signs[:0], borders, 1.0, 2.0, 4, 3, 5)
    shape = WIDE // LANES, n_planes, 256, LANES
    hist, spare = np.zeros((N_LEAVES, *shape), np.int64), np.empty((1, *shape), np.int64)
    expected = grow_with_all_histograms(rows_of(n, n_planes), columns, rules, hist, spare)
    bounds = np.zeros((N_LEAVES, 2), np.int64)
    sums = Histograms(np.full_like(hist, 99), spare, np.full((2, BLOCK // LANES, *shape[1:]), 99, np.int64))
    for has_root in (False, True):
        rows, state = rows_of(n, n_planes), new_state(N_LEAVES)
        if has_root:
            sum_leaf(rows, columns, 0, n, sums.leaves, spare, 0, -1)
        grow_tree(rows, columns, rules, sums, bounds, state, has_root)
        n_leaves = state.n_leaves[0]
        assert n_leaves == expected.n_leaves[0] > N_LEAVES // 2
        np.testing.assert_array_equal(state.splits[: n_leaves - 1], expected.splits[: n_leaves - 1])
        np.testing.assert_array_equal(state.split_gains[: n_leaves - 1], expected.split_gains[: n_leaves - 1])
        np.testing.assert_array_equal(state.totals, expected.totals)
        assert (state.splits[: n_leaves - 1, 1] == A_SET).any() and (
            bounds[:n_leaves, 1] - bounds[:n_leaves, 0] >= 7
        ).all()
        assert sorted(rows.members) == list(range(n))
