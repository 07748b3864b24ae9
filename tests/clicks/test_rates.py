"""Click rates as labels, and λ-gradients of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from naive_clicks import rated
from ranksieve.boosting.views import ObjectiveView
from ranksieve.errors import DataError, ParameterError, RanksieveWarning
from ranksieve.evaluation.metrics import parse_metric


@pytest.fixture(scope="module")
def data():
    return rs.synth.cubic(20)


@pytest.fixture(scope="module")
def log(data):
    return rs.clicks.simulate(data, rs.clicks.LoggingPolicy(data.features[:, 0], 0.4), pages=600, seed=3)


def gradients(rates, weights, scores, sizes, truncation=30):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels, weights = np.asarray(rates, np.float32), None if weights is None else np.asarray(weights)
    metric = parse_metric("ndcg@10")
    view = ObjectiveView(labels, np.asarray(scores, float), offsets, None, 0, 0, metric, 1.0, {}, 0, weights)
    return rs.clicks.RateLambdas(truncation)(view)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_two_documents_come_to_rest_where_their_scores_are_the_logits_of_their_rates(first, second):
    rates = np.array([first, second], np.float32).astype(float)
    grad, hess = gradients(rates, None, np.log(rates / (1 - rates)), [2])
    assert grad == pytest.approx(np.zeros(2), abs=1e-6) and (hess > 0).all()


def test_rated_lists_have_clicks_per_exposure(data, log):
    few = log.take_pages(np.flatnonzero(log.queries != 4))  # a query without pages stays out
    propensities = rs.clicks.Propensities([1, 0.6, 0.4])
    lists = rs.clicks.rated_lists(few, data, propensities, balance=2)
    expected = rated(few, [1, 0.6, 0.4])
    assert lists.n_docs == len(expected) and lists.lists.positions is None
    assert lists.query_ids.tolist() == [id for id in data.query_ids.tolist() if id != data.query_ids[4]]
    places = {row.tobytes(): number for number, row in enumerate(data.features)}
    queries = np.repeat(data.query_ids.astype(str), data.lists.sizes)
    for row, rate, weight in zip(lists.features, lists.labels, lists.lists.weights, strict=True):
        number = places[row.tobytes()]
        own, exposure = expected[queries[number], str(number % 50)]
        assert (rate, weight) == (pytest.approx(own, rel=1e-6), pytest.approx(exposure / (2 + exposure), rel=1e-6))
    with pytest.raises(ParameterError, match="balance is -1"):
        rs.clicks.rated_lists(log, data, propensities, balance=-1)


def test_training_warns_once_of_documents_without_features_and_names_the_caller(data, log):
    weights, known = rs.clicks.propensities(log), data.take_queries(np.arange(3, 20))
    with pytest.warns(RanksieveWarning) as warned:
        rs.clicks.train(log, known, weights, trees=1)
    (one,) = (one for one in warned if "no features and are left out" in str(one.message))
    assert one.filename == __file__


def test_rated_lists_leave_out_documents_without_features(data, log):
    propensities = rs.clicks.propensities(log)
    known = data.take_queries(np.arange(3, 20))
    with pytest.warns(RanksieveWarning, match="documents shown have no features and are left out"):
        lists = rs.clicks.rated_lists(log, known, propensities)
    every = rs.clicks.rated_lists(log, data, propensities)
    assert np.array_equal(lists.labels, every.take_queries(np.arange(3, 20)).labels)
    with pytest.raises(DataError, match="the data has none of the documents shown"):
        rs.clicks.rated_lists(rs.clicks.read([{"query": "x", "documents": ["y"], "clicks": [0]}]), data, propensities)


def test_rates_are_right_on_average_where_there_is_exposure(data):
    weak = data.features[:, 0]
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(weak, 0.5), pages=4000, seed=1)
    lists = rs.clicks.rated_lists(log, data, rs.clicks.Propensities.power(1, 10))
    relevance = 0.1 + 0.9 * (2.0 ** data.labels.astype(float) - 1) / (2.0 ** data.labels.max() - 1)
    places = {row.tobytes(): number for number, row in enumerate(data.features)}
    true = relevance[[places[row.tobytes()] for row in lists.features]]
    often = lists.lists.weights > 0.8
    assert lists.labels[often].mean() == pytest.approx(true[often].mean(), rel=0.05)
    assert lists.labels[lists.lists.weights < 0.3].mean() < true[lists.lists.weights < 0.3].mean()  # at most 1


def test_weights_follow_the_rows_of_a_selection_and_of_samples(data, log):
    lists = rs.clicks.rated_lists(log, data, rs.clicks.propensities(log))
    options = {"objective": rs.clicks.RateLambdas(), "trees": 3, "min_docs": 5, "early_stopping": 0}
    plain = rs.train(lists, algo="lambdamart", **options)
    same = rs.train(lists, algo="selgb", negatives=1.0, **options)
    assert np.array_equal(same.predict(data), plain.predict(data))
    even = lists.with_rows(replace(lists.lists, weights=None), np.arange(lists.n_docs))
    assert not np.array_equal(rs.train(even, algo="lambdamart", **options).predict(data), plain.predict(data))
    assert rs.train(lists, algo="selgb", negatives=0.3, min_negatives=1, bag=2, **options).n_trees == 6


def test_grades_are_refused():
    with pytest.raises(DataError, match="labels from 0 to 4; RateLambdas expects rates from 0 to 1"):
        rs.train(rs.synth.cubic(5), objective=rs.clicks.RateLambdas(), trees=2)


def test_each_pair_has_a_document_in_the_top_ranks(data, log):
    rates, scores = np.linspace(0.1, 0.9, 8), np.arange(8, 0, -1)
    some, every = (gradients(rates, None, scores, [3, 5], truncation)[0] for truncation in (1, 30))
    assert not np.array_equal(some, every)
    for start, stop in ((0, 3), (3, 8)):  # with truncation 1, λ is the sum over the pairs with the first document
        first = 0.0
        for other in range(start + 1, stop):
            alone, _ = gradients(rates[[start, other]], None, scores[[start, other]], [2], 1)
            assert alone[0] == -alone[1] != 0
            assert np.sign(some[other]) == np.sign(alone[1])
            first -= some[other]
        assert some[start] == pytest.approx(first)
    lists = rs.clicks.rated_lists(log, data, rs.clicks.propensities(log))
    assert rs.train(lists, objective=rs.clicks.RateLambdas(7), trees=2).info["params"]["truncation"] == 7
    with pytest.raises(ParameterError, match="truncation"):
        rs.train(lists, objective=rs.clicks.RateLambdas(0), trees=2)
