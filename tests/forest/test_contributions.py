"""Contributions: Shapley values by definition, and those of LightGBM and of the `shap` package."""

from __future__ import annotations

import dataclasses

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve as rs
from naive_forest import random_forest
from naive_shap import naive_contributions, shap_model
from ranksieve.errors import ModelError
from ranksieve.forest.contributions import covers
from ranksieve.forest.forest import Forest, empty_forest
from ranksieve.forest.formats.lightgbm_reader import from_text
from samples import small_dataset

VALUES = (-1.5, 0.0, 0.25, 1e-36, np.nan)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), max_leaves=st.integers(1, 14), n_features=st.integers(1, 5))
def test_contributions_are_shapley_values(seed, max_leaves, n_features):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, max_leaves=max_leaves, n_features=n_features, thresholds=VALUES[:3], zero_missing=True)
    X = rng.choice(VALUES, (5, n_features))
    expected = [naive_contributions(forest, row) for row in X]
    np.testing.assert_allclose(forest.predict(X, contributions=True), expected, rtol=1e-11, atol=1e-12)


def lightgbm_model(**params) -> tuple[lightgbm.Booster, np.ndarray]:
    data = small_dataset(n_queries=40, seed=3)
    X = data.features.astype(np.float64)
    settings = {"verbose": -1, "num_leaves": 31, "min_data_in_leaf": 2, "num_threads": 1, **params}
    noisy = data.labels + np.random.default_rng(0).normal(size=len(X))
    return lightgbm.train(settings, lightgbm.Dataset(X, noisy), 20), X[:333]


@pytest.mark.parametrize("params", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_equal_to_lightgbm_on_its_models(params):
    booster, X = lightgbm_model(**params)
    X[::7] = 0.0
    ours = from_text(booster.model_to_string()).predict(X, contributions=True)
    np.testing.assert_allclose(ours, booster.predict(X, pred_contrib=True), rtol=1e-9, atol=1e-12)


def trained() -> tuple[rs.Forest, np.ndarray]:
    data = small_dataset(n_queries=30, seed=5)
    return rs.train(data, algo="lambdamart", trees=15, leaves=24, min_docs=2), data.features


def test_equal_to_shap_on_our_models():
    shap = pytest.importorskip("shap")
    model, X = trained()
    explainer = shap.TreeExplainer(shap_model(model), feature_perturbation="tree_path_dependent")
    ours = model.predict(X, contributions=True)
    np.testing.assert_allclose(ours[:, :-1], explainer.shap_values(X.astype(np.float64)), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours[:, -1], float(np.ravel(explainer.expected_value)[0]), rtol=1e-9, atol=1e-12)


def test_rows_add_up_to_scores_and_a_saved_model_explains_the_same(tmp_path):
    model, X = trained()
    ours = model.predict(X, contributions=True)
    np.testing.assert_allclose(ours.sum(axis=1), model.predict(X), rtol=1e-12, atol=1e-13)
    model.save(tmp_path / "model.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "model.txt").predict(X, contributions=True), ours)
    np.testing.assert_allclose(
        model.predict(X, contributions=True, trees=4).sum(axis=1), model.predict(X, trees=4), rtol=1e-12, atol=1e-13
    )


def test_batches_threads_and_row_order_change_no_bit():
    model, X = trained()
    ours = model.predict(X, contributions=True, threads=1)
    np.testing.assert_array_equal(model.predict(X, contributions=True, threads=2), ours)
    np.testing.assert_array_equal(model.predict(X[50:87], contributions=True), ours[50:87])
    np.testing.assert_array_equal(model.predict(np.asfortranarray(X), contributions=True), ours)
    np.testing.assert_array_equal(model.predict(X[3], contributions=True), ours[3:4])
    qid = np.arange(len(X)) % 3
    shuffled = rs.Dataset.from_arrays(X, np.zeros(len(X)), qid=qid)
    np.testing.assert_array_equal(model.predict(shuffled, contributions=True), ours)


def test_a_leaf_that_no_document_reached_and_a_tree_without_splits():
    rng = np.random.default_rng(2)
    forest = random_forest(rng, n_trees=4, max_leaves=9, n_features=3)
    counts = forest.leaf_count.copy()
    counts[::3] = 0
    forest = dataclasses.replace(forest, leaf_count=counts)
    covers(forest)
    X = rng.normal(size=(40, 3))
    ours = forest.predict(X, contributions=True)
    np.testing.assert_allclose(ours.sum(axis=1), forest.predict(X), rtol=1e-10, atol=1e-12)
    assert empty_forest(["a", "b"]).predict(np.ones((2, 2)), contributions=True).tolist() == [[0.0] * 3] * 2


def test_models_without_counts_use_second_derivatives_or_are_refused():
    forest = random_forest(np.random.default_rng(1), n_trees=3, max_leaves=8)
    uncounted: Forest = dataclasses.replace(forest, leaf_count=np.zeros_like(forest.leaf_count))
    X = np.random.default_rng(1).normal(size=(10, 4))
    np.testing.assert_allclose(uncounted.predict(X, contributions=True).sum(axis=1), forest.predict(X), atol=1e-12)
    nothing = dataclasses.replace(uncounted, leaf_weight=np.zeros_like(forest.leaf_weight))
    with pytest.raises(ModelError, match="how many training documents"):
        nothing.predict(X, contributions=True)
