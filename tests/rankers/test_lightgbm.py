"""LightGBM as one of the rankers: its own trees, under our parameters, metric and file format."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, MissingExtraError, ParameterError
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.spec import find_spec

lightgbm = pytest.importorskip("lightgbm")

SMALL = {"trees": 6, "leaves": 5, "min_docs": 3, "threads": 1}


def test_it_is_lightgbm(tmp_path):
    train, test = rs.synth.cubic(20), rs.synth.cubic(6, start=20)
    model = rs.train(train, algo="lightgbm", l2=2.0, learning_rate=0.1, truncation=15, min_hessian=0.01, **SMALL)
    params = {
        "objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 3, "lambda_l2": 2.0, "learning_rate": 0.1,
        "lambdarank_truncation_level": 15, "min_sum_hessian_in_leaf": 0.01, "num_threads": 1, "verbose": -1,
        "deterministic": True, "force_col_wise": True,
    }  # fmt: skip
    theirs = lightgbm.train(params, lightgbm.Dataset(train.features, train.labels, group=train.lists.sizes), 6)
    np.testing.assert_allclose(model.predict(test), theirs.predict(test.features), rtol=1e-12)
    model.save(tmp_path / "model.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "model.txt").predict(test), model.predict(test))


def test_validation_chooses_the_trees_by_our_metric():
    rng = np.random.default_rng(0)  # queries scattered over the rows
    valid = rs.synth.cubic(10, start=30)
    order = rng.permutation(valid.n_docs)
    mixed = rs.Dataset.from_arrays(
        valid.features[order], valid.labels[order], qid=np.repeat(valid.query_ids, valid.lists.sizes)[order]
    )
    records = []
    model = rs.train(
        rs.synth.cubic(20),
        valid={"a": mixed, "b": valid},
        algo="lightgbm",
        metric="map",
        callbacks=[records.append],
        **SMALL,
    )
    curves = {name: values["map"] for name, values in model.info["history"].items()}
    assert model.n_trees == 1 + int(np.argmax(curves["a"]))
    for name, data in (("a", mixed), ("b", valid)):
        assert curves[name][model.n_trees - 1] == pytest.approx(rs.evaluate(model, data, "map").mean(), rel=1e-12)
    assert [record.step for record in records] == list(range(1, 7))


def test_fetching_scores_is_measuring_and_not_training(monkeypatch):
    evaluate, records = lightgbm.Booster.eval, []

    def slowly(*arguments):
        time.sleep(0.03)
        return evaluate(*arguments)

    monkeypatch.setattr(lightgbm.Booster, "eval", slowly)
    monkeypatch.setattr(lightgbm.Booster, "eval_valid", None)
    sets = {"a": rs.synth.cubic(5, start=20), "b": rs.synth.cubic(5, start=30)}
    rs.train(rs.synth.cubic(20), valid=sets, algo="lightgbm", callbacks=[records.append], **SMALL)
    assert len(records) == 6 and all(record.measuring >= 0.06 for record in records)


def test_what_it_cannot_do_is_refused(monkeypatch):
    data = rs.synth.cubic(10)
    halves = rs.Dataset.from_arrays(data.features, data.labels / 2, group=data.lists.sizes)
    with pytest.raises(DataError, match=r"a label is [0-9.]*5; LightGBM takes whole grades"):
        rs.train(halves, algo="lightgbm", **SMALL)
    with pytest.raises(ParameterError, match=r"^negatives is not used by algo='lightgbm', only by selection goss"):
        rs.train(data, algo="lightgbm", negatives=0.5, **SMALL)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ranksieve\[lightgbm\]'") as raised:
        rs.train(data, algo="lightgbm", **SMALL)
    assert str(raised.value).startswith("algo='lightgbm' needs LightGBM; ")
    assert str(raised.value).endswith(", or use algo='lambdamart'")
    shown = raised.value.for_command_line()
    assert shown.startswith("--algo lightgbm needs") and shown.endswith(", or use --algo lambdamart")
    with pytest.raises(ParameterError, match=r"peers.toml:\d+: algo.{1,2}lightgbm.{0,1} needs LightGBM"):
        load_spec(find_spec("peers"))
