import numpy as np
import pytest

from ranksieve.kernels.leaf_values import PARTS, add_next_leaf_values, sum_leaves
from ranksieve.threads import using_threads


@pytest.mark.parametrize("n", [0, 3, 1000])
def test_sums_of_leaves_are_exact_for_any_number_of_threads(n):
    rng = np.random.default_rng(n)
    members = rng.permutation(n + 5)[:n].astype(np.int32)  # some rows are in no leaf
    borders = [0, *sorted(rng.integers(0, n + 1, PARTS)), n]
    bounds = rng.permutation(np.stack([borders[:-1], borders[1:]], axis=1))  # also empty leaves, in any order
    grad, hess = rng.normal(size=n + 5), rng.random(n + 5)
    expected = [
        [np.rint(values[members[low:high]] * 2.0**exponent).astype(np.int64).sum() for low, high in bounds]
        for values, exponent in ((grad, 40), (hess, 30))
    ]
    for threads in (1, 2):
        with using_threads(threads):
            found = sum_leaves(members, bounds, grad, hess, ((2.0**20, 2.0**20), (2.0**15, 2.0**15)))
        assert found.tolist() == expected


def test_the_next_tree_is_added_to_rows_that_have_the_trees_before():
    members, bounds = np.array([5, 3, 0, 1], np.int32), np.array([[2, 4], [0, 2]])
    scores, done = np.zeros(6), np.array([7, 7, 7, 6, 7, 7], np.int32)
    add_next_leaf_values(members, bounds, np.array([1.0, 2.0]), 7, scores, done)
    assert scores.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 2.0]  # row 3 lacks a tree, 2 and 4 are in no leaf
    assert done.tolist() == [8, 8, 7, 6, 7, 8]
