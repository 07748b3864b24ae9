"""The JSON routes: same results as the library, and 4xx in one line for bad requests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from corpus_samples import QUERIES, random_documents
from ranksieve.errors import ParameterError
from ranksieve.retrieval.searching import search
from ranksieve.serve.settings import Limits, Settings

TEXT = QUERIES["1"]


def problem(response, *statuses: int) -> str:
    """The line of a problem."""
    status = response.status_code
    assert status in statuses, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["status"] == status
    assert "\n" not in found["detail"]
    assert "Traceback" not in response.text
    return found["detail"]


def test_search_is_the_pipelines(client, folder):
    http = client()
    with rs.Pipeline(folder / "index", folder / "one.txt") as pipeline:
        for text in QUERIES.values():
            found = http.get("/search", params={"q": text, "k": 7}).json()
            assert found["model"] == "one"
            assert [(hit["document"], hit["score"], hit["rank"]) for hit in found["hits"]] == pipeline.search(text, 7)
        first = http.get("/search", params={"q": TEXT, "k": 5, "model": "first-stage"}).json()["hits"]
        ours = search(pipeline.index, TEXT, 5)
        assert [(hit["document"], hit["score"], hit["rank"]) for hit in first] == ours
        by_first = {hit.docno: hit.rank for hit in search(pipeline.index, TEXT, 60)}
        for hit in http.get("/search", params={"q": TEXT, "k": 50}).json()["hits"]:
            assert hit["first_rank"] == by_first[hit["document"]]


def test_texts_depth_and_weights(client, folder):
    http = client()
    hits = http.get("/search", params={"q": "wing", "k": 50, "texts": True}).json()["hits"]
    assert any(["wing", True] in hit["snippet"] for hit in hits)
    titles = {"".join(text for text, _ in hit["title"]) for hit in hits}
    with rs.Index(folder / "index") as index:
        known = {document.get("title", "").strip() for document in map(index.document, range(60))}
        assert titles <= known | set(index.ids)
    assert len(http.get("/search", params={"q": TEXT, "k": 50, "depth": 3}).json()["hits"]) == 3
    heavy = http.get("/search", params={"q": TEXT, "model": "first-stage", "weight": ["title:9", "body:0"]}).json()
    with rs.Index(folder / "index") as index:
        stage = rs.retrieval.FirstStage(weights={"title": 9.0, "body": 0.0})
        assert [hit["document"] for hit in heavy["hits"]] == [hit.docno for hit in search(index, TEXT, 10, stage)]
    assert http.get("/search", params={"q": "unheard"}).json()["hits"] == []
    assert http.get("/search", params={"q": ""}).json()["hits"] == []


def test_a_title_may_be_part_of_a_text(client, tmp_path):
    documents = [{"id": "a", "text": "Red wine\n\nAn article."}, {"id": "b", "text": "\nno title, wine"}]
    rs.Index.build(documents, tmp_path / "index", fields=["title=text~\\A[^\n]+", "text"]).close()
    http = client(index=tmp_path / "index", models=())
    hits = http.get("/search", params={"q": "wine", "texts": True}).json()["hits"]
    titles = {hit["document"]: "".join(text for text, _ in hit["title"]) for hit in hits}
    assert titles == {"a": "Red wine", "b": "b"}
    with pytest.raises(ParameterError, match="the index has no field 'name' to show as title; it has title, text"):
        client(index=tmp_path / "index", models=(), title="name")


def test_rerank_documents_and_vectors(client, folder):
    http = client()
    with rs.Pipeline(folder / "index", folder / "two.txt") as pipeline:
        found = pipeline.score(TEXT)
        ids = pipeline.index.ids[found.docs].tolist()
        body = {"query": TEXT, "documents": ids[::-1], "model": "two"}
        hits = http.post("/rerank", json=body).json()["hits"]
        assert [hit["document"] for hit in hits] == [ids[row] for row in found.order]
        assert [hit["score"] for hit in hits] == found.scores[found.order].tolist()
        vectors = [[None if np.isnan(x) else float(x) for x in row] for row in found.features]
        scored = http.post("/rerank", json={"features": vectors, "model": "two"}).json()
        assert scored["scores"] == found.scores.tolist()
        assert scored["order"] == found.order.tolist()
        kind = {"content-type": "application/octet-stream"}
        content = found.features.astype("<f4").tobytes()
        assert http.post("/rerank?model=two", content=content, headers=kind).json() == scored
        assert "expected rows of" in problem(http.post("/rerank", content=content[:-1], headers=kind), 422)
        assert "expected rows of" in problem(http.post("/rerank", content=b"", headers=kind), 422)


def test_explanations_add_up(client):
    http = client()
    hits = http.get("/search", params={"q": TEXT, "k": 9}).json()["hits"]
    above, below = hits[0], hits[8]
    body = {"query": TEXT, "document": above["document"], "below": below["document"]}
    found = http.post("/explain", json=body).json()
    parts = [one["contribution"] for one in found["contributions"]]
    assert sum(parts) + found["expected"] == pytest.approx(above["score"])
    assert parts == sorted(parts, key=abs, reverse=True)
    assert sum(one["difference"] for one in found["differences"]) == pytest.approx(above["score"] - below["score"])
    assert found["below_score"] == below["score"]
    assert all(one["meaning"] for one in found["contributions"])
    assert "differences" not in http.post("/explain", json={"query": TEXT, "document": above["document"]}).json()


BAD = [
    ("GET", "/search", {}, 422, "q is missing"),
    ("GET", "/search?q=x&k=0", {}, 422, "k is 0; expected 1 to 2,000"),
    ("GET", "/search?q=x&k=99999", {}, 422, "k is 99,999"),
    ("GET", "/search?q=x&k=1e3", {}, 422, "k: "),
    ("GET", "/search?q=x&depth=-1", {}, 422, "the depth is -1"),
    ("GET", "/search?q=x&model=tow", {}, 404, "did you mean 'two'?"),
    ("GET", "/search?q=x&model=../two.txt", {}, 404, "no model is named"),
    ("GET", "/search?q=" + "x" * 10_001, {}, 422, "10,001 characters; at most 10,000"),
    ("GET", "/search?q=x&weight=title", {}, 422, "expected FIELD:NUMBER"),
    ("GET", "/search?q=x&weight=nope:1", {}, 422, "a field of title, body"),
    ("GET", "/search?q=x&weight=title:nan", {}, 422, "weights is nan"),
    ("GET", "/search?q=x&weight=title:-1", {}, 422, "weights is -1"),
    ("GET", "/search?q=x&modle=one", {}, 422, "the parameter 'modle' is not known; did you mean 'model'? known: q, k"),
    ("GET", "/health?x=1", {}, 422, "the parameter 'x' is not known; it takes none"),
    ("GET", "/nothing", {}, 404, "Not Found"),
    ("GET", "/rerank", {}, 405, "Method Not Allowed"),
    ("POST", "/rerank", {"content": b"{"}, 415, "expected application/json"),
    ("POST", "/rerank", {"json": []}, 422, "not an object"),
    ("POST", "/rerank", {"json": {"query": "x"}}, 422, "give either documents"),
    ("POST", "/rerank", {"json": {"query": "x", "documents": []}}, 422, "number of documents is 0"),
    ("POST", "/rerank", {"json": {"query": "x", "documents": ["none"]}}, 404, "no document 'none'"),
    ("POST", "/rerank", {"json": {"query": "x", "documents": ["d1", "d1"]}}, 422, "given twice"),
    ("POST", "/rerank", {"json": {"query": "x", "documents": 7}}, 422, "documents: "),
    (
        "POST",
        "/rerank",
        {"json": {"query": "x", "other": 7, "documents": ["d1"]}},
        422,
        "'other' is not a key; expected",
    ),
    ("POST", "/rerank", {"json": {"documents": ["d1"]}}, 422, "give a query with documents"),
    ("POST", "/rerank", {"json": {"query": " ", "documents": ["d1"]}}, 422, "give a query with documents"),
    (
        "POST",
        "/rerank",
        {"json": {"vectors": [[1]], "features": [[1]]}},
        422,
        "'vectors' is not a key; expected some of query, documents, features, model",
    ),
    ("POST", "/explain", {"json": {"query": "x", "documnt": "d1"}}, 422, "not a key; did you mean 'document'? "),
    ("POST", "/explain", {"json": 7}, 422, "the request: "),
    ("POST", "/rerank", {"json": {"features": [[1, 2]]}}, 422, "a vector has 2 features; the model one has"),
    ("POST", "/rerank", {"json": {"features": [[1], [1, 2]]}}, 422, "equal length"),
    ("POST", "/rerank", {"json": {"features": [["x"]]}}, 422, "equal length"),
    ("POST", "/rerank", {"json": {"features": [[{}]]}}, 422, "equal length"),
    ("POST", "/rerank", {"json": {"features": "x"}}, 422, "equal length"),
    ("POST", "/explain", {"json": {"query": "x"}}, 422, "document is missing"),
    ("POST", "/explain", {"json": {"query": "x", "document": "none"}}, 404, "no document 'none'"),
    ("POST", "/explain", {"json": {"query": "unheard", "document": "d1"}}, 422, "not among the 0 candidates"),
    (
        "POST",
        "/explain",
        {"json": {"query": TEXT, "document": "d1", "model": "first-stage"}},
        404,
        "this needs a model",
    ),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "none", "grade": 1}}, 404, "no document"),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "d1", "grade": 9}}, 422, "is 9; expected a number"),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "d1", "grade": -0.5}}, 422, "the grade is -0.5"),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "d1", "grade": "1"}}, 422, "grade: "),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "d1", "grade": True}}, 422, "grade: "),
    ("PUT", "/judgements", {"json": {"query": " \n", "document": "d1", "grade": 1}}, 422, "the query is empty"),
    ("PUT", "/judgements", {"json": {"query": "x", "document": "d1"}}, 422, "grade is missing"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "line"), BAD)
def test_bad_requests_get_one_line(client, tmp_path, method, path, body, status, line):
    http = client()
    assert line in problem(http.request(method, path, **body), status)
    assert not (tmp_path / "qrels.txt").exists()


def test_odd_bodies_are_refused(client):
    http = client()
    kind = {"content-type": "application/json"}
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"features": ' + b"[" * 100_000, b'{"query": "\\ud800"}'):
        assert problem(http.post("/rerank", content=body, headers=kind), 422)
        assert problem(http.post("/explain", content=body, headers=kind), 400, 422)
        assert problem(http.put("/judgements", content=body, headers=kind), 400, 422)
    vectors = json.dumps({"features": [[1e999] * 3]})
    assert problem(http.post("/rerank", content=vectors, headers=kind), 422)
    for value in (b"NaN", b"Infinity", b"-101", b"1e999"):
        body = b'{"query": "x", "document": "d1", "grade": %b}' % value
        assert problem(http.put("/judgements", content=body, headers=kind), 422)
    half = b'{"query": "x \\ud800", "document": "d1", "grade": 1}'
    assert problem(http.put("/judgements", content=half, headers=kind), 422)
    assert http.get("/search", params={"q": "\x00 wing \u2028"}).status_code == 200


def test_limits_are_settings(client):
    http = client(limits=Limits(depth=5, documents=4, query=9, body=200))
    assert problem(http.get("/search?q=x&k=5"), 422)
    assert problem(http.get("/search?q=x&depth=6"), 422)
    assert problem(http.get("/search?q=1234567890"), 422)
    assert "201 bytes; at most 200" in problem(http.post("/rerank", content=b"x" * 201), 413)

    def pieces():
        for _ in range(300):
            yield b"x"

    kind = {"content-type": "application/json"}
    assert "at most 200 bytes" in problem(http.post("/rerank", content=pieces(), headers=kind), 413)
    assert http.get("/search?q=x&k=4&depth=5").status_code == 200


def test_what_needs_a_model_says_so(client):
    line = problem(client(models=()).post("/explain", json={"query": "wing", "document": "d1", "model": "one"}), 404)
    assert line == "this needs a model; start the service with one, or train one on the page"


def test_health_and_metrics(client):
    http = client()
    health = http.get("/health").json()
    assert [model["name"] for model in health["models"]] == ["one", "two"]
    assert health["documents"] == 60
    for path in ("/search?q=wing", "/search?q=wing", "/search", "/a", "/b", "/c"):
        http.get(path)
    text = http.get("/metrics").text
    assert 'ranksieve_requests_total{method="GET",route="/search",status="200"} 2.0' in text
    assert 'ranksieve_requests_total{method="GET",route="/search",status="422"} 1.0' in text
    assert 'ranksieve_requests_total{method="GET",route="other",status="404"} 3.0' in text
    assert 'ranksieve_request_duration_seconds_count{route="/search"} 3.0' in text
    assert "ranksieve_errors_total{" not in text


def test_failures_of_the_service_are_500_without_a_reason(client, monkeypatch):
    http = client()

    def fail(*_, **__):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("ranksieve.serve.engine.Engine.search", fail)
    assert problem(http.get("/search?q=x"), 500) == "the service failed; its log has the reason"
    assert 'ranksieve_errors_total{route="/search"} 1.0' in http.get("/metrics").text


def test_openapi_describes_the_routes(client):
    paths = client().get("/openapi.json").json()["paths"]
    assert {"/search", "/rerank", "/explain", "/judgements", "/health", "/metrics"} <= paths.keys()
    assert set(paths["/judgements"]) == {"get", "put"}
    assert "the score of a document depends on the others" in paths["/rerank"]["post"]["description"]


def test_stages_by_vectors_where_queries_have_some(client, folder, tmp_path):
    plain = client()
    assert plain.get("/health").json()["stages"] == ["bm25f"]
    assert problem(plain.get("/search?q=x&stage=dense"), 422) == "the stage is 'dense'; expected bm25f"
    documents = random_documents(60)
    with rs.Index.build(documents, tmp_path / "index", fields=["title", "body"], vectors="svd:4") as index:
        data = rs.retrieval.extract_features(
            rs.retrieval.Retriever(index, "hybrid"), QUERIES, judgements={"1": {"d3": 1}}, depth=50
        )
        rs.train(data, trees=3, leaves=4, min_docs=1).save(tmp_path / "model.txt")
        http = client(index=index.path, models=(tmp_path / "model.txt",))
        assert http.get("/health").json()["stages"] == ["bm25f", "hybrid", "dense"]
        for stage in ("dense", "bm25f", "hybrid"):
            found = http.get("/search", params={"q": TEXT, "model": "first-stage", "stage": stage}).json()["hits"]
            ours = search(index, TEXT, 10, stage)
            assert [(hit["document"], hit["score"], hit["rank"]) for hit in found] == ours
        with rs.Pipeline(index, tmp_path / "model.txt") as pipeline:
            found = http.get("/search", params={"q": TEXT, "k": 7}).json()["hits"]
            assert [(hit["document"], hit["score"], hit["rank"]) for hit in found] == pipeline.search(TEXT, 7)
            other = rs.Pipeline(index, tmp_path / "model.txt", stage="dense").difference()
            assert "warning" not in http.get("/search", params={"q": TEXT}).json()
            assert http.get("/search", params={"q": TEXT, "stage": "dense"}).json()["warning"] == other
            body = {"query": TEXT, "documents": index.ids.tolist()[:50]}
            assert "warning" not in http.post("/rerank", json=body).json()
            warning = http.post("/rerank", json=body | {"documents": index.ids.tolist()}).json()["warning"]
            assert warning == rs.Pipeline(index, tmp_path / "model.txt", depth=60).difference()
        page = http.get("/", params={"q": TEXT, "stage": "dense"}).text
        assert "<option selected>dense</option>" in page and 'data-stage="dense"' in page
        body = {"query": TEXT, "document": found[0]["document"], "stage": "dense"}
        assert http.post("/explain", json=body).json()["contributions"]


def test_vectors_of_queries_are_made_by_a_function(client, tmp_path):
    documents = random_documents(60)
    rows = np.random.default_rng(0).normal(size=(60, 2))
    (tmp_path / "encoder.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    with rs.Index.build(documents, tmp_path / "index", fields=["title", "body"], vectors=rows) as index:
        encode = lambda texts: [[len(text), 1.0] for text in texts]  # noqa: E731
        data = rs.retrieval.extract_features(
            rs.retrieval.Retriever(index, query_vectors=encode), QUERIES, judgements={"1": {"d3": 1}}
        )
        rs.train(data, trees=2, leaves=4, min_docs=1).save(tmp_path / "model.txt")
        http = client(index=index.path, models=(tmp_path / "model.txt",), encode=f"{tmp_path / 'encoder.py'}:encode")
        found = http.get("/search", params={"q": TEXT, "model": "first-stage", "stage": "dense"}).json()["hits"]
        ours = search(index, TEXT, 10, "dense", query_vectors=encode)
        assert [(hit["document"], hit["score"], hit["rank"]) for hit in found] == ours
        assert client(index=index.path, models=()).get("/health").json()["stages"] == ["bm25f"]
        with pytest.raises(ParameterError, match=r"the model model needs vectors of queries, .* give encode"):
            client(index=index.path, models=(tmp_path / "model.txt",))


STATISTICS = Path(__file__).parents[1] / "forest" / "formats" / "files" / "catboost_combinations.json"


def test_models_alone_score_texts_of_categories(client, tmp_path):
    rng = np.random.default_rng(0)
    brands = np.array(["ada", "bee", "cid"])[rng.integers(0, 3, 60)]
    frame = pd.DataFrame({"x": rng.random(60).astype(np.float32), "brand": pd.Categorical(brands)})
    data = rs.Dataset.from_arrays(frame, (brands == "bee") * 2, group=[30, 30])
    rs.train(data, trees=3, leaves=4, min_docs=1).save(tmp_path / "categories.txt")
    shutil.copy(STATISTICS, tmp_path / "statistics.json")
    http = client(index=None, judgements=None, models=(tmp_path / "categories.txt", tmp_path / "statistics.json"))
    rows = [[0.5, "bee"], [0.25, "ada"], [None, None], [0.5, "none"]]
    answer = http.post("/rerank", json={"features": rows, "model": "categories"})
    given = pd.DataFrame(rows, columns=["x", "brand"]).astype({"x": np.float32})
    expected = rs.load(tmp_path / "categories.txt").predict(given)
    assert answer.json()["scores"] == expected.tolist() and len(set(expected.tolist())) > 1
    content = json.loads(STATISTICS.read_text())
    documents = [[price, *map(str, texts)] for price, *texts in content["documents"]]
    answer = http.post("/rerank", json={"features": documents, "model": "statistics"})
    np.testing.assert_allclose(answer.json()["scores"], content["scores"], atol=1e-6)
    for content, kind, message in (
        (b'{"features": [[0.5, 1]]}', "json", "'brand' is categorical in the model, with categories such as"),
        (b"\0" * 8, "octet-stream", "and holds 0.0 here; give JSON with a text for it, or null"),
        (b'{"features": [["x", "ada"]]}', "json", "the features are not lists of numbers"),
        (b'{"features": [[0.5, "ada"], [0.5]]}', "json", "the features are not lists of 2 values"),
        (b'{"features": []}', "json", "the features are not lists of 2 values"),
        (b'{"features": [[1e999, "ada"]]}', "json", "a feature is infinite"),
    ):
        answer = http.post("/rerank", content=content, headers={"content-type": f"application/{kind}"})
        assert message in problem(answer, 422)


def test_models_alone_score_vectors_and_say_what_needs_an_index(client, folder, tmp_path):
    rs.train(rs.synth.cubic(6), trees=2, leaves=4, min_docs=1).save(tmp_path / "other.txt")  # no index has its features
    http = client(index=None, judgements=None, models=(folder / "one.txt", tmp_path / "other.txt"))
    health = http.get("/health").json()
    assert health["documents"] == 0 and health["stages"] == [] and len(health["models"]) == 2
    vectors = np.random.default_rng(0).random((3, 50)).astype(np.float32)
    model = rs.load(tmp_path / "other.txt")
    answer = http.post("/rerank", json={"features": vectors.tolist(), "model": "other"})
    assert answer.json()["scores"] == model.predict(vectors).tolist()
    answer = http.post(
        "/rerank?model=other", content=vectors.tobytes(), headers={"content-type": "application/octet-stream"}
    )
    assert answer.json()["scores"] == model.predict(vectors).tolist()
    refused = [
        http.get("/search?q=wing"),
        http.post("/rerank", json={"query": "wing", "documents": ["d1"]}),
        http.post("/explain", json={"query": "wing", "document": "d1"}),
        http.post("/training"),
        http.get("/"),
        http.get("/queries"),
        http.get("/train"),
        http.get("/next"),
    ]
    assert [answer.status_code for answer in refused] == [409] * 8
    assert "without an index; it scores feature vectors alone" in http.get("/").text
    assert http.get("/docs").status_code == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to serve; give the folder of an index, or model"),
        ({"models": (Path("m.txt"),), "judgements": Path("grades.txt")}, "judgements needs an index"),
        ({"models": (Path("m.txt"),), "title": "name"}, "title needs an index"),
    ],
)
def test_what_needs_an_index_is_refused_without_one(options, message):
    with pytest.raises(ParameterError, match=message):
        Settings(**options)
