"""The best set of categories, against trying the same sets one by one."""

import numpy as np
import pytest

from naive_trees import naive_histogram, naive_set, whole_gradients
from ranksieve.kernels.category_splits import A_SET, SET, WIDTH, fill_goes_left, improve_by_sets
from ranksieve.kernels.gain import Node, SplitRules
from ranksieve.kernels.histograms import BY_SET, LANES, Columns
from ranksieve.params import Params

BITS, COLUMN = 10, 3


def members(words):
    return [b for b in range(256) if int(words[b // 64]) >> (b % 64) & 1]


@pytest.mark.parametrize("n_bins", [3, 20, 90])
@pytest.mark.parametrize("gain_name", ["newton", "variance"])
@pytest.mark.parametrize("is_bounded", [False, True])
def test_the_set_is_the_naive_best(n_bins, gain_name, is_bounded):
    rng = np.random.default_rng(n_bins)
    params = Params(gain=gain_name, l2=0.5, min_docs=5, min_docs_per_group=4, cat_smooth=2.0, cat_l2=1.0)
    bins = np.zeros((2 * 200, LANES), np.uint8)
    bins[:, COLUMN] = rng.integers(0, n_bins, 400)
    bins[rng.random(400) < 0.1, COLUMN] = 255
    grad, hess = whole_gradients(rng, 400)
    rules = SplitRules(BITS, 0, 1.0, params.min_docs, 0.0, params.l2, params.newton_gain, 0)
    allowed = np.zeros(LANES, np.int8)
    allowed[COLUMN] = BY_SET
    columns = Columns(
        np.full(LANES, n_bins), allowed, np.zeros(LANES if is_bounded else 0, np.int8), np.array([0, LANES]),
        params.cat_smooth, params.cat_l2, params.max_cat_threshold, params.max_cat_to_onehot, params.min_docs_per_group,
    )  # fmt: skip
    for rows in (slice(0, 200), slice(200, 400)):  # two leaves
        packed = (grad[rows] << BITS) + 1
        node = Node(int(packed.sum()), int(hess[rows].sum()), -np.inf, np.inf)
        gain, cut = np.zeros(1), np.zeros(WIDTH, np.int64)
        improve_by_sets(naive_histogram(bins[rows], packed, hess[rows])[0], columns, 0, node, rules, gain, cut)
        best, expected = naive_set(bins[rows, COLUMN], n_bins, grad[rows], hess[rows], params)
        assert cut[:3].tolist() == [COLUMN, A_SET, 0] and members(cut[SET:]) == expected
        assert gain[0] == pytest.approx(best)
        left = np.isin(bins[rows, COLUMN], expected)
        assert cut[3:5].tolist() == [packed[left].sum(), hess[rows][left].sum()]


def test_which_bins_go_left():
    goes_left, words = np.zeros(256, bool), np.zeros(4, np.int64)
    fill_goes_left(70, True, words, goes_left)
    assert np.flatnonzero(goes_left).tolist() == [*range(71), 255]
    words[0], words[1], words[3] = 1 << 5, -(1 << 63), 1 << 2
    fill_goes_left(A_SET, False, words, goes_left)
    assert np.flatnonzero(goes_left).tolist() == [5, 127, 194]
