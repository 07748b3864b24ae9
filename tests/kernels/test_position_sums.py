"""Sums by position are integers: exact, and the same however rows are divided."""

import numpy as np

from ranksieve.kernels import position_sums as kernels


def sums(module, grad, hess, positions, n):
    out = np.zeros((n, 5), np.int64)
    module.position_sums(grad, hess, positions, out)
    return out


def test_sums_are_those_of_rounded_values(interpreted):
    module, rng = interpreted(kernels), np.random.default_rng(3)
    grad, hess, positions = rng.normal(size=40), rng.random(40), rng.integers(0, 4, 40).astype(np.int16)
    found = sums(module, grad, hess, positions, 5)
    for place in range(5):
        mine = positions == place
        for values, high, low in ((grad, module.GRAD, module.GRAD_LOW), (hess, module.HESS, module.HESS_LOW)):
            expected = np.rint(values[mine] * 2.0**module.EXPONENT).astype(np.int64).sum()
            assert (found[place, high] << module.LOW_BITS) + found[place, low] == expected
        assert found[place, module.COUNT] == mine.sum()


def test_parts_add_up_and_huge_values_are_cut(interpreted):
    module = interpreted(kernels)
    grad, hess = np.array([1e300, -0.25, 3.5, -np.inf]), np.array([0.5, 1e-12, 2.0, np.inf])
    positions = np.array([1, 0, 1, 1], np.int16)
    whole = sums(module, grad, hess, positions, 2)
    parts = [sums(module, grad[some], hess[some], positions[some], 2) for some in (slice(0, 1), slice(1, 4))]
    assert np.array_equal(whole, parts[0] + parts[1])
    largest = int(module.LARGEST * 2.0**module.EXPONENT)
    total = (int(whole[1, module.GRAD]) << module.LOW_BITS) + int(whole[1, module.GRAD_LOW])
    assert total == largest + int(3.5 * 2**module.EXPONENT) - largest
