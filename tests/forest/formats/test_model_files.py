"""Model files that cannot be read are refused alike by every reader."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import ModelError, RanksieveWarning
from ranksieve.forest.formats.model_files import load_forest, read_content


@pytest.mark.parametrize("read", [read_content, load_forest, rs.load])
def test_a_file_that_cannot_be_read_is_named(read, tmp_path):
    with pytest.raises(ModelError, match=r"none\.txt: no such file; check the path"):
        read(tmp_path / "none.txt")
    with pytest.raises(ModelError, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)
    (tmp_path / "header.json").write_text("{}")
    with pytest.raises(ModelError, match=r"is an index, not a model; open it with rs.Index$") as index:
        read(tmp_path)
    assert "; it is for ranksieve retrieve, features" in index.value.for_command_line()


def test_advice_for_data_in_place_of_a_model(tmp_path):
    (tmp_path / "train.csv").write_text("label,qid,bm25\n1,1,0.5\n")
    with pytest.raises(ModelError, match=r"train.csv: is data, not a model; rs.read reads it$") as data:
        rs.load(tmp_path / "train.csv")
    assert data.value.for_command_line().endswith("models come before data on the command line")
    assert data.value.parameters == ()


def test_the_content_is_the_bytes_of_the_file(tmp_path):
    (tmp_path / "model").write_bytes(b"tree\r\n\xff")
    assert read_content(tmp_path / "model") == b"tree\r\n\xff"


def test_names_that_lightgbm_cannot_hold_are_logged(tmp_path, caplog):
    data = rs.synth.cubic(20)
    names = ["price, EUR", "a:b", *(f"x{n}" for n in range(data.n_features - 2))]
    model = rs.train(data.with_features(names), trees=2, leaves=4)
    model.save(tmp_path / "model.txt")
    (record,) = caplog.records
    assert "'price, EUR' as 'price__EUR', 'a:b' as 'a_b'" in record.getMessage()
    assert rs.load(tmp_path / "model.txt").feature_names == tuple(names)
    caplog.clear()
    rs.train(data, trees=2, leaves=4).save(tmp_path / "plain.txt")
    assert not caplog.records


@pytest.mark.parametrize(
    ("format", "message"),
    [
        (
            "elasticsearch",
            "uses 4 features that Elasticsearch and OpenSearch cannot compute (first.score, window.title, bm25.all, "
            "relative.bm25.title), so it cannot run there; train on bm25.FIELD and number.NAME alone, not on bm25.all",
        ),
        (
            "solr",
            "uses 3 features that Solr cannot compute (window.title, bm25.all, relative.bm25.title), so it cannot run "
            "there; train on bm25.FIELD, number.NAME, length.FIELD and first.score alone, not on bm25.all",
        ),
    ],
)
def test_features_of_an_index_that_an_engine_cannot_compute_are_warned_of(tmp_path, format, message):
    names = ["bm25.title", "first.score", "window.title", "bm25.all", "relative.bm25.title", "number.price"]
    names += ["popularity", "my.clicks", "shop.bm25"]  # of users, who may define them in the engine
    features = np.random.default_rng(0).random((200, len(names))).round(2)
    made = rs.Dataset.from_arrays(features, features.sum(axis=1) > 5, group=[100, 100]).with_features(names)
    model = rs.train(made, trees=30, leaves=6, min_docs=3)
    assert len(np.unique(model.feature)) == len(names)
    options = {"format": format, "missing": "never", **({"nearest": True} if format == "solr" else {})}
    model.save(tmp_path / "own.json", **options)  # features of other origin may be defined in the engine
    of_index = replace(model, info={**model.info, "candidates": {"depth": 100}})
    with pytest.warns(RanksieveWarning, match="cannot compute") as found:
        of_index.save(tmp_path / "model.json", **options)
    (warning,) = found
    assert str(warning.message).startswith(f"{tmp_path / 'model.json'}: the model {message}")
    assert str(warning.message).endswith("with ranksieve feature-set, and train on its feature log")
