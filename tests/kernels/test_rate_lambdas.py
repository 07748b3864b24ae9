"""λ-gradients of rates, against sums over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_clicks import rate_lambdas
from ranksieve.kernels.rate_lambdas import all_rate_lambdas

TRUNCATION = 30
DOCUMENTS = st.tuples(st.floats(0, 1), st.floats(0.01, 1), st.integers(-20, 20).map(lambda n: n / 4))
LISTS = st.lists(st.lists(DOCUMENTS, min_size=1, max_size=6), min_size=1, max_size=3)


def gradients(rates, weights, scores, sizes):
    grad, hess, by_rank = np.empty(len(rates)), np.empty(len(rates)), 1 / np.log2(np.arange(2, 2 + TRUNCATION))
    rates, weights, scores = (np.ascontiguousarray(one) for one in (rates, weights, scores))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    all_rate_lambdas(rates, weights, scores, offsets, by_rank, grad, hess)
    return grad, hess


@given(LISTS)
def test_gradients_are_those_of_all_pairs(lists):
    rates, weights, scores = np.concatenate([np.array(one) for one in lists]).T
    sizes = [len(one) for one in lists]
    grad, hess = gradients(rates, weights, scores, sizes)
    start = 0
    for size in sizes:
        own = slice(start, start + size)
        expected = rate_lambdas(rates[own], weights[own], scores[own], TRUNCATION)
        assert weights[own] * grad[own] == pytest.approx(np.array(expected[0]), rel=1e-6, abs=1e-9)
        assert weights[own] * hess[own] == pytest.approx(np.array(expected[1]), rel=1e-6, abs=1e-9)
        assert (weights[own] * grad[own]).sum() == pytest.approx(0, abs=1e-9)  # what one wins another loses
        start += size


def test_ranks_beyond_the_truncation_count_by_their_partners_alone():
    rng = np.random.default_rng(5)
    rates, weights, scores = rng.random(90), rng.random(90), rng.normal(size=90)
    grad, hess = gradients(rates, weights, scores, [20, 70])
    expected = rate_lambdas(rates[20:], weights[20:], scores[20:], TRUNCATION)
    assert weights[20:] * grad[20:] == pytest.approx(np.array(expected[0]), rel=1e-6, abs=1e-9)
    assert weights[20:] * hess[20:] == pytest.approx(np.array(expected[1]), rel=1e-6, abs=1e-9)
