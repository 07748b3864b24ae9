"""Metrics of the user's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metric_names import METRICS, register_metric
from ranksieve.evaluation.metrics import parse_metric


@pytest.fixture
def own_metric():
    def top_label(labels, scores, offsets, k):
        queries = itertools.pairwise(offsets)
        return [labels[a + np.argmax(scores[a:b])] if b - a > (k or 0) else np.nan for a, b in queries]

    register_metric("top-label", top_label)
    yield "top-label"
    del METRICS["top-label"]


def test_registered_metric(own_metric):
    lists = ([1, 3, 2, 0], [1, 1, 2, 0], [0, 2, 4])
    assert parse_metric("top-label").per_query(*lists).tolist() == [1, 2]
    assert parse_metric("Top-Label", ties="worst").per_query([3, 1], [1, 1], [0, 2]).tolist() == [1]
    assert parse_metric("top-label@5", empty=0).per_query(*lists).tolist() == [0, 0]
    with pytest.raises(ParameterError, match=r"top-label has no mean over orders of ties.*ndcg"):
        parse_metric(own_metric, ties="mean")
    for name in ("ndcg", "rr", "Two Words"):
        with pytest.raises(ParameterError):
            register_metric(name, lambda *_: 0)
    register_metric("top-label", lambda *_: 0.5)
    with pytest.raises(DataError, match="one number for each of the 2 queries"):
        parse_metric("top-label").per_query(*lists)


def test_a_function_is_named_by_its_own_name():
    def Best_Label(labels, scores, offsets, k):
        return np.maximum.reduceat(labels, offsets[:-1])

    lists = ([1, 3, 2, 0], [1, 1, 2, 0], [0, 2, 4])
    try:
        metric = parse_metric(Best_Label)
        assert str(metric) == "best-label" and metric.per_query(*lists).tolist() == [3, 2]
        assert parse_metric("best-label") == metric
    finally:
        METRICS.pop("best-label", None)
    other = type(lambda: 0)(Best_Label.__code__, Best_Label.__globals__, "Best_Label")
    other.__qualname__ = Best_Label.__qualname__
    register_metric("best-label", other)
    try:
        with pytest.raises(ParameterError, match="two metric functions are named 'best-label'"):
            parse_metric(Best_Label)
    finally:
        METRICS.pop("best-label", None)
    for wrong, message in ((lambda *_: 0, "register_metric"), (3, "not int")):
        with pytest.raises(ParameterError, match=message):
            parse_metric(wrong)

    def ndcg(labels, scores, offsets, k):
        return np.zeros(len(offsets) - 1)

    with pytest.raises(ParameterError, match="built-in"):
        parse_metric(ndcg)
