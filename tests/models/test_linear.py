"""Linear rankers: one feature alone, scoring, files."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import ranksieve as rs
from ranksieve.errors import ModelError, ParameterError
from samples import small_dataset


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return small_dataset()


@pytest.fixture(scope="module")
def model(data):
    return rs.train(data, algo="ranksvm")


def test_one_feature_alone(data):
    named = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes).with_features(
        [*"abcdef", "bm25"], first_stage="bm25"
    )
    ranker = rs.train(named, valid=named, algo="feature")
    assert np.array_equal(ranker.predict(named), np.nan_to_num(data.features[:, 6]))
    assert ranker.info["best_score"] == rs.evaluate(np.nan_to_num(data.features[:, 6]), named).mean()
    chosen = rs.train(named, algo="feature", feature="c")
    assert np.array_equal(chosen.predict(named), np.nan_to_num(data.features[:, 2]))
    assert repr(chosen) == "Linear(1 weight)"
    with pytest.raises(ParameterError, match="no feature is named 'x'; known: a, b"):
        rs.train(named, algo="feature", feature="x")
    with pytest.raises(ParameterError, match="which feature is the first stage's score"):
        rs.train(data, algo="feature")


def test_scores_are_those_of_the_formula(data, model):
    values = (data.features.astype(np.float64) - model.standard.means) / model.standard.scales
    np.testing.assert_allclose(model.predict(data), np.nan_to_num(values) @ model.weights, rtol=1e-9)


def test_every_form_of_documents_gives_the_same_bits(data, model):
    X, scores = data.features, model.predict(data)
    assert np.array_equal(model.predict(X), scores)
    assert np.array_equal(model.predict(np.asfortranarray(X)), scores)
    assert np.array_equal(model.predict(X.astype(np.float64), threads=1), scores)
    assert np.array_equal(model.predict(scipy.sparse.csr_matrix(X)), scores)
    assert np.array_equal(np.concatenate([model.predict(row) for row in X[:20]]), scores[:20])
    frame = pd.DataFrame(X, columns=list(model.feature_names))[list(reversed(model.feature_names))]
    assert np.array_equal(model.predict(frame), scores)
    assert len(model.predict(X[:0])) == 0
    with pytest.raises(ModelError, match="documents of 3 features"):
        model.predict(X[:, :3])


def test_a_saved_model_scores_the_same(data, model, tmp_path):
    model.save(tmp_path / "model.json")
    again = rs.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(data), model.predict(data))
    assert (
        again.info["params"]
        == model.info["params"]
        == {
            "algo": "ranksvm",
            "metric": "ndcg@10",
            "gains": "auto",
            "c": 1.0,
            "seed": 0,
        }
    )
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m | {"ranksieve": 9}, "format 9, this ranksieve reads up to 1"),
        (lambda m: m | {"kind": "cake"}, "kind 'cake'; known: linear, net"),
        (lambda m: m | {"kind": []}, r"kind \[\]; known: linear, net"),
        (lambda m: m | {"kind": {}}, r"kind \{\}; known: linear, net"),
        (lambda m: m | {"weights": ["1_0"] * len(m["weights"])}, "'weights' is missing or does not hold numbers"),
        (lambda m: m | {"weights": [1.0]}, r"'weights' has shape \(1,\), expected \(7,\)"),
        (lambda m: m | {"weights": ["x"] * 7}, "'weights' is missing or does not hold numbers"),
        (lambda m: m | {"scales": [float("nan")] * 7}, "finite numbers"),
        (lambda m: m | {"feature_names": 3}, "needs feature names"),
        (lambda m: {k: v for k, v in m.items() if k != "means"}, "'means' is missing"),
    ],
)
def test_damaged_files_are_refused(model, tmp_path, change, message):
    path = tmp_path / "model.json"
    model.save(path)
    path.write_text(json.dumps(change(json.loads(path.read_text())), separators=(",", ":")))
    with pytest.raises(ModelError, match=message):
        rs.load(path)


def test_cut_off_files_are_refused(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    whole = path.read_bytes()
    for length in (0, 5, 20, 100, len(whole) // 2):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=r"model\.json"):
            rs.load(path)
    with pytest.raises(ModelError, match="no such file"):
        rs.load(tmp_path / "none.json")


def test_the_estimator_takes_every_algorithm(data):
    ranker = rs.Ranker(algo="ranksvm").fit(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    assert ranker.predict(np.nan_to_num(data.features)).shape == (data.n_docs,)
    assert not hasattr(ranker, "feature_importances_")
    assert ranker.evals_result_ == {}


def test_files_that_others_have_written_again_and_wrong_info(tmp_path):
    path = tmp_path / "model.json"
    rs.train(rs.synth.cubic(20), algo="ranksvm").save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content))  # with spaces
    assert rs.load(path).size == "50 weights"
    for wrong in ({"params": "x"}, {"data": []}, {"best_score": math.inf}):
        path.write_text(json.dumps({**content, "info": {**content["info"], **wrong}}))
        with pytest.raises(ModelError, match="needs feature names and an info object"):
            rs.load(path)
    path.write_text(json.dumps({**content, "info": {**content["info"], "pairs": "x"}}))
    with pytest.raises(ModelError, match="the information about training in the model file is damaged"):
        rs.load(path)._repr_html_()
