"""PyTerrier's own pipelines and experiments with our transformers; no Java is started."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, MissingExtraError

WORDS = ["red", "wine", "white", "rose", "glass", "bottle", "engine", "wing"]
QUICK = {"trees": 5, "leaves": 4, "min_docs": 2, "threads": 1, "verbose": False}


@pytest.fixture(scope="module")
def pt():
    return pytest.importorskip("pyterrier")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    rng = np.random.default_rng(0)
    corpus = [{"id": f"d{n}", "text": " ".join(rng.choice(WORDS, 12))} for n in range(30)]
    return rs.Index.build(corpus, tmp_path_factory.mktemp("pyterrier") / "index")


@pytest.fixture(scope="module")
def topics():
    return pd.DataFrame({"qid": ["2", "1"], "query": ["red wine", "white glass"], "kind": ["a", "b"]})


@pytest.fixture(scope="module")
def qrels(index, topics):
    run = rs.retrieval.retrieve(index, topics, 5)
    rows = [(id, doc, 1 + number % 2) for id, docs, _ in run.lists() for number, doc in enumerate(docs)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def test_classes_do_not_share_their_names_with_others(pt, index):
    made = (rs.pyterrier.retriever(index), rs.pyterrier.features(index), rs.pyterrier.ranker())
    names = [type(one).__name__ for one in made]
    assert names == ["RetrieveTransformer", "FeatureTransformer", "RankerTransformer"]
    assert not any(hasattr(module, name) for module in (rs, rs.retrieval) for name in names)


def test_the_retriever_is_the_first_stage(pt, index, topics):
    found = rs.pyterrier.retriever(index, depth=7)(topics)
    expected = rs.retrieval.retrieve(index, topics, 7).to_frame()
    pd.testing.assert_frame_equal(found[["qid", "docno", "score", "rank"]], expected, check_dtype=False)
    assert found["kind"].tolist() == ["a"] * 7 + ["b"] * 7
    assert (rs.pyterrier.retriever(index, depth=7) % 2)(topics)["docno"].tolist() == [
        *expected["docno"][:2],
        *expected["docno"][7:9],
    ]
    assert not len(rs.pyterrier.retriever(index)(topics[:0]))


def test_features_are_those_of_extract_features(pt, index, topics):
    results = rs.pyterrier.retriever(index, depth=6)(topics)
    shuffled = results.sample(frac=1, random_state=0)
    shuffled = pd.concat([shuffled, shuffled[:1].assign(docno="gone")])
    stage = rs.pyterrier.features(index, ["bm25*", "tf_sum.text"])
    found = stage(shuffled)
    data = rs.retrieval.extract_features(index, topics, depth=6, select=["bm25*", "tf_sum.text"])
    assert stage.names == data.feature_names
    assert found["docno"].tolist() == shuffled["docno"].tolist()[:-1]
    qids = np.repeat(data.query_ids, np.diff(data.offsets)).astype(str)
    rows = dict(zip(zip(qids, data.lists.doc_ids, strict=True), data.features, strict=True))
    for qid, docno, values in zip(found["qid"], found["docno"], found["features"], strict=True):
        np.testing.assert_array_equal(values, rows[qid, docno])


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
def test_a_pipeline_is_trained_and_measured(pt, index, topics, qrels):
    bm25 = rs.pyterrier.retriever(index, depth=12)
    ranker = rs.pyterrier.ranker(**QUICK)
    pipe = bm25 >> rs.pyterrier.features(index) >> ranker
    pipe.fit(topics, qrels, topics, qrels)
    found = pipe(topics)
    data = rs.retrieval.extract_features(index, topics, depth=12, judgements=qrels)
    model = rs.train(data, valid=data, **QUICK)
    scores = dict(zip(zip(found["qid"], found["docno"], strict=True), found["score"], strict=True))
    qids = np.repeat(data.query_ids, np.diff(data.offsets)).astype(str)
    expected = dict(zip(zip(qids, data.lists.doc_ids, strict=True), model.predict(data), strict=True))
    assert scores == pytest.approx(expected)
    for _, part in found.groupby("qid"):
        assert part["rank"].tolist() == list(range(12)) and part["score"].is_monotonic_decreasing
    table = pt.Experiment([bm25, pipe], topics, qrels, ["map", "ndcg_cut_10"], names=["bm25", "ranker"])
    assert table["name"].tolist() == ["bm25", "ranker"] and table["map"].between(0, 1).all()
    result = rs.retrieval.evaluate_run({"r": found}, qrels, "AP")
    assert table["map"][1] == pytest.approx(result.mean())
    assert not pt.java.started()


def test_a_trained_pipeline_is_a_stage(pt, index, topics, qrels):
    data = rs.retrieval.extract_features(index, topics, depth=8, judgements=qrels)
    pipeline = rs.Pipeline(index, rs.train(data, **QUICK))
    expected = pipeline.transform(topics)
    alone = rs.pyterrier.reranker(pipeline)
    for found in (alone(topics), (rs.pyterrier.retriever(index, depth=8) >> alone)(topics)):
        assert found["docno"].tolist() == expected["docno"].tolist() and found["kind"].tolist() == ["a"] * 8 + ["b"] * 8


def test_bad_input_is_named(pt, index, topics):
    results = rs.pyterrier.retriever(index)(topics)
    with pytest.raises(DataError, match="the ranker has no model yet; call fit"):
        rs.pyterrier.ranker().transform(results)
    with pytest.raises(DataError, match="no column 'features'; put rs"):
        rs.pyterrier.ranker().fit(results, pd.DataFrame(columns=["qid", "docno", "label"]))


def test_pyterrier_is_an_extra(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    rs.pyterrier._classes.cache_clear()
    with pytest.raises(MissingExtraError, match=r"ranksieve\[pyterrier\]"):
        rs.pyterrier.retriever(index)
    rs.pyterrier._classes.cache_clear()


def test_columns_of_documents_stay_with_their_documents(pt, index, topics, qrels):
    data = rs.retrieval.extract_features(index, topics, depth=8, judgements=qrels)
    results = rs.pyterrier.retriever(index, depth=8)(topics)
    results["text"] = "text of " + results["docno"]
    ranked = rs.pyterrier.reranker(rs.Pipeline(index, rs.train(data, **QUICK)))(results)
    assert len(ranked) == 16 and (ranked["text"] == "text of " + ranked["docno"]).all()
    assert ranked["kind"].tolist() == ["a"] * 8 + ["b"] * 8


def test_vectors_of_queries_are_a_column_or_made_by_a_function(pt, index, topics, tmp_path):
    documents = [{"id": id, **index.document(number)} for number, id in enumerate(index.ids)]
    rows = np.random.default_rng(0).normal(size=(len(documents), 3))
    dense = rs.Index.build(documents, tmp_path / "index", vectors=rows)
    by_text = dict(zip(topics["query"], [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], strict=True))
    encode = lambda texts: [by_text[text] for text in texts]  # noqa: E731
    encoded = topics.assign(query_vec=[np.array(by_text[text]) for text in topics["query"]])
    chosen = ["dense.*", "bm25.text"]
    one = rs.pyterrier.retriever(dense, 5, stage="hybrid") >> rs.pyterrier.features(dense, chosen)
    other = rs.pyterrier.retriever(dense, 5, stage="hybrid", encode=encode) >> rs.pyterrier.features(
        dense, chosen, encode=encode
    )
    with_column, with_function = one(encoded), other(topics)
    assert with_column["docno"].tolist() == with_function["docno"].tolist()
    np.testing.assert_array_equal(*(np.stack(list(table["features"])) for table in (with_column, with_function)))
    expected = rs.retrieval.retrieve(dense, topics, 5, "hybrid", query_vectors=encode)
    assert with_column["docno"].tolist() == expected.doc_ids.tolist()
