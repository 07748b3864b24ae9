"""Gradients of XE-NDCG, against plain sums with the same random numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_objectives
from naive_random import uniforms
from ranksieve.kernels.xendcg import all_gradients
from ranksieve.threads import using_threads

DOCUMENTS = st.tuples(st.sampled_from([0.0, 0.0, 1.0, 3.0, 15.0]), st.integers(-20, 20).map(lambda n: n / 4))
LISTS = st.lists(st.lists(DOCUMENTS, min_size=1, max_size=8), min_size=2, max_size=4)
KEYS = st.integers(0, 2**64 - 1)


def gradients(gains, scores, sizes, key, rows=None):
    gains, scores = np.array(gains, float), np.array(scores, float)
    rows, offsets = np.arange(len(gains)) if rows is None else np.array(rows), np.cumsum([0, *sizes])
    grad, hess = np.full(len(gains), np.nan), np.full(len(gains), np.nan)
    with np.errstate(over="ignore"):  # of 64-bit numbers; interpreted, NumPy warns of it
        all_gradients(gains, scores, offsets, rows, np.uint64(key), grad, hess)
    return grad, hess


def check(gains, scores, sizes, key, rows):
    found = gradients(gains, scores, sizes, key, rows)
    expected = naive_objectives.xendcg(gains, scores, np.cumsum([0, *sizes]), uniforms(key, rows))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-13)
    return found


@settings(max_examples=60, deadline=None)
@given(LISTS, KEYS, st.randoms(use_true_random=False))
def test_gradients_are_the_plain_sums(lists, key, random):
    gains, scores = zip(*(one for own in lists for one in own), strict=True)
    rows = random.sample(range(1000), len(gains))
    check(gains, scores, [len(own) for own in lists], key, rows)


@pytest.mark.parametrize("gain", [0.0, 3.0])
def test_documents_of_equal_labels_differ_by_their_random_numbers(gain):
    rng = np.random.default_rng(1)
    gains = [1.0, 0.0, *[gain] * 5, 7.0, 0.0, 0.0]
    grad, hess = check(gains, [*rng.normal(size=2), *[0.5] * 5, *rng.normal(size=3)], [2, 5, 3], 8, range(40, 50))
    assert len(set(grad[2:7])) == 5 and hess[2:7] == pytest.approx(np.full(5, 0.2 * 0.8))


def test_a_list_of_one_document_or_of_none_has_no_gradients():
    grad, hess = check([1.0, 0.0, 7.0, 0.0, 3.0, 1.0], np.arange(6.0), [2, 1, 0, 3], 5, range(6))
    assert grad[2] == hess[2] == 0.0 and grad[[0, 1, 3, 4, 5]].all() and hess[[0, 1, 3, 4, 5]].all()


def test_a_second_list_does_not_see_the_first():
    rng = np.random.default_rng(2)
    gains, scores = rng.choice([0.0, 1.0, 3.0], 9), rng.normal(size=9)
    both = gradients(gains, scores, [4, 5], 3)
    alone = gradients(gains[4:], scores[4:], [5], 3, rows=range(4, 9))
    np.testing.assert_array_equal(np.array(both)[:, 4:], alone)


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
