"""`index`, `retrieve` and `features`: from a corpus to training data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ranksieve as rs

TEXTS = ["red wine from Spain", "white wine", "red roses", "a red car and a white car", "wine glasses, red"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpus.jsonl, queries.tsv, qrels.txt and an index."""
    folder = tmp_path_factory.mktemp("corpus")
    documents = [
        {"id": f"d{n}", "title": text.split()[-1], "text": text, "price": n, "path": f"shop/item_{n}.txt"}
        for n, text in enumerate(TEXTS)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.tsv").write_text("1\tred wine\n2\twhite car\n3\t\n4\tzebra\n")
    (folder / "qrels.txt").write_text("1 0 d0 2\n1 0 d4 1\n2 0 d3 1\n2 0 gone 1\n")
    return folder


@pytest.fixture(scope="module")
def index(corpus: Path, run) -> Path:
    outcome = run(
        *("index", corpus / "corpus.jsonl", "--out", corpus / "index", "--number", "price"),
        *("--field", "title", "--field", "text:nostop", "--field", "file=path~[^/]+$"),
    )
    assert outcome.code == 0, outcome.output
    assert "5 documents" in outcome.output
    return corpus / "index"


def test_retrieve_writes_a_run(corpus, index, run, tmp_path):
    outcome = run("retrieve", index, corpus / "queries.tsv", "--out", tmp_path / "run.trec", "--depth", 3)
    assert outcome.code == 0, outcome.output
    assert "1 queries are empty" in outcome.output
    assert "1 queries have no word that occurs in the index" in outcome.output
    lines = (tmp_path / "run.trec").read_text().splitlines()
    assert lines[0].split()[:4] == ["1", "Q0", "d4", "1"]
    assert lines[0].endswith("bm25f")
    assert rs.read_run(tmp_path / "run.trec").n_queries == 2


def test_models_weights_and_tuning(corpus, index, run, tmp_path):
    out = tmp_path / "run.trec"
    common = ("retrieve", index, corpus / "queries.tsv", "--out", out)
    assert run(*common, "--model", "dirichlet", "--set", "mu=50", "--weights", "title=2,file=0").code == 0
    outcome = run(*common, "--tune", corpus / "qrels.txt", "--set", "b.title=0.1,k1=3", "--metric", "map")
    assert outcome.code == 0, outcome.output
    assert "map" in outcome.output and "→" in outcome.output
    for flags, message in (
        (("--set", "k9=1"), "--set has no 'k9'"),
        (("--weights", "title"), "expected name=number"),
        (("--model", "bm99"), "unknown model"),
    ):
        refused = run(*common, *flags)
        assert refused.code == 2
        assert message in refused.output


def test_features_are_listed(index, run):
    outcome = run("features", index, "--list")
    assert "bm25.title" in outcome.output and "number.price" in outcome.output
    some = run("features", index, "--list", "--select", "bm25*.title")
    assert "3 features" in some.output and "nearness" not in some.output


def test_features_make_training_data(corpus, index, run, tmp_path):
    out = tmp_path / "data.parquet"
    outcome = run("features", index, corpus / "queries.tsv", "--qrels", corpus / "qrels.txt", "--out", out)
    assert outcome.code == 0, outcome.output
    for remark in ("1 judgements are of documents that are not in the index (gone)", "2 queries have no judgements"):
        assert remark in outcome.output
    data = rs.read(out)
    assert data.n_queries == 2 and (data.labels > 0).sum() == 3
    run("retrieve", index, corpus / "queries.tsv", "--out", tmp_path / "run.trec", "--depth", 2)
    again = run(
        "features", index, corpus / "queries.tsv", "--run", tmp_path / "run.trec", "--out", out, "-s", "*.title"
    )
    assert again.code == 0, again.output
    assert rs.read(out).n_docs == 4
    refused = run("features", index, corpus / "queries.tsv")
    assert refused.code == 2 and "--out" in refused.output


def test_index_says_what_is_wrong(corpus, run, tmp_path):
    for arguments, message in (
        ((corpus / "corpus.jsonl", "--memory", "lots"), "expected a size such as 512M"),
        ((corpus / "corpus.jsonl", "--stop", "nofile"), "--stop is 'nofile'"),
        ((corpus / "corpus.jsonl", "--field", "body"), "no document has the field 'body'"),
        ((tmp_path / "missing.jsonl",), "no such file"),
    ):
        outcome = run("index", *arguments, "--out", tmp_path / "index")
        assert outcome.code == 2
        assert message in outcome.output
    (tmp_path / "stop.txt").write_text("red\nwine\n")
    assert run("index", corpus / "corpus.jsonl", "--stop", tmp_path / "stop.txt", "-o", tmp_path / "index").code == 0
    assert rs.Index(tmp_path / "index").search("red wine") == []
