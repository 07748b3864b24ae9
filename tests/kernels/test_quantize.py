"""Ranks of values among thresholds, against searching the sorted thresholds."""

import numpy as np
import pytest

from ranksieve.data import binning
from ranksieve.kernels import quantize


@pytest.mark.parametrize("n_thresholds", [1, 15, 16, 31, 63, 100, 200, 254])
def test_ranks_are_those_of_a_search(interpreted, n_thresholds):
    module, rng = interpreted(quantize, binning), np.random.default_rng(n_thresholds)
    other, thresholds = np.array([-1.0, 2.0]), np.sort(rng.normal(size=n_thresholds).astype(np.float32))
    starts = np.array([0, 2, 2 + n_thresholds])
    heaps, heap_starts, levels = binning.heaps_of(np.concatenate([other, thresholds]), starts)
    assert levels.tolist() == [4, max(4, int(n_thresholds).bit_length())]
    values = np.concatenate([rng.normal(size=40), thresholds[:20], [np.nan, np.inf, -np.inf]]).astype(np.float32)
    padded = np.zeros(16 * -(-len(values) // 16) + 5, np.float32)
    padded[5 : 5 + len(values)] = values
    out = np.zeros(len(padded) + 3, np.uint8)
    module.rank_column(padded, 5, len(values), heaps, heap_starts[1], levels[1], out, 3)
    expected = np.where(np.isnan(values), 255, np.searchsorted(thresholds, values))  # how many lie below
    assert out[3 : 3 + len(values)].tolist() == expected.tolist()
    assert out[:3].tolist() == [0, 0, 0]
