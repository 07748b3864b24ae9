"""Interleaving is fair and finds the better ranking; estimates from old logs are right on average."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from naive_clicks import team_drafts
from ranksieve.errors import DataError, RanksieveWarning
from ranksieve.retrieval.runs import Run

RANKINGS = st.lists(st.integers(0, 9), min_size=1, max_size=7, unique=True)


@given(RANKINGS, RANKINGS, st.integers(1, 8), st.integers(0, 99))
def test_interleaved_lists_hold_the_best_of_both(a, b, depth, seed):
    for method in (rs.clicks.team_draft, rs.clicks.balanced):
        found = method(a, b, depth=depth, seed=seed)
        n = min(depth, len({*a, *b}))
        assert len(found.documents) == len(found.teams) == len(set(found.documents)) == n
        for place, document in enumerate(found.documents):  # all that one of the rankings prefers to it stands above
            above = set(found.documents[:place])
            assert any(document in own and set(own[: own.index(document)]) <= above for own in (a, b))
        assert method(a, b, depth=depth, seed=seed) == found
    drafted = rs.clicks.team_draft(a, a, depth=depth, seed=seed)
    assert drafted.documents == a[:depth]


def test_team_draft_draws_every_list_with_its_chance():
    a, b = ["p", "q", "r"], ["q", "s", "p"]
    chances = team_drafts(a, b, 4)
    drawn = Counter()
    for seed in range(2000):
        found = rs.clicks.team_draft(a, b, depth=4, seed=seed)
        drawn[tuple(zip(found.documents, found.teams, strict=True))] += 1
    assert set(drawn) == set(chances)
    for shown, chance in chances.items():
        assert drawn[shown] / 2000 == pytest.approx(chance, abs=0.05)


def test_balanced_interleaving_as_in_the_paper():
    """Joachims 2002: the clicked documents within the cut decide."""
    a, b = ["a", "b", "c", "d"], ["b", "e", "a", "f"]
    shown = rs.clicks.balanced(a, b, depth=6, seed=0).documents
    assert sorted(shown[:2]) == ["a", "b"]
    outcome = lambda *clicked: rs.clicks.balanced_outcome(a, b, shown, clicked)  # noqa: E731
    assert outcome() == 0
    assert outcome("e") == -1 and outcome("c") == 1 and outcome("a", "b") == 0


def interleaved_log(n_pages, share, *, sessions=None, seed=0):
    """Pages whose click falls on a document of A with this chance."""
    rng = np.random.default_rng(seed)
    pages = []
    for number in range(n_pages):
        team = 0 if rng.random() < share else 1
        clicks = [] if rng.random() < 0.2 else [team]
        page = {"query": number % 7, "documents": ["x", "y", "z"], "clicks": clicks, "teams": ["a", "b", None]}
        pages.append(page if sessions is None else page | {"session": f"s{number // sessions}"})
    return rs.clicks.read(pages)


def test_the_preference_is_found_with_its_tests():
    log = interleaved_log(600, 0.62)
    found = rs.clicks.preference(log)
    wins = found.wins_a, found.wins_b
    assert sum(wins) + found.ties + found.without_clicks == 600
    assert found.preference == pytest.approx((wins[0] - wins[1]) / sum(wins) / 2)
    assert found.interval[0] < found.preference < found.interval[1] and found.interval[0] > 0
    assert found.sign_p_value == pytest.approx(scipy.stats.binomtest(wins[0], sum(wins)).pvalue)
    assert found.bootstrap_p_value < 0.01 and "A is preferred" in str(found)
    none = rs.clicks.preference([1, -1] * 30)
    assert none.preference == 0 and none.needed_pages is None and none.sign_p_value == 1
    by_session = rs.clicks.preference(interleaved_log(600, 0.62, sessions=30))
    assert by_session.preference == pytest.approx(found.preference)
    assert by_session.interval != found.interval


def test_intervals_hold_the_truth_as_often_as_they_say():
    inside = 0
    for seed in range(100):
        values = np.random.default_rng(seed).choice([1, -1], 200, p=[0.55, 0.45])
        low, high = rs.clicks.preference(values, samples=400, seed=seed).interval
        inside += low <= 0.05 <= high
    assert 88 <= inside <= 100


def test_a_sign_test_without_decided_pages_shows_nothing():
    assert rs.clicks.sign_test(0, 0) == 1.0
    assert rs.clicks.preference([0, 0]).sign_p_value == 1.0


def test_the_needed_pages_show_the_preference_with_the_promised_chance():
    n = rs.clicks.needed_pages(60, 40, 100)
    wins = np.random.default_rng(0).binomial(n, 0.6, 400)
    found = np.mean([rs.clicks.sign_test(int(one), n - int(one)) < 0.05 for one in wins])
    assert found == pytest.approx(0.8, abs=0.07)


def test_estimates_are_right_on_average():
    """The mean over many logs is the value of the new ranking under the clicks of the simulation."""
    data = rs.synth.cubic(12)
    power, depth = rs.clicks.Propensities.power(1, 50), 50
    new = rs.clicks.ranking_of(data.features[:, 1], data)
    gains = 2.0 ** data.labels.astype(float) - 1
    relevance = 0.1 + 0.9 * gains / gains.max()
    true = []
    for query in range(data.n_queries):
        own = slice(data.offsets[query], data.offsets[query + 1])
        order = np.argsort(-data.features[own, 1], kind="stable")[:10]
        true.append((relevance[own][order] / np.log2(np.arange(2, 12))).sum())
    estimates = []
    for seed in range(30):
        log = rs.clicks.simulate(
            data, rs.clicks.LoggingPolicy(data.features[:, 0], 1.0), pages=400, depth=depth, seed=seed
        )
        estimates.append(rs.clicks.estimate(log, new, power, clip=0))
    mean, error = np.mean([one.ips for one in estimates]), np.std([one.ips for one in estimates]) / np.sqrt(30)
    assert mean == pytest.approx(np.mean(true), abs=4 * error)
    assert np.mean([one.snips for one in estimates]) == pytest.approx(
        np.sum(true) / np.add.reduceat(relevance, data.offsets[:-1]).sum(), rel=0.05
    )
    inside = np.mean([one.ips_interval[0] <= np.mean(true) <= one.ips_interval[1] for one in estimates])
    assert inside > 0.7
    again = rs.clicks.estimate(log, new, power, metric="clicks", k=50)
    assert again.logged == pytest.approx(log.n_clicks / log.n_pages, rel=0.3)


def test_the_logged_ranking_has_the_logged_value():
    data = rs.synth.cubic(10)
    log = rs.clicks.simulate(data, data.features[:, 0], pages=500)
    same = rs.clicks.ranking_of(data.features[:, 0], data)
    found = rs.clicks.estimate(log, same, rs.clicks.Propensities.power(1, 10))
    assert found.ips == pytest.approx(found.logged) and found.not_ranked == 0
    weights = np.minimum(log.places[log.clicks] + 1.0, 20)
    assert found.effective_clicks == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_few_clicks_are_warned_of():
    log = rs.clicks.read([{"query": "a", "documents": ["x", "y"], "clicks": [0]}] * 20)
    run = Run.from_rows([("a", "y", 2.0), ("a", "x", 1.0)])
    with pytest.warns(RanksieveWarning, match="the effective number of clicks is 20"):
        found = rs.clicks.estimate(log, run, rs.clicks.Propensities([1, 0.5]))
    assert found.ips == pytest.approx(1 / np.log2(3))
    with pytest.raises(DataError, match="no teams"):
        rs.clicks.preference(log)
    with pytest.raises(DataError, match="a document twice"):
        rs.clicks.team_draft(["x", "x"], ["y"])
