"""Click models agree with slow twins, and find the parameters that simulated clicks were made with."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from naive_clicks import (
    browsing_clicks,
    clicks_over_expected,
    counting_models,
    make_log,
    pair_texts,
    position_clicks,
    position_em,
    position_likelihood,
)
from ranksieve.clicks.em import maximize
from ranksieve.errors import DataError, ParameterError, RanksieveWarning
from ranksieve.threads import using_threads

MODELS = ("ctr", "rctr", "coec", "pbm", "trust", "cascade", "sdbn", "dbn")


@pytest.fixture(scope="module")
def small():
    return make_log(400, click=position_clicks(0.8), seed=1)[0]


def by_pair(log, values):
    return {
        (int(q), int(d)): value
        for q, d, value in zip(log.pairs.queries, log.pairs.documents, values, strict=True)
    }  # fmt: skip


def test_counting_models_equal_their_twins(small):
    attractions, satisfactions = counting_models(small)
    fitted = {name: rs.clicks.fit(small, name, prior=0) for name in ("ctr", "cascade", "sdbn")}
    assert by_pair(small, fitted["ctr"].attraction) == attractions["ctr"]
    for name in ("cascade", "sdbn"):
        assert by_pair(small, fitted[name].attraction) == pytest.approx(attractions[name])
    satisfaction = by_pair(small, fitted["sdbn"].satisfaction)
    assert {pair: satisfaction[pair] for pair in satisfactions} == pytest.approx(satisfactions)
    shares = rs.clicks.fit(small, "rctr").examination
    coec = by_pair(small, rs.clicks.fit(small, "coec", prior=0).attraction)
    assert coec == pytest.approx(clicks_over_expected(small, shares))


def test_the_position_based_model_has_the_likelihood_of_slow_maximisation(small):
    attraction, examination = position_em(small, 600)
    slow = position_likelihood(small, attraction, examination)
    model = rs.clicks.fit(small, "pbm", prior=0)
    fast = position_likelihood(small, by_pair(small, model.attraction), model.examination)
    assert fast >= slow - 0.05
    assert model.propensities().values == pytest.approx(np.array(examination) / examination[0], abs=0.02)


def test_the_position_based_model_finds_examination():
    log, relevance = make_log(40_000, click=position_clicks(1.0), seed=2)
    true = 1 / np.arange(1, 6)
    for method in ("pbm", "harvest"):
        found = rs.clicks.propensities(log, method)
        assert np.abs(found.values / true - 1).max() < 0.1, method
    attraction = rs.clicks.fit(log, "pbm").attraction
    truth = np.array([relevance[query, int(doc)] for query, doc in pair_texts(log)])
    assert np.corrcoef(attraction, truth)[0, 1] > 0.97


def test_browsing_models_find_their_parameters():
    log, relevance = make_log(30_000, click=browsing_clicks(0.6, 0.8), seed=3)
    truth = np.array([relevance[query, int(doc)] for query, doc in pair_texts(log)])
    model = rs.clicks.fit(log, "dbn")
    assert model.continuation == pytest.approx(0.8, abs=0.03)
    assert model.mean_satisfaction == pytest.approx(0.6, abs=0.05)
    assert np.abs(model.attraction - truth).mean() < 0.03
    log, relevance = make_log(30_000, click=browsing_clicks(1.0, 1.0), seed=4)
    truth = np.array([relevance[query, int(doc)] for query, doc in pair_texts(log)])
    assert np.abs(rs.clicks.fit(log, "cascade").attraction - truth).mean() < 0.03
    log, relevance = make_log(30_000, click=browsing_clicks(0.7, 1.0), seed=5)
    model = rs.clicks.fit(log, "sdbn")
    truth = np.array([relevance[query, int(doc)] for query, doc in pair_texts(log)])
    assert np.corrcoef(model.attraction, truth)[0, 1] > 0.97


def test_trust_bias_is_found():
    positive, negative = np.array([0.9, 0.7, 0.5, 0.4, 0.3]), np.array([0.4, 0.2, 0.12, 0.08, 0.05])

    def click(relevance, rng):
        n = len(relevance)
        return rng.random(n) < np.where(relevance > 0.4, positive[:n], negative[:n])

    log, relevance = make_log(30_000, click=click, seed=6)
    model = rs.clicks.fit(log, "trust")
    assert model.examination == pytest.approx(positive, abs=0.03)
    assert model.irrelevant_clicks == pytest.approx(negative, abs=0.03)
    truth = np.array([relevance[query, int(doc)] > 0.4 for query, doc in pair_texts(log)])
    assert ((model.attraction > 0.5) == truth).mean() > 0.95
    weights = rs.clicks.inverse_propensity_weights(log, model.propensities(), clip=0, self_normalize=False)
    row = int(np.flatnonzero(log.clicks & (log.places == 1))[0])
    relevant, irrelevant = model.propensities().values[1], model.propensities().irrelevant_clicks[1]
    assert weights[row] == pytest.approx(1 / (relevant + irrelevant))


def test_swaps_give_propensities_though_documents_never_change_places():
    data = rs.synth.cubic(30)
    log = rs.clicks.simulate(
        data, rs.clicks.LoggingPolicy(data.features[:, 0], swaps=1.0), pages=60_000, depth=5, seed=7
    )
    found = rs.clicks.propensities(log, "swaps").values
    assert np.abs(found * np.arange(1, 6) - 1).max() < 0.1
    pages = np.flatnonzero(log.swaps[:, 1] == 2)
    rows = log.offsets[pages]
    assert log.clicks[rows + 2].sum() / log.clicks[rows].sum() == pytest.approx(1 / 3, abs=0.05)


def test_places_that_nothing_connects_are_reported():
    pages = [{"query": 1, "documents": docs, "clicks": [n % 2]} for n in range(40) for docs in ("abc", "bac")]
    log = rs.clicks.read([page | {"documents": list(page["documents"])} for page in pages])
    with pytest.warns(RanksieveWarning, match="rank 3 shares no documents"):
        found = rs.clicks.propensities(log)
    assert found.values[2] == found.values[1]
    fixed = rs.clicks.read([{"query": 1, "documents": ["a", "b"], "clicks": [0]}] * 3)
    with pytest.raises(DataError, match="cannot be harvested"):
        rs.clicks.propensities(fixed)
    with pytest.raises(DataError, match="no randomised swaps"):
        rs.clicks.propensities(fixed, "swaps")


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_pyclick(small, name):
    """Perplexity from chances before a page, log-likelihood from chances given the clicks above."""
    first, second = small.split(0.5)
    model = rs.clicks.fit(first, name)
    full, conditional = model.click_chances(second)
    scores = model.evaluate(second)
    surprise, by_page = [[] for _ in range(second.n_places)], []
    for page in range(second.n_pages):
        logs = []
        for place, row in enumerate(range(second.offsets[page], second.offsets[page + 1])):
            chance = full[row] if second.clicks[row] else 1 - full[row]
            surprise[place].append(np.log2(chance))
            logs.append(np.log(conditional[row] if second.clicks[row] else 1 - conditional[row]))
        by_page.append(sum(logs) / len(logs))
    assert scores.perplexity_by_place == pytest.approx([2 ** -np.mean(one) for one in surprise])
    assert scores.perplexity == pytest.approx(np.mean([2 ** -np.mean(one) for one in surprise]))
    assert scores.log_likelihood == pytest.approx(np.mean(by_page))


@pytest.mark.parametrize("name", MODELS)
def test_held_out_logs_may_have_other_numbers(small, name, tmp_path):
    first, second = small.split(0.5)
    rs.clicks.write(second, tmp_path / "second.jsonl")
    again = rs.clicks.read(tmp_path / "second.jsonl")
    model = rs.clicks.fit(first, name)
    assert model.evaluate(again).log_likelihood == pytest.approx(model.evaluate(second).log_likelihood)


@pytest.mark.parametrize("name", ("pbm", "trust", "dbn"))
def test_the_number_of_threads_changes_nothing(small, name):
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(rs.clicks.fit(small, name))
    assert np.array_equal(found[0].attraction, found[1].attraction)


def test_the_true_model_predicts_best():
    log, _ = make_log(20_000, click=position_clicks(1.0), seed=8)
    first, second = log.split(0.5)
    perplexity = {name: rs.clicks.fit(first, name).evaluate(second).perplexity for name in MODELS}
    assert min(perplexity, key=perplexity.get) == "pbm", perplexity


def test_faster_maximisation_ends_at_the_same_place():
    """A slow linear contraction to 0.25 and 0.75."""
    target = np.array([0.25, 0.75])
    step = lambda here: (here + 0.05 * (target - here), -float(np.square(here - target).sum()))  # noqa: E731
    found, steps = maximize(step, np.array([0.9, 0.1]), iterations=200, tolerance=1e-9, watched=1)
    assert found == pytest.approx(target, abs=1e-6) and steps < 60


def test_rare_documents_are_judged_near_the_mean():
    often = [{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 90
    once = [{"query": "wine", "documents": ["c"], "clicks": [0]}]
    model = rs.clicks.fit(rs.clicks.read([*often, *once]), "ctr")
    judged = rs.clicks.judge(model, shrinkage=10)
    relevance, confidence = (dict(zip("abc", values, strict=True)) for values in (judged.relevance, judged.confidence))
    assert relevance["a"] > relevance["c"] > model.mean_attraction > relevance["b"]
    assert confidence["a"] == 0.9 and confidence["c"] == pytest.approx(1 / 11)
    assert (judged.low < judged.relevance).all() and (judged.relevance < judged.high).all()
    widths = dict(zip("abc", judged.high - judged.low, strict=True))
    assert widths["c"] > 2 * widths["a"]
    graded = rs.clicks.judge(model, levels=4)
    assert graded.grades.min() == 0 and graded.grades.max() == 3
    assert set(graded.as_dict(least_confidence=0.5)["wine"]) == {"a", "b"}


def test_judgements_are_written_as_qrels(tmp_path):
    log = rs.clicks.read([{"query": "red wine", "documents": ["a", "b"], "clicks": [0]}] * 30)
    judged = rs.clicks.judge(rs.clicks.fit(log, "ctr"), levels=3)
    with pytest.raises(DataError, match="has spaces"):
        judged.write_qrels(tmp_path / "qrels.txt")
    assert judged.write_qrels(tmp_path / "qrels.txt", queries=tmp_path / "queries.tsv") == 2
    assert (tmp_path / "queries.tsv").read_text() == "q1\tred wine\n"
    assert (tmp_path / "qrels.txt").read_text().splitlines() == ["q1 0 a 2", "q1 0 b 0"]
    assert set(judged.columns()) >= {"query", "document", "grade", "confidence"}


def test_bad_requests_are_one_clear_line(small, tmp_path):
    for call, message in (
        (lambda: rs.clicks.fit(small, "pbn"), "did you mean 'pbm'"),
        (lambda: rs.clicks.fit(small, prior=-1), "prior is -1"),
        (lambda: rs.clicks.judge(rs.clicks.fit(small, "rctr")), "says nothing about documents"),
        (lambda: rs.clicks.fit(small, "sdbn").propensities(), "no examination probabilities"),
        (lambda: rs.clicks.fit(small, "pbm").satisfaction, "no satisfaction"),
        (lambda: rs.clicks.propensities(small, "guess"), "method is 'guess'"),
        (lambda: rs.clicks.judge(rs.clicks.fit(small), shrinkage=-1), "shrinkage is -1"),
        (lambda: rs.clicks.judge(rs.clicks.fit(small), shrinkage=float("inf")), "shrinkage is inf; expected a finite"),
        (lambda: rs.clicks.judge(rs.clicks.fit(small), levels=1), "levels is 1"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises(DataError, match="no click"):
        rs.clicks.fit(rs.clicks.read([{"query": 1, "documents": ["a"], "clicks": []}]))
    (tmp_path / "p.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match="holds no propensities"):
        rs.clicks.Propensities.load(tmp_path / "p.json")
    with pytest.raises(DataError, match="one number above 0 per place"):
        rs.clicks.Propensities([1, 0])


def test_propensities_are_saved(tmp_path):
    given = rs.clicks.Propensities([1, 0.5], "trust", np.array([0.2, 0.1]))
    given.save(tmp_path / "p.json")
    again = rs.clicks.Propensities.load(tmp_path / "p.json")
    assert again.values.tolist() == [1, 0.5] and again.method == "trust"
    assert again.irrelevant_clicks.tolist() == [0.2, 0.1]
    (tmp_path / "list.json").write_text("[1, 0.25]")
    assert rs.clicks.Propensities.load(tmp_path / "list.json").at([0, 1, 7]).tolist() == [1, 0.25, 0.25]
