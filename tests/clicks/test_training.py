"""From a log to a model: posterior judgements, weights of lists, and training in one step."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from naive_clicks import posterior_means
from ranksieve.clicks.posterior import GRID_POINTS, posterior
from ranksieve.errors import ParameterError


@pytest.fixture(scope="module")
def data():
    return rs.synth.cubic(30)


@pytest.fixture(scope="module")
def log(data):
    return rs.clicks.simulate(data, data.features[:, 0], pages=1500, temperature=0.4, seed=2)


def test_posterior_means_are_those_of_plain_expectation_maximisation():
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 30, 60).astype(float)
    successes = rng.binomial(trials.astype(int), np.where(rng.random(60) < 0.3, 0.8, 0.1)).astype(float)
    found = posterior(successes, trials)
    assert found.mean == pytest.approx(posterior_means(successes, trials, GRID_POINTS, steps=400), abs=0.02)
    assert (found.low <= found.mean).all() and (found.mean <= found.high).all()
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


def test_posterior_tells_noise_from_relevance():
    rng = np.random.default_rng(2)
    relevance = np.where(rng.random(3000) < 0.2, 0.9, 0.1)
    trials = np.full(3000, 6.0)
    successes = rng.binomial(6, relevance).astype(float)
    found, linear = posterior(successes, trials).mean, (successes + 10 * successes.mean() / 6) / 16
    assert np.abs(found - relevance).mean() < 0.5 * np.abs(linear - relevance).mean()
    order = np.argsort(successes, kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all()  # more clicks, more relevance


def test_posterior_may_exceed_one_where_relevance_is_no_probability(log):
    judged = rs.clicks.judge(rs.clicks.fit(log, "coec"), shrinkage="auto")
    assert judged.relevance.max() > 1 and (judged.low <= judged.relevance).all()


def test_a_click_model_with_given_propensities_fits_attraction_alone(data, log):
    true = rs.clicks.Propensities.power(1, 10)
    model = rs.clicks.fit(log, "pbm", propensities=true)
    assert model.examination == pytest.approx(true.values)
    shown = log.pairs.sums(np.ones(len(log.clicks)))
    assert (model.examined <= shown + 1e-9).all() and (model.examined >= log.pairs.sums(log.clicks) - 1e-9).all()
    with pytest.raises(ParameterError, match="'sdbn' takes no propensities"):
        rs.clicks.fit(log, "sdbn", propensities=true)


def test_balance_weights_documents_by_how_often_they_were_shown(data, log):
    lists = rs.clicks.page_lists(log, data, balance=5)
    plain = rs.clicks.page_lists(log, data)
    assert plain.lists.weights is None and np.array_equal(lists.labels, plain.labels)
    times: dict = {}
    for page in range(log.n_pages):
        for row in range(log.offsets[page], log.offsets[page + 1]):
            key = log.queries[page], log.documents[row]
            times[key] = times.get(key, 0) + 1
    expected = []
    for page in lists.query_ids:
        for row in range(log.offsets[page], log.offsets[page + 1]):
            expected.append(1 / (5 + times[log.queries[page], log.documents[row]]))
    assert lists.lists.weights == pytest.approx(np.array(expected) / np.mean(expected), rel=1e-5)
    with pytest.raises(ParameterError, match="balance is -1"):
        rs.clicks.page_lists(log, data, balance=-1)


def test_judged_lists_weight_queries_by_their_ideal(data, log):
    judged = rs.clicks.judge(rs.clicks.fit(log))
    lists = rs.clicks.judged_lists(judged, data)
    ratios = []
    for query in range(lists.n_queries):
        own = slice(lists.offsets[query], lists.offsets[query + 1])
        gains = np.sort(2.0 ** lists.labels[own].astype(float) - 1)[::-1]
        ideal = (gains / np.log2(np.arange(2, 2 + len(gains)))).sum()
        assert len(set(lists.lists.weights[own])) == 1
        ratios.append(ideal / lists.lists.weights[own][0])
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-5)
    assert rs.clicks.judged_lists(judged, data, weights="none").lists.weights is None
    by_confidence = rs.clicks.judged_lists(judged, data, weights="confidence").lists.weights
    assert sorted(by_confidence) == pytest.approx(sorted(judged.confidence))
    with pytest.raises(ParameterError, match="weights is 'all'"):
        rs.clicks.judged_lists(judged, data, weights="all")


def test_documents_that_were_never_shown_get_the_lowest_label(data, log):
    few = log.take_pages(np.flatnonzero(log.queries != 4))  # a query without pages stays out
    judged = rs.clicks.judge(rs.clicks.fit(few), shrinkage="auto")
    shown, every = (rs.clicks.judged_lists(judged, data, others=others) for others in (False, True))
    assert every.query_ids.tolist() == [id for id in data.query_ids.tolist() if id != data.query_ids[4]]
    assert every.n_docs == data.n_docs - 50 and shown.n_docs == len(judged)
    known = {row.tobytes(): label for row, label in zip(shown.features, shown.labels, strict=True)}
    expected = [known.get(row.tobytes(), shown.labels.min()) for row in every.features]
    assert every.labels.tolist() == expected


def test_training_is_the_mean_of_its_three_models(data, log):
    small = {"trees": 4, "min_docs": 5, "l2": 1.0}
    model = rs.clicks.train(log, data, **small, threads=2)
    found = rs.clicks.propensities(log)
    judged = rs.clicks.judge(rs.clicks.fit(log, "pbm", propensities=found), shrinkage="auto")
    options = {"algo": "lambdamart", "leaves": 10, "learning_rate": 0.1, "early_stopping": 0, "threads": 1, **small}
    fixed = {"position_biases": found.biases, "position_rate": 0}
    parts = [
        rs.train(rs.clicks.page_lists(log, data, balance=10), **options, **fixed),
        rs.train(rs.clicks.judged_lists(judged, data), **options),
        rs.train(rs.clicks.judged_lists(judged, data, others=True), **options),
    ]
    scores = [part.predict(data) for part in parts]
    assert model.predict(data) == pytest.approx(np.mean([one / one.std() for one in scores], axis=0), abs=1e-5)
    given = rs.clicks.train(log, data, found, **small)
    assert np.array_equal(given.predict(data), model.predict(data))


def test_training_on_a_log_ranks_better_than_plain_clicks():
    train, test = rs.synth.cubic(120, seed=7), rs.synth.cubic(60, seed=7, start=120)
    weak = rs.clicks.logging_ranker(train, share=0.02)
    log = rs.clicks.simulate(train, weak, pages=4000, temperature=0.3)
    options = {"trees": 40, "leaves": 10, "learning_rate": 0.2, "early_stopping": 0}
    plain = rs.train(rs.clicks.page_lists(log, train), algo="lambdamart", position_rate=0, l2=100, **options)
    model = rs.clicks.train(log, train, **options)
    values = [np.nanmean(rs.metrics.ndcg(test.labels, one.predict(test), test.offsets)) for one in (plain, model)]
    assert values[1] > values[0] + 0.02
