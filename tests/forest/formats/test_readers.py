"""Models of other libraries score here as they do there, on ties, missing values and the edges of float32."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import sklearn
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve as rs
from naive_forest import random_forest
from naive_formats import hard_documents, singles_in_order
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats import ubjson
from ranksieve.forest.formats.model_files import FORMATS

FILES = Path(__file__).parent / "files"


def ranking(n_docs: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few distinct values, so that documents fall on thresholds; some missing; two queries and more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_docs, 5)).astype(np.float32).round(1)
    labels = np.clip((X[:, 0] + X[:, 1]).round(), 0, 4)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, labels, np.repeat(np.arange(n_docs // 40), 40)


OLD_EXTRA_TREES = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6)
XGBOOST = {
    "ndcg": {"objective": "rank:ndcg"},
    "map": {"objective": "rank:map", "base_score": 0.5},
    "squared": {"objective": "reg:squarederror", "grow_policy": "lossguide", "max_leaves": 12},
    "absolute": {"objective": "reg:absoluteerror", "num_parallel_tree": 2, "subsample": 0.5},
    "pruned": {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 2.0, "max_depth": 6},
    "dart": {"objective": "rank:pairwise", "booster": "dart", "rate_drop": 0.5, "seed": 1},
}


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost(tmp_path, name):
    xgboost = pytest.importorskip("xgboost")
    X, labels, qid = ranking()
    labels = np.minimum(labels, 1) if name == "map" else labels
    data = xgboost.DMatrix(X, labels, qid=qid if name in ("ndcg", "map", "dart") else None)
    booster = xgboost.train(XGBOOST[name] | {"eta": 0.3, "nthread": 1}, data, 12)
    forests = []
    for suffix in ("json", "ubj"):
        booster.save_model(tmp_path / f"model.{suffix}")
        forests.append(rs.load(tmp_path / f"model.{suffix}"))
    forests.append(rs.io.from_model(booster))
    forest = forests[0]
    docs = np.concatenate([X, hard_documents(forest, 400, np.random.default_rng(1))])
    scores = booster.predict(xgboost.DMatrix(docs))
    np.testing.assert_array_equal(singles_in_order(forest, docs), scores)
    assert (name == "dart") == (len(np.unique(forest.weights)) > 1)
    for other in forests[1:]:
        assert other.predict(docs).tobytes() == forest.predict(docs).tobytes()
    assert forest.info["params"]["objective"] == XGBOOST[name]["objective"]


def test_xgboost_rankers_stop_at_their_best_round_and_keep_names():
    xgboost = pytest.importorskip("xgboost")
    pandas = pytest.importorskip("pandas")
    X, labels, qid = ranking()
    frame = pandas.DataFrame(X, columns=["bm25", "title", "ü", "age", "clicks"])
    ranker = xgboost.XGBRanker(n_estimators=40, early_stopping_rounds=3, learning_rate=1.0, n_jobs=1)
    noise = np.random.default_rng(0).permutation(labels)
    ranker.fit(frame, labels, qid=qid, eval_set=[(frame, noise)], eval_qid=[qid], verbose=False)
    forest = rs.io.from_model(ranker)
    assert forest.feature_names == tuple(frame.columns)
    assert ranker.best_iteration + 1 <= forest.n_trees <= ranker.best_iteration + 2  # one may be the base score
    np.testing.assert_array_equal(singles_in_order(forest, X), ranker.predict(frame))


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"objective": "binary:logistic"}, "objective 'binary:logistic' transforms its output"),
        ({"objective": "reg:squarederror", "booster": "gblinear", "updater": "coord_descent"}, "booster is 'gblinear'"),
        ({"objective": "multi:softmax", "num_class": 5}, "objective 'multi:softmax'"),
    ],
)
def test_xgboost_models_that_are_refused(params, what):
    xgboost = pytest.importorskip("xgboost")
    X, labels, _ = ranking()
    labels = np.minimum(labels, 1) if "binary" in params["objective"] else labels
    with pytest.raises(ModelError, match=what):
        rs.io.from_model(xgboost.train(params | {"nthread": 1}, xgboost.DMatrix(np.nan_to_num(X), labels), 2))


def test_xgboost_categories_are_read_and_several_targets_are_refused():
    xgboost = pytest.importorskip("xgboost")
    X, labels, _ = ranking()
    X[:, 0] = np.random.default_rng(0).integers(0, 9, len(X))
    labels = labels + 5 * (X[:, 0] % 2)
    data = xgboost.DMatrix(X, labels, feature_types=["c", *["q"] * 4], enable_categorical=True)
    booster = xgboost.train({"max_cat_to_onehot": 1, "nthread": 1}, data, 2)
    forest = rs.io.from_model(booster)
    assert forest.categorical.any() and forest.categories == {"f1": []}
    np.testing.assert_allclose(forest.predict(X), booster.predict(data), rtol=1e-6)
    data = xgboost.DMatrix(X, np.stack([labels, labels], axis=1))
    with pytest.raises(ModelError, match="several scores"):
        rs.io.from_model(xgboost.train({"nthread": 1}, data, 2))


def test_base_scores_of_older_files(tmp_path):
    """Before version 3, XGBoost wrote one number and not a list of one."""
    forest = random_forest(np.random.default_rng(0))
    forest.save(tmp_path / "model.json", format="xgboost")
    text = (tmp_path / "model.json").read_text()
    assert rs.load(tmp_path / "model.json").n_trees == forest.n_trees
    for written in ("5E-1", "[5E-1]"):
        (tmp_path / "model.json").write_text(text.replace('"base_score": "0E0"', f'"base_score": "{written}"'))
        base = rs.load(tmp_path / "model.json").first(1)
        assert base.predict(np.zeros((1, 4))).tolist() == [0.5]


@pytest.mark.parametrize("name", ["catboost_ranker", "catboost_max", "catboost_depthwise"])
def test_catboost_files(name):
    """Files and scores of CatBoost 1.2.10; the documents lie on borders, beside them, and are missing."""
    content = json.loads((FILES / f"{name}.json").read_text())
    forest = rs.load(FILES / f"{name}.json")
    docs = np.array(content["documents"], dtype=np.float32)
    np.testing.assert_allclose(forest.predict(docs), content["scores"], rtol=1e-12, atol=1e-15)
    assert forest.feature_names == ("bm25", "title", "clicks", "age")


@pytest.mark.parametrize("params", [{"nan_mode": "Min"}, {"nan_mode": "Max"}, {"grow_policy": "Lossguide"}])
def test_catboost(params):
    catboost = pytest.importorskip("catboost")
    X, labels, qid = ranking()
    loss = "RMSE" if "grow_policy" in params else "YetiRank"
    given = {"loss_function": loss, "iterations": 10, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoost(given | params)
    model.fit(catboost.Pool(X, labels, group_id=qid))
    forest = rs.io.from_model(model)
    docs = np.concatenate([X, hard_documents(forest, 400, np.random.default_rng(1))])
    expected = model.predict(docs, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(forest.predict(docs), expected, rtol=1e-12, atol=1e-15)


def scikit_models():
    from sklearn import ensemble, tree

    small = {"random_state": 0}
    return {
        "tree": tree.DecisionTreeRegressor(max_depth=5, **small),
        "forest": ensemble.RandomForestRegressor(8, max_depth=6, **small),
        "extra": ensemble.ExtraTreesRegressor(8, max_depth=6, **small),
        "boosting": ensemble.GradientBoostingRegressor(n_estimators=12, **small),
        "zero": ensemble.GradientBoostingRegressor(n_estimators=5, init="zero", loss="huber", **small),
        "histogram": ensemble.HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=3, **small),
        "median": ensemble.HistGradientBoostingRegressor(max_iter=5, loss="absolute_error", **small),
    }


@pytest.mark.parametrize("name", scikit_models())
def test_scikit_learn(name):
    X, labels, _ = ranking()
    whole = name in ("boosting", "zero") or (name == "extra" and OLD_EXTRA_TREES)  # take no missing values
    if whole:
        X = np.nan_to_num(X)
    with threadpoolctl.threadpool_limits(1):  # threads that wait for each other on a busy machine
        model = scikit_models()[name].fit(X, labels)
    forest = rs.io.from_model(model)
    missing = 0.0 if whole else 0.1
    docs = np.concatenate([X, hard_documents(forest, 400, np.random.default_rng(1), missing=missing)])
    kinds = [docs, docs.astype(float) * (1 + 1e-12)] if name == "histogram" else [docs]  # that one compares float64
    for kind in kinds:
        with threadpoolctl.threadpool_limits(1), np.errstate(all="ignore"):  # it adds all values, to find infinite ones
            expected = model.predict(kind)
        np.testing.assert_allclose(forest.predict(kind), expected, rtol=1e-12, atol=1e-12)


def test_scikit_learn_models_that_are_refused():
    from sklearn import ensemble, linear_model

    X, labels, _ = ranking()
    X = np.nan_to_num(X)
    with pytest.raises(ModelError, match="not a fitted model"):
        rs.io.from_model(ensemble.RandomForestRegressor())
    for model, what in (
        (linear_model.LinearRegression(), "got LinearRegression; expected one of DecisionTreeRegressor"),
        (ensemble.RandomForestClassifier(2), "got RandomForestClassifier"),
        (ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=2), "loss 'poisson' transforms"),
        (
            ensemble.GradientBoostingRegressor(init=linear_model.LinearRegression(), n_estimators=2),
            "expected a constant",
        ),
    ):
        with pytest.raises(ModelError, match=what):
            rs.io.from_model(model.fit(X, labels))
    with pytest.raises(ModelError, match="2 values per document"):
        rs.io.from_model(ensemble.RandomForestRegressor(2).fit(X, np.stack([labels, labels], axis=1)))


def test_lightgbm_objects():
    lightgbm = pytest.importorskip("lightgbm")
    X, labels, _ = ranking()
    ranker = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1)
    ranker.fit(X, labels, group=[40] * 10)
    for model in (ranker, ranker.booster_):
        assert rs.io.from_model(model).predict(X).tobytes() == ranker.predict(X).tobytes()
    with pytest.raises(ModelError, match=r"got builtins.dict; expected a model of lightgbm, xgboost"):
        rs.io.from_model({})


def test_ranklib_file():
    forest = rs.load(FILES / "ranklib.txt")
    single = float(np.float32(0.1))
    X = np.array(
        [
            [-1e-4, 9.0, np.float32(1 / 3)],  # on both thresholds
            [0.0, 9.0, np.nextafter(np.float32(1 / 3), np.float32(1))],
            [np.nan, np.nan, np.nan],  # missing is 0
            [np.inf, 0.0, 0.0],
        ],
        dtype=np.float32,
    )
    right = float(np.float32(1.6543211))
    expected = [-2.0 + 0.5, 2.0 + 0.5, right + 0.5, right - 0.5]
    np.testing.assert_allclose(forest.predict(X), single * np.array(expected), rtol=1e-15)
    assert forest.n_features == 3
    assert rs.load(FILES / "ranklib.txt", n_features=136).n_features == 136
    with pytest.raises(ModelError, match="uses feature 3, but 2 features were announced"):
        rs.load(FILES / "ranklib.txt", n_features=2)


def test_ranklib_random_forests_are_means(tmp_path):
    text = (FILES / "ranklib.txt").read_text().replace("## LambdaMART", "## Random Forests")
    ensemble = text[text.index("<ensemble>") :]
    (tmp_path / "model").write_text(text + ensemble.replace("2.0", "4.0"))
    X = np.array([[0, 0, 1]], np.float32)
    assert rs.load(tmp_path / "model").predict(X)[0] == pytest.approx(0.1 * (2.0 + 0.5 + 4.0 + 0.5) / 2)


def test_quickrank_file():
    forest = rs.load(FILES / "quickrank.xml")
    X = np.full((3, 4), 12, np.float32)
    X[0, 1], X[1, 3], X[2] = np.float32(1 / 3), np.nextafter(np.float32(12), np.float32(99)), np.nan
    weights = np.float32([0.1, 0.7]).astype(float)
    expected = [weights @ [first, 0.25] for first in (-1.9995431233435412, 2.0, 2.0)]  # missing goes right
    np.testing.assert_array_equal(forest.predict(X), expected)


@given(st.integers(0, 2**32), st.sampled_from([name for name in FORMATS if name not in ("c", "onnx", "solr", "vespa")]))
@settings(max_examples=80, deadline=None)
def test_what_we_write_we_read(tmp_path_factory, seed, name):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=6, max_leaves=12)
    if name in ("ranklib", "quickrank"):
        forest = dataclasses.replace(forest, default_left=(forest.threshold >= 0) & (name == "ranklib"))
    path = tmp_path_factory.mktemp("models") / "model"
    forest.save(path, format=name)
    if name == "elasticsearch":
        with pytest.raises(ModelError, match="lacks the base score"):
            rs.load(path)
        return
    back = rs.load(path)
    X = hard_documents(forest, 50, rng)
    assert same_leaf_sums(back, forest, X)
    assert back.n_features == forest.n_features


def same_leaf_sums(got: Forest, expected: Forest, X: np.ndarray) -> bool:
    return singles_in_order(got, X).tobytes() == singles_in_order(expected, X).tobytes()


def test_universal_binary_json_of_every_kind():
    content = (
        b"{i\x01aZi\x01bTi\x01cFi\x01dCxi\x01eSU\x02hii\x01f[i\xffI\x01\x00l\x00\x01\x00\x00L\x00\x00\x00\x01\x00\x00\x00\x00]"
        b"i\x01gd\x3f\x00\x00\x00i\x01hD\x3f\xe0\x00\x00\x00\x00\x00\x00Ni\x01i[#U\x02TTi\x01j{#U\x01U\x01kU\x07i\x01l[$T#U\x02}"
    )
    assert ubjson.decode(content) == {
        "a": None,
        "b": True,
        "c": False,
        "d": "x",
        "e": "hi",
        "f": [-1, 256, 65536, 2**32],
        "g": 0.5,
        "h": 0.5,
        "i": [True, True],
        "j": {"k": 7},
        "l": [True, True],
    }
