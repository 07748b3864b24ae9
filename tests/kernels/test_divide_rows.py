import numpy as np
import pytest

from ranksieve.kernels.divide_rows import CHUNK, divide_rows


@pytest.mark.parametrize("n", [0, 1, 50, 2 * CHUNK + 77])
def test_rows_are_divided_in_their_order_and_others_stay(n):
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 9, (n + 20, 3)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.1] = 255
    rows = rng.permutation(n + 20).astype(np.int32)
    before, values = rows.copy(), bins[:, 1]
    goes_left = rng.random(256) < 0.5
    border = divide_rows(bins, rows, np.empty_like(rows), 10, 10 + n, 1, goes_left)
    left = goes_left[values]
    inside = before[10 : 10 + n]
    expected = np.concatenate([before[:10], inside[left[inside]], inside[~left[inside]], before[10 + n :]])
    np.testing.assert_array_equal(rows, expected)
    assert border == 10 + left[inside].sum()
