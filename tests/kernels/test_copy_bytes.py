"""Copying rows of bytes."""

import numpy as np
import pytest
from numba import config

from ranksieve.kernels.copy_bytes import copy_bytes, copy_rows, take_rows
from ranksieve.kernels.row_slots import ABSENT

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


@pytest.mark.parametrize("width", [16, 48, 64, 80, 224])
def test_rows_are_copied_to_their_slots(width):
    """Rows 100:150 of 200, some of them to slots in another order; other slots stay as they are."""
    rng = np.random.default_rng(width)
    bins, matrix = (rng.integers(0, 256, (50, width), dtype=np.uint8) for _ in range(2))
    rows = np.sort(rng.permutation(50)[:30]).astype(np.int32) + np.int32(100)
    slots = np.full(200, ABSENT, np.int32)
    slots[rows] = rng.permutation(50)[:30]
    expected = matrix.copy()
    expected[slots[rows]] = bins[rows - 100]
    copy_rows(0, len(rows), bins, 100, rows, slots, matrix)
    np.testing.assert_array_equal(matrix, expected)
