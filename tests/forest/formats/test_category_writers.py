"""Models with categories in other formats: the consumer takes the same leaves, or the format is refused by name."""

from __future__ import annotations

import ctypes
import dataclasses
import json

import numpy as np
import pytest

from naive_forest import naive_scores, random_documents, random_forest
from naive_formats import evaluate_vespa, singles_in_order
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.c_source import to_c
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.onnx import to_onnx
from ranksieve.forest.formats.vespa import rank_profile, to_vespa
from ranksieve.forest.formats.xgboost import read_xgboost, to_xgboost
from ranksieve.forest.matrix import encoded

NAMES = {"f2": [f"brand {n}" for n in range(40)], "f4": [f"{n}" for n in range(40)]}


def case(seed: int, *, named: bool = False, missing_left: bool = False) -> tuple[Forest, np.ndarray]:
    """A forest whose sets are not empty; and documents with unknown, missing and fractional categories."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=6, max_leaves=12, n_features=4, n_categories=40)
    sizes = np.diff(forest.set_offsets) > 0
    forest = dataclasses.replace(
        forest,
        categorical=forest.categorical & sizes,
        default_left=forest.default_left | (forest.categorical & sizes & missing_left),
        info={**forest.info, **({"categories": NAMES} if named else {})},
    )
    return forest, random_documents(rng, 60, 4, 40).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_compiled_c_gives_the_same_bits(compiled_c, seed):
    forest, X = case(seed, named=seed == 0, missing_left=seed == 3)
    library = compiled_c(to_c(forest))
    scores = np.empty(len(X))
    library.model_scores(
        X.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(X)), scores.ctypes.data_as(ctypes.c_void_p)
    )
    assert scores.tobytes() == naive_scores(forest, X).tobytes()
    library.model_score_double.restype = ctypes.c_double
    wide = X.astype(np.float64)
    got = [library.model_score_double(row.ctypes.data_as(ctypes.c_void_p)) for row in wide]
    assert np.array(got).tobytes() == naive_scores(forest, wide).tobytes()


def test_c_lists_the_names_of_categories():
    forest, _ = case(0)
    forest = dataclasses.replace(forest, info={"categories": {"f2": ["a */ b", "c"]}})
    assert " *   x[1]  f2\n *          0 a * / b, 1 c\n *   x[2]  f3\n" in to_c(forest)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing_left", [False, True])
def test_xgboost_takes_the_same_leaves(seed, missing_left):
    xgboost = pytest.importorskip("xgboost")
    forest, X = case(seed, missing_left=missing_left)
    forest = without_first_set(forest) if seed > 1 else forest
    X = np.where(
        np.isin(X, [-0.5, 1e10, np.inf, -np.inf, -3e9]), np.float32(np.nan), X
    )  # XGBoost refuses infinite ones
    text = to_xgboost(forest)
    booster = xgboost.Booster(model_file=bytearray(text.encode()))
    types = ["c" if name in ("f2", "f4") else "float" for name in forest.feature_names]
    scores = booster.predict(xgboost.DMatrix(X, feature_types=types, nthread=1))
    np.testing.assert_array_equal(scores, singles_in_order(forest, X))
    back = read_xgboost(text.encode(), "model.json")
    np.testing.assert_array_equal(singles_in_order(back, X), scores)


def test_xgboost_finds_the_numbers_of_categories_by_their_names():
    xgboost, pd = pytest.importorskip("xgboost"), pytest.importorskip("pandas")
    forest, X = case(5, named=True)
    categories = {"b": NAMES["f2"], "d": NAMES["f4"]}
    forest = dataclasses.replace(forest, feature_names=("a", "b", "c", "d"), info={"categories": categories})
    X[:, 1::2] = np.random.default_rng(0).integers(0, 40, (len(X), 2))
    frame = pd.DataFrame(X, columns=list("abcd"))
    for name in "bd":  # in another order than the model has them
        names = np.array(forest.categories[name])
        frame[name] = pd.Categorical(names[frame[name].astype(int)], categories=names[::-1])
    booster = xgboost.Booster(model_file=bytearray(to_xgboost(forest).encode()))
    scores = booster.predict(xgboost.DMatrix(frame, enable_categorical=True, nthread=1))
    np.testing.assert_array_equal(scores, singles_in_order(forest, encoded(X, forest)))
    assert read_xgboost(to_xgboost(forest).encode(), "model.json").categories == forest.categories


def test_treelite_reads_our_xgboost_file():
    treelite = pytest.importorskip("treelite")
    forest, X = case(2)
    halves = np.round(forest.leaf_values * 64) / 64  # no arithmetic rounds them
    forest = dataclasses.replace(forest, leaf_values=halves, weights=np.ones(forest.n_trees))
    X = np.where(np.isfinite(X) & (X >= 0) | np.isnan(X), X, np.float32(np.nan))
    model = treelite.frontend.from_xgboost_json(to_xgboost(forest))
    np.testing.assert_array_equal(treelite.gtil.predict(model, X).ravel(), forest.predict(X))


@pytest.mark.parametrize("seed", range(4))
def test_onnxruntime_rounds_our_score_once(seed):
    pytest.importorskip("onnx", "1.17")
    runtime = pytest.importorskip("onnxruntime", "1.20")
    forest, X = case(seed, missing_left=seed == 3)
    forest = dataclasses.replace(forest, weights=np.ones(forest.n_trees))
    forest = without_first_set(forest) if seed == 2 else forest
    X[:, 1::2] = np.where(X[:, 1::2] >= 0, np.floor(X[:, 1::2]), np.float32(np.nan))  # categories are integers
    X[:9, 1::2] = -1.0  # what pandas has for a missing one
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(to_onnx(forest), options, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"features": X})
    np.testing.assert_array_equal(scores[:, 0], forest.predict(X, dtype=np.float32))


@pytest.mark.parametrize("named", [False, True])
def test_vespa_takes_the_same_leaves_and_the_dump_is_lightgbms(named):
    lightgbm = pytest.importorskip("lightgbm")
    forest, X = case(3, named=named)
    X[:, 1::2] = np.where((X[:, 1::2] >= 0) & (X[:, 1::2] < 40), np.floor(X[:, 1::2]), np.float32(np.nan))
    text = to_vespa(forest)
    np.testing.assert_allclose(evaluate_vespa(text, X, np.float64), forest.predict(encoded(X, forest)), rtol=1e-12)
    ours, theirs = json.loads(text), lightgbm.Booster(model_str=to_text(forest)).dump_model()
    assert ours["feature_infos"] == theirs["feature_infos"]
    assert ours["pandas_categorical"] == (theirs["pandas_categorical"] if named else [list(map(str, range(40)))] * 2)
    for tree, other in zip(ours["tree_info"], theirs["tree_info"], strict=True):
        assert tree["num_cat"] == other["num_cat"]
        assert list(_sets(tree["tree_structure"])) == list(_sets(other["tree_structure"]))
    assert "#   f2  (a text)" in rank_profile(forest, "model.json")


def _sets(node: dict):
    """The categorical splits of a tree, in order."""
    if "left_child" in node:
        if node["decision_type"] == "==":
            yield node["split_index"], node["threshold"], node["default_left"]
        yield from _sets(node["left_child"])
        yield from _sets(node["right_child"])


def without_first_set(forest: Forest) -> Forest:
    """The forest whose first set of categories is empty."""
    first = int(np.argmax(forest.categorical))
    codes = np.delete(forest.set_codes, np.arange(*forest.set_offsets[first : first + 2]))
    sizes = np.diff(forest.set_offsets)
    sizes[first] = 0
    return dataclasses.replace(forest, set_codes=codes, set_offsets=np.concatenate([[0], np.cumsum(sizes)]))


@pytest.mark.parametrize("names", [None, ["no category", "no category_", *NAMES["f2"][2:]]])
def test_vespa_takes_sets_without_categories(names):
    forest, X = case(3)
    forest = without_first_set(forest)
    if names is not None:
        forest = dataclasses.replace(forest, info={**forest.info, "categories": {"f2": names, "f4": names}})
    X[:, 1::2] = np.where((X[:, 1::2] >= 0) & (X[:, 1::2] < 40), np.floor(X[:, 1::2]), np.float32(np.nan))
    np.testing.assert_allclose(
        evaluate_vespa(to_vespa(forest), X, np.float64), forest.predict(encoded(X, forest)), rtol=1e-12
    )


def test_names_that_vespa_cannot_quote_are_refused():
    forest, _ = case(3)
    forest = dataclasses.replace(forest, info={"categories": {"f2": ['12" disc']}})
    with pytest.raises(ModelError, match="'12\" disc' of 'f2' holds a quotation mark"):
        to_vespa(forest)


def test_missing_categories_that_go_left_are_refused_in_vespa(tmp_path):
    forest, _ = case(3, missing_left=True)
    with pytest.raises(ModelError, match="a text that is missing is the empty text in Vespa"):
        to_vespa(forest)
    forest.save(tmp_path / "model.json", format="vespa", missing="never")


@pytest.mark.parametrize(
    ("name", "consumer"),
    [("elasticsearch", "the LTR plugin"), ("ranklib", "RankLib"), ("quickrank", "QuickRank"), ("solr", "Solr")],
)
def test_formats_without_sets_name_the_features_and_the_consumer(name, consumer, tmp_path):
    forest, _ = case(4)
    with pytest.raises(ModelError, match=f"sets of categories of f2, f4, and {consumer} only compares features"):
        forest.save(tmp_path / "model", format=name)
    assert not (tmp_path / "model").exists()
