"""Gradients of YetiLoss, against plain sums over the pairs of the same noisy orders."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_objectives
from naive_random import step_key, uniforms
from ranksieve.kernels.yetiloss import all_gradients, best_by_noise
from ranksieve.threads import using_threads

DOCUMENTS = st.tuples(st.sampled_from([0.0, 0.0, 1.0, 3.0, 15.0]), st.integers(-20, 20).map(lambda n: n / 4))
LISTS = st.lists(st.lists(DOCUMENTS, min_size=1, max_size=8), min_size=2, max_size=4)
KEYS = st.integers(0, 2**64 - 1)
SHAPE = 30, 5, 3  # truncation, neighbours and orders


def gradients(gains, scores, sizes, key, shape=SHAPE, rows=None, scale=1.0):
    gains, scores = np.array(gains, float), np.array(scores, float)
    rows, offsets = np.arange(len(gains)) if rows is None else np.array(rows), np.cumsum([0, *sizes])
    lists = (sorted(gains[start:stop], reverse=True) for start, stop in itertools.pairwise(offsets))
    ideals = np.array([naive.dcg(ranked, None, "linear") for ranked in lists], float)
    by_rank = np.array([scale / math.log2(rank + 2) for rank in range(max(sizes))])
    grad, hess = np.full(len(gains), np.nan), np.full(len(gains), np.nan)
    with np.errstate(over="ignore"):  # of 64-bit numbers; interpreted, NumPy warns of it
        all_gradients(gains, scores, offsets, rows, ideals, by_rank, np.uint64(key), np.array(shape), grad, hess)
    return grad, hess


def check(gains, scores, sizes, key, rows, shape=SHAPE):
    truncation, neighbours, orders = shape
    grad, hess = gradients(gains, scores, sizes, key, shape, rows)
    offsets, draws = np.cumsum([0, *sizes]), [uniforms(step_key(key, draw), rows) for draw in range(orders)]
    expected = naive_objectives.yetiloss(gains, scores, offsets, draws, truncation, neighbours)
    np.testing.assert_allclose(grad, expected[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(hess, expected[1], rtol=1e-10, atol=1e-13)
    for start, stop in itertools.pairwise(offsets):
        assert grad[start:stop].sum() == pytest.approx(0.0, abs=1e-12)  # what one wins another loses
    return grad, hess


@settings(max_examples=60, deadline=None)
@given(LISTS, KEYS, st.randoms(use_true_random=False), st.sampled_from([SHAPE, (2, 1, 2), (5, 100, 1), (1, 3, 3)]))
def test_gradients_are_the_plain_sums(lists, key, random, shape):
    gains, scores = zip(*(one for own in lists for one in own), strict=True)
    rows = random.sample(range(1000), len(gains))
    check(gains, scores, [len(own) for own in lists], key, rows, shape)


@pytest.mark.parametrize("shape", [(2, 3, 4), (30, 5, 4)])
def test_lists_that_are_longer_than_the_ranks_that_pair(shape):
    rng = np.random.default_rng(3)
    check(rng.choice([0.0, 0.0, 1.0, 3.0], 90), rng.normal(size=90), [20, 70], 9, rng.permutation(500)[:90], shape)


def test_discounts_are_those_that_are_given():
    rng = np.random.default_rng(5)
    gains, scores = rng.choice([0.0, 1.0, 3.0], 9), rng.normal(size=9)
    once, twice = (np.array(gradients(gains, scores, [4, 5], 3, scale=scale)) for scale in (1.0, 2.0))
    assert once.any()
    np.testing.assert_array_equal(twice, 2 * once)


@pytest.mark.parametrize("gain", [0.0, 3.0])
def test_documents_of_equal_labels_make_no_pairs(gain):
    rng = np.random.default_rng(1)
    gains = [1.0, 0.0, *[gain] * 5, 7.0, 0.0, 0.0]
    grad, hess = check(gains, rng.normal(size=10), [2, 5, 3], 8, range(40, 50))
    assert not grad[2:7].any() and not hess[2:7].any()
    assert grad[[0, 7]].min() > 0 > grad[[1, 8]].max()


def test_a_list_of_one_document_or_of_none_has_no_gradients():
    grad, hess = check([1.0, 0.0, 7.0, 0.0, 3.0, 1.0], np.arange(6.0), [2, 1, 0, 3], 5, range(6))
    assert grad[2] == hess[2] == 0.0 and grad[[0, 1, 3, 4, 5]].all() and hess[[0, 1, 3, 4, 5]].all()


def test_a_second_list_does_not_see_the_first():
    rng = np.random.default_rng(2)
    gains, scores = rng.choice([0.0, 1.0, 3.0], 9), rng.normal(size=9)
    both = gradients(gains, scores, [4, 5], 3)
    alone = gradients(gains[4:], scores[4:], [5], 3, rows=range(4, 9))
    np.testing.assert_array_equal(np.array(both)[:, 4:], alone)


@pytest.mark.parametrize("n_best", [1, 4, 12])
def test_an_order_is_by_score_plus_logistic_noise(n_best):
    rng = np.random.default_rng(n_best)
    scores, rows = rng.normal(size=12), rng.permutation(100)[:12]
    noise = [np.log(u / (1 - u)) for u in uniforms(7, rows)]
    with np.errstate(over="ignore"):
        order = best_by_noise(scores, rows, np.uint64(7), np.empty(12), n_best)
    assert order.tolist() == sorted(range(12), key=lambda i: -scores[i] - noise[i])[:n_best]


def test_scores_that_are_far_apart_have_finite_gradients():
    gains = [0.0, 1.0, 3.0, 0.0, 7.0, 0.0, 1.0]
    for scores in (np.zeros(7), np.linspace(-4000, 4000, 7), np.linspace(4000, -4000, 7)):
        grad, hess = gradients(gains, scores, [3, 4], 0)
        assert np.isfinite(grad).all() and np.isfinite(hess).all() and (hess >= 0).all()


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 9, 20)
    gains, scores = rng.choice([0.0, 1.0, 3.0], sizes.sum()), rng.normal(size=sizes.sum())
    found = []
    for threads in (1, 2, 3):
        with using_threads(threads):
            found.append(gradients(gains, scores, sizes, 6))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
