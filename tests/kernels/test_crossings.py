"""A metric along a line of scores, against measuring it between all crossings."""

import numpy as np
import pytest

from naive_combination import weighted_sum
from ranksieve.kernels import crossings


def lines(seed, sizes=(7, 1, 11)):
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *sizes])
    intercepts, slopes = rng.normal(size=offsets[-1]).round(1), rng.normal(size=offsets[-1]).round(1)
    return rng, intercepts, slopes, rng.integers(0, 4, offsets[-1]).astype(float), offsets


@pytest.mark.parametrize(("seed", "k"), [(0, 3), (1, 1), (2, 20)])
def test_changes_add_up_to_the_metric_everywhere(interpreted, seed, k):
    module = interpreted(crossings)
    rng, intercepts, slopes, gains, offsets = lines(seed)
    weights, scales, low, high = 1 / np.log2(np.arange(2, 40)), np.array([0.5, 2.0, 1.0]), -2.0, 3.0
    first = np.empty(3)
    times, deltas = module.sweep_queries(
        intercepts, slopes, gains, offsets, scales, low, high, k, module.WEIGHTED, weights, first
    )
    assert ((low <= times) & (times < high)).all()
    for place in rng.uniform(low, high, 60):
        expected = sum(
            scale * weighted_sum(intercepts[a:b], slopes[a:b], gains[a:b], place, weights, k)
            for scale, a, b in zip(scales, offsets[:-1], offsets[1:], strict=True)
        )
        assert first.sum() + deltas[times <= place].sum() == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2, 6])
def test_other_documents_never_reach_the_first_ranks(interpreted, k):
    module = interpreted(crossings)
    rng, intercepts, slopes, _, _ = lines(k, (30,))
    kept = {*module.candidates(intercepts, slopes, 0.25, 0.75, k).tolist()}
    assert len(kept) < 30
    for place in rng.uniform(0.25, 0.75, 50):
        assert {*np.argsort(-(intercepts + place * slopes), kind="stable")[:k].tolist()} <= kept
