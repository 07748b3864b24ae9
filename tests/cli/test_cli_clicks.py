"""`ranksieve clicks`, and what other commands do with clicks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.retrieval.runs import Run, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """A folder with data, a simulated log, and propensities."""
    folder = tmp_path_factory.mktemp("clicks")
    rs.io.write_parquet(rs.synth.cubic(30), folder / "data.parquet")
    outcome = run(
        "clicks", "simulate", folder / "data.parquet", "--out", folder / "log.jsonl", "--pages", 2000,
        "--temperature", 0.4, "--share", 0.1, "--swaps", 0.5, "--seed", 3,
    )  # fmt: skip
    assert outcome.code == 0 and "2,000 pages, 30 queries" in outcome.output
    outcome = run("clicks", "propensities", folder / "log.jsonl", "--out", folder / "p.json")
    assert outcome.code == 0, outcome.output
    return folder


def test_the_log_is_that_of_python(folder):
    data = rs.read(folder / "data.parquet")
    weak = rs.clicks.logging_ranker(data, share=0.1)  # not --seed
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(weak, 0.4, swaps=0.5), pages=2000, seed=3)
    again = rs.clicks.read(folder / "log.jsonl")
    assert np.array_equal(log.clicks, again.clicks) and np.array_equal(log.swaps, again.swaps)
    found = rs.clicks.Propensities.load(folder / "p.json")
    assert found.values == pytest.approx(rs.clicks.propensities(log).values)


def test_describe_shows_clicks_by_place(folder, run, tmp_path):
    log = rs.clicks.read(folder / "log.jsonl")
    outcome = run("describe", folder / "log.jsonl")
    shown, clicked = log.by_place()
    assert outcome.code == 0 and "pages" in outcome.output and f"{clicked[0] / shown[0]:.2%}" in outcome.output
    rs.clicks.write(log, tmp_path / "log.parquet")
    rs.clicks.write(log, tmp_path / "log.jsonl.gz")
    for name in ("log.parquet", "log.jsonl.gz"):
        assert run("describe", tmp_path / name).output == outcome.output
    page = {"query_id": "1", "user_query": "red wine", "query_response_hit_ids": ["a", "b"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(page))
    click = {"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}
    (tmp_path / "events.jsonl").write_text(json.dumps(click))
    ubi = run("describe", tmp_path / "queries.jsonl", "--events", tmp_path / "events.jsonl")
    assert ubi.code == 0 and "50.00%" not in ubi.output and "100.00%" in ubi.output


@pytest.mark.parametrize("model", ["pbm", "sdbn", "rctr"])
def test_fit_measures_on_held_out_pages(folder, run, model):
    outcome = run("clicks", "fit", folder / "log.jsonl", "--model", model, "--holdout", 0.5)
    log = rs.clicks.read(folder / "log.jsonl")
    first, second = log.split(0.5)
    scores = rs.clicks.fit(first, model).evaluate(second)
    assert outcome.code == 0
    assert f"{scores.log_likelihood:.4f}" in outcome.output and f"{scores.perplexity:.4f}" in outcome.output


def test_fit_writes_judgements(folder, run, tmp_path):
    outcome = run(
        "clicks", "fit", folder / "log.jsonl", "--holdout", 0, "--qrels", tmp_path / "qrels.txt", "--levels", 4,
        "--query-texts", tmp_path / "queries.tsv",
    )  # fmt: skip
    assert outcome.code == 0, outcome.output
    lines = [line.split() for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    assert {line[3] for line in lines} == {"0", "1", "2", "3"} and f"{len(lines):,} judgements" in outcome.output
    assert len((tmp_path / "queries.tsv").read_text().splitlines()) == 30


def test_from_a_log_to_a_model(folder, run, tmp_path):
    pages, weighted, judged = (tmp_path / name for name in ("pages.parquet", "weighted.txt", "judged.parquet"))
    more = ("--data", folder / "data.parquet")
    assert run("clicks", "lists", folder / "log.jsonl", *more, "--out", pages).code == 0
    given = ("--propensities", folder / "p.json")
    assert run("clicks", "lists", folder / "log.jsonl", *more, *given, "--out", weighted).code == 0
    assert run("clicks", "lists", folder / "log.jsonl", *more, "--by", "query", "--out", judged).code == 0
    data, log = rs.read(folder / "data.parquet"), rs.clicks.read(folder / "log.jsonl")
    assert np.array_equal(rs.read(pages).lists.positions, rs.clicks.page_lists(log, data).lists.positions)
    assert rs.read(weighted).lists.weights is not None and rs.read(judged).lists.positions is None
    model = tmp_path / "model.txt"
    outcome = run("train", pages, "--out", model, "--trees", 5, "--leaves", 6, "--quiet", "--position-l2", 0.01)
    assert outcome.code == 0 and "learned bias" in outcome.output
    assert "learned bias" in run("describe", model).output
    assert len(rs.load(model).info["position_biases"]) == 11
    outcome = run("clicks", "estimate", folder / "log.jsonl", "--ranking", model, *more, *given)
    assert outcome.code == 0 and "effective clicks" in outcome.output
    found = rs.clicks.estimate(
        log, rs.clicks.ranking_of(rs.load(model), data), rs.clicks.Propensities.load(folder / "p.json")
    )
    assert f"{found.ips:.4f}" in outcome.output and f"{found.logged:.4f}" in outcome.output


def test_interleaving_from_runs_to_a_preference(run, tmp_path):
    for name, docs in (("a", "xyz"), ("b", "zxw")):
        rows = [f"{q} Q0 {doc} {rank} {-rank} t\n" for q in ("q1", "q2") for rank, doc in enumerate(docs, 1)]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    outcome = run("clicks", "interleave", tmp_path / "a.run", tmp_path / "b.run", "--out", tmp_path / "pages.jsonl")
    assert outcome.code == 0
    pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert [page["query"] for page in pages] == ["q1", "q2"]
    clicked = [page | {"clicks": [page["teams"].index("a")]} for page in pages] * 20
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(page) + "\n" for page in clicked))
    outcome = run("clicks", "compare", tmp_path / "log.jsonl")
    assert outcome.code == 0 and "A is preferred: +0.5000" in outcome.output


def test_only_queries_of_both_runs_are_interleaved(run, tmp_path):
    for name, queries in (("a", ["q1", "q2"]), ("b", ["q2", "q3", "q4"]), ("c", ["7"])):
        (tmp_path / f"{name}.run").write_text("".join(f"{query} Q0 {name} 1 1 t\n" for query in queries))
    a, b, c, out = (tmp_path / name for name in ("a.run", "b.run", "c.run", "pages.jsonl"))
    outcome = run("clicks", "interleave", a, c, "--out", out)
    assert outcome.code == 2 and not out.exists()
    assert "have no query in common: got ids like 'q1' and '7'" in " ".join(outcome.output.split())
    outcome = run("clicks", "interleave", a, b, "--out", out)
    assert outcome.code == 0 and "queries that occur in only one run are left out: 3" in outcome.output
    (page,) = map(json.loads, out.read_text().splitlines())
    assert page["query"] == "q2" and sorted(page["documents"]) == sorted(page["teams"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "unknown command nonsense; see ranksieve clicks --help"),
        (("fit",), "LOG... is missing; see ranksieve clicks fit --help"),
        (("fit", "LOG", "--model", "pbn"), "did you mean 'pbm'"),
        (("fit", "LOG", "--query-texts", "x.tsv"), "belongs to --qrels"),
        (("fit", "missing.jsonl"), "missing.jsonl: no such file"),
        (("compare", "LOG"), "the log has no teams"),
        (("lists", "LOG", "--data", "DATA", "--out", "x.txt", "--by", "day"), "expected one of page, query"),
        (("estimate", "LOG", "--ranking", "DATA"), "--propensities is missing"),
        (("interleave", "LOG", "LOG", "--out", "x", "--method", "odd"), "expected one of team-draft, balanced"),
    ],
)
def test_mistakes_are_one_line(folder, run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    names = {"LOG": folder / "log.jsonl", "DATA": folder / "data.parquet"}
    outcome = run("clicks", *(names.get(word, word) for word in words))
    assert outcome.code == 2 and message in outcome.output
    assert not list(tmp_path.iterdir())


def test_invalid_lines_are_shown(folder, run, tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text("{broken\n" + (folder / "log.jsonl").read_text())
    outcome = run("clicks", "fit", file, "--model", "ctr")
    assert outcome.code == 0 and f"left out lines that are not JSON: 1 ({file}:1)" in " ".join(outcome.output.split())


def test_train_writes_the_model_of_python(folder, run, tmp_path):
    (tmp_path / "more.toml").write_text("min-docs = 5\ntrees = 9\n")
    outcome = run(
        "clicks", "train", folder / "log.jsonl", "--data", folder / "data.parquet", "--out", tmp_path / "model.txt",
        "--trees", 3, "--params", tmp_path / "more.toml", "--propensities", folder / "p.json",
    )  # fmt: skip
    assert outcome.code == 0 and "18 trees" in outcome.output, outcome.output
    log, data = rs.clicks.read(folder / "log.jsonl"), rs.read(folder / "data.parquet")
    model = rs.clicks.train(log, data, rs.clicks.Propensities.load(folder / "p.json"), trees=3, min_docs=5)
    assert rs.load(tmp_path / "model.txt").predict(data) == pytest.approx(model.predict(data), abs=1e-6)
    assert "new ranking" not in outcome.output


def test_train_is_estimated_on_other_pages(folder, run, tmp_path):
    data, weights = rs.read(folder / "data.parquet"), rs.clicks.Propensities.load(folder / "p.json")
    later = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=0.5), pages=300, seed=7)
    rs.clicks.write(later, tmp_path / "later.jsonl")
    words = ("--data", folder / "data.parquet", "--propensities", folder / "p.json", "--out", tmp_path / "model.txt")
    outcome = run("clicks", "train", folder / "log.jsonl", *words, "--trees", 3, "--test", tmp_path / "later.jsonl")
    assert outcome.code == 0, outcome.output
    model = rs.clicks.train(rs.clicks.read(folder / "log.jsonl"), data, weights, trees=3)
    found, shown = (
        rs.clicks.estimate(later, rs.clicks.ranking_of(model, data), weights),
        " ".join(outcome.output.split()),
    )
    assert (
        f"new ranking dcg@10 {found.ips:.4f} in [" in shown and f"logged ranking dcg@10 {found.logged:.4f} per" in shown
    )
    own = run("clicks", "train", folder / "log.jsonl", *words, "--trees", 3, "--test", folder / "log.jsonl")
    assert own.code == 0 and "is training and test data; the metric on it says nothing" in " ".join(own.output.split())
    (tmp_path / "model.txt").unlink()
    missing = run("clicks", "train", folder / "log.jsonl", *words, "--test", tmp_path / "none.jsonl")
    assert missing.code != 0 and "none.jsonl" in missing.output and not (tmp_path / "model.txt").exists()


def test_the_seed_of_a_simulation_leaves_the_weak_ranker_as_it_is(folder, run, tmp_path):
    pages = []
    for seed in (0, 1):
        words = (folder / "data.parquet", "--out", tmp_path / "log.jsonl", "--pages", 400, "--seed", seed)
        outcome = run("clicks", "simulate", *words)
        assert outcome.code == 0 and "propensities cannot be estimated from this log" in " ".join(
            outcome.output.split()
        )
        pages.append([json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()])
    rankings = [{page["query"]: page["documents"] for page in log} for log in pages]
    assert rankings[0] == rankings[1]
    assert [page["clicks"] for page in pages[0]] != [page["clicks"] for page in pages[1]]


def test_estimate_refuses_a_ranking_of_other_queries(folder, run, tmp_path):
    run_file = tmp_path / "other.trec"
    write_run(Run.from_lists([("other", np.array(["x"]), np.array([1.0]))]), run_file)
    outcome = run(
        "clicks", "estimate", folder / "log.jsonl", "--ranking", run_file, "--propensities", folder / "p.json"
    )
    first = rs.clicks.read(folder / "log.jsonl").query_ids[0]
    shown = " ".join(outcome.output.split())
    assert outcome.code != 0 and f"its queries are other, …, the log's are {first}, " in shown


def test_estimate_shows_values_on_one_scale_together(folder, run, tmp_path):
    data, log = rs.read(folder / "data.parquet"), rs.clicks.read(folder / "log.jsonl")
    weights = rs.clicks.Propensities.load(folder / "p.json")
    run_file = tmp_path / "new.trec"
    ranking = rs.clicks.ranking_of(data.labels, data)
    write_run(ranking, run_file)
    outcome = run(
        "clicks", "estimate", folder / "log.jsonl", "--ranking", run_file, "--propensities", folder / "p.json"
    )
    found = rs.clicks.estimate(log, ranking, weights)
    first, second, third, *_ = (line for line in outcome.output.splitlines() if "reading" not in line)
    assert first.startswith("new ranking") and f"dcg@10 {found.ips:.4f} in" in first and first.endswith("per page")
    assert second.split() == ["logged", "ranking", "dcg@10", f"{found.logged:.4f}", "per", "page"]
    assert third.startswith("self-normalised") and f"{found.snips:.4f} in" in third and "another scale" in third


def test_lists_by_query_take_propensities_and_other_documents(folder, run, tmp_path):
    words = ("clicks", "lists", folder / "log.jsonl", "--data", folder / "data.parquet", "--by", "query")
    outcome = run(
        *words, "--propensities", folder / "p.json", "--shrinkage", "auto", "--others", "--out", tmp_path / "q.parquet"
    )
    assert outcome.code == 0 and rs.read(tmp_path / "q.parquet").n_docs == 30 * 50
    outcome = run(*words, "--shrinkage", "some", "--out", tmp_path / "q.parquet")
    assert outcome.code != 0 and "'some'; expected a finite number from 0, or 'auto'" in outcome.output


def test_the_weak_ranker_has_no_categories(run, tmp_path):
    rows = "".join(f"{n % 3 == 0:d},{n // 10},d{n},{n % 7}.5,{'abc'[n % 3]}\n" for n in range(60))
    (tmp_path / "shop.csv").write_text("label,qid,docid,price,brand\n" + rows)
    line = ("clicks", "simulate", tmp_path / "shop.csv", "--pages", 20, "--out", tmp_path / "log.jsonl")
    refused = run(*line, "--categorical", "brand")
    shown = " ".join(refused.output.split())
    assert (
        refused.code == 2
        and "brand is categorical, and the weak ranker, a RankSVM, cannot use categories; give" in shown
    )
    assert "give --ranker MODEL, or leave them out, --ignore brand" in shown
    assert run(*line, "--ignore", "brand", "--share", 0.5).code == 0
