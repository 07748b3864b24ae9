import numpy as np
import pytest

from ranksieve.kernels.rounding import PART, absolute_sums, largest_absolute, round_rows


@pytest.mark.parametrize("n", [0, 1, PART, PART + 9])
def test_largest_and_sum_of_absolute_values_are_those_of_numpy(n):
    values = np.random.default_rng(n).normal(size=n)
    assert largest_absolute(values) == np.abs(values).max(initial=0.0)
    expected = np.rint(np.abs(values) * 2.0**30).astype(np.int64)
    squares = (expected >> 15) ** 2
    assert absolute_sums(values, (2.0**15, 2.0**15)) == (expected.sum(), squares.sum())
    out = np.empty(n, np.int64)
    round_rows(values, (2.0**15, 2.0**15), 3, 1, out)
    assert out.tolist() == ((np.rint(values * 2.0**30).astype(np.int64) << 3) + 1).tolist()
