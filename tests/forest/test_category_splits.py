"""Splits by categories: scores equal traversal of every tree and LightGBM's, bit for bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_forest import naive_leaf, naive_scores, random_documents, random_forest
from naive_shap import naive_contributions
from ranksieve.errors import ModelError
from ranksieve.forest.forest import concatenate
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.matrix import encoded

lightgbm = pytest.importorskip("lightgbm")


def case(seed: int, n_docs: int = 40, n_trees: int = 6, n_categories: int = 40, max_leaves: int = 12):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=4, n_categories=n_categories)
    return forest, random_documents(rng, n_docs, 4, n_categories)


@given(st.integers(0, 2**32), st.sampled_from([1, 12, 13, 40, 600]), st.sampled_from([3, 40, 700]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_scores_and_leaves_equal_traversal_of_the_trees(seed, n_docs, n_categories, missing_left):
    forest, X = case(seed, n_docs, n_categories=n_categories)
    if missing_left:  # as XGBoost's models may have it
        forest = dataclasses.replace(forest, default_left=np.ones_like(forest.default_left))
    expected = naive_scores(forest, X)
    assert forest.predict(X).tobytes() == expected.tobytes()
    assert forest.predict(np.asfortranarray(X)).tobytes() == expected.tobytes()
    assert forest.predict(X, trees=3).tobytes() == naive_scores(forest.first(3), X).tobytes()
    stages = dict(forest.staged_predict(X, every=2))
    assert stages[4].tobytes() == naive_scores(forest.first(4), X).tobytes()
    leaves = forest.predict_leaves(X)
    assert leaves[:20].tolist() == [[naive_leaf(forest, tree, row) for tree in range(6)] for row in X[:20]]


def test_more_classes_than_a_byte_and_more_tests_than_a_word():
    rng = np.random.default_rng(3)
    forest = random_forest(rng, n_trees=40, max_leaves=40, n_features=4, n_categories=2000)
    X = random_documents(rng, 1500, 4, 2000)
    assert len(forest.category_tests.categories.feature) > 2
    assert forest.predict(X).tobytes() == naive_scores(forest, X).tobytes()
    assert forest.predict(X.astype(np.float32)).tobytes() == naive_scores(forest, X.astype(np.float32)).tobytes()
    assert forest.predict(X, threads=2).tobytes() == forest.predict(X, threads=1).tobytes()


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_lightgbm_predicts_the_same_bits(seed):
    forest, X = case(seed)
    text = to_text(forest)
    assert lightgbm.Booster(model_str=text).predict(X).tobytes() == naive_scores(forest, X).tobytes()
    back = from_text(text)
    assert to_text(back) == text
    assert back.predict(X).tobytes() == forest.predict(X).tobytes()


def test_joined_and_chosen_trees_keep_their_sets():
    (one, X), (other, _) = case(1), case(2)
    both = concatenate([one, other])
    assert both.predict(X).tobytes() == naive_scores(both, X).tobytes()
    chosen = both.take([7, 0, 3])
    assert chosen.predict(X).tobytes() == naive_scores(chosen, X).tobytes()
    assert to_text(chosen) == to_text(from_text(to_text(chosen)))
    named = dataclasses.replace(other, info={"categories": {"f2": ["a"]}})
    with pytest.raises(ModelError, match="different categories"):
        concatenate([one, named])


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_contributions_equal_all_subsets(seed):
    forest, X = case(seed, n_docs=3, n_trees=3, n_categories=5)
    got = forest.predict(X, contributions=True)
    expected = np.array([naive_contributions(forest, row) for row in X])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.sum(axis=1), forest.predict(X), rtol=1e-9, atol=1e-9)


def test_lightgbm_models_with_categories(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    n = 600
    names = np.array([f"brand {k}" for k in range(30)])
    table = pd.DataFrame(
        {
            "price": rng.normal(size=n),
            "brand": pd.Categorical(rng.choice(names, n), categories=names),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n)),
        }
    )
    labels = (table["brand"].cat.codes % 3 == 0).astype(int) + (table["size"] == "m")
    data = lightgbm.Dataset(table, labels, group=[200, 400])
    settings = {"objective": "lambdarank", "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1, "num_threads": 1}
    booster = lightgbm.train(settings, data, num_boost_round=15)
    forest = from_text(booster.model_to_string())
    assert forest.categorical.any()
    assert forest.categories == {"brand": list(names), "size": ["l", "m", "s"]}
    codes = np.column_stack([table["price"], table["brand"].cat.codes, table["size"].cat.codes]).astype(float)
    codes[::7, 1], codes[::9, 2], codes[3, 1] = np.nan, -1, 999
    rows = encoded(codes, forest)
    assert forest.predict(rows).tobytes() == booster.predict(codes).tobytes()
    again = lightgbm.Booster(model_str=to_text(forest))
    assert again.predict(table).tobytes() == booster.predict(table).tobytes()
    assert again.pandas_categorical == booster.pandas_categorical
    np.testing.assert_allclose(
        forest.predict(rows, contributions=True), booster.predict(codes, pred_contrib=True), rtol=1e-7, atol=1e-9
    )


def test_missing_categories_that_go_left_are_refused_in_lightgbm_text(tmp_path):
    forest, X = case(6)
    forest = dataclasses.replace(forest, default_left=forest.default_left | forest.categorical)
    with pytest.raises(ModelError, match="sends missing values left, and LightGBM sends them right"):
        forest.save(tmp_path / "model.txt")
    forest.save(tmp_path / "model.txt", missing="never")
    X = np.nan_to_num(X)
    assert lightgbm.Booster(model_file=tmp_path / "model.txt").predict(X).tobytes() == forest.predict(X).tobytes()


@pytest.mark.parametrize(
    ("key", "words", "message"),
    [
        ("cat_boundaries", "0", "do not divide"),
        ("cat_boundaries", "1 2", "do not divide"),
        ("cat_boundaries", "0 x", "are not integers"),
        ("cat_threshold", "", "are not integers"),
        ("cat_threshold", "-4", "are not integers"),
        ("cat_threshold", "9999999999", "do not divide"),
        ("threshold", "7.0", "the number of one of its"),
        ("threshold", "0.5", "the number of one of its"),
    ],
)
def test_damaged_sets_are_refused(key, words, message):
    forest, _ = case(8, n_trees=1, max_leaves=2)
    forest = dataclasses.replace(forest, feature=np.array([1], np.int32), categorical=np.array([True]),
                                 set_offsets=np.array([0, 2]), set_codes=np.array([1, 3]))  # fmt: skip
    lines = [f"{key}={words}" if line.startswith(f"{key}=") else line for line in to_text(forest).split("\n")]
    text = "\n".join(line for line in lines if not line.startswith("tree_sizes"))
    with pytest.raises(ModelError, match=message):
        from_text(text, source="model.txt")


def test_scoring_on_a_gpu_is_refused():
    forest, X = case(4)
    with pytest.raises(ModelError, match="not scored on a GPU"):
        forest.predict(X, device="cuda")
