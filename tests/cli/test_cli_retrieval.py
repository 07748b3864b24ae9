"""`index`, `retrieve` and `features`: from a corpus to training data."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from corpus_samples import folder_bytes

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


def test_the_summary_lists_fields_that_are_not_text(run, tmp_path):
    document = {
        "id": "a",
        "title": "red",
        "shop": {"k": "v"},
        "sizes": [1, 2],
        "new": True,
        "none": None,
        "my price": 1,
    }
    (tmp_path / "corpus.jsonl").write_text(json.dumps(document))
    made = run("index", tmp_path / "corpus.jsonl", "--out", tmp_path / "index")
    assert (
        "not used  shop (objects), sizes (lists of numbers), new (booleans), my price (numbers); keep numbers with "
        "--number 'my price'" in made.output
    )


def test_the_summary_lists_numbers_that_are_kept_and_that_are_not(corpus, run, tmp_path):
    build = ("index", corpus / "corpus.jsonl", "--out", tmp_path / "index", "--replace")
    made = run(*build).output
    assert "price (numbers); keep numbers with --number price" in made and "numbers  " not in made
    made = run(*build, "--number", "price").output
    assert "numbers  price" in made and "not used" not in made
    assert "first stage          bm25f (k1=1.2,b=0.75,k3=8), the default" in run("describe", tmp_path / "index").output
    for memory, line in (
        ("200", "200 bytes; did you mean 200M?"),
        ("1K", "'1K'; expected a size such as 512M or 2G, at"),
    ):
        outcome = run(*build, "--memory", memory)
        assert outcome.code == 2 and f"--memory is {line}" in outcome.output


def test_retrieve_writes_a_run(corpus, index, run, tmp_path):
    outcome = run("retrieve", index, corpus / "queries.tsv", "--out", tmp_path / "run.trec", "--depth", 3)
    assert outcome.code == 0, outcome.output
    assert "queries are empty and retrieve nothing: 1" in outcome.output
    assert "retrieving: 4 queries…" in outcome.output
    assert "queries without a word of the index, which retrieve nothing: 1" in outcome.output
    lines = (tmp_path / "run.trec").read_text().splitlines()
    assert lines[0].split()[:4] == ["1", "Q0", "d4", "1"]
    assert lines[0].endswith("bm25f")
    assert rs.io.read_run(tmp_path / "run.trec").n_queries == 2


def test_features_and_rerank_show_how_far_they_are(corpus, index, run, tmp_path):
    data, model = tmp_path / "data.parquet", tmp_path / "model.txt"
    made = run("features", index, corpus / "queries.tsv", "--qrels", corpus / "qrels.txt", "--out", data)
    assert made.code == 0 and "features: 4/4 queries" in made.output
    run("train", data, "--trees", 2, "--leaves", 2, "--min-docs", 1, "--out", model)
    ranked = run("rerank", index, model, corpus / "queries.tsv", "--out", tmp_path / "run.trec")
    assert ranked.code == 0 and "re-ranking: 4/4 queries" in ranked.output


def test_commands_count_the_kernels_that_they_compile(corpus, index, run, tmp_path, monkeypatch):
    from ranksieve.cli import compiling

    @contextlib.contextmanager
    def counting(display):
        display.update(7, unit="kernel", title=compiling.TITLE)
        yield

    monkeypatch.setattr(compiling, "counting_kernels", counting)
    data, model, queries = tmp_path / "data.parquet", tmp_path / "model.txt", corpus / "queries.tsv"
    commands = {
        "retrieving": ("retrieve", index, queries, "--out", tmp_path / "run.trec"),
        "features": ("features", index, queries, "--qrels", corpus / "qrels.txt", "--out", data),
        "re-ranking": ("rerank", index, model, queries, "--out", tmp_path / "second.trec"),
    }
    for title, command in commands.items():
        if command[0] == "rerank":
            rs.train(data, trees=2, leaves=2, min_docs=1).save(model)
        outcome = run(*command)
        assert outcome.code == 0 and "compiling kernels: 7 kernels" in outcome.output
        assert title == "retrieving" or f"{title}: 4/4 queries" in outcome.output


def test_collections_of_beir_through_pipes(run, tmp_path):
    texts = {f"d{n}": text for n, text in enumerate(TEXTS)}
    lines = [json.dumps({"_id": id, "title": "", "text": text, "metadata": {}}) for id, text in texts.items()]
    corpus, queries, qrels = (tmp_path / name for name in ("corpus", "queries", "qrels"))
    content = {
        corpus: "\n".join(lines),
        queries: '{"_id": "1", "text": "red wine", "metadata": {}}\n',
        qrels: "query-id\tcorpus-id\tscore\n1\td0\t1\n",
    }
    for pipe in content:
        os.mkfifo(pipe)

    def fed(*arguments):
        writers = [
            threading.Thread(target=pipe.write_text, args=(content[pipe],)) for pipe in arguments if pipe in content
        ]
        for writer in writers:
            writer.start()
        outcome = run(*arguments)
        for writer in writers:
            writer.join()
        assert outcome.code == 0, outcome.output

    fed("index", corpus, "--out", tmp_path / "index")
    fed("retrieve", tmp_path / "index", queries, "--out", tmp_path / "run.trec", "--tune", qrels)
    fed("evaluate", "--run", tmp_path / "run.trec", "--qrels", qrels)


def test_models_weights_and_tuning(corpus, index, run, tmp_path):
    out = tmp_path / "run.trec"
    common = ("retrieve", index, corpus / "queries.tsv", "--out", out)
    assert run(*common, "--model", "dirichlet", "--set", "mu=50", "--weights", "title=2,file=0").code == 0
    outcome = run(*common, "--tune", corpus / "qrels.txt", "--set", "b.title=0.1,k1=3", "--metric", "map")
    assert outcome.code == 0, outcome.output
    assert "map" in outcome.output and "→" in outcome.output
    assert "judgements are of documents that are not in the index: 1 (gone)" in outcome.output
    assert "queries have no judgements and do not count for tuning: 2 (3, 4)" in outcome.output
    for flags, message in (
        (("--set", "k9=1"), "--set has no 'k9'"),
        (("--weights", "title"), "expected name=number"),
        (("--weights", "title=-1"), "--weights is -1.0; expected numbers from 0"),
        (("--weights", "names=1"), "--weights has the field 'names', which the index does not have"),
        (("--set", "k1=-1"), "--set k1 is -1.0; expected a number from 0"),
        (("--model", "bm99"), "--model is 'bm99'"),
    ):
        refused = run(*common, *flags)
        assert refused.code == 2
        assert message in refused.output


def test_features_are_listed(index, run):
    outcome = run("features", index, "--list")
    assert "bm25.title" in outcome.output and "number.price" in outcome.output
    some = run("features", index, "--list", "--select", "bm25*.title")
    assert "3 features" in some.output and "nearness" not in some.output
    for several in (["bm25.title, number.*,!bm25.all"], ["bm25.title", "number.*,!bm25.all"]):
        flags = [word for one in several for word in ("--select", one)]
        listed = [line.split()[0] for line in run("features", index, "--list", *flags).output.splitlines()]
        assert listed == ["bm25.title", "number.price", "2"]
    relative = run("features", index, "--list", "--select", "relative.bm25.title")
    assert "relative.bm25.title" in relative.output and "1 feature\n" in relative.output
    unknown = run("features", index, "--list", "--select", "nofeature")
    assert unknown.code == 2 and "list all with ranksieve features INDEX --list" in " ".join(unknown.output.split())
    of_any_index = run("features", "--list")
    assert "bm25.FIELD" in of_any_index.output and "number.NAME" in of_any_index.output
    assert "features need INDEX, QUERIES and --out" in run("features").output
    assert "name it data.parquet" in run("features", index, "queries.tsv", "--out", "data.csv").output


def test_features_make_training_data(corpus, index, run, tmp_path):
    out = tmp_path / "data.parquet"
    outcome = run("features", index, corpus / "queries.tsv", "--qrels", corpus / "qrels.txt", "--out", out)
    assert outcome.code == 0, outcome.output
    for remark in (
        "judgements are of documents that are not in the index: 1 (gone)",
        "queries have no judgements; their documents get label 0: 2",
    ):
        assert remark in outcome.output
    data = rs.read(out)
    assert data.n_queries == 2 and (data.labels > 0).sum() == 3
    run("retrieve", index, corpus / "queries.tsv", "--out", tmp_path / "run.trec", "--depth", 2)
    again = run(
        "features", index, corpus / "queries.tsv", "--run", tmp_path / "run.trec", "--out", out, "-s", "*.title"
    )
    assert again.code == 0, again.output
    assert rs.read(out).n_docs == 4
    assert "without --qrels all labels are 0" in again.output and "without --qrels" not in outcome.output
    refused = run("features", index, corpus / "queries.tsv")
    assert refused.code == 2 and "--out" in refused.output


def test_index_reports_errors(corpus, run, tmp_path):
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
    assert rs.retrieval.search(rs.Index(tmp_path / "index"), "red wine") == []


def test_from_features_to_a_reranked_run(corpus, index, run, tmp_path):
    queries, qrels = corpus / "queries.tsv", corpus / "qrels.txt"
    data, model, first, second = (tmp_path / name for name in ("data.parquet", "model.txt", "a.trec", "b.trec"))
    assert run("features", index, queries, "--qrels", qrels, "--out", data).code == 0
    trained = run("train", data, "--out", model, "--trees", 4, "--leaves", 3, "--min-docs", 1, "--quiet")
    assert trained.code == 0, trained.output
    assert run("retrieve", index, queries, "--out", first).code == 0
    for line, waited in (
        (("retrieve", index, queries, "--out", first), "retrieving: "),
        (("features", index, queries, "--qrels", qrels, "--out", data), "features: "),
        (("rerank", index, model, queries, "--out", second), "re-ranking: "),
        (("predict", model, data, "--out", tmp_path / "scores.txt"), "scoring: "),
        (("evaluate", model, data), "reading the data"),
    ):
        assert waited in run(*line).output and waited not in run(*line, "-q").output
    outcome = run("rerank", index, model, queries, "--run", first, "--out", second)
    assert outcome.code == 0, outcome.output
    measured = run("evaluate", "--run", first, "--run", second, "--qrels", qrels, "-m", "ndcg@10", "-m", "map")
    assert measured.code == 0, measured.output
    for text in ("a.trec", "p-value", "trec_eval", "runs: relevant documents that a run does not have"):
        assert text in measured.output
    assert "input order" not in measured.output
    partly = tmp_path / "partly.trec"
    partly.write_text("1 Q0 d0 1 2.5 x\n9 Q0 d0 1 2.5 x\n")
    assert "queries without judgements, left out: 1; judged queries not in the run, counted as 0: 1" in run(
        "evaluate", "--run", partly, "--qrels", qrels
    ).output.replace("\n", " ")
    warning = f"warning: {partly} has no results for 1 of 2 judged queries, which count as 0; --missing-queries skip"
    assert warning in run("evaluate", "--run", partly, "--qrels", qrels).output
    skipped = run("evaluate", "--run", partly, "--qrels", qrels, "--missing-queries", "skip").output
    assert "warning" not in skipped
    assert "judged queries not in the run, left out: 1" in skipped and "1 of 2 queries counted" in skipped
    foreign = tmp_path / "foreign.trec"
    foreign.write_text("1 Q0 other 1 2.5 x\n")
    refused = run("evaluate", "--run", foreign, "--qrels", qrels)
    shown = " ".join(refused.output.split())
    assert refused.code == 2 and f"{foreign}: none of its documents is judged for its query; query 1 has other" in shown
    refused = run("features", index, qrels, "--out", tmp_path / "of_qrels.parquet")
    shown = " ".join(refused.output.split())
    assert refused.code == 2 and "is a file of judgements (TREC qrels), not queries; it is for" in shown
    refused = run("evaluate", model, data, "--missing-queries", "skip")
    assert refused.code == 2 and "--missing-queries is for --run" in refused.output
    refused = run("rerank", index, queries, model, "--out", second)
    assert refused.code == 2 and f"{model}: is a model, and {queries} is not; give the index" in refused.output
    described = run("describe", queries).output
    assert "queries          4, not data to train on" in described
    assert "ranksieve retrieve, features and rerank" in described
    converted = run("convert", model, "--format", "elasticsearch", "--missing", "zero", "--out", tmp_path / "e.json")
    forest = rs.load(model)
    used = [forest.feature_names[number] for number in np.unique(forest.feature)]
    lacking = [name for name in used if not name.startswith(("bm25.", "number.")) or name == "bm25.all"]
    assert converted.code == 0 and lacking
    assert (
        f"warning: {tmp_path / 'e.json'}: the model uses {len(lacking)} feature{'s' * (len(lacking) > 1)} that "
        f"Elasticsearch and OpenSearch cannot compute ({', '.join(lacking)}), so it cannot run there; train on "
        "bm25.FIELD and number.NAME alone, not on bm25.all (ranksieve train --features), define these in the engine "
        "with ranksieve feature-set, and train on its feature log\n"
    ) in converted.output
    for flags in (("--ties", "order"), ("--weighted",), ("--missing", "nan")):
        refused = run("evaluate", "--run", first, "--qrels", qrels, *flags)
        assert refused.code == 2 and f"{flags[0]} is for models on data" in refused.output
    for wrong in ((), ("--run", first), (model,), (model, data, "--run", first, "--qrels", qrels)):
        refused = run("evaluate", *wrong)
        assert refused.code == 2 and "MODEL… and DATA, or --run RUN" in refused.output


def test_split_by_query(files, run, tmp_path):
    outcome = run("split", files / "train.txt", "--out", tmp_path / "parts", "--seed", 3)
    assert outcome.code == 0, outcome.output
    whole = rs.read(files / "train.txt")
    parts = [rs.read(tmp_path / "parts" / f"{name}.parquet") for name in ("train", "valid", "test")]
    assert [part.n_queries for part in parts] == [18, 6, 6]
    assert sum(part.n_docs for part in parts) == whole.n_docs
    assert set().union(*(part.query_ids.tolist() for part in parts)) == set(whole.query_ids.tolist())
    first = parts[2].query_ids[0]
    number = whole.query_ids.tolist().index(first)
    np.testing.assert_array_equal(
        parts[2].features[: parts[2].offsets[1]], whole.features[whole.offsets[number] : whole.offsets[number + 1]]
    )
    assert run("split", files / "train.txt", "--out", tmp_path / "text", "--format", "letor").code == 0
    assert rs.read(tmp_path / "text" / "test.txt").n_queries == 6
    assert run("split", files / "train.txt", "--out", tmp_path / "x", "--shares", "60").code == 2
    (tmp_path / "few.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n")
    assert "leave a part empty; use larger shares" in run("split", tmp_path / "few.txt", "--out", tmp_path / "x").output
    assert not (tmp_path / "x").exists()


def test_features_of_the_users_own(corpus, index, run, tmp_path):
    own, data, model = tmp_path / "own.py", tmp_path / "data.parquet", tmp_path / "model.txt"
    own.write_text(
        "def shout(query, documents):\n"
        '    """Twice the letters of the query."""\n'
        "    return [2 * len(query) + len(id) for id in documents]\n"
        "number = 7\n"
    )
    queries = corpus / "queries.tsv"
    made = run("features", index, queries, "--qrels", corpus / "qrels.txt", "--out", data, "-s", "shout", "-s", "loud",
               "-s", "first.score", "--own", f"{own}:shout", "--own", f"loud={own}:shout")  # fmt: skip
    assert made.code == 0, made.output
    assert rs.read(data).column("shout").tolist() == rs.read(data).column("loud").tolist()
    assert rs.read(data).column("shout")[0] == 2 * len("red wine") + 2
    assert "Twice the letters of the query." in run("features", index, "--list", "--own", f"{own}:shout").output
    assert run("train", data, "--out", model, "--trees", 2, "--leaves", 2, "--min-docs", 1, "--quiet").code == 0
    again = ("rerank", index, model, queries, "--out", tmp_path / "b.trec")
    assert "'shout'" in run(*again).output
    assert run(*again, "--own", f"{own}:shout", "--own", f"loud={own}:shout").code == 0
    for wrong, message in (
        (f"{own}:number", "of type int"), (f"{own}:none", "cannot be imported"), (f"{own}:", "names no function"),
        (f"bm25.title={own}:shout", "named 'bm25.title' already"),
    ):  # fmt: skip
        refused = run("features", index, queries, "--out", data, "--own", wrong)
        assert refused.code == 2 and message in refused.output.replace("\n", " "), refused.output


def test_a_tuned_first_stage_goes_from_command_to_command(corpus, index, run, tmp_path):
    queries, qrels, stage, out = corpus / "queries.tsv", corpus / "qrels.txt", tmp_path / "stage.json", tmp_path / "r"
    tuned = run("retrieve", index, queries, "--out", out, "--tune", qrels, "--save-stage", stage, "--depth", 4)
    assert tuned.code == 0, tuned.output
    assert "tuning: " in tuned.output and "settings" in tuned.output and "ndcg@10 " in tuned.output
    loaded = rs.retrieval.FirstStage.load(stage)
    assert loaded.flags() in tuned.output.replace("\n", " ")
    again = tmp_path / "again"
    assert run("retrieve", index, queries, "--out", again, "--stage", stage, "--depth", 4).code == 0
    assert again.read_text() == out.read_text()
    data, model = tmp_path / "data.parquet", tmp_path / "model.txt"
    made = run("features", index, queries, "--qrels", qrels, "--stage", stage, "--depth", 4, "--out", data)
    assert made.code == 0, made.output
    assert rs.read(data).candidates == {"source": "first stage", "stage": loaded.used(), "depth": 4}
    assert run("train", data, "--out", model, "--trees", 2, "--leaves", 2, "--min-docs", 1, "--quiet").code == 0
    outcomes = [
        run("rerank", index, model, queries, "--out", tmp_path / f"{n}.trec", *flags)
        for n, flags in enumerate([(), ("--stage", stage, "--depth", 4)])
    ]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    assert (tmp_path / "0.trec").read_text() == (tmp_path / "1.trec").read_text()
    assert "warning" not in outcomes[0].output
    refused = run("retrieve", index, queries, "--out", again, "--stage", stage, "--model", "bm25")
    assert refused.code == 2 and "--stage cannot be combined with --model" in refused.output
    (tmp_path / "no.json").write_text("[" * 100_000)
    for wrong, message in (
        (tmp_path / "no.json", "is not a first stage"), (tmp_path / "none.json", "cannot be read"),
    ):  # fmt: skip
        refused = run("retrieve", index, queries, "--out", again, "--stage", wrong)
        assert refused.code == 2 and message in refused.output
    indexed = run("index", corpus / "corpus.jsonl", "--out", tmp_path / "index", "--stage", stage, "--field", "title",
                  "--field", "text:nostop", "--field", "file=path~[^/]+$")  # fmt: skip
    assert indexed.code == 0, indexed.output
    assert run("retrieve", tmp_path / "index", queries, "--out", again, "--depth", 4).code == 0
    assert again.read_text() == out.read_text()


def test_a_corpus_of_several_files(corpus, run, tmp_path):
    lines = (corpus / "corpus.jsonl").read_text().splitlines()
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    parts[0].write_text("\n".join(lines[:2]))
    parts[1].write_text("\n".join(lines[2:]))
    assert run("index", *parts, "--out", tmp_path / "several").code == 0
    assert run("index", corpus / "corpus.jsonl", "--out", tmp_path / "one").code == 0
    assert folder_bytes(tmp_path / "several") == folder_bytes(tmp_path / "one")


def test_fuse(run, tmp_path):
    a, b, out = (tmp_path / name for name in ("a.trec", "b.trec", "out.trec"))
    a.write_text("q1 Q0 x 1 9 a\nq1 Q0 y 2 8 a\nq2 Q0 x 1 3 a\n")
    b.write_text("q1 Q0 y 1 0.5 b\nq1 Q0 z 2 0.25 b\n")
    outcome = run("fuse", a, b, "--out", out)
    assert (outcome.code, outcome.output.split()) == (0, ["run", f"{out},", "2", "queries,", "4", "documents"])
    assert [line.split()[:4] for line in out.read_text().splitlines()] == [
        ["q1", "Q0", "y", "1"],
        ["q1", "Q0", "x", "2"],
        ["q1", "Q0", "z", "3"],
        ["q2", "Q0", "x", "1"],
    ]
    outcome = run("fuse", a, b, "--method", "sum", "--weights", "2,0.5", "--depth", 1, "--out", out)
    assert outcome.code == 0, outcome.output
    assert out.read_text() == "q1 Q0 x 1 2 sum\nq2 Q0 x 1 0 sum\n"
    for arguments, message in [
        ((a, b, "--weights", "1;2"), "--weights is '1;2'; expected numbers separated by commas"),
        ((a,), "1 run to fuse; give at least 2"),
        ((a, b, a), "a.trec is given twice; name each run once"),
        ((a, b, "--norm", "rank"), "--norm is for the methods sum and mnz"),
    ]:
        outcome = run("fuse", *arguments, "--out", tmp_path / "none.trec")
        assert outcome.code == 2 and message in outcome.output
        assert not (tmp_path / "none.trec").exists()


def test_vectors_in_every_command(corpus, run, tmp_path):
    """An encoder that the index stores needs no options; files and functions give vectors of queries."""
    index, queries, lists, model = (tmp_path / name for name in ("index", "queries.tsv", "lists.parquet", "model.txt"))
    queries.write_text("1\tred wine\n2\twhite car\n")
    build = ("index", corpus / "corpus.jsonl", "--out", index, "--field", "text", "--replace")
    outcome = run(*build, "--vectors", "svd:3", "--hnsw")
    assert outcome.code == 0 and "dimension 3, float32, cosine, an encoder for queries, an HNSW graph" in outcome.output
    assert "an HNSW graph" in run("describe", index, "--verify").output
    for flags in (("dense",), ("hybrid",), ("hybrid", "--set", "dense_share=0.3"), ("dense", "--set", "ef=20")):
        outcome = run("retrieve", index, queries, "--out", tmp_path / "run.trec", "--model", *flags)
        assert outcome.code == 0, outcome.output
        assert rs.io.read_run(tmp_path / "run.trec").n_queries == 2
    outcome = run("retrieve", index, queries, "--model", "hybrid", "--tune", corpus / "qrels.txt", "--out",
                  tmp_path / "run.trec", "--save-stage", tmp_path / "stage.json")  # fmt: skip
    assert outcome.code == 0 and "tuned  --model hybrid" in outcome.output
    outcome = run("features", index, queries, "--qrels", corpus / "qrels.txt", "--stage", tmp_path / "stage.json",
                  "--out", lists)  # fmt: skip
    assert outcome.code == 0, outcome.output
    assert {"dense.cosine", "dense.top_5"} <= set(rs.read(lists).feature_names)
    assert run("train", lists, "--trees", 2, "--min-docs", 1, "--quiet", "--out", model).code == 0
    assert run("rerank", index, model, queries, "--out", tmp_path / "own.trec").code == 0

    rows = rs.Index(index).encoder(TEXTS), rs.Index(index).encoder(["red wine", "white car"])
    for name, some in zip(("documents.npy", "queries.npy"), rows, strict=True):
        np.save(tmp_path / name, some[::-1])
    (tmp_path / "documents.txt").write_text("".join(f"d{n}\n" for n in reversed(range(5))))
    (tmp_path / "queries.txt").write_text("2\n1\n")
    (tmp_path / "encoder.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    given = ("--query-vectors", tmp_path / "queries.npy", "--query-vector-ids", tmp_path / "queries.txt")
    outcome = run(*build, "--vectors", tmp_path / "documents.npy", "--vector-ids", tmp_path / "documents.txt")
    assert outcome.code == 0, outcome.output
    outcome = run("rerank", index, model, queries, "--out", tmp_path / "given.trec", *given)
    assert outcome.code == 0 and (tmp_path / "given.trec").read_bytes() == (tmp_path / "own.trec").read_bytes()
    for command in (("rerank", index, model, queries), ("features", index, queries)):
        outcome = run(*command, "--out", tmp_path / "none.parquet")
        assert outcome.code == 2 and "no vectors are given for the queries 1, 2" in outcome.output
        assert "give --query-vectors" in outcome.output and not (tmp_path / "none.parquet").exists()
    outcome = run("retrieve", index, queries, "--out", tmp_path / "x", "--query-vector-ids", tmp_path / "queries.txt")
    assert outcome.code == 2 and "--query-vector-ids needs --query-vectors" in outcome.output

    encode = f"{tmp_path / 'encoder.py'}:encode"
    outcome = run(*build, "--vectors", encode)
    assert outcome.code == 0 and "dimension 2" in outcome.output
    outcome = run("retrieve", index, queries, "--model", "dense", "--query-vectors", encode, "--out", tmp_path / "x")
    assert outcome.code == 0, outcome.output
    outcome = run(*build, "--vectors", encode, "--vectors", tmp_path / "queries.npy")
    assert outcome.code == 2 and "only .npy files can be joined" in outcome.output


def test_feature_sets_for_engines(index, run, tmp_path):
    outcome = run("feature-set", index, "--engine", "solr", "--select", "bm25.*", "--select", "window.*", "--out",
                  tmp_path / "set.json")  # fmt: skip
    assert outcome.code == 0 and "features without a counterpart: 4 (bm25.all, " in outcome.output
    names = [one["name"] for one in json.loads((tmp_path / "set.json").read_text())]
    assert names == ["bm25.title", "bm25.text", "bm25.file"]
    outcome = run("feature-set", index, "--select", "query.*", "--out", tmp_path / "none.json")
    assert outcome.code == 2 and "none of the 7 features has a counterpart in elasticsearch" in outcome.output
