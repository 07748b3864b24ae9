"""`ranksieve explain`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from rich.console import Console

import ranksieve as rs
from ranksieve.cli import console


def test_a_query_is_explained(files, run, model):
    outcome = run("explain", model, files / "test.txt", "--query", 301, "--top", 3)
    assert outcome.code == 0, outcome.output
    found = rs.explain(rs.load(model), rs.read(files / "test.txt"), 301)
    best = found.order[0]
    line = next(line for line in outcome.output.splitlines() if line.startswith("│ 1 "))
    assert found.documents[best] in line and f"{found.scores[best]:.4f}" in line
    assert "Without the feature" in outcome.output
    assert "the first 3 of 12 documents; --top shows more" in outcome.output
    assert "the first 3 of 5 features; --top shows more" in outcome.output
    labels, scores = found.labels, found.scores
    now = rs.metrics.parse_metric("ndcg@10").per_query(labels, scores, np.array([0, len(scores)]))[0]
    assert "loss of ndcg@10" in outcome.output and f" ndcg@10 with all features: {now:.4f}\n" in outcome.output
    first = int(np.argmax(found.contributions.std(axis=0)))
    after = rs.metrics.parse_metric("ndcg@10").per_query(
        labels, found.scores_without(first), np.array([0, len(scores)])
    )[0]
    line = next(line for line in outcome.output.splitlines() if line.startswith(f"│ f{first + 1} "))
    assert f"{now - after:+.4f} │" in line  # a loss is positive, as that by shuffling


LONG = {"feature": "relative.bm25_flat.description_of_product_", "id": "https://www.example.org/catalogue/items/"}
WAYS = {
    "importance": [],
    "query": ["--query", 1, "--top", 3],
    "documents": ["--query", 1, "--above", 1, "--below", 2],
    "drop": ["--query", 1, "--drop", LONG["feature"] + "0"],
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Data with long names of features and documents, and a model of it."""
    folder, cubic = tmp_path_factory.mktemp("wide"), rs.synth.cubic(8)
    ids = [f"{LONG['id']}{n}" for n in range(cubic.n_docs)]
    data = rs.Dataset.from_arrays(cubic.features, cubic.labels, group=[50] * 8, doc_ids=ids)
    data = data.with_features([f"{LONG['feature']}{n}" for n in range(50)])
    rs.io.write_parquet(data, folder / "data.parquet")
    rs.train(data, trees=5, verbose=False).save(folder / "model.txt")
    return folder / "model.txt", folder / "data.parquet"


@pytest.mark.parametrize("way", WAYS)
def test_long_names_take_several_lines_of_a_terminal_and_are_not_cut(run, monkeypatch, wide, way):
    expected = set(re.findall(r"(?:relative|https)[\w./:]+", run("explain", *wide, *WAYS[way]).output))
    monkeypatch.setattr(console, "output", lambda: Console(highlight=False, width=100))
    lines = run("explain", *wide, *WAYS[way]).output.splitlines()
    assert max(map(len, lines)) <= 100 and not any("…" in line for line in lines if "data…" not in line)
    rows = [line.split("│") for line in lines if line.startswith("│")]
    texts = "\n".join("".join(row[place].strip() for row in rows if len(row) > place) for place in range(1, 7))
    shown = texts + "".join(lines)
    assert expected and all(name in shown for name in expected)


def test_two_documents_are_compared(files, run, model):
    outcome = run("explain", model, files / "test.txt", "--query", 302, "--above", 1, "--below", 4, "--top", 2)
    assert outcome.code == 0, outcome.output
    found = rs.explain(rs.load(model), rs.read(files / "test.txt"), 302)
    first, fourth = found.order[[0, 3]]
    assert first != 0 and fourth != 3  # ranks are not rows
    assert f"difference  {found.scores[first] - found.scores[fourth]:+.4f}" in outcome.output
    for rank, number in ((1, first), (4, fourth)):
        assert f"rank {rank}      {found.documents[number]}, " in outcome.output
    assert f"{found.why(1, 4)[0].difference:+.4f}" in outcome.output
    assert "the other 3" in outcome.output
    best, worst = (found.documents[found.order[place]] for place in (0, -1))
    line = ("explain", model, files / "test.txt", "--query", 302, "--above")
    assert f"{worst} is ranked below {best}, not above" in run(*line, worst, "--below", best).output
    assert "is ranked below" not in run(*line, best, "--below", worst).output


@pytest.mark.parametrize("by", ["contribution", "missing"])
def test_dropping_shows_ranks_before_and_after(files, run, model, by):
    outcome = run("explain", model, files / "test.txt", "--query", 303, "--drop", "f1", "--by", by)
    assert outcome.code == 0, outcome.output
    assert "│ rank" in outcome.output.replace("┃", "│") and "f1: " in outcome.output
    found = rs.explain(rs.load(model), rs.read(files / "test.txt"), 303)
    before, after = found.ranks, found.ranks_without(["f1"], by=by)
    rows = {
        cells[1].strip(): cells[-2].strip()
        for cells in (line.split("│") for line in outcome.output.splitlines())
        if len(cells) == 7
    }
    assert set(rows) <= set(found.documents) and found.documents[0] == "document 1"
    for name, move in rows.items():
        d = found.document(name)
        assert move == (
            "="
            if before[d] == after[d]
            else f"up {before[d] - after[d]}"
            if after[d] < before[d]
            else f"down {after[d] - before[d]}"
        )


def test_all_queries_give_importances(files, run, model):
    outcome = run("explain", model, files / "test.txt", "--repeats", 1)
    assert outcome.code == 0, outcome.output
    assert "168 of 14 queries" in outcome.output
    assert "share of gain" in outcome.output and "--top" not in outcome.output


def test_what_does_not_fit_is_refused(files, run, model):
    for arguments, message in [
        (("--query", 301, "--above", 1), "give both"),
        (("--above", 1, "--below", 2), "need --query"),
        (("--query", 77), "no query has the id '77'"),
        (("--query", 301, "--above", 1, "--below", "zz"), "or a rank, from 1 to 12"),
        (("--query", 301, "--drop", "zz"), "no feature 'zz'"),
        (("--query", 301, "--metric", "nonsense"), "unknown metric"),
    ]:
        outcome = run("explain", model, files / "test.txt", *arguments)
        assert outcome.code == 2, outcome.output
        assert message in outcome.output


def test_categories_are_described_and_explained_by_name(run, tmp_path):
    rows = [f"{int(brand == 'acme')},{query},{brand},{doc / 10},d{doc}" for query in (1, 2) for doc, brand in
            enumerate(["acme", "bolt", "acme", "", "cup", "bolt"] * 4)]  # fmt: skip
    (tmp_path / "data.csv").write_text("\n".join(["label,qid,brand,price,docid", *rows]) + "\n")
    described = run("describe", tmp_path / "data.csv", "--categorical", "brand").output
    assert "acme (33.3%), bolt (33.3%), cup (16.7%)" in described and "4.2% zero, 0.0% missing" in described
    train = ("train", tmp_path / "data.csv", "--categorical", "brand", "--trees", 3, "--min-docs", 1, "--leaves", 3)
    assert run(*train, "--out", tmp_path / "model.txt").code == 0
    timed = run("bench", tmp_path / "model.txt", tmp_path / "data.csv", "--threads", 1)  # categories of the model
    assert timed.code == 0 and "scored: 48 documents" in timed.output, timed.output
    explained = run("explain", tmp_path / "model.txt", tmp_path / "data.csv", "--query", 2).output
    assert "brand=acme +" in explained
    compared = run(
        "explain", tmp_path / "model.txt", tmp_path / "data.csv", "--query", 2, "--above", "d0", "--below", "d1"
    )
    assert "acme" in compared.output and "bolt" in compared.output
