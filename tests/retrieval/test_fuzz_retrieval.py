"""Damaged index folders, runs, judgements and other files of retrieval: an error of ours, or a right answer."""

from __future__ import annotations

import io
import json
import math
import warnings

import numpy as np
import pytest

from corpus_samples import QUERIES, random_documents
from damage import damaged
from ranksieve.errors import DataError, RanksieveError, RanksieveWarning
from ranksieve.retrieval import index_header, storage
from ranksieve.retrieval.corpus import read_documents
from ranksieve.retrieval.feature_logs import read_feature_log
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.run_evaluation import evaluate_run
from ranksieve.retrieval.runs import read_judgements, read_run, write_run
from ranksieve.retrieval.vector_files import VectorTable, as_ids


@pytest.mark.parametrize("large", [False, True])
def test_index_folders(fuzz_cases, large, tmp_path, monkeypatch):
    if large:  # blocks are checked when they are used
        monkeypatch.setattr(storage, "CHECKED_AT_ONCE", 0)
        monkeypatch.setattr(storage, "BLOCK_BYTES", 64)
    folder = Index.build(random_documents(80), tmp_path / "index", fields=["title", "body"], numbers=["price"]).path
    expected = extract_features(Index(folder), QUERIES, depth=20)
    files, refused = sorted(folder.iterdir()), 0
    for rng in fuzz_cases(200):
        path = files[rng.integers(0, len(files))]
        content = path.read_bytes()
        if rng.integers(0, 10):
            path.write_bytes(damaged(content, rng))
        else:
            path.unlink()
        try:
            with Index(folder) as index:
                found = extract_features(index, QUERIES, depth=20)
            np.testing.assert_array_equal(found.features, expected.features)
            assert found.lists.doc_ids.tolist() == expected.lists.doc_ids.tolist()
        except DataError as error:
            assert "index the corpus again" in str(error) or "is not an index" in str(error)
            refused += 1
        path.write_bytes(content)
    assert refused


def test_headers_that_were_signed_again(fuzz_cases, tmp_path):
    folder = Index.build(random_documents(20), tmp_path / "index", fields=["title", "body"], vectors="svd:2").path
    original = json.loads((folder / "header.json").read_text())
    values = [None, True, -1, 0, 1, 2.5, 1 << 63, 1 << 80, math.inf, math.nan, "", "x", [], {}, [[]], {"a": 1}]
    for rng in fuzz_cases(200):
        header = json.loads(json.dumps(original))
        del header["checksum"]
        place, key = header, str(rng.choice(list(header)))
        while isinstance(place[key], dict | list) and len(place[key]) and rng.integers(0, 3):
            place = place[key]
            key = rng.choice(list(place)) if isinstance(place, dict) else int(rng.integers(0, len(place)))
        place[key] = values[rng.integers(0, len(values))]
        text = json.dumps({**header, "checksum": index_header._header_checksum(header)})
        (folder / "header.json").write_text(text)
        try:
            with Index(folder) as index:
                repr(index), index.describe()
        except DataError:
            continue


RUN = "".join(
    f"{query} Q0 d{(query * 7 + n * 3) % 20} {n} {20 - n / 2} x\n" for query in (1, 2, 7) for n in range(1, 9)
)
QRELS = "".join(f"{query} 0 d{n} {n % 3}\n" for query in (1, 2, 7) for n in range(9))


def test_runs(fuzz_cases, tmp_path):
    path, judgements = tmp_path / "run", {"1": {"d7": 1.0}}
    for rng in fuzz_cases(200):
        content = damaged(RUN.encode(), rng)
        path.write_bytes(content)
        try:
            run = read_run(path)
        except RanksieveError as error:
            assert str(path) in str(error)
            continue
        rows = [line.split() for line in content.decode("utf-8-sig").split("\n") if line.strip()]
        assert len(run) == len(rows)
        for id, docs, scores in run.lists():
            ranked = sorted((row for row in rows if row[0] == id), key=lambda row: (-float(row[4]), int(row[3])))
            assert docs.tolist() == [row[2] for row in ranked]
            assert scores.tolist() == [float(row[4]) for row in ranked]
        write_run(run, tmp_path / "again")
        assert read_run(tmp_path / "again").doc_ids.tolist() == run.doc_ids.tolist()
        if "1" in run.query_ids:
            assert 0 <= evaluate_run({"run": run}, judgements).mean() <= 1


def test_judgements(fuzz_cases, tmp_path):
    path = tmp_path / "qrels"
    for rng in fuzz_cases(200):
        content = damaged(QRELS.encode(), rng)
        path.write_bytes(content)
        try:
            found = read_judgements(path)
        except RanksieveError as error:
            assert str(path) in str(error)
            continue
        expected: dict[str, dict[str, float]] = {}
        for line in content.decode("utf-8-sig").split("\n"):
            if line.strip():
                cells = line.split()
                expected.setdefault(cells[0], {})[cells[-2]] = max(float(cells[-1]), 0.0)
        assert found == expected


def array_file(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def read_vectors(path):
    table = VectorTable.of(path)
    return table.take(np.arange(table.n_rows))


LOGGED = [{"_id": f"d{n}", "fields": {"_ltrlog": [{"log": [{"name": "bm25", "value": n / 2}]}]}} for n in range(4)]
READERS = {
    "corpus": ("\n".join(map(json.dumps, random_documents(6))).encode(), lambda path: [*read_documents(path)]),
    "table": (b"id\ttitle\tbody\n" + b"d1\tred\twine\n" * 3, lambda path: [*read_documents(path)]),
    "queries": (b"1\tred wine\n2\twhite\n", read_queries),
    "first stage": (json.dumps({"first_stage": FirstStage(weights={"a": 2.0}).used()}).encode(), FirstStage.load),
    "vectors": (array_file(np.eye(4, dtype=np.float32)), read_vectors),
    "half precision": (array_file(np.eye(4, dtype=np.float16)), read_vectors),
    "ids of vectors": (b"d1\nd2\nd3\n", as_ids),
    "feature log": (json.dumps({"qid": "1", "hits": {"hits": LOGGED}}).encode(), read_feature_log),
    "Solr's log": (
        json.dumps({"qid": "1", "response": {"docs": [{"id": "a", "[features]": "bm25=1.5,age=2"}]}}).encode(),
        read_feature_log,
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_other_files(fuzz_cases, tmp_path, name):
    (content, reader), path = READERS[name], tmp_path / "file"
    path.write_bytes(content)
    reader(path)
    for number, rng in enumerate(fuzz_cases(150)):
        path.write_bytes(damaged(content, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RanksieveWarning)
                read = reader(path)
        except RanksieveError as error:
            assert str(path) in str(error), f"case {number}: {error}"
            continue
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}") from error
        if isinstance(read, FirstStage):
            assert FirstStage(**read.as_dict()) == read and str(read)
