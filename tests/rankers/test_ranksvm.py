"""RankSVM against explicit pairs: the loss and its derivative, and scikit-learn's linear SVM."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

import ranksieve as rs
from naive_pairs import pair_differences, pair_objective
from ranksieve.data import lists
from ranksieve.errors import DataError, ParameterError
from ranksieve.models.linear import Standard
from ranksieve.rankers.ranksvm import PairLoss
from samples import small_dataset


def test_the_objective_covers_every_query_and_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "BLOCK_DOCS", 100)
    data = small_dataset()
    assert len(list(data.lists.query_blocks())) > 3
    standard = Standard.of(data)
    objective = PairLoss(data, standard, 0.7)
    weights = np.random.default_rng(1).normal(size=data.n_features)
    value, gradient = objective(weights)
    assert value == pytest.approx(pair_objective(data, standard, 0.7, weights), rel=1e-12)
    for feature, step in enumerate(1e-6 * np.eye(data.n_features)):
        slope = (objective(weights + step)[0] - objective(weights - step)[0]) / 2e-6
        assert gradient[feature] == pytest.approx(slope, rel=1e-5, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 5, 1000]))
def test_the_curvature_is_the_sum_over_pairs_within_the_margin(seed: int, n_grades: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.integers(-2, 3, (60, 3)) / 2  # ties
    features[rng.random(features.shape) < 0.1] = np.nan
    labels, weights = rng.integers(0, n_grades, 60), rng.random(60)
    data = rs.Dataset.from_arrays(features, labels, group=[25, 1, 34], weights=weights)
    standard = Standard(np.array([0.5, 0.0, 0.0]), np.array([1.0, 0.5, 0.0]))
    place = rng.normal(size=3)  # no margin is exactly one, where there is no second derivative
    differences, products = pair_differences(data, standard)
    active = products * (differences @ place < 1)
    expected = np.eye(3) + 2 * 0.7 * (differences * active[:, None]).T @ differences
    np.testing.assert_allclose(PairLoss(data, standard, 0.7).curvature(place), expected, atol=1e-9)


def test_features_that_are_copies_share_their_weight() -> None:
    data = small_dataset()
    twice = rs.Dataset.from_arrays(np.repeat(data.features, 2, axis=1), data.labels, group=data.lists.sizes)
    weights = rs.train(twice, algo="ranksvm", c=1e6).weights
    np.testing.assert_allclose(weights[::2], weights[1::2], rtol=1e-3)


@pytest.mark.parametrize("c", [0.001, 1.0, 50.0])
def test_it_is_the_linear_svm_on_pair_differences(c: float) -> None:
    data = small_dataset()
    model = rs.train(data, algo="ranksvm", c=c)
    differences, _ = pair_differences(data, model.standard)
    signs = np.where(np.arange(len(differences)) % 2, 1.0, -1.0)
    svm = LinearSVC(loss="squared_hinge", fit_intercept=False, dual=False, C=c, tol=1e-8, max_iter=100_000)
    theirs = svm.fit(differences * signs[:, None], signs).coef_[0]
    best = pair_objective(data, model.standard, c, theirs)
    assert model.info["objective"] == pytest.approx(best, rel=1e-6)
    assert pair_objective(data, model.standard, c, model.weights) == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.weights, theirs, atol=1e-4)
    assert model.info["converged"]


def test_weights_of_documents_count_in_their_pairs() -> None:
    data = small_dataset()
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 4, data.n_docs).astype(float)
    weighted = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights)
    model = rs.train(weighted, algo="ranksvm", c=0.1)
    best = pair_objective(weighted, model.standard, 0.1, model.weights)
    assert model.info["objective"] == pytest.approx(best, rel=1e-9)
    for _ in range(5):
        other = model.weights + 0.01 * rng.normal(size=data.n_features)
        assert pair_objective(weighted, model.standard, 0.1, other) > best


def test_thread_count_and_row_order_change_nothing() -> None:
    data = small_dataset()
    one = rs.train(data, algo="ranksvm", threads=1)
    two = rs.train(data, algo="ranksvm", threads=2)
    assert np.array_equal(one.weights, two.weights)
    qid = np.repeat(np.arange(data.n_queries), data.lists.sizes)
    mixed = np.argsort(np.random.default_rng(0).random(data.n_docs))
    scattered = rs.Dataset.from_arrays(data.features[mixed], data.labels[mixed], qid=qid[mixed])
    again = rs.train(scattered, algo="ranksvm")
    np.testing.assert_allclose(again.weights, one.weights, atol=1e-4)
    np.testing.assert_allclose(again.predict(scattered), one.predict(data)[mixed], atol=1e-3)


def test_features_of_any_size_and_constant_ones() -> None:
    data = small_dataset()
    large = np.concatenate([data.features * 1e4 + 3e5, np.full((data.n_docs, 1), 7.0)], axis=1)
    other = rs.Dataset.from_arrays(large, data.labels, group=data.lists.sizes)
    one, two = rs.train(data, algo="ranksvm"), rs.train(other, algo="ranksvm")
    assert two.weights[-1] == 0
    np.testing.assert_allclose(two.weights[:-1], one.weights, atol=1e-3)
    large[:, -1] = 8.0  # features that did not vary in training are ignored in prediction
    np.testing.assert_allclose(two.predict(large), two.predict(other))


def test_standardising_skips_missing_values() -> None:
    data = small_dataset(seed=4)
    standard = Standard.of(data)
    np.testing.assert_allclose(standard.means, np.nanmean(data.features.astype(np.float64), axis=0))
    np.testing.assert_allclose(standard.scales, np.nanstd(data.features.astype(np.float64), axis=0))


def test_validation_is_measured_and_iterations_are_reported() -> None:
    data, valid = small_dataset(), small_dataset(seed=1)
    records = []
    model = rs.train(data, valid=valid, algo="ranksvm", metric="map", callbacks=[records.append])
    assert model.info["best_score"] == rs.evaluate(model, valid, "map").mean()
    assert [record.step for record in records] == list(range(1, model.info["iterations"] + 1))
    assert records[-1].evaluations["train"]["objective"] * model.info["pairs"] == pytest.approx(model.info["objective"])
    assert records[0].round == "iteration"


def test_bad_input_is_reported() -> None:
    data = small_dataset()
    same = rs.Dataset.from_arrays(data.features, np.ones(data.n_docs), group=data.lists.sizes)
    with pytest.raises(DataError, match="every label is 1"):
        rs.train(same, algo="ranksvm")
    apart = rs.Dataset.from_arrays(data.features[:4], [0, 0, 1, 1], group=[2, 2])
    with pytest.raises(DataError, match="no pairs to train on"):
        rs.train(apart, algo="ranksvm")
    with pytest.raises(ParameterError, match=r"^c is 0"):
        rs.train(data, algo="ranksvm", c=0)
    with pytest.raises(DataError, match="the data is Linear; give a file name"):
        rs.train(rs.train(data, algo="ranksvm"), algo="ranksvm")
    with pytest.raises(ParameterError, match=r"selection is not used by algo='ranksvm'"):
        rs.train(data, algo="ranksvm", selection=lambda view: None)
    with pytest.raises(ParameterError, match="missing is 'x'"):
        rs.train(data, algo="ranksvm", missing="x")
    infinite = np.nan_to_num(data.features)
    infinite[5, 2] = np.inf
    with pytest.raises(DataError, match="feature 'f3' of row 6 is infinite"):
        rs.train(rs.Dataset.from_arrays(infinite, data.labels, group=data.lists.sizes), algo="ranksvm")
    with pytest.raises(DataError, match="8 features; expected 7, as in training"):
        rs.train(data, valid=small_dataset(n_features=8), algo="ranksvm")


def test_scores_to_start_from_are_refused():
    data = small_dataset()
    for scores in (np.zeros(data.n_docs), {"train": np.zeros(data.n_docs)}, [0.0]):
        with pytest.raises(ParameterError, match=r"init is not used by algo='ranksvm', only by boosted forests"):
            rs.train(data, algo="ranksvm", init=scores)
