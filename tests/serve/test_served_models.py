"""Models that are replaced while the service runs."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

import pytest

import ranksieve as rs
from corpus_samples import QUERIES
from ranksieve.errors import ModelError, ParameterError
from ranksieve.retrieval.index import Index
from ranksieve.serve.served_models import ModelStore

TEXT = QUERIES["1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("ranksieve.serve.served_models.SECONDS", 0.05)


@pytest.fixture
def copy(folder, tmp_path):
    path = tmp_path / "model.txt"
    shutil.copy(folder / "one.txt", path)
    return path


def scores(http) -> list[float]:
    answer = http.get("/search", params={"q": TEXT})
    assert answer.status_code == 200
    return [hit["score"] for hit in answer.json()["hits"]]


def wait_for(condition) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_changed_file_is_read_again_and_a_bad_one_reported(client, folder, copy):
    http = client(models=(copy,))
    one = scores(http)
    os.replace(shutil.copy(folder / "two.txt", copy.with_suffix(".new")), copy)
    wait_for(lambda: scores(http) != one)
    two = scores(http)
    copy.write_text("nonsense")
    wait_for(lambda: http.get("/health").json()["models"][0]["error"])
    assert scores(http) == two
    copy.unlink()
    wait_for(lambda: "No such file" in http.get("/health").json()["models"][0]["error"])
    shutil.copy(folder / "one.txt", copy)
    wait_for(lambda: scores(http) == one)
    assert http.get("/health").json()["models"][0]["error"] is None


def test_sighup_reads_at_once(folder, copy, monkeypatch):
    monkeypatch.setattr("ranksieve.serve.served_models.SECONDS", 1000.0)
    with Index(folder / "index") as index:
        store = ModelStore(index, [copy])
        store.start()
        before = signal.signal(signal.SIGHUP, lambda *_: store.wake())
        try:
            shutil.copy(folder / "two.txt", copy)
            os.kill(os.getpid(), signal.SIGHUP)
            wait_for(lambda: store.find("model").model.size == "3 trees")
        finally:
            signal.signal(signal.SIGHUP, before)
            store.close()


def test_requests_in_flight_finish_with_the_old_model(client, folder, copy, monkeypatch):
    http = client(models=(copy,))
    expected = scores(http)
    begun, go_on = threading.Event(), threading.Event()
    predict = rs.Forest.predict

    def slow(self, *given, **named):
        begun.set()
        go_on.wait(10)
        return predict(self, *given, **named)

    found: list[list[float]] = []
    monkeypatch.setattr(rs.Forest, "predict", slow)
    thread = threading.Thread(target=lambda: found.append(scores(http)))
    thread.start()
    begun.wait(10)
    shutil.copy(folder / "two.txt", copy)
    wait_for(lambda: http.get("/health").json()["models"][0]["size"] == "3 trees")
    go_on.set()
    thread.join()
    assert found == [expected]
    assert scores(http) != expected


def test_models_of_a_folder_come_and_bad_ones_are_left_out(client, folder, tmp_path):
    trained = tmp_path / "trained"
    http = client(trained=trained)
    trained.mkdir()
    (trained / "bad.txt").write_text("nonsense")
    shutil.copy(folder / "two.txt", trained / "new.txt")
    wait_for(lambda: len(http.get("/health").json()["models"]) == 3)
    assert http.get("/health").json()["models"][2]["name"] == "new"
    assert http.get("/search", params={"q": TEXT, "model": "bad"}).status_code == 404


def test_bad_models_are_refused_at_the_start(client, folder, tmp_path):
    with pytest.raises(ParameterError, match="another model is named 'one'"):
        client(models=(folder / "one.txt", folder / "one.txt"))
    rs.train(rs.synth.cubic(5), trees=1, leaves=2).save(tmp_path / "other.txt")
    with pytest.raises(ModelError, match="the model needs"):
        client(models=(tmp_path / "other.txt",))


def test_requests_of_many_threads_get_their_own_answers(client):
    http = client()
    expected = {text: http.get("/search", params={"q": text}).json() for text in QUERIES.values()}
    wrong: list[str] = []

    def ask(text: str) -> None:
        for _ in range(10):
            wrong.extend([text] * (http.get("/search", params={"q": text}).json() != expected[text]))

    threads = [threading.Thread(target=ask, args=(text,)) for text in [*QUERIES.values()] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
