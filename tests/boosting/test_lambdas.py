import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from ranksieve.boosting.objectives import lambda_ndcg
from ranksieve.errors import DataError


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
    grad, hess = lambda_ndcg(truncation=truncation, normalize=normalize)(labels, scores, offsets)
    expected_grad, expected_hess = naive.lambdas(labels, scores, offsets, truncation, normalize)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hess, expected_hess, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.add.reduceat(grad, offsets[:-1]), 0.0, atol=1e-12)


def test_a_second_query_does_not_see_the_first():
    labels = np.array([0, 1, 0, 2, 0, 0], np.float32)
    scores = np.array([0.3, 0.2, 0.1, -0.5, 0.7, 0.6])
    both = lambda_ndcg(truncation=2)(labels, scores, np.array([0, 3, 6]))
    alone = lambda_ndcg(truncation=2)(labels[3:], scores[3:], np.array([0, 3]))
    np.testing.assert_array_equal(both[0][3:], alone[0])
    np.testing.assert_array_equal(both[1][3:], alone[1])


def test_a_label_too_large_for_exponential_gain_is_refused():
    with pytest.raises(DataError, match="overflows"):
        lambda_ndcg()(np.array([0, 5000], np.float32), np.zeros(2), np.array([0, 2]))
