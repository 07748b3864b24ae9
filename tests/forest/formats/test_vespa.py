"""The JSON for Vespa: LightGBM's own dump of the same model, Vespa's rules of evaluation, the rank profile."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve as rs
from naive_forest import random_forest
from naive_formats import LARGEST, evaluate_vespa, hard_documents
from ranksieve.forest.float32 import above_single
from ranksieve.forest.forest import empty_forest
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.vespa import rank_profile, to_vespa, vespa_names

THRESHOLDS = [0.0, -0.0, 0.1, -1 / 3, 1e-45, -1e-45, 1.1754942e-38, 1.0, 1 - 1e-12, LARGEST, -LARGEST, 1e300, np.inf]
READ = ("split_index", "split_feature", "decision_type", "default_left", "missing_type", "internal_count", "leaf_index")


def check_nodes(ours: dict, theirs: dict) -> int:
    """Compare two trees node by node; the number of nodes."""
    assert list(ours) == list(theirs)
    for key in ours.keys() & {*READ, "leaf_value", "leaf_count"}:
        assert ours[key] == theirs[key], key
    if "threshold" not in ours:
        return 1
    assert ours["threshold"] == above_single(np.array([theirs["threshold"]]))[0]
    return 1 + check_nodes(ours["left_child"], theirs["left_child"]) + check_nodes(
        ours["right_child"], theirs["right_child"]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_the_dump_of_lightgbm(seed):
    lightgbm = pytest.importorskip("lightgbm")
    forest = random_forest(np.random.default_rng(seed), n_trees=6, max_leaves=1 if seed == 3 else 12)
    ours = json.loads(to_vespa(forest))
    theirs = lightgbm.Booster(model_str=to_text(forest)).dump_model()
    assert list(ours) == list(theirs)
    trees, their_trees = ours.pop("tree_info"), theirs.pop("tree_info")
    assert ours == theirs
    for tree, other in zip(trees, their_trees, strict=True):
        nodes = check_nodes(tree.pop("tree_structure"), other.pop("tree_structure"))
        assert nodes == 2 * tree["num_leaves"] - 1
        assert tree == other


def test_a_ranker_of_lightgbm_scores_the_same_in_vespa():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    data = lightgbm.Dataset(X, rng.integers(0, 3, 200), group=[120, 80], feature_name=["bm25(title)", "b", "c"])
    parameters = {"objective": "lambdarank", "num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, data, 8)
    text = to_vespa(rs.io.from_model(booster))
    assert json.loads(text)["feature_names"] == booster.dump_model()["feature_names"]
    np.testing.assert_allclose(evaluate_vespa(text, X, np.float64), booster.predict(X), rtol=1e-12, atol=1e-14)


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_vespa_takes_the_same_leaves(seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=int(rng.integers(1, 9)), max_leaves=12, thresholds=THRESHOLDS)
    halves = rng.integers(-4000, 4000, len(forest.leaf_values)) / 64  # no arithmetic rounds them
    forest = dataclasses.replace(forest, leaf_values=halves, weights=np.ones(forest.n_trees))
    X = hard_documents(forest, 60, rng)
    text = to_vespa(forest)
    for dtype in (np.float64, np.float32):
        np.testing.assert_array_equal(evaluate_vespa(text, X, dtype), forest.predict(X))


def test_a_forest_without_trees_scores_0():
    X = np.ones((2, 1), np.float32)
    np.testing.assert_array_equal(evaluate_vespa(to_vespa(empty_forest(["a"])), X, np.float64), [0.0, 0.0])


def test_names():
    names = ("bm25(title)", "fieldMatch(title).completeness", "bm25.title", "bm25_title", "ü", "", "term(0).weight")
    assert vespa_names(empty_forest(names)) == [
        *names[:2],
        *("bm25_title_3", "bm25_title", "_", "f_", "term(0).weight"),
    ]


def test_the_rank_profile_lists_the_features():
    forest = random_forest(np.random.default_rng(1), n_trees=5)
    assert set(forest.feature) == {0, 1, 2, 3}
    forest = dataclasses.replace(forest, feature_names=("bm25(title)", "number.price", "attribute(age)", "clicks"))
    lines = rank_profile(forest, "7-ltr.json").splitlines()
    assert lines[0] == "rank-profile model_7_ltr inherits default {"
    assert [line.strip() for line in lines[3:7]] == [
        "#   bm25(title)",
        "#   number_price  (feature 'number.price')",
        "#   attribute(age)",
        "#   clicks",
    ]
    assert '        expression: lightgbm("7-ltr.json")' in lines


def test_convert_prints_the_rank_profile(tmp_path):
    from typer.testing import CliRunner

    from ranksieve.cli.app import app

    random_forest(np.random.default_rng(1), n_trees=5).save(tmp_path / "model.txt")
    arguments = ["convert", str(tmp_path / "model.txt"), "--format", "vespa", "--out", str(tmp_path / "ltr.json")]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert 'expression: lightgbm("ltr.json")' in outcome.output
    assert len(json.loads((tmp_path / "ltr.json").read_text())["tree_info"]) == 5
