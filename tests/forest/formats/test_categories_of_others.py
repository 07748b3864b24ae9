"""XGBoost's and CatBoost's models with categories score as they do there."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, ModelError
from ranksieve.forest.matrix import encoded

pd = pytest.importorskip("pandas")


def table(seed: int = 0):
    rng = np.random.default_rng(seed)
    n = 400
    return pd.DataFrame(
        {
            "price": rng.normal(size=n).astype(np.float32),
            "brand": rng.choice([f"brand {k}" for k in range(12)], n),
            "size": rng.choice(["s", "m", "l"], n),
        }
    )


def grades(frame):
    good = frame["brand"].isin(["brand 1", "brand 4", "brand 7"])
    return good.astype(int) + (frame["size"] == "m") + (frame["price"] > 0.5)


GROUPS = np.repeat(np.arange(10), 40)


@pytest.mark.parametrize("one_hot", [1, 99], ids=["sets", "one-hot"])
@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_xgboost(one_hot, ending, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame = table()
    frame.loc[::9, "brand"] = None
    as_categories = frame.astype({"brand": "category", "size": "category"})
    ranker = xgboost.XGBRanker(
        tree_method="hist", enable_categorical=True, n_estimators=8, max_depth=4, max_cat_to_onehot=one_hot, n_jobs=1
    )
    ranker.fit(as_categories, grades(frame), qid=GROUPS)
    ranker.save_model(tmp_path / f"model.{ending}")
    forest = rs.load(tmp_path / f"model.{ending}")
    assert forest.categorical.any()
    assert forest.categories["size"] == ["l", "m", "s"]
    expected = ranker.predict(as_categories)
    np.testing.assert_allclose(forest.predict(frame), expected, rtol=1e-5, atol=1e-6)
    codes = np.column_stack([frame["price"], as_categories["brand"].cat.codes, as_categories["size"].cat.codes])
    codes[:, 1:] = np.where(codes[:, 1:] < 0, np.nan, codes[:, 1:])
    np.testing.assert_allclose(forest.predict(encoded(codes, forest)), expected, rtol=1e-5, atol=1e-6)
    left = (forest.categorical & forest.default_left).any()
    missing = {"missing": "never"} if left else {}
    forest.save(tmp_path / "ours.txt", **missing)
    known = frame.dropna()
    assert rs.load(tmp_path / "ours.txt").predict(known).tobytes() == forest.predict(known).tobytes()


@pytest.mark.parametrize("kind", ["names", "numbers", "mask"])
def test_scikit_learn(kind):
    ensemble = pytest.importorskip("sklearn.ensemble")
    frame = table()
    y = grades(frame) + np.random.default_rng(1).normal(size=len(frame))
    frame.loc[::9, "brand"] = None
    if kind != "names":
        frame["brand"] = frame["brand"].str[6:].astype(float) * 2  # 0, 2, 4, …
        frame["size"] = frame["size"].map({"s": 3, "m": 5, "l": 0})
    given = frame.astype({"brand": "category", "size": "category"}) if kind == "names" else frame
    categorical = "from_dtype" if kind == "names" else ["brand", "size"]
    if kind == "mask":
        given, categorical = frame.to_numpy(), [False, True, True]
    model = ensemble.HistGradientBoostingRegressor(
        categorical_features=categorical, max_iter=12, max_leaf_nodes=8, min_samples_leaf=5, random_state=0
    ).fit(given, y)
    forest = rs.io.from_model(model)
    assert forest.categorical.any() and not (forest.default_left & forest.categorical).any()
    sizes = {"names": ["l", "m", "s"]}.get(kind, [])
    assert forest.categories["f3" if kind == "mask" else "size"] == sizes
    other = frame.copy()
    other.loc[::7, "brand"] = "never seen" if kind == "names" else 99
    other.loc[::5, "size"] = None
    their_input = other.astype({"brand": "category", "size": "category"}) if kind == "names" else other
    expected = model.predict(their_input.to_numpy() if kind == "mask" else their_input)
    np.testing.assert_array_equal(forest.predict(their_input.to_numpy() if kind == "mask" else their_input), expected)


def test_fractions_as_categories_of_scikit_learn_are_refused():
    ensemble = pytest.importorskip("sklearn.ensemble")
    model = ensemble.HistGradientBoostingRegressor(categorical_features=[0], max_iter=2)
    model.fit(np.tile([[0.5], [1.5]], (30, 1)), np.tile([0.0, 1.0], 30))
    with pytest.raises(ModelError, match=r"feature 'f1' has categories such as .*0\.5.*; expected texts or integers"):
        rs.io.from_model(model)


@pytest.mark.parametrize("ending", ["json", "ubj"])
@pytest.mark.parametrize("name", ["größe m", "é", "尺寸"])
def test_names_that_xgboost_has_cut_off_are_refused(name, ending, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame = table()[["size"]].replace("m", name)
    ranker = xgboost.XGBRanker(tree_method="hist", enable_categorical=True, n_estimators=2, max_depth=2, n_jobs=1)
    ranker.fit(frame.astype("category"), grades(table()), qid=GROUPS)
    path = tmp_path / f"model.{ending}"
    ranker.save_model(path)
    with pytest.raises(
        ModelError, match=r"model\.\w+: feature 'size' has categories that are not ASCII.*; rename them"
    ):
        rs.load(path)
    ranker.fit(frame.astype("category").apply(lambda column: column.cat.codes).astype("category"),
               grades(table()), qid=GROUPS)  # fmt: skip
    ranker.save_model(path)
    assert rs.load(path).categories == {"size": ["0", "1", "2"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories_sizes": [99]}, "do not fit its categorical splits"),
        ({"categories_nodes": [1]}, "do not fit its categorical splits"),
        ({"categories": [-1]}, "a category that is not a number"),
    ],
)
def test_damaged_sets_of_xgboost_are_refused(change, message, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame = table().astype({"brand": "category", "size": "category"})[["size"]]
    ranker = xgboost.XGBRanker(tree_method="hist", enable_categorical=True, n_estimators=1, max_depth=1, n_jobs=1)
    ranker.fit(frame, grades(table()), qid=GROUPS)
    ranker.save_model(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text())
    model["learner"]["gradient_booster"]["model"]["trees"][0] |= change
    (tmp_path / "model.json").write_text(json.dumps(model))
    with pytest.raises(ModelError, match=message):
        rs.load(tmp_path / "model.json")


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_catboost_one_hot(policy, tmp_path):
    catboost = pytest.importorskip("catboost")
    frame = table()
    pool = catboost.Pool(frame, grades(frame), group_id=GROUPS, cat_features=["brand", "size"])
    ranker = catboost.CatBoostRanker(
        iterations=8, depth=4, one_hot_max_size=50, grow_policy=policy, verbose=False, thread_count=1,
        loss_function="QueryRMSE", random_seed=0, allow_writing_files=False,
    ).fit(pool)  # fmt: skip
    ranker.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    forest = rs.load(tmp_path / "model.json")
    assert forest.categorical.any()
    other = table(1)
    other.loc[:5, "brand"] = "never seen"
    np.testing.assert_allclose(forest.predict(other), ranker.predict(other), rtol=1e-9, atol=1e-9)
    with pytest.raises(DataError, match="is categorical in the model, with categories such as"):
        forest.predict(other.assign(brand=1.5))
    ranker.save_model(str(tmp_path / "nameless.json"), format="json")
    with pytest.raises(ModelError, match="does not have the names of all its categories"):
        rs.load(tmp_path / "nameless.json")


STATISTICS = {
    "borders": {},
    "lossguide": {"grow_policy": "Lossguide"},
    "buckets": {"simple_ctr": "Buckets"},
    "means": {"simple_ctr": "BinarizedTargetMeanValue"},
    "counter": {"simple_ctr": "Counter"},
}


@pytest.mark.parametrize("kind", STATISTICS)
def test_catboost_statistics_of_a_feature_are_sets_of_its_categories(kind, tmp_path):
    catboost = pytest.importorskip("catboost")
    frame = table()
    frame.loc[::9, "brand"] = ""
    grade = grades(frame) + 3 * frame["brand"].isin(["", "brand 2", "brand 3", "brand 5", "brand 8"])
    pool = catboost.Pool(frame, grade, group_id=GROUPS, cat_features=["brand", "size"])
    ranker = catboost.CatBoostRanker(
        iterations=10, depth=4, one_hot_max_size=2, max_ctr_complexity=1, verbose=False, thread_count=1, random_seed=1,
        loss_function="QueryRMSE", allow_writing_files=False, **STATISTICS[kind],
    ).fit(pool)  # fmt: skip
    ranker.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    forest = rs.load(tmp_path / "model.json")
    assert 1 in forest.feature[forest.categorical]
    other = table(1)
    other.loc[:60, "brand"], other.loc[30:90, "size"], other.loc[100:120, "brand"] = "never seen", "xxl", ""
    np.testing.assert_allclose(forest.predict(other), ranker.predict(other), rtol=1e-12, atol=1e-12)
    other.loc[100:120, "brand"] = None  # in CatBoost an empty text is a category
    expected = ranker.predict(other.fillna(""))
    np.testing.assert_allclose(forest.predict(other), expected, rtol=1e-12, atol=1e-12)
    data = rs.read(other.assign(label=0, qid=GROUPS), categorical="brand,size")
    np.testing.assert_allclose(forest.predict(data), expected, rtol=1e-12, atol=1e-12)
    some = catboost.Pool(frame[:3], cat_features=["brand", "size"])
    ranker.save_model(str(tmp_path / "some.json"), format="json", pool=some)
    with pytest.raises(ModelError, match="does not have the names of all its categories"):
        rs.load(tmp_path / "some.json")


def test_catboost_statistics_with_several_borders_of_the_target(tmp_path):
    catboost = pytest.importorskip("catboost")
    frame = table()
    pool = catboost.Pool(frame, grades(frame) + frame["price"], cat_features=["brand", "size"])
    model = catboost.CatBoostRegressor(
        iterations=10, depth=4, one_hot_max_size=2, max_ctr_complexity=1, verbose=False, thread_count=1, random_seed=1,
        simple_ctr=["Borders:TargetBorderCount=3", "Buckets:TargetBorderCount=3"], allow_writing_files=False,
    ).fit(pool)  # fmt: skip
    model.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    forest, other = rs.load(tmp_path / "model.json"), table(1)
    np.testing.assert_allclose(forest.predict(other), model.predict(other), rtol=1e-12, atol=1e-12)
