"""From a log to a model: posterior judgements, weights of lists, and training in one step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from naive_clicks import posterior_means
from ranksieve.clicks import training
from ranksieve.clicks.posterior import posterior
from ranksieve.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def data():
    return rs.synth.cubic(30)


@pytest.fixture(scope="module")
def log(data):
    return rs.clicks.simulate(data, rs.clicks.LoggingPolicy(data.features[:, 0], 0.4), pages=1500, seed=2)


def test_posterior_means_are_those_of_plain_expectation_maximisation():
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 30, 60).astype(float)
    successes = rng.binomial(trials.astype(int), np.where(rng.random(60) < 0.3, 0.8, 0.1)).astype(float)
    found = posterior(successes, trials)
    assert found.mean == pytest.approx(posterior_means(successes, trials, 400, steps=400), abs=0.02)
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


def test_posterior_tells_small_relevances_apart():
    """Relevances from 0.001 to 0.02 on 100,000 examinations, among pairs of 0.003."""
    found = posterior(np.array([100.0, 400, 1000, 2000] + [300] * 50), np.full(54, 1e5))
    true = np.array([0.001, 0.004, 0.01, 0.02])
    assert found.mean[:4] == pytest.approx(true, rel=0.1)
    assert (found.low[:4] < true).all() and (true < found.high[:4]).all()
    assert (found.high[:4] - found.low[:4] < true / 2).all()


@given(
    rates=st.lists(st.floats(1e-3, 0.9), min_size=1, max_size=8),
    others=st.integers(0, 40),
    limited=st.booleans(),
)
def test_posterior_means_tend_to_the_rates_with_many_trials(rates, others, limited):
    """Whatever the other pairs are; these have few trials."""
    few = np.random.default_rng(others).integers(1, 9, others).astype(float)
    rates, trials = np.array(rates), np.concatenate([np.full(len(rates), 1e8), few])
    successes = np.concatenate([rates * 1e8, np.floor(few / 2)])
    found = posterior(successes, trials, limited=limited)
    assert found.mean[: len(rates)] == pytest.approx(rates, rel=1e-3)
    assert (found.high - found.low)[: len(rates)] == pytest.approx(0, abs=1e-3)


@given(
    pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1e4)), min_size=1, max_size=20),
    trials=st.floats(0.1, 1e4),
    limited=st.booleans(),
)
def test_posterior_means_rise_with_the_clicks_from_below_the_mean_of_the_prior(pairs, trials, limited):
    shares, shown = np.array(pairs).T
    shown = np.concatenate([shown, np.full(5, trials), [0.0]])
    clicked = np.concatenate([shares, [0, 0.1, 0.3, 0.31, 1.0], [0.0]]) * shown
    found = posterior(clicked, shown, limited=limited)
    alike, unknown = found.mean[-6:-1], found.mean[-1]  # a pair without trials has the mean of the prior
    assert (np.diff(alike) > 0).all()
    assert alike[0] < unknown
    if limited:
        assert unknown < alike[-1] < 1
    assert (found.low <= found.mean).all() and (found.mean <= found.high).all()
    assert np.isfinite(np.concatenate(found)).all() and ((found.confidence >= 0) & (found.confidence <= 1)).all()


def test_intervals_of_the_posterior_hold_the_relevance():
    rng = np.random.default_rng(4)
    trials, relevance = rng.integers(1, 60, 2000).astype(float), rng.beta(0.5, 20, 2000)
    found = posterior(rng.binomial(trials.astype(int), relevance).astype(float), trials)
    assert 0.9 < ((found.low <= relevance) & (relevance <= found.high)).mean() < 0.99


def test_rates_of_tiny_trials_do_not_stretch_the_prior():
    found = posterior(np.array([5.0, 0.0]), np.array([1e-9, 3.0]), limited=False)
    assert found.mean[1] < found.mean[0] < 7  # (5 + the mean of all) / (1e-9 + 1)


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
    with pytest.raises(ParameterError, match="so others has no effect; use weights='ideal' or"):
        rs.clicks.judged_lists(judged, data, weights="confidence", others=True)


def test_documents_that_were_never_shown_get_the_lowest_label(data, log):
    few = log.take_pages(np.flatnonzero(log.queries != 4))  # a query without pages stays out
    judged = rs.clicks.judge(rs.clicks.fit(few), shrinkage="auto")
    shown, every = (rs.clicks.judged_lists(judged, data, others=others) for others in (False, True))
    assert every.query_ids.tolist() == [id for id in data.query_ids.tolist() if id != data.query_ids[4]]
    assert every.n_docs == data.n_docs - 50 and shown.n_docs == len(judged)
    known = {row.tobytes(): label for row, label in zip(shown.features, shown.labels, strict=True)}
    expected = [known.get(row.tobytes(), shown.labels.min()) for row in every.features]
    assert every.labels.tolist() == expected


def test_training_is_the_mean_of_its_forests(data, log):
    small = {"trees": 4, "min_docs": 5, "l2": 1.0}
    model = rs.clicks.train(log, data, **small, seed=3, threads=2)
    found = rs.clicks.propensities(log)
    options = {"algo": "lambdamart", "leaves": 10, "learning_rate": 0.1, "early_stopping": 0, "threads": 1, **small}
    fixed = {"position_biases": found.biases, "position_rate": 0}
    of_pages = rs.train(rs.clicks.page_lists(log, data, balance=10), **options, **fixed, seed=3)
    rated = rs.clicks.rated_lists(log, data, found)
    halves = {"objective": rs.clicks.RateLambdas(), "row_fraction": 0.5, "feature_fraction": 0.5}
    of_queries = [rs.train(rated, **options, **halves, seed=seed) for seed in range(3, 8)]
    first, *others = (one.predict(data) / one.predict(data).std() for one in (of_pages, *of_queries))
    assert model.predict(data) == pytest.approx((first + 2 * np.mean(others, axis=0)) / 3, abs=1e-5)
    given = rs.clicks.train(log, data, found, **small, seed=3)
    assert np.array_equal(given.predict(data), model.predict(data))
    other_names = {"n_estimators": 4, "min_data_in_leaf": 5, "lambda_l2": 1.0, "num_leaves": 10, "random_state": 3}
    assert np.array_equal(rs.clicks.train(log, data, found, **other_names).predict(data), model.predict(data))


def test_forests_of_queries_stop_by_queries_that_they_leave_out(monkeypatch):
    data = rs.synth.cubic(56, docs=15)
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(data.features[:, 0], 0.5), pages=2000, seed=5)
    log = replace(log, clicks=log.clicks & np.repeat(log.queries != 4, log.sizes))  # a query without clicks
    calls = []

    def recorded(lists, **options):
        calls.append((lists, options, rs.train(lists, **options)))
        return calls[-1][-1]

    monkeypatch.setattr(training, "train_lists", recorded)
    model = rs.clicks.train(log, data, trees=12, min_docs=5, l2=1.0, seed=2)
    (_, of_pages, first), *others = calls
    assert "valid" not in of_pages and of_pages["early_stopping"] == 0 and first.n_trees == 12
    every, held_out = set(data.query_ids.tolist()), []
    for lists, options, forest in others:
        own = options["valid"].query_ids.tolist()
        assert set(lists.query_ids.tolist()) == every - set(own) and len(own) == 11
        assert options["early_stopping"] == 100 and forest.n_trees == forest.info["best_iteration"]
        held_out += own
    assert sorted(held_out) == sorted(every - {int(log.query_ids[4])})
    assert [options["seed"] for _, options, _ in others] == [2, 3, 4, 5, 6]
    assert model.n_trees == sum(forest.n_trees for *_, forest in calls) < 72

    calls.clear()  # too few queries with clicks
    few = log.take_pages(np.flatnonzero(log.queries < 50))
    assert rs.clicks.train(few, data, trees=3, min_docs=5, l2=1.0).n_trees == 18
    assert not any("valid" in options for _, options, _ in calls)

    for options in ({"early_stopping": 0}, {"valid": data}):  # forests that stop by other lists, or not at all
        calls.clear()
        rs.clicks.train(log, data, min_docs=5, l2=1.0, **options)
        assert all(lists.n_queries == 56 for lists, _, _ in calls[1:])
        assert [forest.n_trees for *_, forest in calls] == [100] * 6


def test_training_refuses_a_log_whose_clicks_tell_nothing_apart(data):
    ids = [str(number) for number in range(3)]
    turns = [ids[place:] + ids[:place] for place in range(3)]
    pages = [
        {"query": query, "documents": turn, "clicks": [0]}
        for query in data.query_ids[:2].tolist() for turn in turns
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"all 6 documents shown have the same relevance .* use more pages"):
        rs.clicks.train(rs.clicks.read(pages), data, rs.clicks.Propensities([1, 0.5, 0.3]))


def test_training_on_a_log_ranks_better_than_plain_clicks():
    train, test = rs.synth.cubic(120, seed=7), rs.synth.cubic(60, seed=7, start=120)
    weak = rs.clicks.logging_ranker(train, share=0.02)
    log = rs.clicks.simulate(train, rs.clicks.LoggingPolicy(weak, 0.3), pages=4000)
    options = {"trees": 40, "leaves": 10, "learning_rate": 0.2, "early_stopping": 0}
    plain = rs.train(rs.clicks.page_lists(log, train), algo="lambdamart", position_rate=0, l2=100, **options)
    model = rs.clicks.train(log, train, **options)
    values = [np.nanmean(rs.metrics.ndcg(test.labels, one.predict(test), test.offsets)) for one in (plain, model)]
    assert values[1] > values[0] + 0.02
