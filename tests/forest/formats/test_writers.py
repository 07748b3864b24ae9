"""Every format we write, scored by the real consumer, or by an evaluator of its documented rules.

A consumer that keeps float32 leaves cannot equal a float64 sum. It has to equal, bit for bit, the forest's own leaves
rounded to float32 and added in its arithmetic; and where leaf values are short binary fractions, the forest itself.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_forest import random_forest
from naive_formats import (
    LARGEST,
    evaluate_elasticsearch,
    evaluate_quickrank,
    evaluate_ranklib,
    evaluate_solr,
    hard_documents,
    singles_in_order,
)
from ranksieve.forest.forest import Forest, empty_forest
from ranksieve.forest.formats.c_source import to_c
from ranksieve.forest.formats.onnx import to_onnx
from ranksieve.forest.formats.solr import to_solr
from ranksieve.forest.formats.vespa import to_vespa
from ranksieve.forest.formats.writing import Options
from ranksieve.forest.formats.xgboost import to_dump, to_xgboost
from ranksieve.forest.formats.xml_models import to_quickrank, to_ranklib

# halves of float32 steps, denormals, zeros, what only float64 holds
THRESHOLDS = [0.0, -0.0, 0.1, -1 / 3, 1e-45, -1e-45, 2e-45, 1e-320, 1.1754942e-38, 1e-35, 1.0, 1 + 1e-12, 1 - 1e-12]
FAR = [LARGEST, -LARGEST, 1e300, -1e300, np.inf, -np.inf]
seeds = st.integers(0, 2**32)


def make_forest(
    seed: int, *, thresholds=(*THRESHOLDS, *FAR), exact: bool = False
) -> tuple[Forest, np.random.Generator]:
    """A forest with awkward thresholds; with `exact`, weights and leaves whose sums no arithmetic rounds."""
    rng = np.random.default_rng(seed)
    thresholds = [*thresholds, *rng.normal(size=6)]
    forest = random_forest(rng, n_trees=int(rng.integers(1, 12)), max_leaves=12, thresholds=thresholds)
    forest = dataclasses.replace(forest, feature_names=("bm25", 'title "match"', "ü", "clicks"))
    if exact:
        halves = rng.integers(-4000, 4000, len(forest.leaf_values)) / 64
        forest = dataclasses.replace(forest, leaf_values=halves, weights=rng.choice([0.5, 1.0, 2.0], forest.n_trees))
    return forest, rng


def check(scores: np.ndarray, forest: Forest, X: np.ndarray, *, exact: bool) -> None:
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, singles_in_order(forest, X))
    if exact:
        np.testing.assert_array_equal(scores.astype(float), forest.predict(X))


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_xgboost_takes_the_same_leaves(seed, exact):
    xgboost = pytest.importorskip("xgboost")
    forest, rng = make_forest(seed, exact=exact)
    X = hard_documents(forest, 60, rng)
    booster = xgboost.Booster()
    booster.load_model(bytearray(to_xgboost(forest).encode()))
    data = xgboost.DMatrix(X, feature_names=list(forest.feature_names))
    check(booster.predict(data), forest, X, exact=exact)
    assert booster.num_boosted_rounds() == forest.n_trees


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_treelite_reads_our_xgboost_file(seed):
    treelite = pytest.importorskip("treelite")
    forest, rng = make_forest(seed, exact=True)
    X = hard_documents(forest, 60, rng)
    model = treelite.frontend.from_xgboost_json(to_xgboost(forest))
    np.testing.assert_array_equal(treelite.gtil.predict(model, X).ravel(), forest.predict(X))


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_elasticsearch_takes_the_same_leaves(seed, exact):
    forest, rng = make_forest(seed, exact=exact)
    X = hard_documents(forest, 60, rng)
    check(evaluate_elasticsearch(to_dump(forest), X, forest.feature_names), forest, X, exact=exact)


def test_the_dump_looks_like_xgboosts():
    xgboost = pytest.importorskip("xgboost")
    forest, _ = make_forest(3, thresholds=[0.5])
    booster = xgboost.Booster()
    booster.load_model(bytearray(to_xgboost(forest).encode()))
    theirs = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    assert _shape(json.loads(to_dump(forest))) == _shape(theirs)


def _shape(node):
    """The nodes of a dump without the digits of its numbers."""
    if isinstance(node, list):
        return [_shape(one) for one in node]
    keep = {key: value for key, value in node.items() if key not in ("leaf", "split_condition", "children")}
    return keep | {"children": _shape(node.get("children", []))}


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_ranklib_takes_the_same_leaves(seed, exact):
    forest, rng = make_forest(seed, exact=exact)
    forest = dataclasses.replace(forest, default_left=forest.threshold >= 0)
    X = hard_documents(forest, 60, rng, infinite=True)
    check(evaluate_ranklib(to_ranklib(forest), X), forest, X, exact=exact)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_quickrank_gives_the_same_bits(seed):
    forest, rng = make_forest(seed)
    forest = dataclasses.replace(forest, default_left=np.zeros_like(forest.default_left))
    X = hard_documents(forest, 60, rng, infinite=True)
    assert evaluate_quickrank(to_quickrank(forest), X).tobytes() == forest.predict(X).tobytes()


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_solr_takes_the_same_leaves(seed, exact):
    thresholds = [0.0, -0.0, 0.1, -1 / 3, 1.0, 1 + 1e-12, 1e-6, 2.5e-6, 7e-5, -0.75, 100.3, 1e5, -1e5, *FAR]
    forest, rng = make_forest(seed, thresholds=thresholds, exact=exact)
    X = hard_documents(forest, 60, rng, infinite=True)
    check(evaluate_solr(to_solr(forest), X, forest.feature_names), forest, X, exact=exact)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_onnxruntime_rounds_our_score_once(seed):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    forest, rng = make_forest(seed)
    X = hard_documents(forest, 60, rng, infinite=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(to_onnx(forest), options, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"features": X})
    np.testing.assert_array_equal(scores[:, 0], forest.predict(X, dtype=np.float32))


@pytest.mark.parametrize("seed", range(4))
def test_compiled_c_gives_the_same_bits(compiled_c, seed):
    forest, rng = make_forest(seed)
    zero_missing = rng.random(len(forest.feature)) < 0.3
    forest = dataclasses.replace(forest, zero_missing=zero_missing, feature_names=("a */ b", "/* c", "\n", "d"))
    library = compiled_c(to_c(forest, Options(name="my-model")))
    X = hard_documents(forest, 300, rng, infinite=True)
    scores = np.empty(len(X))
    library.my_model_scores(
        X.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(X)), scores.ctypes.data_as(ctypes.c_void_p)
    )
    assert scores.tobytes() == forest.predict(X).tobytes()
    wide = rng.choice([*THRESHOLDS, *FAR, np.nan], (100, 4))
    library.my_model_score_double.restype = ctypes.c_double
    got = [library.my_model_score_double(row.ctypes.data_as(ctypes.c_void_p)) for row in wide]
    assert np.array(got).tobytes() == forest.predict(wide).tobytes()


def test_forests_without_trees_and_trees_without_splits(compiled_c):
    for n_trees, forest in ((0, empty_forest(["a", "b"])), (3, random_forest(np.random.default_rng(0), max_leaves=1))):
        X = np.zeros((2, forest.n_features), np.float32)
        library = compiled_c(to_c(forest))
        library.model_score.restype = ctypes.c_double
        assert library.model_score(X.ctypes.data_as(ctypes.c_void_p)) == forest.predict(X)[0]
        assert len(json.loads(to_dump(forest))) == len(json.loads(to_solr(forest))["params"]["trees"]) == n_trees
        np.testing.assert_array_equal(evaluate_ranklib(to_ranklib(forest), X), singles_in_order(forest, X))
        np.testing.assert_array_equal(evaluate_quickrank(to_quickrank(forest), X), forest.predict(X))


def test_deep_trees_need_no_recursion():
    depth = 3000
    numbers = np.arange(depth)
    forest = dataclasses.replace(
        random_forest(np.random.default_rng(0), n_trees=1, max_leaves=1),
        feature=np.zeros(depth, np.int32),
        threshold=-numbers - 0.75,
        left=np.where(numbers < depth - 1, numbers + 1, ~depth).astype(np.int32),
        right=(~numbers).astype(np.int32),
        default_left=np.zeros(depth, bool),
        zero_missing=np.zeros(depth, bool),
        gain=np.zeros(depth),
        split_count=np.ones(depth, np.int64),
        leaf_values=np.arange(depth + 1.0),
        leaf_count=np.ones(depth + 1, np.int64),
        leaf_weight=np.ones(depth + 1),
        split_offsets=np.array([0, depth]),
        leaf_offsets=np.array([0, depth + 1]),
        weights=np.ones(1),
    )
    for write in (to_xgboost, to_dump, to_solr, to_vespa, to_quickrank, to_c):
        assert len(write(forest)) > depth


EVALUATORS = {
    "elasticsearch": evaluate_elasticsearch,
    "solr": evaluate_solr,
    "ranklib": lambda text, X, names: evaluate_ranklib(text, X),
}


@pytest.mark.parametrize("name", EVALUATORS)
@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_missing_values_that_count_as_zero(tmp_path_factory, name, seed):
    """Models of data whose absent features are 0: engines that leave features out, and those that fill in 0, agree."""
    forest, rng = make_forest(seed, thresholds=[0.0, -0.5, 0.25, 3.0, -0.0])
    X = hard_documents(forest, 60, rng, missing=0.4)
    path = tmp_path_factory.mktemp("zero") / "model"
    forest.save(path, format=name, missing="zero")
    filled = np.where(np.isnan(X), np.float32(0), X)
    for documents in (X, filled):
        scores = EVALUATORS[name](path.read_text(), documents, forest.feature_names)
        np.testing.assert_array_equal(scores, singles_in_order(forest, filled))
