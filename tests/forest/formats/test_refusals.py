"""What a format cannot express is refused, with the place and a remedy."""

from __future__ import annotations

import dataclasses
import lzma

import numpy as np
import pytest

import ranksieve as rs
from naive_forest import random_forest
from naive_formats import evaluate_solr, singles_in_order
from ranksieve.errors import MissingExtraError, ModelError, ParameterError
from ranksieve.forest.formats.model_files import ENDINGS, FORMATS, load_forest

FOREST = random_forest(np.random.default_rng(2), n_trees=4)
PLAIN = dataclasses.replace(FOREST, default_left=np.zeros_like(FOREST.default_left))


@pytest.mark.parametrize("name", ["ranklib", "quickrank"])
def test_directions_of_missing_values_that_cannot_be_expressed(tmp_path, name):
    path = tmp_path / "model"
    with pytest.raises(ModelError, match=r"split \d of tree \d on feature 'f\d'.* sends missing.*missing='zero'"):
        FOREST.save(path, format=name)
    assert not path.exists()
    FOREST.save(path, format=name, missing="never")
    assert path.exists()
    with pytest.raises(ParameterError, match="missing is 'no'; expected one of nan, zero, never"):
        FOREST.save(path, format=name, missing="no")


@pytest.mark.parametrize("name", ["xgboost", "elasticsearch", "ranklib", "quickrank", "solr", "vespa", "onnx"])
def test_zeros_that_count_as_missing(tmp_path, name):
    if name == "onnx":
        pytest.importorskip("onnx")
    threshold = np.where(FOREST.default_left, 1.5, -1.5)  # zeros go there anyhow
    forest = dataclasses.replace(FOREST, threshold=threshold, zero_missing=np.ones_like(FOREST.zero_missing))
    forest.save(tmp_path / "model", format=name, missing="never")
    with pytest.raises(ModelError, match="counts zeros as missing"):
        dataclasses.replace(forest, threshold=-threshold).save(tmp_path / "no", format=name, missing="never")


@pytest.mark.parametrize("name", ["xgboost", "elasticsearch", "ranklib", "solr", "vespa"])
def test_leaves_too_large_for_float32(tmp_path, name):
    forest = PLAIN.reweighted(np.full(PLAIN.n_trees, 1e39))
    with pytest.raises(ModelError, match=r"a leaf value is .*e\+3\d, and .* float32"):
        forest.save(tmp_path / "model", format=name, missing="never")


@pytest.mark.parametrize("value", [1e-35, 1e-9, -3.1e-8, -1.0])
def test_thresholds_solr_cannot_have(tmp_path, value):
    forest = dataclasses.replace(PLAIN, threshold=np.where(np.arange(len(PLAIN.threshold)) == 2, value, 0.5))
    with pytest.raises(ModelError, match=r"split 2 of tree 0.*adds 1e-6"):
        forest.save(tmp_path / "model", format="solr")
    forest.save(tmp_path / "model", format="solr", nearest=True)
    text = (tmp_path / "model").read_text()
    X = np.array([[value - 0.1] * 4, [value + 0.1] * 4], np.float32)
    np.testing.assert_array_equal(evaluate_solr(text, X, forest.feature_names), singles_in_order(forest, X))


@pytest.mark.parametrize("name", ["elasticsearch", "solr", "vespa"])
def test_names_that_are_not_unique(tmp_path, name):
    forest = dataclasses.replace(PLAIN, feature_names=("a", "b", "a", "c"))
    with pytest.raises(ModelError, match="2 features are named 'a'"):
        forest.save(tmp_path / "model", format=name)


@pytest.mark.parametrize("name", FORMATS)
def test_broken_forests_are_not_written(tmp_path, name):
    if name == "onnx":
        pytest.importorskip("onnx")
    for changes in (
        {"leaf_values": np.where(np.arange(len(PLAIN.leaf_values)) == 1, np.nan, 1.0)},
        {"left": np.zeros_like(PLAIN.left)},
        {"feature": PLAIN.feature + 7},
    ):
        with pytest.raises(ModelError):
            dataclasses.replace(PLAIN, **changes).save(tmp_path / "model", format=name, missing="never")
    assert not list(tmp_path.iterdir())


def test_unknown_formats(tmp_path):
    with pytest.raises(ParameterError, match="format is 'pmml'; expected one of lightgbm, xgboost"):
        FOREST.save(tmp_path / "model", format="pmml")


@pytest.mark.parametrize("ending", ENDINGS)
def test_names_that_promise_another_format(tmp_path, ending):
    path = tmp_path / f"model{ending}"
    with pytest.raises(ParameterError, match=f"format='{ENDINGS[ending][0]}' or "):
        FOREST.save(path)
    assert not path.exists()
    FOREST.save(path, format="lightgbm")
    assert path.read_text().startswith("tree\n")


def test_onnx_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"ranksieve\[onnx\]"):
        FOREST.save(tmp_path / "model.onnx", format="onnx")


def test_compressed_files(tmp_path):
    (tmp_path / "m.xz").write_bytes(lzma.compress(b"1 qid:3 1:0.5"))
    with pytest.raises(ModelError, match="is compressed; decompress"):
        rs.load(tmp_path / "m.xz")


@pytest.mark.parametrize(("algo", "kind"), [("ranksvm", "linear"), ("lambdarank", "net")])
def test_a_model_that_is_no_forest(tmp_path, algo, kind):
    rs.train(rs.synth.cubic(6), algo=algo, verbose=False).save(tmp_path / "m.json")
    with pytest.raises(ModelError, match=f"m.json: is a model of kind '{kind}', not a forest; convert, prune and"):
        load_forest(tmp_path / "m.json")
    assert rs.load(tmp_path / "m.json").n_features > 0


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('[{"nodeid": 0, "leaf": 1}]', "lacks the base score"),
        ("CBM1\x08\x00\x00", "is CatBoost's binary format; save the model as JSON"),
        ('{"class": "org.apache.solr.ltr.model.LinearModel"}', "is a model of Solr"),
        ('{"name": "tree", "tree_info": []}', "is a JSON dump of LightGBM"),
        ('{"a": 1, "b": 2}', "is JSON with a, b, which cannot be read as a model"),
        ("1 qid:3 1:0.5\n", "m: is data, not a model"),
        ("## Coordinate Ascent\n1:0.5 2:0.3\n", "m:1: starts with .*; expected a RankLib model of trees"),
        ("<ranker><info><type>COORDASC</type></info></ranker>", "holds no trees"),
        ("", "is empty"),
    ],
    ids=range(9),
)
def test_files_of_other_kinds(tmp_path, monkeypatch, content, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").write_text(content)
    with pytest.raises(ModelError, match=what):
        rs.load("m")
