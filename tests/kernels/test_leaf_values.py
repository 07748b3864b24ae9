import numpy as np
import pytest

from ranksieve.kernels.leaf_values import PARTS, sum_leaves
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
