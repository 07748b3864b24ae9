"""What a model with categories takes: a name has the model's number in every kind of data, or the data is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import ranksieve as rs
from ranksieve.errors import DataError, ModelError, RanksieveWarning
from ranksieve.evaluation.explanations import explain
from ranksieve.evaluation.importance import permutation_drops
from ranksieve.forest.bench import bench
from ranksieve.models.blend import blend
from ranksieve.pruning.leaves import find_leaves

pd = pytest.importorskip("pandas")
PARAMS = {"algo": "lambdamart", "trees": 4, "leaves": 5, "min_docs": 5, "verbose": False, "threads": 1}
PARAMS |= {"min_docs_per_group": 5, "cat_smooth": 2.0, "cat_l2": 1.0}
NUMBERS_IN_THE_MODEL = "the model has numbers for its categories; give the numbers that it was trained with"


def table(seed: int = 0):
    """Two queries of 60 documents; the grade depends on the brand."""
    rng = np.random.default_rng(seed)
    brand, x = rng.integers(0, 8, 120), rng.normal(size=120)
    return pd.DataFrame(
        {"label": (brand % 3 == 0).astype(int), "qid": np.repeat([5, 9], 60), "brand": [f"b{b}" for b in brand], "x": x}
    )


@pytest.fixture(scope="module")
def model():
    return rs.train(table(), categorical="brand", **PARAMS)


def codes(frame):
    return frame["brand"].str[1:].astype(float)


@pytest.mark.parametrize("kind", ["float32", "int", "list", "sparse"])
def test_arrays_are_refused_where_categories_have_names(model, kind):
    X = np.column_stack([codes(table()), table()["x"]])
    X = {"float32": X.astype(np.float32), "int": X.astype(int), "list": X.tolist(), "sparse": scipy.sparse.csr_array(X)}
    with pytest.raises(DataError, match="'brand' holds numbers, but is categorical in the model, with categories such"):
        model.predict(X[kind])
    with pytest.raises(DataError, match="'brand' holds numbers"):
        model.predict_leaves(X[kind])


@pytest.mark.parametrize("data", [{"brand": ["b1"], "x": [1.0]}, [{"brand": "b1", "x": 1.0}]])
def test_dicts_are_no_tables(model, data):
    with pytest.raises(DataError, match=r"^the data is a (dict|list of dicts); give a DataFrame or an Arrow table$"):
        model.predict(data)


@pytest.mark.parametrize("names", [["brand", "x"], None])
@pytest.mark.parametrize("categorical", ["1", None])
def test_data_sets_of_numbers_are_refused_where_categories_have_names(model, names, categorical):
    X = np.column_stack([codes(table()), table()["x"]])
    data = rs.Dataset.from_arrays(X, table()["label"], group=[60, 60]).with_features(names, categorical=categorical)
    with pytest.raises(DataError, match=r"holds numbers, but is categorical in the model, .*give a table with texts"):
        model.predict(data)
    with pytest.raises(DataError, match="holds numbers, but is categorical"):
        rs.train(table(), categorical="brand", valid=data, **PARAMS)


def test_letor_text_is_refused_where_categories_have_names(model, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:5 1:3 2:0.5\n0 qid:9 1:1 2:0.5\n")
    expected = f"{path}: is LETOR text, in which feature 'brand' holds numbers, but is categorical in the model"
    for use in (lambda: rs.evaluate(model, path), lambda: rs.train(table(), categorical="brand", valid=path, **PARAMS)):
        with pytest.raises(DataError) as caught:
            use()
        assert str(caught.value).startswith(expected)
    plain = rs.train(table().assign(brand=codes(table()).astype(int)), categorical="brand", **PARAMS)
    assert plain.categories == {"brand": []} and rs.evaluate(plain, path).mean() > 0


def test_names_are_refused_where_the_model_has_numbers():
    numbers = table().assign(brand=codes(table()).astype(int))
    data = rs.read(table(), categorical="brand")
    plain = rs.train(numbers, categorical="brand", **PARAMS)
    with pytest.raises(DataError, match=f"feature 'brand' holds texts such as 'b.', but {NUMBERS_IN_THE_MODEL}"):
        plain.predict(data)
    with pytest.raises(DataError, match=NUMBERS_IN_THE_MODEL):
        rs.train(numbers, categorical="brand", valid=data, **PARAMS)
    with pytest.raises(DataError, match=f"column 'brand' holds categories of text, but {NUMBERS_IN_THE_MODEL}"):
        plain.predict(table().astype({"brand": "category"}))
    X = numbers[["brand", "x"]].to_numpy()
    as_categories = numbers.astype({"brand": "category"})[["brand", "x"]]
    np.testing.assert_array_equal(plain.predict(as_categories), plain.predict(X))
    np.testing.assert_array_equal(plain.predict(X), plain.predict(rs.read(numbers, categorical="brand")))


def test_a_feature_that_is_missing_everywhere_is_no_number(model):
    frame = table().assign(brand=None)
    expected = model.predict(frame)
    np.testing.assert_array_equal(model.predict(rs.read(frame, categorical="brand")), expected)
    unnamed = rs.Dataset.from_arrays(np.column_stack([np.full(120, np.nan), frame["x"]]), frame["label"], frame["qid"])
    np.testing.assert_array_equal(model.predict(unnamed), expected)


def test_numbers_of_another_data_set_are_translated_everywhere(model, tmp_path):
    frame = table(1)
    other = rs.read(frame, categorical="brand")
    assert other.categories["brand"] != model.categories["brand"]
    frame.to_csv(tmp_path / "data.csv", index=False)
    file = rs.DataFile(tmp_path / "data.csv", categorical="brand")
    expected = model.predict(frame)
    np.testing.assert_array_equal(model.predict(other), expected)
    leaves = model.predict_leaves(frame)
    for given in (other, file):
        np.testing.assert_array_equal(find_leaves(model, given).numbers, leaves)
    found = explain(model, other, 9)
    np.testing.assert_array_equal(found.scores, expected[60:])
    brands = frame["brand"][60:].tolist()
    (above, below), (difference, *_) = found.order[[0, -1]], found.why(1, len(found.order))
    assert (difference.feature, difference.value_above) == ("brand", brands[above])
    assert str(difference).endswith(f"({brands[above]} against {brands[below]})")
    without = model.predict(frame.assign(brand=None))[60:]
    np.testing.assert_array_equal(found.scores_without("brand", by="missing"), without)
    same = other.in_order(model.feature_names, model.categories)
    drops = permutation_drops(model, other, repeats=1)
    np.testing.assert_array_equal(drops, permutation_drops(model, same, repeats=1))
    assert drops[0].max() > 0
    assert all(row.get("agrees", True) for row in bench(model, other, repeat=1))


def test_the_estimator_takes_tables_and_refuses_arrays():
    frame, params = table(), {name: value for name, value in PARAMS.items() if name != "verbose"}
    X = frame[["brand", "x"]].astype({"brand": "category"})
    ranker = rs.Ranker(**params).fit(X, frame["label"], qid=frame["qid"])
    np.testing.assert_array_equal(ranker.predict(frame[["brand", "x"]]), ranker.model_.predict(X))
    assert ranker.score(X, frame["label"], qid=frame["qid"]) > 0.5
    with pytest.raises(DataError, match="'brand' holds numbers, but is categorical"):
        ranker.predict(np.column_stack([codes(frame), frame["x"]]))


def test_blends_keep_the_names_of_categories(model):
    mixed = blend([model, rs.train(table(), categorical="brand", **PARAMS | {"trees": 2})], [0.5, 2.0], {})
    assert mixed.categories == model.categories
    np.testing.assert_allclose(mixed.predict(table(1)), mixed.predict(rs.read(table(1), categorical="brand")))
    with pytest.raises(ModelError, match="different categories"):
        blend([model, rs.train(table(1), categorical="brand", **PARAMS)], [1.0, 1.0], {})


def test_tables_of_float64_are_not_rounded_for_models_with_float64_thresholds():
    """Times in seconds since 1970 are 128 apart in float32."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    times = 1.7e9 + rng.integers(0, 5_000, 400)
    frame = pd.DataFrame({"time": times, "brand": pd.Categorical(rng.choice(["a", "b", "c"], 400))})
    given = lightgbm.Dataset(frame, (np.sin(times / 400) > 0).astype(int), group=[20] * 20)
    booster = lightgbm.train({"objective": "lambdarank", "min_data_per_group": 5, "verbose": -1}, given, 5)
    model = rs.io.from_model(booster)
    assert np.any(model.threshold != model.threshold.astype(np.float32))
    for one in (frame, pa.Table.from_pandas(frame)):
        np.testing.assert_array_equal(model.predict(one), booster.predict(frame))
    rounded = frame.assign(time=frame["time"].astype(np.float32))
    np.testing.assert_array_equal(model.predict(rounded), booster.predict(rounded))
    labelled = frame.assign(label=(times > 1.7e9 + 2_000).astype(int), qid=np.repeat(np.arange(20), 20))
    message = "the DataFrame: is read as float32, which has no number between some thresholds of model 1 on time, so"
    with pytest.warns(RanksieveWarning, match=message) as caught:
        rs.evaluate(model, labelled)
    assert [one.filename for one in caught] == [__file__]
    rs.evaluate(rs.train(labelled, **PARAMS), labelled)  # no warning


def test_tables_are_rounded_to_float32_as_in_training():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"label": rng.integers(0, 3, 60), "qid": np.repeat([1, 2, 3], 20), "price": rng.random(60)})
    model = rs.train(frame, algo="lambdamart", trees=3, leaves=4, min_docs=1, verbose=False)
    np.testing.assert_array_equal(model.predict(frame), model.predict(rs.read(frame)))
    np.testing.assert_array_equal(model.threshold, model.threshold.astype(np.float32))
