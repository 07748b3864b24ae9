"""Metrics against plain Python, one list at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import metric_of_list
from ranksieve.evaluation.metric_table import BUILT_IN
from ranksieve.evaluation.metrics import Metric
from ranksieve.kernels.metrics import top_k

FEW_GRADES = st.sampled_from([0, 0, 1, 2, 2.5, 4])
FEW_SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0])  # few, so that many are tied
TABLE = (0.0, 1.0, 1.0, 5.0, 9.5)


@st.composite
def query_lists(draw, *, max_docs, grades=FEW_GRADES, scores=FEW_SCORES):
    """A few lists as nested Python lists: [(labels, scores), …]."""
    sizes = draw(st.lists(st.integers(0, max_docs), min_size=1, max_size=4))
    return [[draw(st.lists(values, min_size=n, max_size=n)) for values in (grades, scores)] for n in sizes]


def flat(lists):
    labels = np.array([label for labels, _ in lists for label in labels], dtype=np.float32)
    scores = np.array([score for _, scores in lists for score in scores], dtype=np.float64)
    return labels, scores, np.cumsum([0] + [len(labels) for labels, _ in lists])


@settings(max_examples=60, deadline=None)
@given(scores=st.lists(FEW_SCORES, max_size=40), k=st.integers(0, 45), shift=st.integers(0, 5))
def test_top_k_is_the_start_of_a_stable_sort(scores, k, shift):
    padded = np.array([9.0] * shift + scores + [9.0])
    rows = np.full(k, -1, dtype=np.int32)
    count = top_k(padded, shift, shift + len(scores), k, rows)
    expected = shift + np.argsort(-np.array(scores, dtype=np.float64), kind="stable")[:k]
    assert rows[:count].tolist() == expected.tolist()


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=40, deadline=None)
@given(lists=query_lists(max_docs=30), k=st.sampled_from([None, 1, 2, 3, 10, 50]))
def test_equals_plain_python(name, lists, k):
    k = 10 if k is None and BUILT_IN[name].needs_k else k
    arrays = flat(lists)
    highest = float(arrays[0].max(initial=0))
    expected = [metric_of_list(name, labels, scores, k, highest=highest) for labels, scores in lists]
    np.testing.assert_allclose(Metric(name, k).per_query(*arrays), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("ties", ["mean", "worst"])
@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=12, deadline=None)
@given(lists=query_lists(max_docs=5), k=st.sampled_from([None, 1, 2, 3, 7]))
def test_ties_equal_the_mean_and_the_minimum_over_all_orders(name, ties, lists, k):
    k = 3 if k is None and BUILT_IN[name].needs_k else k
    arrays = flat(lists)
    highest = float(arrays[0].max(initial=0))
    expected = [metric_of_list(name, labels, scores, k, ties=ties, highest=highest) for labels, scores in lists]
    np.testing.assert_allclose(Metric(name, k, ties=ties).per_query(*arrays), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["ndcg", "dcg", "avg-ndcg"])
@pytest.mark.parametrize("gain", ["linear", TABLE])
@settings(max_examples=15, deadline=None)
@given(lists=query_lists(max_docs=12, grades=st.integers(0, 4)))
def test_gains(name, gain, lists):
    expected = [metric_of_list(name, labels, scores, 4, gain=gain) for labels, scores in lists]
    np.testing.assert_allclose(Metric(name, 4, gain=gain).per_query(*flat(lists)), expected, rtol=1e-12)
