from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_combination
from ranksieve.boosting.line_search import LineSearch, best_step
from ranksieve.data.lists import Lists
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metrics import parse_metric

METRICS = [
    "ndcg@10", "ndcg@3", "ndcg@1", "ndcg", "map", "map@5", "mrr@2", "err@3", "dcg@4", "p@2", "recall@3", "rbp",
    "avg-p@3", "nDCG@3", "AP(rel=2)", "R(rel=2)@3",
]  # fmt: skip


def lists_of(labels, sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Lists(np.array(labels, np.float32), offsets, np.arange(len(sizes)))


@st.composite
def lines(draw):
    """Two or more queries; few different numbers, so that equal lines, ties and joint crossings abound."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=2, max_size=4))
    n = sum(sizes)
    few = st.sampled_from([-2.0, -1.0, 0.0, 0.25, 0.5, 1.0, 3.0])
    many = st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 3))
    numbers = draw(st.sampled_from([few, many]))
    labels = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 4]), min_size=n, max_size=n))
    labels[0] = 1
    scores, direction = (np.array(draw(st.lists(numbers, min_size=n, max_size=n))) for _ in range(2))
    return lists_of(labels, sizes), scores, direction


@settings(max_examples=60, deadline=None)
@given(lines(), st.sampled_from(METRICS), st.sampled_from([(0.0, 1.0), (0.1, 5.0), (-3.0, 2.0)]))
def test_curve_equals_the_sweep_over_all_pairs(data, name, bounds):
    lists, scores, direction = data
    metric = parse_metric(name, ties="mean")
    borders, values = naive_combination.sweep(metric, lists.labels, scores, direction, lists.offsets, *bounds)
    curve = LineSearch(lists, parse_metric(name)).curve(scores, direction, *bounds)
    wide = np.diff(borders) > 1e-9  # rounded arithmetic cannot distinguish narrower ones
    middles = 0.5 * (np.array(borders[:-1]) + np.array(borders[1:]))
    np.testing.assert_allclose(curve.at(middles[wide]), np.array(values)[wide], atol=1e-12)
    assert (np.diff(curve.borders) >= 0).all() and curve.borders[[0, -1]].tolist() == list(bounds)


@settings(max_examples=40, deadline=None)
@given(lines(), st.sampled_from(METRICS))
def test_best_step_is_the_best_of_the_sweep(data, name):
    lists, scores, direction = data
    metric = parse_metric(name, ties="mean")
    borders, values = naive_combination.sweep(metric, lists.labels, scores, direction, lists.offsets, 0.0, 2.0)
    step, value, curve = best_step(LineSearch(lists, parse_metric(name)), scores, direction, 0.0, 2.0)
    wide = np.diff(borders) > 1e-9
    assert value == pytest.approx(np.array(values)[wide].max(), abs=1e-12)
    i = np.searchsorted(borders, step) - 1
    assert values[i] == pytest.approx(value, abs=1e-12)
    assert curve.at(np.array([step]))[0] == pytest.approx(value, abs=1e-12)


def long_lists(n_queries=3, size=600, seed=0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n_queries * size) < 0.02) * rng.integers(1, 5, n_queries * size)
    scores, direction = rng.standard_normal((2, n_queries * size))
    return lists_of(labels, [size] * n_queries), scores + 0.3 * labels, direction + 0.3 * labels


@pytest.mark.parametrize("name", ["ndcg@10", "map@20", "err@10"])
def test_top_of_long_lists_equals_measuring_anywhere(name):
    lists, scores, direction = long_lists()
    search = LineSearch(lists, parse_metric(name))
    curve = search.curve(scores, direction, -1.0, 4.0)
    assert len(curve.values) > 20
    for i in np.flatnonzero(np.diff(curve.borders) > 1e-9):
        middle = curve.borders[i : i + 2].mean()
        assert search.measure(scores + middle * direction) == pytest.approx(curve.values[i], abs=1e-12)


def test_tied_base_scores_and_few_slopes():
    """The first tree: every document starts alike, and a leaf's documents stay tied."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 900)
    lists = lists_of(labels, [300] * 3)
    direction = rng.choice([-0.5, 0.0, 0.25, 1.0], 900)
    curve = LineSearch(lists, parse_metric("ndcg@10")).curve(np.zeros(900), direction, 0.1, 5.0)
    assert len(curve.values) == 1
    search = LineSearch(lists, parse_metric("ndcg@10"))
    assert curve.values[0] == pytest.approx(search.measure(direction), abs=1e-12)


def test_conventions_of_the_metric_are_kept():
    lists = lists_of([0, 0, 1, 0, 2, 2], [2, 2, 2])
    scores, direction = np.array([1.0, 2, 0, 1, 1, 2]), np.array([0.0, 0, 2, 0, 1, 1])
    for options in ({"empty": 0}, {"empty": 1}, {"one_label": "skip"}, {"gain": "linear"}):
        metric = parse_metric("ndcg@10", **options)
        curve = LineSearch(lists, metric).curve(scores, direction, 0.0, 1.0)
        assert curve.borders.tolist() == [0.0, 0.5, 1.0]
        search = LineSearch(lists, metric)
        measured = [search.measure(scores + t * direction) for t in (0.25, 0.75)]
        np.testing.assert_allclose(curve.values, measured, atol=1e-14)


def test_queries_count_by_their_weights():
    lists, scores, direction = long_lists(size=40)
    lists.labels[[3, 41, 90]] = 1
    weighted = replace(lists, weights=np.repeat([0.5, 0.0, 3.0], 40))
    search = LineSearch(weighted, parse_metric("ndcg@10"))
    curve = search.curve(scores, direction, 0.0, 1.0)
    assert len(curve.values) > 3
    for left, right, value in zip(curve.borders[:-1], curve.borders[1:], curve.values, strict=True):
        at = 0.5 * (left + right)
        per_query = search.metric.per_query(lists.labels, scores + at * direction, lists.offsets)
        assert value == pytest.approx(np.average(per_query, weights=[0.5, 0.0, 3.0]), abs=1e-12)
        assert search.measure(scores + at * direction) == pytest.approx(value, abs=1e-12)


def test_bad_input():
    lists = lists_of([1, 0], [2])
    with pytest.raises(ParameterError, match="smaller number first"):
        LineSearch(lists, parse_metric("ndcg")).curve(np.zeros(2), np.ones(2), 2.0, 1.0)
    with pytest.raises(ParameterError, match="the line search does not support"):
        LineSearch(lists, parse_metric("avg-ndcg@5"))
    with pytest.raises(DataError, match="undefined"):
        LineSearch(lists_of([0, 0], [2]), parse_metric("ndcg"))
