"""Logs of features: responses of Elasticsearch, OpenSearch and Solr in their documented forms, and bad ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.feature_logs import read_feature_log

NAN = float("nan")


def hit(doc, **features):
    """A hit as the LTR plugins return it; features that are None have no value."""
    logged = [{"name": name} | ({} if value is None else {"value": value}) for name, value in features.items()]
    return {
        "_index": "films", "_id": doc, "_score": 1.5, "_source": {"title": "x"},
        "fields": {"_ltrlog": [{"log_entry1": logged}]}, "matched_queries": ["logged_featureset"],
    }  # fmt: skip


def elastic(*hits, **more):
    return {"took": 3, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": list(hits)}, **more}


def solr(*docs, **params):
    return {
        "responseHeader": {"status": 0, "QTime": 1, "params": {"q": "test", **params}},
        "response": {"numFound": len(docs), "start": 0, "docs": list(docs)},
    }


def write(path, *values, indent=None):
    path.write_text("\n".join(json.dumps(value, indent=indent) for value in values))
    return path


RESPONSES = [
    elastic(hit("a", title=9.5, body=None), hit("b", title=0.0, body=2.5), qid="q2"),
    elastic(hit("b", body=1.0, age=7), qid="q1"),
]
EXPECTED = [[9.5, NAN, NAN], [0.0, 2.5, NAN], [NAN, 1.0, 7.0]]


@pytest.mark.parametrize("indent", [None, 2])
def test_responses_of_the_ltr_plugins(tmp_path, caplog, indent):
    judged = {"q1": {"b": 2, "gone": 1}, "q2": {"a": 1, "b": 0}, "q3": {"a": 1}}
    data = read_feature_log(write(tmp_path / "log", *RESPONSES, indent=indent), judged)
    assert data.feature_names == ("title", "body", "age")
    np.testing.assert_array_equal(data.features, np.array(EXPECTED, np.float32))
    assert data.query_ids.tolist() == ["q2", "q1"] and data.offsets.tolist() == [0, 2, 3]
    assert data.labels.tolist() == [1.0, 0.0, 2.0] and data.lists.doc_ids.tolist() == ["a", "b", "b"]
    assert caplog.messages == [
        "judged queries are not in the log: 1 (q3)",
        "relevant documents are not in the log: 1 (gone)",
    ]
    assert data.info.missing == "nan"


@pytest.mark.parametrize(
    "values",
    [
        [RESPONSES],
        [{"responses": RESPONSES}],
        [{"qid": one["qid"], "response": {key: one[key] for key in one if key != "qid"}} for one in RESPONSES],
        [{"query_id": one["qid"], "response": [{"hits": one["hits"]}]} for one in RESPONSES],
        [{"topic": one["qid"], **each} for one in RESPONSES for each in one["hits"]["hits"]],
    ],
    ids=["array", "msearch", "wrapped", "wrapped list", "hits"],
)
def test_other_forms_hold_the_same(tmp_path, values):
    data = read_feature_log(write(tmp_path / "log", *values))
    np.testing.assert_array_equal(data.features, np.array(EXPECTED, np.float32))
    assert data.query_ids.tolist() == ["q2", "q1"] and data.labels.tolist() == [0.0, 0.0, 0.0]


def test_several_entries_and_the_old_form(tmp_path):
    one = hit("a")
    one["fields"]["_ltrlog"] = [{"first": [{"name": "x", "value": 1}], "second": {"y": 2.5, "z": None}}]
    data = read_feature_log(write(tmp_path / "log", elastic(one, qid=7)))
    assert data.feature_names == ("x", "y", "z")
    np.testing.assert_array_equal(data.features, np.array([[1.0, 2.5, NAN]], np.float32))


def test_responses_of_solr(tmp_path):
    lines = [
        solr({"id": "a", "[features]": "recency=0.5,f=a=2.0"}, {"id": 7, "[features]": "recency=NaN"}, qid="q1"),
        {"qid": "q2", "response": solr({"id": "a", "[features]": "f=a:3.5".replace(":", "=")})},
    ]
    path = write(tmp_path / "log", *lines)
    data = read_feature_log(path, {"q2": {"a": 3}})
    assert data.feature_names == ("recency", "f=a") and data.lists.doc_ids.tolist() == ["a", "7", "a"]
    np.testing.assert_array_equal(data.features, np.array([[0.5, 2.0], [NAN, NAN], [NAN, 3.5]], np.float32))
    assert data.labels.tolist() == [0.0, 0.0, 3.0]
    sparse = read_feature_log(path, missing="zero")
    assert sparse.features.tolist() == [[0.5, 2.0], [0.0, 0.0], [0.0, 3.5]] and sparse.info.missing == "zero"


def test_other_names_in_solr(tmp_path):
    docs = [{"sku": "s1", "id": "x", "fv": "a:1.5;b:2"}, {"sku": "s2", "id": "y", "fv": ""}]
    data = read_feature_log(write(tmp_path / "log", solr(*docs, qid="q")), id="sku", field="fv")
    assert data.lists.doc_ids.tolist() == ["s1", "s2"]
    np.testing.assert_array_equal(data.features, np.array([[1.5, 2.0], [NAN, NAN]], np.float32))


def test_pages_of_a_query_and_several_files(tmp_path, caplog):
    first = write(tmp_path / "1", elastic(hit("a", x=1), qid="q"), elastic(qid="none"))
    second = write(tmp_path / "2", elastic(hit("b", x=2), qid="r"), elastic(hit("b", x=3), qid="q"))
    data = read_feature_log([first, second])
    assert data.query_ids.tolist() == ["q", "r"] and data.lists.doc_ids.tolist() == ["a", "b", "b"]
    assert data.column("x").tolist() == [1.0, 3.0, 2.0]
    assert caplog.messages == ["queries have no hits in the log: 1 (none)"]


GOOD = json.dumps(elastic(hit("a", x=1), qid="q"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", ":2: is not JSON"),
        ("7", ":2: 7 is not a response; expected responses of Elasticsearch"),
        ('{"qid": "r", "took": 3}', ":2: has keys 'qid', 'took'; expected"),
        (json.dumps(elastic(hit("a", x=1))), ":2: the response has no query id; add a field 'qid'"),
        (json.dumps(elastic(hit("a", x=1), qid="q")), ":2: document 'a' of query 'q' occurs twice in the log"),
        (json.dumps({"qid": "r", "hits": {"hits": [{"_id": "a"}]}}), "has no features; log them with ext.ltr_log"),
        (json.dumps({"qid": "r", "hits": {"hits": [{"fields": {"_ltrlog": []}}]}}), "has no id; expected it in _id"),
        (json.dumps({"qid": "r", "hits": {"hits": [3]}}), "the hit 3 is not an object"),
        (json.dumps(elastic(hit("b", x="1_0"), qid="q")), "feature 'x' has the value '1_0'; expected a number"),
        (json.dumps(elastic(hit("b", x=10**400), qid="q")), "feature 'x' has the value 1000000"),
        (json.dumps(elastic(hit("b", x=True), qid="q")), "feature 'x' has the value True; expected a number"),
        (json.dumps({"qid": "r", "_id": "b", "fields": {"_ltrlog": [["x"]]}}), "_ltrlog is not like"),
        (
            json.dumps({"qid": "r", "_id": "b", "fields": {"_ltrlog": [{"m": [{"name": "x"}, {"name": "x"}]}]}}),
            "the feature name 'x' is empty, not text or given twice",
        ),
        (json.dumps({"qid": "q", "error": {"reason": "no such index"}}), "with the error 'no such index'"),
        (json.dumps(solr({"id": "b", "[features]": "x=1,y"}, qid="q")), "the feature 'y' has no value"),
        (json.dumps(solr({"id": "b", "[features]": 3}, qid="q")), "the features are 3; expected text like"),
    ],
)
def test_bad_lines_are_named(tmp_path, bad, message):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{GOOD}\n{bad}\n")
    with pytest.raises(DataError) as error:
        read_feature_log(path)
    assert str(error.value).startswith(f"{path}:2: ") and message in str(error.value)


def test_bad_files(tmp_path):
    (tmp_path / "log").write_text('{\n"qid": "q",\n\n"hits": ?}')
    with pytest.raises(DataError, match="log:4: is not JSON"):
        read_feature_log(tmp_path / "log")
    (tmp_path / "log").write_text(json.dumps(elastic(qid="q")))
    with pytest.raises(DataError, match="holds no documents with features"):
        read_feature_log(tmp_path / "log")
    with pytest.raises(ParameterError, match="missing is 'none'"):
        read_feature_log(tmp_path / "log", missing="none")


def test_the_command_writes_data(tmp_path):
    from typer.testing import CliRunner

    from ranksieve.cli.app import app

    write(tmp_path / "log", *RESPONSES)
    (tmp_path / "qrels").write_text("q1 0 b 2\n")
    arguments = [str(tmp_path / "log"), "--qrels", str(tmp_path / "qrels"), "--out", str(tmp_path / "data.parquet")]
    outcome = CliRunner().invoke(app, ["feature-log", *arguments])
    assert outcome.exit_code == 0, outcome.output
    assert "2 queries, 3 documents, 3 features" in outcome.output
    assert "queries have no judgements; their documents get label 0: 1 (q2)" in outcome.output
    data = rs.read(tmp_path / "data.parquet")
    np.testing.assert_array_equal(data.features, np.array(EXPECTED, np.float32))
    assert data.feature_names == ("title", "body", "age") and data.labels.tolist() == [0.0, 0.0, 2.0]
