"""Simulated users click as their model says, and training data has the right documents."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from naive_clicks import true_relevance
from ranksieve.errors import DataError, ParameterError, RanksieveWarning


@pytest.fixture(scope="module")
def data():
    return rs.synth.cubic(40)


def test_the_same_seed_gives_the_same_log(data):
    policy = rs.clicks.LoggingPolicy(data.features[:, 0], temperature=0.5)
    logs = [rs.clicks.simulate(data, policy, pages=300, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(logs[0].documents, logs[1].documents) and np.array_equal(logs[0].clicks, logs[1].clicks)
    assert not np.array_equal(logs[0].clicks, logs[2].clicks)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_position_bias_and_noise_are_as_given(data, eta):
    log = rs.clicks.simulate(
        data, rs.clicks.LoggingPolicy(temperature=5.0), rs.clicks.Users(eta=eta, noise=0.2), pages=60_000, seed=3
    )
    relevance = true_relevance(data, log)
    for place in (0, 1, 4):
        for wanted in (0.0, 1.0):
            rows = (log.places == place) & (relevance == wanted)
            chance = (0.2 + 0.8 * wanted) / (place + 1) ** eta
            assert log.clicks[rows].mean() == pytest.approx(chance, abs=4 * np.sqrt(0.25 / rows.sum()))


def test_trust_bias_makes_users_click_irrelevant_documents_at_the_top(data):
    log = rs.clicks.simulate(
        data,
        rs.clicks.LoggingPolicy(temperature=5.0),
        rs.clicks.Users("trust", eta=0.0, trust=0.6),
        pages=60_000,
        seed=3,
    )
    irrelevant = true_relevance(data, log) == 0
    shares = [log.clicks[irrelevant & (log.places == place)].mean() for place in range(3)]
    assert shares == pytest.approx([0.6, 0.3, 0.2], abs=0.03)


def test_a_cascade_ends_with_its_click(data):
    log = rs.clicks.simulate(data, users="cascade", pages=500)
    assert np.add.reduceat(log.clicks, log.offsets[:-1], dtype=int).max() == 1
    several = rs.clicks.simulate(data, users=rs.clicks.Users("dbn", noise=0.6), pages=2000)
    assert np.add.reduceat(several.clicks, several.offsets[:-1], dtype=int).max() > 1


def test_pages_show_the_best_of_the_ranker(data):
    scores = data.features[:, 3]
    log = rs.clicks.simulate(data, scores, pages=50, depth=4)
    for page in range(log.n_pages):
        query = log.queries[page]
        own = scores[data.offsets[query] : data.offsets[query + 1]]
        shown = log.doc_ids[log.documents[log.offsets[page] : log.offsets[page + 1]]].astype(int)
        assert np.array_equal(shown, np.argsort(-own, kind="stable")[:4])
    mixed = rs.clicks.simulate(data, [scores, -scores], pages=400, depth=4)
    assert len(mixed.pairs) > 1.9 * len(log.pairs)


def test_short_lists_make_short_pages():
    data = rs.Dataset.from_arrays(np.eye(5), [1, 0, 2, 0, 1], qid=["b", "b", "b", "a", "a"], doc_ids=list("vwxyz"))
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=1.0, swaps=0.5), pages=40, depth=10)
    assert set(log.sizes.tolist()) == {2, 3}
    for query, documents in (("b", "vwx"), ("a", "yz")):
        rows = np.repeat(log.query_ids[log.queries] == query, log.sizes)
        assert set(log.doc_ids[log.documents[rows]]) == set(documents)


def test_a_logging_ranker_is_better_than_chance_and_worse_than_training_on_all():
    train, test = rs.synth.cubic(300), rs.synth.cubic(60, start=300)
    weak = rs.clicks.logging_ranker(train, share=0.01)
    full = rs.train(train, algo="ranksvm")
    values = [ndcg_of(model, test) for model in (weak, full)]
    chance = ndcg_of(np.random.default_rng(0).random(test.n_docs), test)
    assert chance < values[0] < values[1]


def ndcg_of(model, data):
    scores = model if isinstance(model, np.ndarray) else model.predict(data)
    return float(np.nanmean(rs.metrics.ndcg(data.labels, scores, data.offsets)))


def test_page_lists_are_the_pages(data):
    log = rs.clicks.simulate(data, data.features[:, 2], pages=300, seed=4)
    lists = rs.clicks.page_lists(log, data)
    clicked = np.add.reduceat(log.clicks, log.offsets[:-1], dtype=int) > 0
    assert lists.n_queries == clicked.sum() and lists.lists.weights is None
    page = int(np.flatnonzero(clicked)[1])
    query, own = log.queries[page], slice(log.offsets[page], log.offsets[page + 1])
    rows = data.offsets[query] + log.doc_ids[log.documents[own]].astype(int)
    mine = slice(lists.offsets[1], lists.offsets[2])
    assert np.array_equal(lists.features[mine], data.features[rows])
    assert np.array_equal(lists.labels[mine], log.clicks[own])


def test_weights_are_inverse_propensities(data):
    log = rs.clicks.simulate(data, data.features[:, 2], pages=300, seed=4)
    power = rs.clicks.Propensities.power(2, 10)
    weights = rs.clicks.inverse_propensity_weights(log, power, clip=0.05, self_normalize=False)
    assert weights == pytest.approx(np.where(log.clicks, 1 / np.maximum((log.places + 1.0) ** -2, 0.05), 0))
    normal = rs.clicks.inverse_propensity_weights(log, power)
    assert normal[log.clicks].mean() == pytest.approx(1)
    lists = rs.clicks.page_lists(log, data, power, self_normalize=False)
    gains = 2.0 ** lists.labels.astype(float) - 1
    sizes = lists.lists.sizes
    for page in (0, 1):
        own = slice(lists.offsets[page], lists.offsets[page + 1])
        ideal = (np.sort(gains[own])[::-1] / np.log2(np.arange(2, 2 + sizes[page]))).sum()
        assert len(set(lists.lists.weights[own])) == 1
        if page == 0:
            scale = ideal / lists.lists.weights[own][0]
        else:
            assert ideal / lists.lists.weights[own][0] == pytest.approx(scale, rel=1e-5)


def test_judged_lists_have_gains_in_proportion_to_relevance(data):
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=0.5), pages=2000, seed=5)
    judged = rs.clicks.judge(rs.clicks.fit(log, "pbm"))
    lists = rs.clicks.judged_lists(judged, data)
    assert lists.n_docs == len(judged)
    relevance = {}
    for query, document, value in zip(judged.queries, judged.documents, judged.relevance, strict=True):
        relevance[query, document] = value
    expected, rows = [], []
    for number, query in enumerate(data.query_ids):
        for place in range(data.offsets[number + 1] - data.offsets[number]):
            if (str(query), str(place)) in relevance:
                expected.append(relevance[str(query), str(place)] / judged.relevance.max())
                rows.append(data.offsets[number] + place)
    assert 2.0 ** lists.labels.astype(float) - 1 == pytest.approx(expected, rel=1e-5)
    assert np.array_equal(lists.features, data.features[rows])
    graded = rs.clicks.judged_lists(rs.clicks.judge(rs.clicks.fit(log, "pbm"), levels=3), data)
    assert set(graded.labels.tolist()) <= {0.0, 1.0, 2.0}


def test_documents_without_features_are_reported(data):
    log = rs.clicks.read(
        [
            {"query": str(data.query_ids[0]), "documents": ["0", "1", "nowhere"], "clicks": [0]},
            {"query": "unknown", "documents": ["0"], "clicks": [0]},
        ]
    )
    with pytest.warns(RanksieveWarning, match="2 of 4 documents"):
        assert rs.clicks.page_lists(log, data).n_docs == 2
    message = (
        f"got ids like query 'unknown' with document '0', expected ids like query '{data.query_ids[0]}' with docum"
    )
    with pytest.raises(DataError, match=message):
        rs.clicks.page_lists(log.take_pages([1]), data)
    judged = rs.clicks.judge(rs.clicks.fit(log.take_pages([1]), "ctr"))
    with pytest.raises(DataError, match=message):
        rs.clicks.judged_lists(judged, data)
    judged = rs.clicks.judge(rs.clicks.fit(log, "ctr"))
    with pytest.raises(DataError, match=r"no judgement has a confidence of 1\.1 or more"):
        rs.clicks.judged_lists(judged, data, least_confidence=1.1)
    with pytest.raises(DataError, match="no page with a click shows a document of the data"):
        rs.clicks.page_lists(
            rs.clicks.read([{"query": str(data.query_ids[0]), "documents": ["0"], "clicks": []}]), data
        )


def test_bad_requests_are_one_clear_line(data):
    for call, message in (
        (lambda: rs.clicks.simulate(data, users="random"), "model is 'random'"),
        (lambda: rs.clicks.Users(noise=2), "noise is 2"),
        (lambda: rs.clicks.Users(eta=-1), "eta is -1"),
        (lambda: rs.clicks.simulate(data, pages=0), "pages is 0"),
        (lambda: rs.clicks.LoggingPolicy(temperature=-1), "temperature is -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises(DataError, match="3 scores for 2000 documents"):
        rs.clicks.simulate(data, np.ones(3))
    with pytest.raises(ParameterError, match="share is 2"):
        rs.clicks.logging_ranker(data, share=2)
