"""Distinct values and the cuts between them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.kernels import binning

FLOATS = st.floats(-(2.0**100), 2.0**100, width=32)


@pytest.mark.parametrize("capacity", [3, 200])
def test_distinct_values_are_tracked_over_blocks(interpreted, capacity):
    module, rng = interpreted(binning), np.random.default_rng(0)
    columns = rng.choice([-2.5, 0.0, 1.0, 7.0, np.nan], (4, 60)).astype(np.float32)
    columns[1] = 3.0
    columns[2, 40] = columns[2, 50] = np.inf
    columns[3] = rng.normal(size=60)
    distinct, counts = np.zeros((4, capacity), np.float32), np.zeros(4, np.int64)
    missing, bad = np.zeros(4, bool), np.zeros(4, np.int64)
    with np.errstate(over="ignore"):
        for first in (0, 20, 40):
            module.track_distinct(columns[:, first : first + 20], distinct, counts, missing, bad)
            assert bad.tolist() == [-1, -1, 0 if first == 40 else -1, -1]
    for f, column in enumerate(columns):
        expected = np.unique(column[np.isfinite(column)])
        assert missing[f] == np.isnan(column).any()
        assert counts[f] == min(len(expected), capacity + 1)
        if counts[f] <= capacity:
            assert distinct[f, : counts[f]].tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(FLOATS, FLOATS)
def test_a_threshold_is_between_two_values(a, b):
    low = np.float32(min(a, b))
    for high in (np.float32(max(a, b)), np.nextafter(low, np.float32(np.inf))):
        found = getattr(binning.between, "py_func", binning.between)(low, high)
        assert low <= found
        assert found < high or low == high
        assert type(found) is np.float32


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 12))
def test_cuts_make_bins_of_whole_values(values, max_bins):
    cuts = getattr(binning.quantile_cuts, "py_func", binning.quantile_cuts)
    ordered, out = np.sort(np.array(values, np.float32)), np.full(80, np.nan, np.float32)
    n = cuts(ordered, max_bins, out)
    found, distinct = out[:n], np.unique(ordered)
    assert n < max_bins
    assert (np.diff(found) > 0).all()
    below = np.searchsorted(distinct, found, side="right")  # a cut stands on a value or between two, before the last
    assert ((below > 0) & (below < len(distinct))).all()
    assert len(np.unique(below)) == n
    sizes = np.diff(np.concatenate([[0], np.searchsorted(ordered, found, side="right"), [len(ordered)]]))
    for value, count in zip(*np.unique(ordered, return_counts=True), strict=True):
        if count >= len(ordered) / max_bins and max_bins >= 2 * len(distinct):
            assert sizes[np.searchsorted(found, value)] == count  # it has a bin of its own


@pytest.mark.parametrize(("n_distinct", "each", "max_bins"), [(12, 5, 4), (16, 1, 16), (9, 2, 3)])
def test_equal_weights_make_equal_bins(interpreted, n_distinct, each, max_bins):
    ordered, out = np.repeat(np.arange(n_distinct, dtype=np.float32), each), np.empty(n_distinct, np.float32)
    n = interpreted(binning).quantile_cuts(ordered, max_bins, out)
    step = n_distinct // max_bins
    assert out[:n].tolist() == [step * (number + 1) - 0.5 for number in range(max_bins - 1)]
