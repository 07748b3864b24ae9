"""λ-gradients against the double loop over all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from rule_samples import OBJECTIVES, lambda_gradients


@st.composite
def ranked_lists(draw):
    sizes = draw(st.lists(st.integers(1, 15), min_size=2, max_size=4))
    n = sum(sizes)
    labels = draw(st.lists(st.sampled_from([0, 0, 0, 0.5, 1, 2, 4]), min_size=n, max_size=n))
    scores = draw(st.lists(st.sampled_from([-2.0, -0.25, 0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    return np.array(labels, np.float32), np.array(scores), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@settings(max_examples=60, deadline=None)
@given(ranked_lists(), st.sampled_from([1, 3, 10, 1000]), st.booleans())
def test_lambdas_equal_the_double_loop_and_sum_to_zero(lists, truncation, normalize):
    labels, scores, offsets = lists
    grad, hess = lambda_gradients(labels, scores, offsets, truncation=truncation, normalize=normalize)
    expected_grad, expected_hess = naive.lambdas(labels, scores, offsets, truncation, normalize)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hess, expected_hess, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.add.reduceat(grad, offsets[:-1]), 0.0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(ranked_lists(), st.sampled_from([1, 2, 3, 10, 1000]), st.booleans(), st.sampled_from(["map", "mrr", "err"]))
def test_other_metrics_count_pairs_by_their_change_when_swapped(lists, truncation, normalize, name):
    labels, scores, offsets = lists
    highest = max(1.0, float(labels.max()))
    value = {
        "map": lambda ranked: naive.average_precision(ranked, truncation),
        "mrr": lambda ranked: naive.reciprocal_rank(ranked, truncation),
        "err": lambda ranked: naive.err(list(map(float, ranked)), truncation, highest),
    }[name]
    grad, hess = lambda_gradients(labels, scores, offsets, objective=name, truncation=truncation, normalize=normalize)
    expected_grad, expected_hess = naive.lambdas(labels, scores, offsets, truncation, normalize, value)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hess, expected_hess, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_metric_moves_positives_up_and_negatives_down(name):
    labels = np.array([0, 2, 0, 0, 0, 1, 2], np.float32)
    grad, hess = lambda_gradients(labels, np.zeros(7), np.array([0, 3, 7]), objective=name)
    assert grad[1] > 0 and grad[6] > 0 and (grad[[0, 4]] < 0).all() and (hess >= 0).all()


def test_a_very_high_grade_of_err_stays_finite():
    labels = np.array([0, 900, 1, 0, 900], np.float32)
    for scores in (np.zeros(5), np.arange(5.0), -np.arange(5.0)):
        grad, hess = lambda_gradients(labels, scores, np.array([0, 3, 5]), objective="err")
        assert np.isfinite(grad).all() and np.isfinite(hess).all() and (hess >= 0).all()


def test_a_second_query_does_not_see_the_first():
    labels = np.array([0, 1, 0, 2, 0, 0], np.float32)
    scores = np.array([0.3, 0.2, 0.1, -0.5, 0.7, 0.6])
    both = lambda_gradients(labels, scores, np.array([0, 3, 6]), truncation=2)
    alone = lambda_gradients(labels[3:], scores[3:], np.array([0, 3]), truncation=2)
    np.testing.assert_array_equal(both[0][3:], alone[0])
    np.testing.assert_array_equal(both[1][3:], alone[1])
