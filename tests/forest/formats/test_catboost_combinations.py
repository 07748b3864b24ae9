"""CatBoost's models with statistics of combinations of features score as they do there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from naive_formats import evaluate_statistics
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.evaluation.explanations import explain
from ranksieve.forest.ctr_forest import CtrForest
from ranksieve.forest.formats.model_files import load_forest
from ranksieve.forest.matrix import encoded

pd = pytest.importorskip("pandas")

STORED = Path(__file__).parent / "files" / "catboost_combinations.json"
COLUMNS = ["price", "brand", "size", "flag", "shop"]
CATEGORICAL = COLUMNS[1:]


def stored():
    """The file of CatBoost 1.2.10, its documents as a table, and the scores that CatBoost gave them."""
    content = json.loads(STORED.read_text())
    frame = pd.DataFrame(content["documents"], columns=COLUMNS).astype({"price": np.float32})
    return content, frame, np.array(content["scores"])


def with_queries(frame):
    """Two queries; without a model, integers are not read as texts."""
    queries = np.repeat([2, 1], [23, 17])
    return frame.assign(label=np.arange(40) % 3, qid=queries, shop=frame["shop"].astype(str))


@pytest.fixture(scope="module")
def model():
    return rs.load(STORED)


def numbers_of(frame, model):
    """The documents as the model's numbers."""
    found = frame.copy()
    for name in CATEGORICAL:
        numbers = {text: number for number, text in enumerate(model.categories[name])}
        found[name] = found[name].astype(str).map(numbers)
    return encoded(found.to_numpy(np.float32), model)


def test_stored_model(model):
    content, frame, scores = stored()
    elements = [
        element["combination_element"] for ctr in content["features_info"]["ctrs"] for element in ctr["elements"]
    ]
    assert {"cat_feature_value", "cat_feature_exact_value", "float_feature"} == set(elements)
    assert model.categories["brand"] == ["ada", "bee", "cid", "dot"]
    assert model.categories["shop"] == ["10", "11", "12"]
    assert model.categories["flag"] == ["y", "n"]  # only one of them has splits; no other feature has the second
    assert model.combinations == ["price × brand × flag", "brand × size", "brand × size × shop", "flag × shop"]
    np.testing.assert_allclose(model.predict(frame), scores, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(model.predict(numbers_of(frame, model)), model.predict(frame))
    np.testing.assert_array_equal(model.predict(frame[-3:], threads=1), model.predict(frame)[-3:])
    assert model.predict(frame, trees=2, dtype=np.float32).dtype == np.float32


def test_statistics_are_those_of_the_naive_evaluation(model):
    _, frame, _ = stored()
    rows = np.asarray(numbers_of(frame, model))
    rows = np.concatenate([rows, rows + np.array([0, 0.5, -0.5, 9, -9], np.float32)])
    expected = evaluate_statistics(model.statistics, rows.tolist())
    np.testing.assert_array_equal(model.statistics.expand(rows)[:, len(COLUMNS) :], expected)


def test_data_sets_and_files(model, tmp_path):
    _, frame, scores = stored()
    frame = with_queries(frame)
    data = rs.read(frame, categorical=",".join(CATEGORICAL), missing="nan")
    np.testing.assert_allclose(model.predict(data), scores, rtol=1e-12, atol=1e-14)
    for name in ("data.parquet", "data.csv"):
        frame.to_parquet(tmp_path / name) if name.endswith("parquet") else frame.to_csv(tmp_path / name, index=False)
        found = rs.evaluate(model, tmp_path / name, metrics="ndcg@5").mean()
        assert found == rs.evaluate(scores, data.lists, metrics="ndcg@5").mean()
    with pytest.raises(DataError, match="is categorical in the model, with categories such as"):
        model.predict(frame[COLUMNS].assign(brand=1.5))


def test_own_file(model, tmp_path):
    _, frame, _ = stored()
    for name in ("first.json", "second.json"):
        model.save(tmp_path / name)
        again = rs.load(tmp_path / name)
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        parts = (one.predict(frame, contributions=True) for one in (model, again))
        np.testing.assert_array_equal(*parts)
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert repr(again) == repr(model) == "CtrForest(6 trees, 7 statistics)"


def test_what_it_cannot_be_used_for(model, tmp_path):
    model.save(tmp_path / "own.json")
    (tmp_path / "spaces.json").write_text(json.dumps(json.loads((tmp_path / "own.json").read_text())))
    for path in (STORED, tmp_path / "own.json", tmp_path / "spaces.json"):
        with pytest.raises(
            ModelError, match=r"combinations of features \(price × brand × flag, .* max_ctr_complexity=1"
        ):
            load_forest(path)
    frame = with_queries(stored()[1])
    for use in (lambda: rs.prune(model, frame, rate=0.5), lambda: rs.plots.tree(model, 0)):
        with pytest.raises(ModelError, match="the model splits by statistics of combinations of features"):
            use()
    with pytest.raises(ModelError, match=r"cannot be written as onnx: the model splits by statistics of combinations"):
        model.save(tmp_path / "model.onnx", format="onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_contributions_add_up_and_explanations_name_the_features(model):
    _, frame, _ = stored()
    parts = model.predict(frame, contributions=True)
    assert parts.shape == (40, 6)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(frame), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        model.predict(frame, trees=2, contributions=True).sum(axis=1), model.predict(frame, trees=2), atol=1e-12
    )
    frame = with_queries(frame)
    data = rs.read(frame, categorical=",".join(CATEGORICAL), missing="nan")
    found = explain(model, data, query=1)
    np.testing.assert_allclose(found.contributions, parts[23:, :-1], atol=1e-12)
    assert {one.feature for one in found.why("1", "2")} <= set(COLUMNS)
    without = found.scores_without("shop", by="missing")
    np.testing.assert_allclose(without, model.predict(frame[COLUMNS][23:].assign(shop=None)), atol=1e-12)


def test_importance_and_summary(model):
    counts = rs.importance(model, "split")
    n_splits = len(model.forest.feature)
    assert counts.dtype.kind == "i" and counts.sum() > n_splits > counts.max()
    assert not rs.importance(model, "gain").any()
    summary = model.own_summary()
    assert (
        dict(summary.facts)["statistics"]
        == "7, also of price × brand × flag, brand × size, brand × size × shop, flag × shop"
    )
    np.testing.assert_allclose(summary.importance.sum(), 1.0)
    assert "share of splits" in model._repr_html_()


DAMAGE = {
    "element": ('"combination_element": "cat_feature_value"', '"combination_element": "text"', "has no 'text'"),
    "unknown type": ('"ctr_type": "Borders"', '"ctr_type": "Rank"', "uses statistics of type 'Rank'; train with"),
    "class": ('"target_border_idx": 0', '"target_border_idx": 7', "a statistic is of class 7 of"),
    "rows": ('"hash_stride": 3', '"hash_stride": 1', "does not have rows of 1 numbers"),
    "prior": ('"prior_denomerator": 1', '"prior_denomerator": 0', "a statistic is not a finite number"),
    "names": ('"value": "ada"', '"value": "ada", "hash": 5', "does not have the names of all its categories"),
    "border": ('"split_type": "OnlineCtr"', '"border": 7, "split_type": "OnlineCtr"', "split on a statistic that"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name, tmp_path):
    old, new, message = DAMAGE[name]
    text = STORED.read_text()
    assert old in text
    (tmp_path / "model.json").write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=message):
        rs.load(tmp_path / "model.json")


OWN_DAMAGE = {
    "kind": ('[["category",1', '[["sum",1', "a combination with 'sum' of feature number 1"),
    "feature": ('[["category",1', '[["category",9', "a combination with 'category' of feature number 9"),
    "hashes": ('"hashes":[[1,', '"hashes":[[0,', "no hashes of the categories of feature number 1"),
    "statistics": (
        '"tables":[[',
        '"tables":[[[["equal",1,0.0,false]],[18446744073709551615],[[0.5]]],[',
        "for a forest",
    ),
    "keys": ("18446744073709551615]", "5]", "hashes of combinations that are not ascending"),
    "forest": (
        '"forest":"tree',
        '"forest":"three',
        r"own.json:1: starts with 'three'; a LightGBM text model starts with a line 'tree'",
    ),
}


@pytest.mark.parametrize("name", OWN_DAMAGE)
def test_damaged_own_files(name, model, tmp_path):
    old, new, message = OWN_DAMAGE[name]
    model.save(tmp_path / "own.json")
    text = (tmp_path / "own.json").read_text()
    assert old in text
    (tmp_path / "own.json").write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        rs.load(tmp_path / "own.json")


def table(seed: int, n: int = 600):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "price": rng.normal(size=n).astype(np.float32),
            "brand": rng.choice([f"brand {k}" for k in range(6)], n),
            "size": rng.choice(["s", "m", "l", ""], n),
            "flag": rng.choice(["y", "n"], n),
            "shop": rng.integers(-1, 3, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "price"] = np.nan
    return frame


def grades(frame):
    """Grades that depend on combinations of the features."""
    brand, size = frame["brand"].str[-1].astype(int), frame["size"].map({"s": 0, "m": 1, "l": 2, "": 3})
    up, flag = (frame["price"] > 0).astype(int), (frame["flag"] == "y").astype(int)
    return 3 * ((brand + size + frame["shop"]) % 2) + 2 * ((brand % 2) ^ up) + 2 * ((frame["shop"] % 2) ^ flag) + up


def changed(frame):
    """The same with categories that were not in the training data."""
    other = frame.copy()
    other.loc[:60, "brand"], other.loc[30:90, "size"], other.loc[80:120, "shop"] = "never seen", "xxl", 77
    return other


PARAMS = {
    "yetirank": {"loss_function": "YetiRank", "nan_mode": "Max"},
    "buckets": {"loss_function": "QueryRMSE", "combinations_ctr": ["Buckets", "Counter"]},
    "means": {"loss_function": "QuerySoftMax", "combinations_ctr": "BinarizedTargetMeanValue"},
    "several borders": {"loss_function": "RMSE", "combinations_ctr": "Borders:TargetBorderCount=3"},
}


@pytest.mark.parametrize("name", PARAMS)
def test_catboost(name, tmp_path):
    catboost = pytest.importorskip("catboost")
    frame = table(0)
    pool = catboost.Pool(frame, grades(frame), group_id=np.repeat(np.arange(15), 40), cat_features=CATEGORICAL)
    params = {"iterations": 12, "depth": 5, "learning_rate": 0.3, "one_hot_max_size": 2, "max_ctr_complexity": 4,
              "random_strength": 0, "verbose": False, "thread_count": 1, "allow_writing_files": False}  # fmt: skip
    theirs = catboost.CatBoost(params | PARAMS[name]).fit(pool)
    theirs.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    ours = rs.load(tmp_path / "model.json")
    assert isinstance(ours, CtrForest) and any(len(table.elements) > 1 for table in ours.statistics.tables)
    for some in (frame, changed(table(1))):
        expected = theirs.predict(some, prediction_type="RawFormulaVal")
        np.testing.assert_allclose(ours.predict(some), expected, rtol=1e-12, atol=1e-13)
    part = catboost.Pool(frame[:3], cat_features=CATEGORICAL)
    theirs.save_model(str(tmp_path / "some.json"), format="json", pool=part)
    with pytest.raises(ModelError, match="does not have the names of all its categories"):
        rs.load(tmp_path / "some.json")
    with pytest.raises(
        ModelError, match=r"does not have the names of all its categories.* give rs.io.from_model that pool"
    ):
        rs.io.from_model(theirs)
    np.testing.assert_array_equal(rs.io.from_model(theirs, pool=pool).predict(frame), ours.predict(frame))


def test_a_pool_is_for_models_of_catboost():
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(ParameterError, match="pool is for models of CatBoost; leave it out for sklearn"):
        rs.io.from_model(DecisionTreeRegressor(), pool="train")


def test_contributions_are_those_of_catboost_where_all_elements_are_categories(tmp_path):
    catboost = pytest.importorskip("catboost")
    frame = table(0)[["brand", "size", "shop"]]
    pool = catboost.Pool(frame, grades(table(0)), cat_features=["brand", "size", "shop"])
    params = {"iterations": 8, "depth": 5, "max_ctr_complexity": 3, "random_strength": 0, "verbose": False,
              "one_hot_max_size": 1, "thread_count": 1, "allow_writing_files": False}  # fmt: skip
    theirs = catboost.CatBoost(params).fit(pool)
    theirs.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    ours = rs.load(tmp_path / "model.json")
    assert any(len(table.features) == 3 for table in ours.statistics.tables)
    expected = theirs.get_feature_importance(pool, type="ShapValues")
    np.testing.assert_allclose(ours.predict(frame, contributions=True), expected, rtol=1e-9, atol=1e-10)
