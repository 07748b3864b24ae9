"""The vectorised search for cuts against plain loops."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config, njit

from ranksieve.kernels.gain import Node, SplitRules
from ranksieve.kernels.histograms import LANES
from ranksieve.kernels.scan_cuts import scan_cuts, scan_cuts_of_packed, scan_cuts_of_two, scan_newton_cuts_of_packed

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="vector registers exist in compiled code only")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("gain", ["variance", "variance, least", "newton"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_scanning_sixteen_features_equals_one_after_the_other(gain, packed, seed):
    """The four kinds of `scan_cuts` against plain loops, on sums small enough for exact fractions."""
    rng = np.random.default_rng(seed)
    count_bits, n_bins, min_docs = 10, int(rng.integers(1, 30)), int(rng.integers(1, 4))
    min_hess, l2 = (0.0, 0) if gain == "variance" else (float(rng.integers(0, 6)), int(rng.integers(0, 3)))
    hist = np.zeros((2, n_bins, LANES), np.int64)
    n_docs, gradients, seconds = 60, rng.integers(-40, 40, 60), rng.integers(0, 3, 60)
    for k in range(LANES):
        bins = rng.integers(0, n_bins, n_docs)
        np.add.at(hist[0, :, k], bins, (gradients << count_bits) + 1)
        np.add.at(hist[1, :, k], bins, seconds)
    total, total_hess = hist[:, :, 0].sum(axis=1).tolist()
    left, left_hess, gains, cuts = (np.zeros(LANES, kind) for kind in (np.int64, np.int64, np.float64, np.int64))
    cuts -= 1
    node = Node(total, total_hess, -np.inf, np.inf)
    rules = SplitRules(count_bits, 0, 1.0, min_docs, min_hess, float(l2), gain == "newton", 0)
    common = hist.reshape(-1), n_bins, node, rules, left, gains, cuts
    if packed:
        counts, grads = hist[0] & ((1 << count_bits) - 1), hist[0] >> count_bits
        one_plane = (grads << (count_bits + 9)) + (hist[1] << count_bits) + counts
        node, rules = Node(int(one_plane[:, 0].sum()), 0, -np.inf, np.inf), rules._replace(hess_bits=9)
        scanned_packed(one_plane.reshape(-1), n_bins, node, rules, left, gains, cuts)
    elif gain == "variance":
        scanned(*common)
    else:
        scanned_of_two(*common, left_hess)
    for k in range(LANES):
        best, where = Fraction(0), -1
        for b in range(n_bins):
            part, h = hist[:, : b + 1, k].sum(axis=1).tolist()
            n, g = part & ((1 << count_bits) - 1), part >> count_bits
            x, y = (h + l2, total_hess - h + l2) if gain == "newton" else (n, n_docs - n)
            if min(n, n_docs - n) >= min_docs and min(h, total_hess - h) >= min_hess and min(x, y) > 0:
                value = Fraction(g * g, x) + Fraction((int(gradients.sum()) - g) ** 2, y)
                best, where = (value, b) if value > best else (best, where)
        assert cuts[k] == where
        assert gains[k] == pytest.approx(float(best))


@njit
def scanned(hist, n_bins, node, rules, left, gains, cuts):
    scan_cuts(hist, n_bins, node, rules, left, gains, cuts)


@njit
def scanned_packed(hist, n_bins, node, rules, left, gains, cuts):
    if rules.newton:
        scan_newton_cuts_of_packed(hist, n_bins, node, rules, left, gains, cuts)
    else:
        scan_cuts_of_packed(hist, n_bins, node, rules, left, gains, cuts)


@njit
def scanned_of_two(hist, n_bins, node, rules, left, gains, cuts, left_hess):
    scan_cuts_of_two(hist, n_bins, node, rules, left, gains, cuts, n_bins * LANES, left_hess)
