"""The best test of a level, against every test of every feature."""

import numpy as np
import pytest

from naive_trees import naive_histogram, naive_levels, whole_gradients
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.histograms import LANES, Columns
from ranksieve.kernels.oblivious import search_level

BITS, N_BINS, N_FEATURES = 10, 5, 6


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_test_of_a_level_is_the_best_over_all_of_its_leaves(seed, newton):
    rng = np.random.default_rng(seed)
    bins = np.zeros((80, LANES), np.uint8)
    bins[:, :N_FEATURES] = rng.integers(0, N_BINS, (80, N_FEATURES))
    bins[:, :3][rng.random((80, 3)) < 0.2] = 255
    grad, hess = whole_gradients(rng, 80)
    packed, allowed = (grad << BITS) + 1, np.zeros(LANES, np.int8)
    allowed[:N_FEATURES] = 1
    columns = Columns(np.full(LANES, N_BINS), allowed, np.zeros(0, np.int8), np.array([0, LANES]))
    rules = SplitRules(BITS, 0, 1.0, min_docs=4, min_hess=0.0, l2=0.5, newton=newton, max_depth=0)
    options = {"min_docs": 4, "newton": newton, "l2": 0.5}
    tests, _ = naive_levels(bins[:, :N_FEATURES], [N_BINS] * N_FEATURES, grad, hess, depth=3, **options)
    leaves = [np.arange(80)]
    for feature, split_bin, missing_left in tests:
        hist = np.concatenate([naive_histogram(bins[rows], packed[rows], hess[rows]) for rows in leaves])[:, None]
        totals, hess_totals = (np.array([one[rows].sum() for rows in leaves]) for one in (packed, hess))
        cut = np.zeros(3, np.int64)
        slots = np.arange(len(leaves))[::-1].copy()  # histograms stand in any order
        with np.errstate(invalid="ignore", divide="ignore"):  # of sides without rows, without the compiler
            assert search_level(hist[::-1].copy(), slots, totals, hess_totals, columns, rules, cut) > 0
        assert cut[:2].tolist() == [feature, split_bin]
        column = bins[:, feature]
        if (column == 255).any():
            assert cut[2] == missing_left
        left = np.where(column == 255, missing_left, column <= split_bin)
        leaves = [side for rows in leaves for side in (rows[left[rows]], rows[~left[rows]])]
