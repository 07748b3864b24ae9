"""Copying rows of bytes."""

import numpy as np
import pytest
from numba import config

from ranksieve.kernels.copy_bytes import copy_bytes, take_rows

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="vector registers exist in compiled code only")


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 200])
def test_bytes_are_copied_to_their_place_and_no_others_change(n):
    source, target = np.arange(300, dtype=np.uint8), np.full(300, 7, np.uint8)
    expected = target.copy()
    expected[40 : 40 + n] = source[30 : 30 + n]
    copy_bytes(source, 30, n, target, 40)
    assert (target == expected).all()


@pytest.mark.parametrize("width", [16, 64, 224])
@pytest.mark.parametrize("n", [0, 1, 5, 40])
def test_rows_are_taken_as_numpy_takes_them(width, n):
    rng = np.random.default_rng(width + n)
    matrix, rows = rng.integers(0, 256, (50, width)).astype(np.uint8), rng.integers(0, 50, n).astype(np.int32)
    assert (take_rows(matrix, rows) == np.take(matrix, rows, axis=0)).all()
