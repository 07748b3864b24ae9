"""`ranksieve convert`: there and back, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import ranksieve as rs
from naive_forest import random_forest
from naive_formats import hard_documents, singles_in_order
from ranksieve.forest.formats.model_files import FORMATS


@pytest.fixture
def model(tmp_path):
    forest = random_forest(np.random.default_rng(3), n_trees=5)
    forest = dataclasses.replace(forest, default_left=np.zeros_like(forest.default_left))
    forest.save(tmp_path / "model.txt")
    return tmp_path / "model.txt"


def test_there_and_back(run, model, tmp_path):
    forest = rs.load(model)
    X = hard_documents(forest, 50, np.random.default_rng(0))
    for name in ("xgboost", "quickrank"):
        outcome = run("convert", model, "--out", tmp_path / name, "--format", name)
        assert outcome.code == 0 and f"{tmp_path / name}, {name}, " in outcome.output
        assert run("convert", tmp_path / name, "--out", tmp_path / "back.txt", "--format", "lightgbm").code == 0
        back = rs.load(tmp_path / "back.txt")
        np.testing.assert_array_equal(singles_in_order(back, X), singles_in_order(forest, X))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written(run, model, tmp_path, name):
    if name == "onnx":
        pytest.importorskip("onnx")
    outcome = run(
        "convert", model, "--out", tmp_path / "first-stage.out", "--format", name, "--missing", "never", "--nearest"
    )
    assert outcome.code == 0, outcome.output
    assert "5 trees of up to" in outcome.output
    content = (tmp_path / "first-stage.out").read_bytes()
    if name == "solr":
        assert json.loads(content)["name"] == "first-stage"
    if name == "c":
        assert b"double first_stage_score(const float *x)" in content


def test_the_extension_gives_the_format(run, model, tmp_path):
    outcome = run("convert", model, "--out", tmp_path / "first.c")
    assert outcome.code == 0 and "first.c, c, " in outcome.output
    assert "double first_score(const float *x)" in (tmp_path / "first.c").read_text()
    for name in ("model.json", "new.txt"):
        outcome = run("convert", model, "--out", tmp_path / name)
        assert outcome.code == 2 and "give --format, one of lightgbm, xgboost" in outcome.output
        assert not (tmp_path / name).exists()


def test_models_that_a_format_cannot_express_are_refused(run, tmp_path):
    forest = random_forest(np.random.default_rng(3), n_trees=5)
    forest.save(tmp_path / "model.txt")
    outcome = run("convert", tmp_path / "model.txt", "--out", tmp_path / "out", "--format", "ranklib")
    assert outcome.code == 2
    assert "sends missing values left, and RankLib" in outcome.output and "--missing zero" in outcome.output
    outcome = run("convert", tmp_path / "model.txt", "--out", tmp_path / "out", "--format", "pmml")
    assert outcome.code == 2 and "expected one of lightgbm, xgboost" in outcome.output
    assert not (tmp_path / "out").exists()


def test_the_number_of_features_of_ranklib_files(run, model, tmp_path):
    run("convert", model, "--out", tmp_path / "ranklib.txt", "--format", "ranklib", "--missing", "never")
    outcome = run(
        "convert",
        tmp_path / "ranklib.txt",
        "--out",
        tmp_path / "wide.txt",
        "--format",
        "lightgbm",
        "--n-features",
        "46",
    )
    assert outcome.code == 0 and rs.load(tmp_path / "wide.txt").n_features == 46


def test_data_wider_than_a_ranklib_model_gives_advice(run, tmp_path, files):
    (tmp_path / "model.txt").write_text(
        "## MART\n<ensemble><tree weight='1'><split><output>1</output></split></tree></ensemble>"
    )
    outcome = run("predict", tmp_path / "model.txt", files / "test.txt", "--out", tmp_path / "scores.txt")
    assert outcome.code == 2 and "ranksieve convert --n-features" in outcome.output
    run("convert", tmp_path / "model.txt", "--out", tmp_path / "wide.txt", "--format", "lightgbm", "--n-features", "5")
    outcome = run("predict", tmp_path / "wide.txt", files / "test.txt", "--out", tmp_path / "scores.txt")
    assert outcome.code == 0 and "scoring: 100%" in outcome.output
