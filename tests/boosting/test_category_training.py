"""Training on categories: sets are the naive best and LightGBM's, and threads do not change the model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve as rs
from naive_trees import gradients, leaves_of_rows, naive_set
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import bin_data
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.models.blend import Blend
from ranksieve.models.linear import one_feature
from ranksieve.params import Params

pd = pytest.importorskip("pandas")
lightgbm = pytest.importorskip("lightgbm")
SMALL = {"min_docs": 5, "min_docs_per_group": 5, "cat_smooth": 2.0, "cat_l2": 1.0}


def table(seed: int = 0, n_queries: int = 12, n_brands: int = 30):
    """Documents whose grade depends on their brand; some brands are missing."""
    rng = np.random.default_rng(seed)
    quality = np.random.default_rng(99).normal(size=n_brands)
    n = 25 * n_queries
    brand, x = rng.integers(0, n_brands, n), rng.normal(size=n)
    grade = np.digitize(quality[brand] + 0.5 * x + 0.3 * rng.normal(size=n), [0.3, 1.2])
    names = np.array([f"brand {k}" for k in range(n_brands)], object)[brand]
    names[rng.random(n) < 0.05] = None
    size = pd.Categorical(rng.choice(["s", "m", "l"], n))
    return pd.DataFrame(
        {"label": grade, "qid": np.repeat(np.arange(n_queries), 25), "bm25": x, "brand": names, "size": size}
    )


@pytest.fixture(scope="module")
def data():
    return rs.read(table(), categorical="brand")


def grown(binned, params, grad, hess, threads=1):
    return Grower(binned, params, threads=threads).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("gain", "n_categories"), [("newton", 40), ("variance", 40), ("newton", 3)])
def test_the_first_set_is_the_naive_best(seed, gain, n_categories):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, 400).astype(float)
    codes[rng.random(400) < 0.1] = np.nan
    binned = bin_data(
        rs.Dataset.from_arrays(codes[:, None], np.zeros(400), group=[150, 250]).with_features(categorical="1")
    )
    grad, hess = gradients(400, seed)
    params = Params(leaves=2, gain=gain, l2=0.5, **SMALL)
    tree, _ = grown(binned, params, grad, hess)
    best, expected = naive_set(binned.bins[:, 0], int(binned.binning.n_bins[0]), grad, hess, params)
    assert tree.splits[0, 1] == -1
    assert np.flatnonzero(tree.sets[0]).tolist() == expected
    whole = grad.sum() ** 2 / (hess.sum() + 0.5 if gain == "newton" else 400)
    np.testing.assert_allclose(tree.gains[0], best - whole, rtol=1e-4)
    left = np.isin(binned.bins[:, 0], expected)
    l2 = params.l2 + (params.cat_l2 if n_categories > params.max_cat_to_onehot else 0.0)
    values = [grad[side].sum() / (hess[side].sum() + l2) for side in (left, ~left)]
    np.testing.assert_allclose(tree.leaf_values, values, rtol=1e-6)


@given(st.integers(0, 2**32), st.integers(2, 7))
@settings(max_examples=25, deadline=None)
def test_no_other_set_of_categories_gains_more(seed, n_categories):
    """Without smoothing, the best set lies along the order of the categories' values (Fisher 1958)."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_categories), rng.integers(0, n_categories, 60)])
    data = rs.Dataset.from_arrays(codes[:, None].astype(float), np.zeros(len(codes)), group=[len(codes)]).with_features(
        categorical="1"
    )
    grad, hess = gradients(len(codes), seed)
    params = Params(leaves=2, min_docs=1, min_docs_per_group=1, cat_smooth=0, cat_l2=0, l2=0, max_cat_to_onehot=1)
    tree, _ = grown(bin_data(data), params, grad, hess)
    sets = (set(chosen) for size in range(1, n_categories) for chosen in combinations(range(n_categories), size))
    sides = ((np.isin(codes, list(chosen)), ~np.isin(codes, list(chosen))) for chosen in sets)
    best = max(sum(grad[side].sum() ** 2 / hess[side].sum() for side in both) for both in sides)
    np.testing.assert_allclose(tree.gains[0], best - grad.sum() ** 2 / hess.sum(), rtol=1e-5, atol=1e-7)


def test_leaves_hold_the_rows_that_reach_them(data):
    binned = bin_data(data)
    grad, hess = gradients(len(binned.bins))
    trees = [grown(binned, Params(leaves=9, **SMALL), grad, hess, threads) for threads in (1, 2)]
    tree, leaves = trees[0]
    assert (tree.splits[:, 1] < 0).any() and (tree.splits[:, 1] >= 0).any()
    reached = leaves_of_rows(tree, binned.bins)
    for leaf, (start, stop) in enumerate(leaves.bounds):
        assert (reached[leaves.rows[start:stop]] == leaf).all()
    np.testing.assert_array_equal(tree.splits, trees[1][0].splits)
    np.testing.assert_array_equal(tree.sets, trees[1][0].sets)


@pytest.mark.parametrize("n_categories", [30, 4])
def test_lightgbm_grows_the_same_tree(n_categories):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, n_categories, 3000)
    labels = np.random.default_rng(1).normal(size=30)[codes] + rng.normal(size=3000)
    labels -= labels.min()
    theirs = lightgbm.train(
        {"objective": "regression", "verbose": -1, "num_leaves": 4, "learning_rate": 0.1, "lambda_l2": 1.0,
         "min_data_in_leaf": 20, "num_threads": 1, "min_data_in_bin": 1, "max_cat_to_onehot": 5},
        lightgbm.Dataset(codes[:, None].astype(float), labels, categorical_feature=[0]), 1,
    )  # fmt: skip
    data = rs.Dataset.from_arrays(codes[:, None], labels, group=[1000, 2000]).with_features(categorical="1")
    params = {"l2": 1.0, "learning_rate": 0.1, "max_cat_to_onehot": 5}
    ours = rs.train(data, algo="mart", trees=1, leaves=4, min_docs=20, **params, verbose=False, threads=1)
    theirs = rs.io.from_model(theirs)
    assert [ours.set_of(split).tolist() for split in range(3)] == [theirs.set_of(split).tolist() for split in range(3)]
    np.testing.assert_array_equal(ours.leaf_count, theirs.leaf_count)
    np.testing.assert_allclose(ours.leaf_values, theirs.leaf_values, rtol=1e-6)


@pytest.mark.parametrize(
    "more", [{"algo": "lambdamart"}, {"algo": "selgb", "negatives": 0.3}, {"algo": "lambdamart", "bag": 2},
             {"algo": "mart", "gain": "variance"}, {"algo": "lambdamart", "monotone": "bm25:+1"}],
    ids=["lambdamart", "selgb", "bag", "variance", "monotone"],
)  # fmt: skip
def test_a_model_does_not_depend_on_threads_and_its_history_is_true(data, more):
    valid = rs.read(table(7), categorical=["bra*"])
    params = {"trees": 6, "leaves": 6, "early_stopping": 0, "verbose": False, **SMALL, **more}
    one, two = (rs.train(data, valid=valid, threads=threads, **params) for threads in (1, 2))
    assert to_text(one) == to_text(two)
    assert one.categorical.any()
    last = one.info["history"]["valid"]["ndcg@10"][-1]
    assert last == pytest.approx(rs.evaluate(one, valid).mean(), abs=1e-12)


def test_the_names_of_categories_are_kept_and_others_are_missing(data, tmp_path):
    model = rs.train(data, algo="lambdamart", trees=8, leaves=6, verbose=False, **SMALL)
    model.save(tmp_path / "model.txt")
    back = rs.load(tmp_path / "model.txt")
    assert back.categories == {"brand": list(data.categories["brand"]), "size": ["l", "m", "s"]}
    frame = table(3).drop(columns=["label", "qid"])
    frame.loc[:4, "brand"] = "never seen"
    scores = back.predict(frame)
    unknown = frame.copy()
    unknown.loc[:4, "brand"] = None
    assert (
        scores.tobytes() == back.predict(unknown).tobytes() == back.predict(frame[["size", "bm25", "brand"]]).tobytes()
    )
    frame["brand"] = pd.Categorical(frame["brand"])  # numbered in another order
    assert back.predict(frame).tobytes() == scores.tobytes()
    theirs = frame.assign(brand=frame["brand"].cat.set_categories(back.categories["brand"]))
    assert lightgbm.Booster(model_file=tmp_path / "model.txt").predict(theirs).tobytes() == scores.tobytes()
    other = rs.read(table(3), categorical="brand")  # has its own numbers
    assert other.categories["brand"] != back.categories["brand"]
    assert back.predict(other).tobytes() == back.predict(table(3)).tobytes()


def test_a_resumed_run_gives_the_same_model(data, tmp_path):
    params = {"algo": "selgb", "negatives": 0.3, "leaves": 6, "verbose": False, **SMALL}
    whole = rs.train(data, trees=6, **params)
    rs.train(data, trees=3, checkpoint=tmp_path, checkpoint_every=3, **params)
    with pytest.raises(ModelError, match="another"):
        rs.train(rs.read(table(5), categorical="brand"), trees=6, checkpoint=tmp_path, resume=True, **params)
    resumed = rs.train(data, trees=6, checkpoint=tmp_path, resume=True, **params)
    assert to_text(resumed) == to_text(whole)


@pytest.mark.parametrize("algo", ["lambdamart", "selgb"])
def test_bins_in_a_file_give_the_same_model(data, algo, small_memory):
    store = BinStore("5K", keep=False)
    store.rows_in_memory = lambda file: 150
    binned = bin_data(data, store=store)
    assert binned.disk is not None
    params = {"algo": algo, "trees": 7, "leaves": 6, "verbose": False, **SMALL}
    params |= {"negatives": 0.2, "min_negatives": 2} if algo == "selgb" else {}
    assert to_text(rs.train(binned, **params)) == to_text(rs.train(data, **params))


def test_pruning_and_continued_training(data):
    params = {"algo": "lambdamart", "leaves": 6, "verbose": False, **SMALL}
    model = rs.train(data, trees=8, **params)
    valid = rs.read(table(7), categorical="brand")
    pruned = rs.prune(model, valid=valid, rate=0.5)
    assert pruned.n_trees == 4 and pruned.categories == model.categories
    longer = rs.train(data, trees=3, init=model, **params)
    assert longer.n_trees == 11
    np.testing.assert_array_equal(longer.first(8).predict(data), model.predict(data))


@pytest.mark.parametrize("kind", ["forest", "file", "estimator", "blend", "grades", "numbers", "no categories"])
def test_a_base_with_other_categories_is_refused_before_training(data, kind, tmp_path):
    params = {"algo": "lambdamart", "trees": 2, "leaves": 6, "verbose": False, **SMALL}
    frame = table()
    numbers = frame.assign(brand=frame["brand"].str[6:].astype(float), size=frame["size"].cat.codes)
    others = {"numbers": rs.read(numbers, categorical="brand,size"), "no categories": rs.read(numbers)}
    base = rs.train(others.get(kind, data), **(params | {"algo": "mcrank"} if kind == "grades" else params))
    if kind == "file":
        base.save(tmp_path / "base.txt")
        base = tmp_path / "base.txt"
    elif kind == "blend":
        first_stage = one_feature("bm25", data.feature_names)
        base = Blend((first_stage, base), np.ones(2), data.feature_names)
    elif kind == "estimator":
        base = rs.Ranker(algo="lambdamart", trees=2, leaves=6, **SMALL).fit(
            frame.drop(columns=["label", "qid"]), frame["label"], qid=frame["qid"], categorical="brand"
        )
    trees = []
    with pytest.raises(ModelError, match="and the training data have different categories of 'brand'"):
        rs.train(rs.read(table(5), categorical="brand"), init=base, callbacks=[trees.append], **params)
    assert trees == []


@pytest.mark.parametrize("algo", ["lambdamart", "mcrank"])
def test_a_base_of_the_same_categories_scores_as_it_does_alone(data, algo):
    params = {"trees": 2, "leaves": 6, "verbose": False, **SMALL}
    base = rs.train(data, algo=algo, **params)
    frame = table(5)
    first_stage = one_feature("bm25", data.feature_names, {"categories": data.categories})
    for start in (base, Blend((first_stage, base), np.ones(2), data.feature_names)):
        longer = rs.train(data, algo="lambdamart", init=start, **params)
        new = longer.take([2, 3]) if isinstance(longer, Forest) else longer.models[1]
        np.testing.assert_allclose(longer.predict(frame), start.predict(frame) + new.predict(frame), rtol=1e-9)


def test_a_feature_as_base_reads_categories_too(data, tmp_path):
    model = rs.train(data, algo="lambdamart", init="bm25", trees=2, leaves=6, verbose=False, **SMALL)
    frame = table(5)
    expected = frame["bm25"].astype(np.float32) + model.models[1].predict(frame)
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-9)
    model.save(tmp_path / "model.json")
    back = rs.load(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict(rs.read(frame, categorical="brand")), model.predict(frame))


def test_rare_categories_count_as_missing(data):
    binned = bin_data(data, max_cat_bins=5)
    column = int(np.flatnonzero(binned.binning.features == 1)[0])
    assert binned.binning.n_bins[column] == 5
    counts = np.bincount(binned.bins[:, column], minlength=256)
    assert (np.diff(counts[:5]) <= 0).all() and counts[5:255].sum() == 0 and counts[255] > counts[4]
    model = rs.train(data, algo="lambdamart", trees=3, leaves=6, max_cat_bins=5, verbose=False, **SMALL)
    kept = binned.binning.codes[1].tolist()
    assert set(model.set_codes[np.repeat(model.feature == 1, np.diff(model.set_offsets))].tolist()) <= set(kept)


def test_each_limit_of_bins_is_for_its_own_kind_of_features(data):
    params = {"trees": 2, "leaves": 6, "verbose": False, **SMALL}
    binned = bin_data(data, max_bins=8)
    assert binned.binning.n_bins.max() > 20
    for algo in ("lambdamart", "mcrank"):
        assert rs.train(binned, algo=algo, max_bins=8, **params).info["params"]["max_bins"] == 8
    with pytest.raises(DataError, match="has more than max_cat_bins=8 bins; bin it again"):
        rs.train(binned, algo="lambdamart", max_cat_bins=8, **params)
    with pytest.raises(DataError, match="has more than max_bins=7 bins; bin it again"):
        rs.train(binned, algo="lambdamart", max_bins=7, **params)


@pytest.mark.parametrize("algo", ["xcleaver", "tuned"])
def test_the_most_categories_are_used_wherever_forests_are_trained(data, algo):
    params = {"trees": 3, "leaves": 6, "max_bins": 8, "max_cat_bins": 4, **SMALL}
    if algo == "tuned":
        model = rs.tune(data, valid=data, trials=1, space={"learning_rate": [0.1]}, algo="lambdamart", **params).model
    else:
        model = rs.train(data, valid=data, algo=algo, base="lambdamart", grow=3, verbose=False, **params)
    codes = bin_data(data, max_cat_bins=4).binning.codes
    for split in np.flatnonzero(model.categorical).tolist():
        assert set(model.set_of(split).tolist()) <= set(codes[int(model.feature[split])].tolist())
    assert model.categorical.any()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"algo": "oblivious-lambdamart"}, "does not support categorical features"),
        ({"algo": "lambdamart", "monotone": "brand:+1"}, "'brand', which is categorical"),
        ({"algo": "ranksvm"}, "ranksvm cannot use categories"),
        ({"algo": "lambdarank"}, "lambdarank cannot use categories"),
    ],
)
def test_what_cannot_use_categories_says_so(data, more, message):
    with pytest.raises((ParameterError, DataError), match=message):
        rs.train(data, verbose=False, **more)


def test_numbers_that_are_no_categories_are_refused():
    with pytest.raises(DataError, match=r"feature 'f1' is categorical and holds 0.5; expected integers from 0 to"):
        bin_data(rs.Dataset.from_arrays([[0.5], [1.0]], [0, 1], group=[2]).with_features(categorical="f1"))


def test_messages_on_categories_and_thresholds_name_the_feature():
    rng = np.random.default_rng(0)
    codes, numbers, labels = rng.integers(0, 5, 200), rng.random(200), rng.integers(0, 3, 200)

    def lists(codes, numbers):
        X = np.column_stack([numbers, codes]).astype(np.float32)
        data = rs.Dataset.from_arrays(X, labels, np.arange(200) // 20)
        return data.with_features(["price", "brand"], categorical=["brand"])

    base = rs.train(lists(codes, numbers), trees=3, leaves=4, min_docs=2, min_docs_per_group=2)
    assert set(base.feature.tolist()) == {0, 1}
    for other, message in (
        (lists(codes + 50, numbers), r"the category \d of feature 'brand' has no bin of its own"),
        (lists(codes, numbers + 1), "a threshold of feature 'price' is not a border of the data's bins"),
    ):
        with pytest.raises(ModelError, match=message):
            rs.train(bin_data(other), init=base, trees=1)


def test_too_many_categories_name_the_feature(monkeypatch):
    monkeypatch.setattr("ranksieve.data.categories.MAX_CATEGORIES", 3)
    frame = pd.DataFrame({"label": [0, 1] * 4, "qid": 1, "price": 1.0, "brand": list("abcdabcd")})
    with pytest.raises(DataError, match="the DataFrame: feature 'brand' has more than 3 categories; leave it out"):
        rs.train(frame, categorical="brand")


def test_other_algorithms_with_categories(data):
    for algo in ("mcrank", "lightgbm"):
        model = rs.train(data, algo=algo, trees=3, leaves=5, verbose=False, **SMALL)
        assert getattr(model, "forest", model).categorical.any()
        assert rs.evaluate(model, data).mean() > 0.5
