"""Tiles of matrices, against plain loops."""

import numba
import numpy as np
import pytest

from naive_lanes import PLAIN
from ranksieve.kernels.transpose import transpose_tile

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="registers exist in compiled code alone")


@numba.njit
def transpose(source, positions, target):
    transpose_tile(source, positions, 2, 5, target, 7, 40)


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_tiles_are_transposed(kind):
    rng = np.random.default_rng(1)
    source, positions = rng.integers(0, 256, 900).astype(kind), rng.integers(0, 850, 18)
    target = np.zeros(700, np.uint8 if kind == np.uint8 else np.float32)
    expected = target.copy()
    transpose(source, positions, target)
    PLAIN["transpose_tile"](source, positions, 2, 5, expected, 7, 40)
    assert target.tolist() == expected.tolist()
