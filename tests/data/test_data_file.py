"""Columns with other names, and pipes in the place of files."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ranksieve as rs
from ranksieve.data.data_file import DataFile
from ranksieve.data.pipes import spool_pipe
from ranksieve.data.read import open_data, read
from ranksieve.errors import DataError, ParameterError

TEXT = "2 qid:1 1:0.5\n0 qid:1 1:0.25\n1 qid:2 1:1\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "other.parquet"
    columns = {
        "Relevance": [2, 0, 1],
        "query_id": ["a", "a", "b"],
        "doc_id": [7, 8, 9],
        "w": [1, 1, 2],
        "bm25": [3, 2, 1],
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def through_pipe(tmp_path):
    """A named pipe that content is sent through."""
    threads = []

    def send(content: bytes) -> Path:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        threads.append(threading.Thread(target=pipe.write_bytes, args=(content,)))
        threads[-1].start()
        return pipe

    yield send
    for thread in threads:
        thread.join()


def test_columns_with_other_names(table):
    names = {"label": "Relevance", "qid": "query_id", "weight": "w"}
    for data in (
        read(table, **names),
        read(DataFile(table, **names)),
        read(DataFile(str(table), **names), weight="w"),
    ):
        assert data.feature_names == ("bm25",)
        assert data.labels.tolist() == [2, 0, 1] and data.query_ids.tolist() == ["a", "b"]
        assert data.lists.doc_ids.tolist() == ["7", "8", "9"]
        assert data.lists.weights.tolist() == [1, 1, 2]
    assert read(table, label="w", qid="query_id", docid="Relevance").lists.doc_ids.tolist() == ["2", "0", "1"]


def test_columns_with_usual_names_are_never_features(tmp_path):
    path = tmp_path / "two.parquet"
    pq.write_table(pa.table({"label": [1, 0], "grade": [3, 0], "qid": [1, 1], "bm25": [2.0, 1.0]}), path)
    data = read(path, label="grade")
    assert data.feature_names == ("bm25",) and data.labels.tolist() == [3, 0]


def test_a_missing_column_is_reported_with_a_suggestion(table):
    with pytest.raises(DataError, match=r"no column 'label'; it has: Relevance, .* label='Relevance'") as found:
        read(table)
    assert found.value.for_command_line().endswith("--label Relevance")
    with pytest.raises(DataError, match=r"no column 'qid'.* qid='query_id'"):
        read(table, label="Relevance")
    with pytest.raises(DataError, match=r"no column 'ID'.* docid='doc_id'"):
        read(table, label="Relevance", qid="query_id", docid="ID")


def test_text_has_no_columns(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    with pytest.raises(DataError, match=r"is LETOR text, .* leave out qid"):
        read(path, qid="query")


def test_a_file_with_columns_travels_to_other_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = DataFile("a.parquet", qid="q").absolute()
    assert pickle.loads(pickle.dumps(file)) == DataFile(str(tmp_path / "a.parquet"), qid="q")


def test_a_pipe_is_read_as_often_as_needed(through_pipe):
    source = open_data(through_pipe(TEXT.encode()))
    for _ in range(2):
        assert np.concatenate([block.labels for block in source.blocks()]).tolist() == [2, 0, 1]
    assert source.path.endswith("/pipe") and "ranksieve-" not in source.path


def test_a_pipe_without_content(through_pipe):
    with pytest.raises(DataError, match="no data arrived"):
        spool_pipe(through_pipe(b""))


def test_files_stay_as_they_are(tmp_path):
    assert spool_pipe(tmp_path / "gone.txt") == str(tmp_path / "gone.txt")
    assert spool_pipe(tmp_path) == str(tmp_path)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match=r"^standard input is closed; send data"):
        spool_pipe("-")


@pytest.mark.parametrize("parameter", ["categorical", "ignore"])
@pytest.mark.parametrize("wrong", [True, 3, [1.5, 2]])
def test_categorical_and_ignore_take_names(parameter, wrong):
    with pytest.raises(ParameterError, match=rf"{parameter} is .*; expected names of columns, such as 'brand,genre'"):
        DataFile("train.csv", **{parameter: wrong})


def test_names_with_commas_are_given_in_lists_or_with_commas_in_brackets(tmp_path):
    n = 40
    columns = {
        "label": [k % 2 for k in range(n)], "qid": [k // 10 for k in range(n)], "price, net": [k % 7 for k in range(n)],
        "price; net": [k % 3 for k in range(n)],
        "bm25": [k % 5 for k in range(n)], "brand, short": ["ab"[k % 2] for k in range(n)],
        "size [cm]": ["x y"] * n,
    }  # fmt: skip
    pd.DataFrame(columns).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(DataError, match=r"categorical='brand\[,\] short'"):  # which can be copied
        rs.read(tmp_path / "data.csv", ignore="size [cm]")
    for names in (["size [cm]"], "size [cm]", "size*"):
        for brand in (["brand, short"], "brand[,] short"):
            data = rs.read(tmp_path / "data.csv", ignore=names, categorical=brand)
            assert data.feature_names == ("price, net", "price; net", "bm25", "brand, short")
            assert data.categories == {"brand, short": ["a", "b"]}
    file = rs.DataFile(tmp_path / "data.csv", ignore=["size [cm]", "brand, short"])
    settings = {"trees": 2, "leaves": 4, "min_docs": 1, "verbose": False}
    for features in (["price, net"], "price[,] net"):
        assert np.unique(rs.train(file, features=features, **settings).feature).tolist() == [0]
    models = [rs.train(file, monotone=one, **settings) for one in ({"price, net": 1}, "price[,] net:+1", "1,0,0")]
    assert len({tuple(model.leaf_values) for model in models}) == 1
    with pytest.raises(ParameterError, match=r"no feature is named 'price'; .*write \[,\] for the comma in a name"):
        rs.train(file, features="price, net", **settings)
    assert rs.read(file.path, ignore=["price, net", "size [cm]", "brand, short"]).feature_names == (
        "price; net",
        "bm25",
    )
    named = data.with_features(["a, b", "c", "d", "e"], categorical=["a, b"])
    assert "a, b" in named.categories


@pytest.mark.parametrize("wanted", [(), ("bm25",)])
def test_a_column_to_ignore_that_does_not_exist_is_refused(table, wanted):
    columns = {"label": "Relevance", "qid": "query_id"}
    assert open_data(DataFile(table, **columns, ignore="w"), wanted=wanted).feature_names == ("bm25",)
    with pytest.raises(DataError, match="no column is named 'bm2', which is to be ignored; did you mean 'bm25'"):
        open_data(DataFile(table, **columns, ignore="w,bm2"), wanted=wanted)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("ignore", [None, "title"])
def test_a_missing_feature_is_reported_beside_a_column_of_text(tmp_path, ending, ignore):
    path = tmp_path / f"data.{ending}"
    frame = pd.DataFrame({"label": [1, 0], "qid": [1, 1], "bm25": [2.5, 1.5], "title": ["a car", "wine"]})
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.raises(
        DataError, match=r"lacks 1 of the 2 features of the training data \(age\); the columns are bm25"
    ):
        open_data(DataFile(path, ignore=ignore), wanted=("bm25", "age"))
