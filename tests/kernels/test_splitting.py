"""The best cut among the columns of a group, against every cut of every column."""

import numpy as np
import pytest
from numba import config

from naive import best_split
from naive_trees import naive_histogram, whole_gradients
from ranksieve.kernels.gain import Node, SplitRules
from ranksieve.kernels.histograms import LANES, Columns
from ranksieve.kernels.splitting import improve_split

BITS, N_BINS = 10, 6
registers = pytest.mark.skipif(config.DISABLE_JIT, reason="vector registers exist in compiled code only")


@pytest.mark.parametrize("is_signed", [pytest.param(False, marks=registers), True])
@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_cut_is_the_best_of_all(seed, newton, is_signed):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, N_BINS, (2 * 50, LANES)).astype(np.uint8)
    bins[:, ::2][rng.random((100, LANES // 2)) < 0.2] = 255
    grad, hess = whole_gradients(rng, 100)
    signs = rng.integers(-1, 2, LANES).astype(np.int8) if is_signed else np.zeros(0, np.int8)
    rules = SplitRules(BITS, 0, 1.0, min_docs=9, min_hess=0.0, l2=0.5, newton=newton, max_depth=0)
    columns = Columns(np.full(LANES, N_BINS), np.ones(LANES, np.int8), signs, np.array([0, LANES]))
    for rows in (slice(0, 50), slice(50, 100)):  # two leaves
        packed = (grad[rows] << BITS) + 1
        node = Node(int(packed.sum()), int(hess[rows].sum()), -np.inf, np.inf)
        gain, cut = np.zeros(1), np.zeros(9, np.int64)
        improve_split(naive_histogram(bins[rows], packed, hess[rows])[0], columns, 0, node, rules, gain, cut)
        expected = best_split(
            bins[rows], [N_BINS] * LANES, grad[rows], hess[rows], min_docs=9, newton=newton, l2=0.5,
            signs=signs if is_signed else None,
        )  # fmt: skip
        assert gain[0] == pytest.approx(expected[0])
        values = bins[rows, cut[0]]
        left = np.where(values == 255, cut[2] == 1, values <= cut[1])
        assert cut[3:5].tolist() == [packed[left].sum(), hess[rows][left].sum()]
        if not (values == 255).any():  # values that are missing later go with the majority
            assert cut[2] == (2 * left.sum() >= len(left))


def test_columns_that_are_not_allowed_are_passed_over():
    rng = np.random.default_rng(9)
    bins = rng.integers(0, N_BINS, (40, LANES)).astype(np.uint8)
    grad, hess = whole_gradients(rng, 40)
    packed, allowed = (grad << BITS) + 1, np.zeros(LANES, np.int8)
    allowed[5] = 1
    columns = Columns(np.full(LANES, N_BINS), allowed, np.zeros(LANES, np.int8), np.array([0, LANES]))
    rules = SplitRules(BITS, 0, 1.0, min_docs=2, min_hess=0.0, l2=0.0, newton=False, max_depth=0)
    gain, cut = np.zeros(1), np.zeros(9, np.int64)
    node = Node(int(packed.sum()), int(hess.sum()), -np.inf, np.inf)
    improve_split(naive_histogram(bins, packed, hess)[0], columns, 0, node, rules, gain, cut)
    assert cut[0] == 5 and gain[0] == pytest.approx(best_split(bins[:, 5:6], [N_BINS], grad, hess, min_docs=2)[0])
