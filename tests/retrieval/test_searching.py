"""The first stage against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from corpus_samples import QUERIES
from naive_retrieval import NaiveIndex, first_stage_scores, rank
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.queries import as_queries, read_queries
from ranksieve.retrieval.searching import Retriever, retrieve, search
from ranksieve.retrieval.tuning import tune

STAGES = [
    FirstStage(),
    FirstStage(weights={"title": 3.0}, b={"title": 0.2}, k1=0.7, k3=0.0),
    FirstStage(weights={"title": 0.0}),
    FirstStage("bm25", k1=2.0, b=0.4),
    FirstStage("dirichlet", mu=20.0),
    FirstStage("jelinek-mercer", mix=0.3, weights={"body": 0.5}),
    FirstStage("dfr", c=2.0),
]


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_lists_are_those_of_the_definition(index, documents, stage):
    naive = NaiveIndex(documents, index.fields)
    weights, b = (stage.field_values(index.field_names, name).tolist() for name in ("weights", "b"))
    run = retrieve(index, QUERIES, 12, stage)
    for id, docs, scores in run.lists():
        expected = first_stage_scores(naive, QUERIES[id], stage, weights, b)
        best = sorted(expected.values(), reverse=True)[:12]
        np.testing.assert_allclose(scores, best, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(scores, [expected[int(doc[1:])] for doc in docs], rtol=1e-5, atol=1e-6)


def test_depth_and_equal_scores(tmp_path):
    corpus = [{"id": f"d{n}", "text": "same words" if n % 2 else "other"} for n in range(40)]
    index = Index.build(corpus, tmp_path / "index")
    assert [hit.docno for hit in search(index, "words", k=5)] == ["d1", "d3", "d5", "d7", "d9"]
    assert len(search(index, "words", k=100)) == 20
    naive = dict.fromkeys(range(1, 40, 2), 1.0)
    assert [hit.docno for hit in search(index, "words", k=3)] == [f"d{n}" for n in rank(naive, 3)]


def test_threads_and_other_queries_change_nothing(index):
    one = retrieve(index, QUERIES, 30, threads=1)
    two = retrieve(index, dict(reversed(QUERIES.items())), 30, threads=2)
    alone = {id: (docs.tolist(), scores.tolist()) for id, docs, scores in two.lists()}
    for id, docs, scores in one.lists():
        assert (docs.tolist(), scores.tolist()) == alone[id]


def test_queries_that_find_nothing_are_counted(index, caplog):
    run = retrieve(index, {"a": "", "b": "!?", "c": "unheard", "d": "engine"})
    assert [len(docs) for _, docs, _ in run.lists()][:3] == [0, 0, 0]
    assert caplog.messages == [
        "queries are empty and retrieve nothing: 2 (a, b)",
        "queries without a word of the index, which retrieve nothing: 1 (c)",
    ]


def test_bad_models_are_refused(index):
    with pytest.raises(ParameterError, match="model is 'bm26'"):
        FirstStage("bm26")
    with pytest.raises(ParameterError, match="b is 2"):
        FirstStage(b=2)
    with pytest.raises(ParameterError, match="field 'heading', which the index does not have; its fields: title, body"):
        retrieve(index, QUERIES, 5, FirstStage(weights={"heading": 2}))
    with pytest.raises(ParameterError, match="all fields have weight 0"):
        retrieve(index, QUERIES, 5, FirstStage(weights={"title": 0, "body": 0}))
    with pytest.raises(ParameterError, match="one b for the whole text"):
        retrieve(index, QUERIES, 5, FirstStage("bm25", b={"title": 0.1}))
    with pytest.raises(ParameterError, match="depth is 0"):
        retrieve(index, QUERIES, 0)
    with pytest.raises(ParameterError, match="k is 0"):
        search(index, "engine", k=0)
    with pytest.raises(ParameterError, match="model is 'bm26'"):
        retrieve(index, QUERIES, stage="bm26")


def test_query_files(tmp_path):
    path = tmp_path / "q"
    path.write_text("1\tred car\n2\t\n")
    assert read_queries(path) == {"1": "red car", "2": ""}
    path.write_text('{"qid": 1, "query": "red car"}\n{"qid": 2, "query": "x"}\n')
    assert read_queries(path) == {"1": "red car", "2": "x"}
    path.write_text('\n{"_id": "a", "text": ["red", "car"], "metadata": {}}\n{"_id": "b", "text": null}\n')
    assert read_queries(path) == {"a": "red\ncar", "b": ""}
    path.write_text("\ufeffqid\tnarrative\tquery\n1\tlong\tred car\n")
    assert read_queries(path) == {"1": "red car"} == as_queries(path)
    for text, message in (
        ("1 red", r"q:1: has no tab"),
        ("1\ta\n1\tb\n", r"q:2: the query id '1' occurs twice"),
        ('{"name": "a"}', r"q:1: has the fields 'name'"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_queries(path)
    assert as_queries("red") == {"1": "red"}
    assert as_queries({1: None, 2: "red"}) == {"1": "", "2": "red"}
    with pytest.raises(DataError, match="'1' occurs twice"):
        as_queries([("1", "a"), ("1", "b")])
    with pytest.raises(DataError, match=r"a query is 'red'; expected pairs \(id, text\)"):
        as_queries(["red", "wine"])


def test_tuning_finds_what_is_better(index):
    judgements = {"1": {"d3": 1.0, "d9": 2.0}, "2": {"d4": 1.0}, "99": {"d1": 1.0}}
    tuned = tune(Retriever(index, FirstStage(k1=3.0)), QUERIES, judgements, metric="map")
    assert tuned.after >= tuned.before
    stage = FirstStage(weights={"title": 2.0}, k1=0.9)
    assert stage.flags() == "--model bm25f --weights title=2 --set k1=0.9,b=0.75,k3=8"
    assert str(stage) == "bm25f (weights title=2; k1=0.9,b=0.75,k3=8)"
    with pytest.raises(DataError, match="no judgement is for one of these queries: got 1 judgement with ids like '99'"):
        tune(index, QUERIES, {"99": {"d1": 1.0}})
