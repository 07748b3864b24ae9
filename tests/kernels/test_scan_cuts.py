"""The vectorised search for cuts against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from naive_trees import exact_gains
from ranksieve.kernels.gain import Node, SplitRules, cut_terms
from ranksieve.kernels.histograms import LANES
from scanned_cuts import scanned

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="vector registers exist in compiled code only")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("gain", ["variance", "variance, least", "newton"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_scanning_sixteen_features_equals_one_after_the_other(gain, packed, seed):
    """The four kinds of `scan_cuts` against plain loops, on sums small enough for exact fractions."""
    rng = np.random.default_rng(seed)
    count_bits, n_bins, min_docs = 10, int(rng.integers(1, 30)), int(rng.integers(1, 4))
    min_hess, l2 = (0.0, 0) if gain == "variance" else (rng.integers(0, 12) / 2, int(rng.integers(0, 3)))
    limits = {"min_docs": min_docs, "min_hess": min_hess, "newton": gain == "newton", "l2": l2}
    hist = np.zeros((2, n_bins, LANES), np.int64)
    n_docs, gradients, seconds = 60, rng.integers(-40, 40, 60), rng.integers(0, 3, 60)
    for k in range(LANES):
        bins = rng.integers(0, n_bins, n_docs)
        np.add.at(hist[0, :, k], bins, (gradients << count_bits) + 1)
        np.add.at(hist[1, :, k], bins, seconds)
    total, total_hess = hist[:, :, 0].sum(axis=1).tolist()
    rules = SplitRules(count_bits, 0, 1.0, min_docs, float(min_hess), float(l2), gain == "newton", 0)
    if packed:
        counts, grads = hist[0] & ((1 << count_bits) - 1), hist[0] >> count_bits
        group = ((grads << (count_bits + 9)) + (hist[1] << count_bits) + counts)[None]
        rules = rules._replace(hess_bits=9)
        node = Node(int(group[0, :, 0].sum()), 0, -np.inf, np.inf)
    else:
        group, node = hist[: 1 if gain == "variance" else 2], Node(total, total_hess, -np.inf, np.inf)
    gains, cuts = scanned(group, n_bins, node, rules)
    for k in range(LANES):
        values, least = exact_gains(hist[:, :, k], count_bits, **limits)
        best = max(values.values(), default=least)
        if best <= least:  # both sides have the mean of the leaf
            assert cuts[k] == -1 or gains[k] == pytest.approx(float(least))
            continue
        assert gains[k] == pytest.approx(float(best)) == pytest.approx(float(values[cuts[k]]))
        same = [b for b, value in values.items() if value == values[cuts[k]] and same_sums(hist[:, :, k], b, cuts[k])]
        assert cuts[k] == min(same)  # empty bins make no other cut


def same_sums(column, a, b):
    return (column[:, : a + 1].sum(axis=1) == column[:, : b + 1].sum(axis=1)).all()


@pytest.mark.parametrize("newton", [False, True])
def test_a_least_sum_beyond_all_integers_allows_no_cut(newton):
    rules = SplitRules(10, 9, 2.0**-20, 1, 1e300, 1.0, newton, 0)
    assert cut_terms(Node((3 << 19) + (40 << 10) + 20, 0, -np.inf, np.inf), rules).most_hess == -1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("newton", [False, True])
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 1.0]))
@settings(max_examples=30, deadline=None)
def test_bins_in_the_reverse_order_have_the_same_gain(newton, packed, seed, l2):
    """Sides that are exchanged: the one with little weight is as exact as the other. Some sums begin above 0."""
    rng = np.random.default_rng(seed)
    count_bits, hess_bits, n_bins = 10, 27 if packed else 0, 12
    hess = rng.integers(0, 1 << (24 if packed else 57), (n_bins, LANES)) >> rng.integers(0, 24, (n_bins, LANES))
    grad, count = rng.integers(-(1 << 20), 1 << 20, (n_bins, LANES)), rng.integers(0, 9, (n_bins, LANES))
    for sums in (hess, grad, count):  # all columns are of the same rows
        sums[-1] += sums.sum(axis=0).max() - sums.sum(axis=0)
    plane = (grad << (count_bits + hess_bits)) + count
    group = np.stack([plane + (hess << count_bits)] if packed else [plane, hess])
    node = Node(int(group[0, :, 0].sum()), 0 if packed else int(hess[:, 0].sum()), -np.inf, np.inf)
    rules = SplitRules(count_bits, hess_bits, 2.0**-20 if packed else 2.0**-50, 3, 0.0, l2, newton, 0)
    gains, cuts = scanned(group, n_bins - 1, node, rules)
    reverse, reverse_cuts = scanned(np.ascontiguousarray(group[:, ::-1]), n_bins - 1, node, rules)
    assert ((cuts >= 0) == (reverse_cuts >= 0)).all()
    assert gains == pytest.approx(reverse, rel=1e-13)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("l2", [0.0, 1e-18, 1e-9, 0.1])
def test_a_side_with_little_weight_has_a_finite_gain(packed, l2):
    """One row of almost no second derivative, alone on its side of a cut."""
    count_bits, hess_bits, n_bins = 10, 31 if packed else 0, 3
    group = np.zeros((1 if packed else 2, n_bins, LANES), np.int64)
    grads, hesses = (5, -5, 0), ((1 << 30) - 3, (1 << 29), 0) if packed else ((1 << 59) - 3, 1 << 58, 0)
    for b, (grad, hess) in enumerate(zip(grads, hesses, strict=True)):
        group[0, b] = (grad << (count_bits + hess_bits)) + 1
        group[0 if packed else 1, b] += hess << count_bits if packed else hess
    node = Node(int(group[0, :, 0].sum()), 0 if packed else int(group[1, :, 0].sum()), -np.inf, np.inf)
    rules = SplitRules(count_bits, hess_bits, 2.0**-29 if packed else 2.0**-58, 1, 0.0, l2, True, 0)
    gains, cuts = scanned(group, n_bins - 1, node, rules)
    assert (cuts == 0).all()
    assert gains == pytest.approx(np.full(LANES, 25 / (2 + l2) + 25 / (1 + l2)), rel=1e-6)


@pytest.mark.parametrize("exponent", [0, -60, -115, -400, -530, -1000])
@pytest.mark.parametrize("n_planes", [1, 2])
def test_units_that_vanish_beside_l2(n_planes, exponent):
    rng = np.random.default_rng(0)
    grad, hess = rng.integers(-500, 500, (12, LANES)), rng.integers(1, 50, (12, LANES))
    if n_planes == 2:
        hess <<= 50  # sums up to about 2^59
    for sums in (grad, hess):  # all columns are of the same rows
        sums[-1] += sums.sum(axis=0).max() - sums.sum(axis=0)
    group = np.stack([(grad << 20) + 4, hess]) if n_planes == 2 else ((grad << 40) + (hess << 20) + 4)[None]
    node = Node(int(group[0, :, 0].sum()), int(hess[:, 0].sum()) if n_planes == 2 else 0, -np.inf, np.inf)
    rules = SplitRules(20, 0 if n_planes == 2 else 20, 2.0**exponent, 3, 0.0, 1.0, True, 0)
    gains, cuts = scanned(group, 11, node, rules)
    left, unit = np.cumsum(grad, axis=0)[:-1].astype(float), 2.0**exponent
    x = np.cumsum(hess, axis=0)[:-1] * unit + 1.0
    y = (hess.sum(axis=0) - np.cumsum(hess, axis=0)[:-1]) * unit + 1.0
    expected = left**2 / x + (grad.sum(axis=0) - left) ** 2 / y
    np.testing.assert_array_equal(cuts, expected.argmax(axis=0))
    np.testing.assert_allclose(gains, expected.max(axis=0))
