"""The model file: LightGBM reads ours, we read LightGBM's, bit for bit."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_forest import ZERO, naive_scores, random_forest
from ranksieve.errors import ModelError
from ranksieve.forest.forest import DTYPES, Forest, empty_forest
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.model_files import load_forest

lightgbm = pytest.importorskip("lightgbm")

TINY = [5e-324, -5e-324, 1e-310, 1e-38, ZERO, -ZERO, np.nextafter(ZERO, 1), 1e-30, -1e-30]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 1e300, -1e300, np.finfo(float).max, np.finfo(float).min, *TINY]
MODEL = to_text(random_forest(np.random.default_rng(7), n_trees=3, zero_missing=True))


def booster(text: str):
    return lightgbm.Booster(model_str=text)


def assert_same_forest(got: Forest, expected: Forest) -> None:
    for name in (*DTYPES, "split_offsets", "leaf_offsets", "weights"):
        ours, theirs = getattr(got, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype, name
        assert ours.tobytes() == theirs.tobytes(), name
    assert got.feature_names == expected.feature_names
    assert got.info == expected.info


def folded(forest: Forest) -> Forest:
    return dataclasses.replace(forest, leaf_values=forest.scaled_leaf_values(), weights=np.ones(forest.n_trees))


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_round_trip_is_exact(seed, n_trees):
    forest = random_forest(np.random.default_rng(seed), n_trees=n_trees, thresholds=SPECIAL, zero_missing=True)
    text = to_text(forest)
    assert text == to_text(forest)
    back = from_text(text)
    assert_same_forest(back, folded(forest))
    assert to_text(back) == text


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_lightgbm_predicts_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=5, thresholds=SPECIAL, leaf_values=[*SPECIAL[:6], *TINY], zero_missing=True)
    X = rng.choice([*SPECIAL, np.nan, np.inf, -np.inf], (30, 4))
    expected = naive_scores(forest, np.where(np.abs(X) <= ZERO, 0.0, X))  # LightGBM drops tiny values from rows
    assert booster(to_text(forest)).predict(X).tobytes() == expected.tobytes()


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_lightgbm_predicts_the_same_bits_of_float32(seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=20, max_leaves=30)
    X = rng.normal(size=(40, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:10, 0] = rng.choice(forest.threshold, 10) if len(forest.threshold) else 0
    assert booster(to_text(forest)).predict(X).tobytes() == naive_scores(forest, X).tobytes()


def test_file_and_other_readers(tmp_path):
    rng = np.random.default_rng(1)
    forest = random_forest(rng, n_trees=8, max_leaves=20)
    names = ("title match", "a=b", "", "title_match")
    forest = dataclasses.replace(forest, feature_names=names, info={"note": "x=1 ü\n", "rate": np.float64(0.1)})
    path = tmp_path / "model.txt"
    forest.save(path)
    assert load_forest(path).feature_names == names
    assert load_forest(path).info == {"note": "x=1 ü\n", "rate": 0.1}
    X = rng.normal(size=(50, 4))
    model = lightgbm.Booster(model_file=str(path))
    assert model.predict(X).tobytes() == naive_scores(forest, X).tobytes()
    assert model.feature_name() == ["title_match", "a_b", "f3", "title_match_4"]
    contributions = model.predict(X, pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), naive_scores(forest, X), rtol=1e-6)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.txt"]


def test_treelite_reads_it(tmp_path):
    treelite = pytest.importorskip("treelite")
    forest = random_forest(np.random.default_rng(1), n_trees=8, max_leaves=20)
    path = tmp_path / "model.txt"
    forest.save(path)
    X = np.random.default_rng(2).normal(size=(20, 4))
    scores = treelite.gtil.predict(treelite.frontend.load_lightgbm_model(str(path)), X).ravel()
    np.testing.assert_allclose(scores, naive_scores(forest, X), rtol=1e-12)


def test_internal_values_are_means_by_counts():
    forest = random_forest(np.random.default_rng(4), n_trees=1)
    assert forest.n_leaves[0] > 3
    dump = booster(to_text(forest)).dump_model()["tree_info"][0]["tree_structure"]

    def check(node):
        if "leaf_value" in node:
            return node["leaf_value"], node["leaf_count"]
        values, counts = zip(*(check(node[side]) for side in ("left_child", "right_child")), strict=True)
        assert node["internal_value"] == pytest.approx(np.average(values, weights=counts), rel=1e-5)
        return node["internal_value"], node["internal_count"]

    check(dump)


def test_empty_forest_and_objective():
    assert_same_forest(from_text(to_text(empty_forest(["a", "b"]))), empty_forest(["a", "b"]))
    assert booster(to_text(empty_forest(["a", "b"]))).predict(np.ones((2, 2))).tolist() == [0.0, 0.0]
    assert "\nobjective=lambdarank\n" in to_text(empty_forest(["a"], {"params": {"objective": "lambdamart"}}))
    assert "\nobjective=regression\n" in to_text(empty_forest(["a"], {"params": {"objective": "squared_error"}}))


def trained(**params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    X[rng.random(X.shape) < 0.15] = np.nan
    X[rng.random(X.shape) < 0.15] = 0.0
    y = np.clip(np.nan_to_num(X[:, 0] * X[:, 1]) + X[:, 2] ** 2, 0, 4).astype(float)
    y = np.nan_to_num(np.floor(y))
    group = [100] * 6 if params.get("objective") in ("lambdarank", "rank_xendcg") else None
    params = {"verbose": -1, "num_leaves": 9, "min_data_in_leaf": 5, "num_threads": 1, **params}
    categorical = params.pop("categorical_feature", "auto")
    data = lightgbm.Dataset(X, y, group=group, categorical_feature=categorical, params=params)
    return lightgbm.train(params, data, 12), X


@pytest.mark.parametrize(
    "params",
    [
        {"objective": "lambdarank"},
        {"objective": "rank_xendcg"},
        {"objective": "regression"},
        {"objective": "regression_l1"},
        {"objective": "quantile", "alpha": 0.7},
        {"objective": "lambdarank", "zero_as_missing": True},
        {"objective": "regression", "zero_as_missing": True},
        {"objective": "regression", "use_missing": False},
        {"objective": "regression", "boosting": "dart"},
        {"objective": "regression", "min_data_in_leaf": 10_000},
    ],
    ids=str,
)
def test_models_of_lightgbm_score_the_same(params):
    model, X = trained(**params)
    forest = from_text(model.model_to_string())
    assert naive_scores(forest, X).tobytes() == model.predict(X).tobytes()
    assert forest.info["params"]["objective"].startswith(params["objective"])
    assert booster(to_text(forest)).predict(X).tobytes() == model.predict(X).tobytes()
    assert_same_forest(from_text(to_text(forest)), forest)


def test_custom_objective_of_lightgbm():
    model, X = trained(objective=lambda scores, data: (scores - data.get_label(), np.ones(len(scores))))
    assert naive_scores(from_text(model.model_to_string()), X).tobytes() == model.predict(X).tobytes()


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"objective": "binary"}, "objective 'binary.*delete this line"),
        ({"objective": "poisson"}, "transforms its output"),
        ({"objective": "regression", "reg_sqrt": True}, "transforms its output"),
        ({"objective": "multiclass", "num_class": 5}, "several classes"),
        ({"objective": "regression", "linear_tree": True}, "linear_tree=false"),
        ({"objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, "random forest"),
    ],
    ids=str,
)
def test_other_kinds_of_model_are_refused(params, what):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, params.get("num_class", 2), 300)
    params = {"verbose": -1, "num_threads": 1, **params}
    model = lightgbm.train(params, lightgbm.Dataset(X, y, params=params), 2)
    with pytest.raises(ModelError, match=what):
        from_text(model.model_to_string())


def test_lines_may_end_the_windows_way():
    assert_same_forest(from_text(MODEL.replace("\n", "\r\n")), from_text(MODEL))


def test_broken_forests_are_not_written(tmp_path):
    forest = random_forest(np.random.default_rng(0))
    infinite = dataclasses.replace(forest, leaf_values=np.full_like(forest.leaf_values, np.inf))
    for broken, what in [
        (infinite, "not finite"),
        (dataclasses.replace(forest, left=np.zeros_like(forest.left)), "cannot be written"),
        (dataclasses.replace(forest, feature_names=()), "name every feature"),
        (dataclasses.replace(forest, info={"x": object()}), "cannot be written as JSON"),
    ]:
        with pytest.raises(ModelError, match=what):
            broken.save(tmp_path / "model.txt")
    assert not list(tmp_path.iterdir())


def test_a_thousand_trees_come_back_the_same():
    forest = random_forest(np.random.default_rng(0), n_trees=1000, max_leaves=120, n_features=220)
    assert_same_forest(from_text(to_text(forest)), folded(forest))


def test_section_is_plain_json():
    line = next(line for line in MODEL.split("\n") if line.startswith("ranksieve:"))
    assert json.loads(line.removeprefix("ranksieve:"))["format"] == 1
