"""`build_index` when it is killed, and when two of them write to the same place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from corpus_samples import folder_bytes, random_documents
from ranksieve.errors import DataError
from ranksieve.retrieval import building
from ranksieve.retrieval.index import Index

# Builds an index again and again, alternately of two corpora, and reports when it has begun.
ENDLESS = """
import itertools, json, sys
from ranksieve.retrieval.index import Index
folder = sys.argv[1]
for number in itertools.count():
    Index.build(f"{folder}/{number % 2}.jsonl", f"{folder}/index", replace=True)
    print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_index_that_is_replaced_by_programs_that_are_killed_can_always_be_opened(tmp_path):
    expected = []
    for number, size in enumerate((40, 70)):
        corpus = tmp_path / f"{number}.jsonl"
        corpus.write_text("\n".join(map(json.dumps, random_documents(size, number))))
        expected.append(folder_bytes(Index.build(corpus, tmp_path / f"expected{number}").path))
    for attempt in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as program:
            assert program.stdout is not None and program.stdout.readline()
            for _ in range(20 + 7 * attempt):
                Index(tmp_path / "index").close()  # there is one at every moment, and it is whole
            os.kill(program.pid, signal.SIGKILL)
        assert folder_bytes(tmp_path / "index") in expected
    Index.build(tmp_path / "0.jsonl", tmp_path / "index", replace=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("0.jsonl", "1.jsonl", "expected0", "expected1", "index"),
    }  # nothing is left of the programs that were killed


def test_two_at_once_do_not_replace_each_other(tmp_path, monkeypatch):
    both_wait = threading.Barrier(2)
    merge_runs = building.merge_runs

    def merge_together(*arguments):
        both_wait.wait(30)
        return merge_runs(*arguments)

    monkeypatch.setattr(building, "merge_runs", merge_together)
    errors: list[Exception] = []

    def build(size: int) -> None:
        try:
            Index.build(random_documents(size), tmp_path / "index")
        except DataError as error:
            errors.append(error)

    threads = [threading.Thread(target=build, args=(size,)) for size in (30, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1 and "exists" in str(errors[0])
    assert Index(tmp_path / "index").n_docs in (30, 50)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_replaced_folder_gets_its_name_back(tmp_path):
    """Where folders cannot be exchanged in one step, a program may be killed between two renames."""
    folder = Index.build(random_documents(30), tmp_path / "index").path
    folder.rename(tmp_path / ".index.abc.ranksieve-tmp.old")
    assert Index(folder).n_docs == 30
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_symbolic_links_to_an_index_are_replaced(tmp_path):
    Index.build(random_documents(30), tmp_path / "real")
    Path(tmp_path / "link").symlink_to("real")
    assert Index.build(random_documents(50), tmp_path / "link", replace=True).n_docs == 50
    assert Index(tmp_path / "link").n_docs == 50


def test_a_folder_that_is_not_an_index_is_never_replaced(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    for replace in (False, True):
        with pytest.raises(DataError, match="is not an index; choose another name"):
            Index.build(random_documents(5), tmp_path / "notes", replace=replace)
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a.txt"]
