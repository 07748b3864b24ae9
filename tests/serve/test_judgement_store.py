"""Grades on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import read_judgements
from ranksieve.serve.judgement_store import JudgementStore, normal_text


def store(folder: Path, **options) -> JudgementStore:
    return JudgementStore(folder / "qrels.txt", folder / "own.tsv", **options)


def test_grades_are_on_disk_and_can_be_undone(tmp_path):
    ours = store(tmp_path)
    first = ours.put("red  wine", "d1", 3)
    assert first.previous is None
    assert ours.put("red wine", "d1", 0) == (first.query_id, 3.0)
    ours.put("rosé", "d2", 4)
    assert read_judgements(tmp_path / "qrels.txt") == {first.query_id: {"d1": 0.0}, ours._id_of("rosé"): {"d2": 4.0}}
    assert list(read_queries(tmp_path / "own.tsv").values()) == ["red wine", "rosé"]
    assert store(tmp_path).grades() == ours.grades()
    assert ours.put("rosé", "d2", None).previous == 4.0
    assert ours.put("red wine", "d1", None).previous == 0.0
    assert (tmp_path / "qrels.txt").read_text() == ""
    assert list(read_queries(tmp_path / "own.tsv").values()) == ["red wine", "rosé"]
    assert store(tmp_path).grades() == {}
    assert store(tmp_path).put("red wine", "d1", 1).query_id == first.query_id


def test_given_files_are_kept(tmp_path):
    (tmp_path / "queries.tsv").write_text("7\tred wine\n8\twhite wine\n10\tbeer\n")
    (tmp_path / "qrels.txt").write_text("query-id corpus-id score\n7 d1 2\n7 d2 -1\n9 d3 0.5\n")
    ours = store(tmp_path, queries=tmp_path / "queries.tsv")
    assert ours.grades() == {"7": {"d1": 2.0, "d2": 0.0}, "9": {"d3": 0.5}}
    assert ours.grades_of("red wine") == {"d1": 2.0, "d2": 0.0}
    assert ours.put("white\twine", "d1", 1).query_id == "8"
    assert ours.put("red wine", "d2", 1.23456789).previous == -1.0
    assert ours.put("red wine", "d2", -1.0).previous == 1.23456789
    assert ours.grades_of("red wine") == {"d1": 2.0, "d2": 0.0}
    assert ours.put("red wine", "d2", None).previous == -1.0
    assert (tmp_path / "qrels.txt").read_text() == "7 0 d1 2\n9 0 d3 0.5\n8 0 d1 1\n"
    assert (tmp_path / "queries.tsv").read_text() == "7\tred wine\n8\twhite wine\n10\tbeer\n"
    assert read_queries(tmp_path / "own.tsv") == {"7": "red wine", "8": "white wine"}


@given(st.lists(st.tuples(st.text(max_size=9), st.sampled_from(["d1", "d2"]), st.sampled_from([None, 0, 2, 4]))))
@settings(max_examples=25, deadline=None)
def test_a_store_is_a_dict_that_survives(tmp_path_factory, changes):
    folder, expected = tmp_path_factory.mktemp("store"), {}
    ours = store(folder)
    for text, doc, grade in changes:
        try:
            normal = normal_text(text)
        except ParameterError:
            normal = ""
        if not normal:
            with pytest.raises(ParameterError):
                ours.put(text, doc, grade)
            continue
        assert ours.put(text, doc, grade).previous == expected.get((normal, doc))
        expected.pop((normal, doc), None)
        if grade is not None:
            expected[normal, doc] = float(grade)
    again = store(folder)
    texts = again.texts()
    found = {(texts[id], doc): grade for id, some in again.grades().items() for doc, grade in some.items()}
    assert found == expected


def test_several_threads_and_stores_lose_nothing(tmp_path):
    stores = [store(tmp_path), store(tmp_path)]

    def judge(number: int) -> None:
        for doc in range(15):
            stores[number % 2].put(f"query {number}", f"d{doc}", doc % 5)

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grades = store(tmp_path).grades()
    assert len(grades) == 4
    assert all(some == {f"d{doc}": doc % 5 for doc in range(15)} for some in grades.values())


KILLED = """
import sys
from pathlib import Path
from ranksieve.serve.judgement_store import JudgementStore
folder = Path(sys.argv[1])
store = JudgementStore(folder / "qrels.txt", folder / "own.tsv")
for number in range(10**6):
    store.put(f"query {number % 7}", f"d{number}", number % 5)
    print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_what_was_confirmed_survives_kill_9(tmp_path):
    confirmed = -1
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            for _ in range(25):
                confirmed = int(child.stdout.readline())
            os.kill(child.pid, signal.SIGKILL)
            confirmed = max([confirmed, *map(int, child.stdout.read().split())])
        ours = store(tmp_path)
        found = {doc: grade for some in ours.grades().values() for doc, grade in some.items()}
        assert all(found[f"d{number}"] == number % 5 for number in range(confirmed + 1))
        assert set(ours.grades()) <= set(ours.texts())


def test_a_full_disk_loses_no_grade(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    ours = store(tmp_path)
    ours.put("wine", "d1", 1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        with pytest.raises(DataError, match=r"writing failed \(File too large\); nothing was changed"):
            ours.put("wine", "d2", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    ours.put("wine", "d2", 1)
    assert store(tmp_path).grades_of("wine") == {"d1": 1, "d2": 1}


def test_damaged_files_are_refused_and_left_alone(tmp_path):
    ours = store(tmp_path)
    ours.put("wine", "d1", 1)
    (tmp_path / "qrels.txt").write_text("q 0 d1 1\nbroken\n")
    with pytest.raises(DataError, match=r"qrels.txt:2: has 1 column"):
        ours.put("wine", "d2", 1)
    assert (tmp_path / "qrels.txt").read_text() == "q 0 d1 1\nbroken\n"
    (tmp_path / "qrels.txt").write_text("q 0 d1 1\nq 0 d1 2\n")
    with pytest.raises(DataError, match=r"qrels.txt:2: 'd1' has two different grades"):
        ours.grades()
    with pytest.raises(DataError, match="cannot write there"):
        store(tmp_path / "missing")


def test_edits_by_others_are_seen(tmp_path):
    ours = store(tmp_path)
    version = ours.version
    (tmp_path / "qrels.txt").write_text("q 0 d1 1\n")
    assert ours.grades() == {"q": {"d1": 1.0}}
    assert ours.version > version


def test_grades_are_those_of_the_page_or_of_the_file(tmp_path):
    ours = store(tmp_path)
    ours.put("wine", "d1", 4)
    for grade in (5, -1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="expected a number from 0 to 4, or null to remove it"):
            ours.put("wine", "d1", grade)
    with (tmp_path / "qrels.txt").open("a") as file:
        file.write("7 0 d1 -2\n7 0 d2 9\n")
    (tmp_path / "queries.tsv").write_text("7\tred wine\n")
    ours = store(tmp_path, queries=tmp_path / "queries.tsv")
    assert ours.put("red wine", "d1", 3).previous == -2 and ours.put("red wine", "d2", 0).previous == 9
    assert ours.put("red wine", "d1", -2).previous == 3 and ours.put("red wine", "d2", 9).previous == 0  # undone
    with pytest.raises(ParameterError, match="the grade is 10; expected a number from -2 to 9"):
        ours.put("wine", "d1", 10)
