import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from ranksieve.boosting.objectives.lambdas import LambdaNdcg
from ranksieve.errors import DataError
from rule_samples import OBJECTIVES, gradients, lambda_gradients


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


def average_precision(labels, k):
    precisions = [sum(label > 0 for label in labels[: r + 1]) / (r + 1) for r in range(len(labels))]
    return sum(precisions[r] for r in range(min(k, len(labels))) if labels[r] > 0) / sum(label > 0 for label in labels)


def reciprocal_rank(labels, k):
    return next((1 / (r + 1) for r in range(min(k, len(labels))) if labels[r] > 0), 0.0)


def expected_reciprocal_rank(labels, k, highest):
    total, reading = 0.0, 1.0
    for r, label in enumerate(labels[:k]):
        stop = (2.0 ** float(label) - 1) / 2.0**highest
        total += reading * stop / (r + 1)
        reading *= 1 - stop
    return total


@settings(max_examples=60, deadline=None)
@given(ranked_lists(), st.sampled_from([1, 2, 3, 10, 1000]), st.booleans(), st.sampled_from(["map", "mrr", "err"]))
def test_other_metrics_count_pairs_by_their_change_when_swapped(lists, truncation, normalize, name):
    labels, scores, offsets = lists
    highest = max(1.0, float(labels.max()))
    value = {
        "map": lambda ranked: average_precision(ranked, truncation),
        "mrr": lambda ranked: reciprocal_rank(ranked, truncation),
        "err": lambda ranked: expected_reciprocal_rank(ranked, truncation, highest),
    }[name]
    grad, hess = lambda_gradients(labels, scores, offsets, objective=name, truncation=truncation, normalize=normalize)
    expected_grad, expected_hess = naive.lambdas(labels, scores, offsets, truncation, normalize, value)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hess, expected_hess, rtol=1e-9, atol=1e-12)


def test_the_metrics_of_the_oracle_are_those_that_are_measured():
    rng = np.random.default_rng(0)
    from ranksieve.evaluation.metrics import parse_metric

    for _ in range(20):
        labels = rng.integers(0, 4, 12)
        labels[5] = 3
        scores = -np.arange(12.0)
        measured = {k: parse_metric(f"{k}@5").per_query(labels, scores, [0, 12])[0] for k in ("map", "mrr", "err")}
        assert measured["map"] == pytest.approx(average_precision(labels, 5))
        assert measured["mrr"] == pytest.approx(reciprocal_rank(labels, 5))
        assert measured["err"] == pytest.approx(expected_reciprocal_rank(labels, 5, 3))


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


def test_a_label_too_large_for_exponential_gain_is_refused():
    for label in (500, 5000):
        with pytest.raises(DataError, match=rf"label {label} is too large .* gains='0,1,3'"):
            lambda_gradients(np.array([0, label], np.float32), np.zeros(2), np.array([0, 2]))


def test_one_rule_serves_several_lists():
    rule, offsets, scores = LambdaNdcg(), np.array([0, 2, 5]), np.array([0.5, 0.2, 0.1, 0.7, 0.3])
    for labels in np.array([[0, 1, 2, 0, 1], [1, 0, 0, 2, 1]], np.float32):
        again = gradients(rule, labels, scores, offsets)
        np.testing.assert_array_equal(again, gradients(rule, labels, scores, offsets))
        np.testing.assert_array_equal(again, gradients(LambdaNdcg(), labels, scores, offsets))
