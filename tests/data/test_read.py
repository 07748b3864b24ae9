"""Data of every kind is opened by the same function, wherever data is accepted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ranksieve as rs
from ranksieve.data import read as read_module
from ranksieve.data.binned import bin_data
from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
from ranksieve.data.read import open_data, read, read_like
from ranksieve.errors import DataError, ParameterError, RanksieveWarning
from ranksieve.forest.score_file import open_for, score_file

OPTIONS = {"trees": 3, "leaves": 4, "min_docs": 1, "algo": "lambdamart"}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def columns(n_docs=60, **names):
    rng = np.random.default_rng(5)
    found = {
        "qid": np.repeat(np.arange(n_docs // 6), 6),
        "label": rng.integers(0, 3, n_docs),
        "bm25": rng.normal(size=n_docs),
        "age": rng.normal(size=n_docs),
    }
    return {names.get(name, name): values for name, values in found.items()}


def dataset():
    found = columns()
    X = np.stack([found["bm25"], found["age"]], axis=1)
    return rs.Dataset.from_arrays(X, found["label"], found["qid"]).with_features(["bm25", "age"])


def text_of(model, tmp_path):
    model.save(tmp_path / "model.txt")
    return (tmp_path / "model.txt").read_text().partition("ranksieve")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_trained_on_like_arrays(kind, tmp_path):
    table = KINDS[kind](columns())
    expected = rs.train(dataset(), valid=dataset(), **OPTIONS)
    found = rs.train(table, valid=table, **OPTIONS)
    assert text_of(found, tmp_path) == text_of(expected, tmp_path)
    assert found.feature_names == ("bm25", "age") and found.info["missing"] == "zero"
    assert rs.evaluate(found, table).mean() == rs.evaluate(found, dataset()).mean()
    assert rs.train(table, algo="ranksvm").weights.tolist() == rs.train(dataset(), algo="ranksvm").weights.tolist()
    assert (
        rs.prune(found, table, judge_on="train", rate=0.5).n_trees
        == rs.prune(expected, dataset(), judge_on="train", rate=0.5).n_trees
    )


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_tables_are_named_by_a_data_file(kind):
    table = KINDS[kind](columns(qid="query", label="clicked"))
    data = read(rs.DataFile(table, label="clicked", qid="query"))
    np.testing.assert_array_equal(data.features, np.float32(dataset().features))
    with pytest.raises(DataError, match=r"^the \w+: there is no column 'label'; .* label='NAME'"):
        rs.train(table)


def test_a_data_file_of_a_data_file():
    inner = rs.DataFile("a.csv", label="clicked", qid="q")
    assert rs.DataFile(inner) == inner
    assert rs.DataFile(inner, qid="query") == rs.DataFile("a.csv", label="clicked", qid="query")


def test_what_is_open_already_stays_as_it_is():
    data = dataset()
    for opened in (data, bin_data(data), JoinedSource([Piece(data)])):
        assert open_data(opened) is opened
    with pytest.raises(DataError, match="has bins and no feature values"):
        read(bin_data(data))
    with pytest.raises(DataError, match=r"the data is ndarray; give a file name, a DataFrame .* Dataset\.from_arrays"):
        rs.train(np.zeros((3, 2)))


def test_missing_is_checked_where_data_is_opened(tmp_path):
    for algo in ("lambdamart", "ranksvm", "mcrank", "xcleaver"):
        with pytest.raises(ParameterError, match=r"missing is 'none'; expected one of zero, nan") as caught:
            rs.train(dataset(), algo=algo, missing="none")
        assert caught.value.parameters == ("missing",)


def test_files_are_evaluated_as_their_model_was_trained(tmp_path):
    path = tmp_path / "data.txt"
    rs.io.write_letor(dataset(), path)
    path.write_text(path.read_text().replace(" 1:", " # 1:", 3))
    model = rs.train(path, missing="nan", **OPTIONS)
    assert rs.evaluate(model, path).mean() == rs.evaluate(model, read(path, missing="nan")).mean()
    assert rs.explain(model, path, query=0).features.shape == (6, 2)
    assert rs.combine(model, model, path).value == rs.combine(model, model, read(path, missing="nan")).value


@pytest.mark.parametrize("kind", KINDS)
def test_columns_in_another_order_are_matched_by_name(kind, tmp_path):
    model, data = rs.train(dataset(), **OPTIONS), columns()
    expected = model.predict(dataset())
    turned = {name: data[name] for name in ("age", "qid", "bm25", "label")} | {"title": np.repeat("text", 60)}
    np.testing.assert_array_equal(model.predict(KINDS[kind](turned)), expected)
    X = np.stack([data["age"], data["bm25"]], axis=1)
    other = rs.Dataset.from_arrays(X, data["label"], data["qid"]).with_features(["age", "bm25"])
    np.testing.assert_array_equal(model.predict(other), expected)
    ranker = rs.Ranker(**OPTIONS).fit(
        pd.DataFrame({name: data[name] for name in ("qid", "bm25", "age")}), data["label"]
    )
    np.testing.assert_array_equal(ranker.predict(KINDS[kind](turned)), expected)
    pq.write_table(pa.table(turned), tmp_path / "data.parquet")
    pd.DataFrame(turned).to_csv(tmp_path / "data.csv", index=False)
    for file in ("data.parquet", "data.csv"):
        scored = score_file({"m": model}, open_for(tmp_path / file, {"m": model}, None))
        np.testing.assert_array_equal(scored.scores["m"], expected)


def test_columns_that_are_not_numbers_are_ignored_by_name(tmp_path):
    data = columns() | {"title": np.repeat("text", 60), "t2": np.repeat("x", 60), "fresh": np.arange(60) % 2 == 0}
    pq.write_table(pa.table(data), tmp_path / "data.parquet")
    pd.DataFrame(data).to_csv(tmp_path / "data.csv", index=False)
    for given in (tmp_path / "data.parquet", tmp_path / "data.csv", pd.DataFrame(data), pl.DataFrame(data)):
        with pytest.raises(DataError, match=r"column 'title' holds .*ignore='title'"):
            read(given)
        found = read(given, ignore="title, t?")
        assert found.feature_names == ("bm25", "age", "fresh")
        assert found.features[:, 2].tolist() == [1, 0] * 30
        with pytest.raises(DataError, match="no column is named 'url'"):
            read(given, ignore="title,t2,url")
    with pytest.raises(ParameterError, match=r"no parameter 'labels'; did you mean 'label'\?"):
        read(tmp_path / "data.csv", labels="x")


def test_booleans_of_csv_are_numbers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,qid,a,b\n1,1,,True\n0,1,false,\n0,1,true,False\n")
    np.testing.assert_array_equal(read(path).features, [[np.nan, 1], [0, np.nan], [1, 0]])
    path.write_text("label,qid,a\n\n1,1,true\n\n0,1,often\n")
    with pytest.raises(DataError, match=r"data\.csv:5: column 'a' holds 'often'; expected true or false"):
        read(path)


def test_some_queries_of_a_source():
    source = JoinedSource([Piece(dataset())])
    ids = query_ids_of(source)
    by_number = read(JoinedSource([Piece(source, range(2, 4))], name="part"))
    by_id = read(JoinedSource([Piece(source, frozenset(ids[2:4]))]))
    assert by_number.source == "part" and by_number.query_ids.tolist() == by_id.query_ids.tolist() == ids[2:4]
    np.testing.assert_array_equal(by_number.features, by_id.features)


def test_validation_data_has_the_features_of_the_training_data(tmp_path):
    train = dataset()
    rs.io.write_parquet(train, tmp_path / "train.parquet")
    narrow = pq.read_table(tmp_path / "train.parquet").drop_columns(["age"])
    pq.write_table(narrow, tmp_path / "narrow.parquet")
    for algo in ("ranksvm", "lambdamart", "mcrank", "xcleaver"):
        with pytest.raises(
            DataError, match=r"lacks 1 of the 2 features of the training data \(age\)|1 feature; expected 2"
        ):
            rs.train(train, valid=tmp_path / "narrow.parquet", algo=algo)
    moved = {name: columns()[name] for name in ("age", "qid", "label", "bm25")}
    np.testing.assert_array_equal(read_like(pd.DataFrame(moved), train).features, np.float32(train.features))
    found = [rs.train(train, valid=valid, **OPTIONS) for valid in (pd.DataFrame(moved), train)]
    assert found[0].info["history"] == found[1].info["history"]
    (tmp_path / "text").write_text("1 qid:1 1:1\n0 qid:1\n")
    with pytest.warns(RanksieveWarning, match="no feature beyond 1 occurs"):
        found = read_like(tmp_path / "text", rs.Dataset.from_arrays(np.eye(2), [1, 0], [1, 1]))
    assert found.features.tolist() == [[1, 0], [0, 0]]


def test_data_that_does_not_fit_into_memory(tmp_path, monkeypatch):
    rs.io.write_letor(dataset(), tmp_path / "data.txt")

    def fail(*_):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(read_module._GrowingRows, "_reserve", fail)
    with pytest.raises(DataError, match=r"data\.txt: its feature values do not fit into memory \(Unable to allocate"):
        read(tmp_path / "data.txt")


@pytest.mark.parametrize("role", ["qid", "docid"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "table"])
def test_ids_with_nul_characters_are_refused_with_their_row(kind, role, tmp_path):
    """Arrays of text drop NUL characters at the end, so that two ids would be equal."""
    ids = {"qid": ["q1", "q1", "q2"], "docid": ["a", "b", "c"]}
    ids[role][2] = ids[role][1] + "\0"
    frame = pd.DataFrame({"label": [1, 0, 1], **ids, "bm25": [0.5, 0.1, 0.2]})
    file = tmp_path / "data"
    if kind == "csv":
        frame.to_csv(file, index=False)
    elif kind == "parquet":
        frame.to_parquet(file)
    place = {"csv": f"{file}:4", "parquet": f"{file}: row 2", "table": "the DataFrame: row 2"}[kind]
    with pytest.raises(DataError, match="has a NUL character; expected text without any") as caught:
        read(frame if kind == "table" else file)
    assert str(caught.value).startswith(f"{place}: the {'query' if role == 'qid' else 'document'} id ")


def test_document_ids_of_letor_text_with_nul_characters_are_refused(tmp_path):
    (tmp_path / "data").write_text("1 qid:1 1:1 # docid = a\n0 qid:1 1:2 # docid = a\0\n")
    with pytest.raises(DataError, match=r"data:2: the document id .* has a NUL character"):
        read(tmp_path / "data")


def test_files_of_parts_exist_and_names_tell_ranges_apart(tmp_path):
    file = tmp_path / "data.txt"
    file.write_text("".join(f"{row % 2} qid:{row // 2} 1:{row}\n" for row in range(12)))
    joined = JoinedSource([Piece(file, range(2)), Piece(file, range(2, 5)), Piece(dataset())])
    assert joined.files == (str(file), str(file))
    assert joined.names == (f"{file}-0-2", f"{file}-2-5")


def test_text_with_absent_features_is_refused_for_models_that_read_them_differently(tmp_path):
    lines = [f"{d % 2} qid:{q} 1:{d} 2:{(d * q) % 5}\n" for q in range(1, 5) for d in range(1, 9)]
    halves = [tmp_path / "a.txt", tmp_path / "b.txt"]
    halves[0].write_text("".join(lines[:16]))
    halves[1].write_text("".join(lines[16:]))
    models = {one: rs.train(halves[0], missing=one, trees=2, leaves=2, min_docs=2) for one in ("zero", "nan")}
    for data in (halves[0], JoinedSource([Piece(half) for half in halves])):
        with pytest.raises(DataError, match="different values for absent features"):
            open_for(data, models, None)
        assert len(score_file(models, open_for(data, models, "nan")).scores["nan"]) in (16, 32)
    tables = [pa.table({"label": [0, 1], "qid": [q, q], "f1": [1.0, 2.0], "f2": [1.0, 3.0]}) for q in (1, 2)]
    joined = JoinedSource([Piece(table) for table in tables])
    assert score_file(models, open_for(joined, models, None)).lists.n_docs == 4  # tables have all features
