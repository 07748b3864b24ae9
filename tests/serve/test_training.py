"""Training from the judgements."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.generated import generate_texts
from ranksieve.retrieval.runs import Run
from ranksieve.serve.training_task import Task, end_training, is_training, train_model, with_sampled_negatives


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> tuple[Path, dict, dict]:
    made = generate_texts(300, 12, seed=1)
    path = tmp_path_factory.mktemp("train") / "index"
    rs.Index.build(made.documents, path, fields=["title", "text"], numbers=["rating"]).close()
    return path, made.queries, made.judgements


def task(collection, folder: Path, **params) -> Task:
    path, queries, judgements = collection
    return Task(path, folder, judgements, queries, FirstStage(), 60, {"trees": 4, "leaves": 4, **params})


def test_a_model_is_trained_measured_and_saved_under_a_new_name(collection, tmp_path):
    reports = []
    first = train_model(task(collection, tmp_path / "models"), reports.append)
    second = train_model(task(collection, tmp_path / "models"), reports.append)
    assert [first.name, second.name] == ["trained-1.txt", "trained-2.txt"]
    model = rs.load(first)
    seen, held_out = model.info["judged_queries"]["train"], model.info["judged_queries"]["test"]
    assert sorted([*seen, *held_out]) == sorted(collection[1])
    with rs.Index(collection[0]) as index:
        run = rs.Pipeline(index, model).rerank({id: collection[1][id] for id in held_out})
    judged = {id: collection[2][id] for id in held_out}
    places = Run.from_lists((id, docs, -np.arange(len(docs))) for id, docs, _ in run.lists())
    assert model.info["held_out"]["model"] == pytest.approx(rs.retrieval.evaluate_run({"it": places}, judged).mean())
    shares = [report.done for report in reports if report.state == "running"]
    assert shares[: len(shares) // 2] == sorted(shares[: len(shares) // 2])
    assert (reports[-1].state, reports[-1].model) == ("done", "trained-2")


def test_as_many_unjudged_documents_as_judged_ones_are_negatives(collection):
    path, queries, judgements = collection
    zeros, listed = list(judgements)[:2]
    with rs.Index(path) as index:
        data = rs.retrieval.extract_features(index, {id: queries[id] for id in (zeros, listed)}, depth=50)
    ids = data.lists.doc_ids
    grades = {zeros: {ids[3]: 0.0, ids[5]: 2.0, "gone": 1.0}, listed: {ids[data.offsets[1] + 1]: 1.0}}
    found = with_sampled_negatives(data, grades)
    assert found.lists.sizes.tolist() == [4, data.lists.sizes[1]]
    assert {ids[3], ids[5]} < set(found.lists.doc_ids[:4])
    again, other = with_sampled_negatives(data, grades), with_sampled_negatives(data, grades, seed=1)
    assert again.lists.doc_ids.tolist() == found.lists.doc_ids.tolist() != other.lists.doc_ids.tolist()


def test_too_few_judgements_are_refused(collection, tmp_path):
    path, queries, judgements = collection
    few = {id: judgements[id] for id in list(judgements)[:9]} | {"unknown": {"doc-0001": 1.0}}
    for grades in (few, {}, {id: dict.fromkeys(some, 0.0) for id, some in judgements.items()}):
        with pytest.raises(DataError, match="training needs 10; judge more"):
            train_model(Task(path, tmp_path, grades, queries, FirstStage(), 60, {}), lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_training_in_the_background(client, collection, tmp_path):
    path, queries, judgements = collection
    (tmp_path / "queries.tsv").write_text("".join(f"{id}\t{text}\n" for id, text in queries.items()))
    lines = (f"{id} 0 {doc} {grade:g}\n" for id, some in judgements.items() for doc, grade in some.items())
    (tmp_path / "qrels.txt").write_text("".join(lines))
    given = {"index": path, "models": (), "queries": tmp_path / "queries.tsv", "training": {"trees": 3, "leaves": 4}}
    http = client(**given)
    assert http.get("/training").json()["state"] == "idle"
    assert http.post("/training").status_code == 202
    assert http.post("/training").status_code == 409
    end = time.monotonic() + 600  # kernels may have to be compiled
    while (state := http.get("/training").json())["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert state["state"] == "done", state
    assert [model["name"] for model in http.get("/health").json()["models"]] == ["trained-1"]
    assert "trained-1" in http.get("/train").text
    text = http.get("/queries").text
    assert "These are the 2 queries that <strong>trained-1</strong> was not trained on." in text
    assert "is not known" not in text
    following = re.search(r'href="([^"]*)">See it on the queries it was not trained on', http.get("/train").text)[1]
    assert http.get(following).text.count('<th scope="row">') == 2
    assert text.count('<th scope="row">') == 2
    assert http.get("/queries?unseen=0").text.count('<th scope="row">') == 12
    endless = {"trees": 1_000_000, "leaves": 4, "early_stopping": 0}
    http = client(**{**given, "training": endless})
    assert http.post("/training").status_code == 202
    other = client(**given)  # as another process of the same service
    assert other.get("/health").json()["models"][0]["name"] == "trained-1"
    while "starting" in (state := http.get("/training").json())["line"]:
        time.sleep(0.05)
    assert state["state"] == "running"
    assert other.delete("/training").json()["line"] == "training was stopped"
    assert http.get("/training").json()["line"] == "training was stopped"
    assert not is_training(tmp_path / "qrels.txt.models")
    assert not end_training(tmp_path / "qrels.txt.models")
    assert http.post("/training").status_code == 202
    assert http.delete("/training").json()["line"] == "training was stopped"


def test_indexes_with_vectors_and_no_encoder_train_without_them(collection, tmp_path):
    _, queries, judgements = collection
    documents = generate_texts(300, 12, seed=1).documents
    rows = np.random.default_rng(0).normal(size=(len(documents), 2))
    rs.Index.build(documents, tmp_path / "index", fields=["title", "text"], vectors=rows).close()
    (tmp_path / "encoder.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    for encode, expected in ((None, False), (f"{tmp_path / 'encoder.py'}:encode", True)):
        params = {"trees": 1, "leaves": 4}
        task = Task(tmp_path / "index", tmp_path, judgements, queries, FirstStage(), 20, params, encode)
        model = rs.load(train_model(task, lambda _: None))
        assert ("dense.cosine" in model.feature_names) == expected


def test_a_process_that_was_killed_leaves_no_number_to_end(tmp_path):
    lock = tmp_path / ".training.lock"
    lock.write_text("123456")
    assert not is_training(tmp_path)
    assert lock.read_text() == ""
    lock.write_text("123456")
    assert not end_training(tmp_path)
