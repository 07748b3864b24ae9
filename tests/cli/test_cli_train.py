"""Training, scoring and measuring from the command line."""

from __future__ import annotations

import dataclasses
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_samples import QUICK

import ranksieve as rs
from ranksieve.cli.demo_search import make_search
from ranksieve.forest import bench
from ranksieve.forest.forest import LEAF_ARRAYS, SPLIT_ARRAYS
from samples import small_dataset


def same_trees(a: rs.Forest, b: rs.Forest) -> bool:
    names = (*SPLIT_ARRAYS, *LEAF_ARRAYS, "split_offsets", "leaf_offsets", "weights")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def test_validation_on_the_training_data_is_warned_of(files, run, tmp_path):
    sets = [files / "train.txt", "--valid", files / ".." / files.name / "train.txt", "--test", files / "test.txt"]
    outcome = run("train", *sets, "--out", tmp_path / "model.txt", *QUICK)
    assert outcome.code == 0 and "is training and validation data; the metric on it says nothing" in outcome.output
    assert "and test data" not in outcome.output
    sets = [files / "train.txt", "--valid", files / "valid.txt", "--test", files / "valid.txt"]
    outcome = run("train", *sets, "--out", tmp_path / "model.txt", *QUICK)
    shown = " ".join(outcome.output.split())
    assert outcome.code == 0 and "is validation and test data; the model is chosen on it" in shown
    assert "valid.txt is validation data, too" in shown


def test_queries_of_the_training_data_in_other_files_are_warned_of(files, run, tmp_path):
    """The same data under another name and in another format, and some of its queries among others."""
    rs.io.write_parquet(rs.read(files / "train.txt"), tmp_path / "copy.parquet")
    lines = (files / "train.txt").read_text().splitlines(keepends=True)
    (tmp_path / "mixed.txt").write_text("".join(lines[24:48]) + (files / "test.txt").read_text())
    for algo, *options in (("lambdamart", "--trees", "2"), ("mcrank", "--trees", "1"), ("ranksvm",)):
        sets = ["--valid", tmp_path / "copy.parquet", "--test", tmp_path / "mixed.txt", "--quiet", "--algo", algo]
        outcome = run("train", files / "train.txt", *sets, *options, "--out", tmp_path / "model")
        assert outcome.code == 0, outcome.output
        same = "are in the training data with the same labels and features; the metric on them says nothing"
        for text in ("copy.parquet: 30 of 30 queries (100, 101, 102, …)", "mixed.txt: 2 of 16 queries (102, 103)"):
            assert f"{text} {same}" in " ".join(outcome.output.split()), outcome.output
    sets = [files / "train.txt", "--valid", files / "valid.txt", "--test", files / "test.txt", "--quiet"]
    assert "warning" not in run("train", *sets, "--out", tmp_path / "model.txt", *QUICK).output


def test_train_prints_what_it_trains_on(files, run, tmp_path):
    out = tmp_path / "model.txt"
    outcome = run("train", files / "train.txt", "--out", out, *QUICK)
    assert "\ntraining on 360 documents of 30 queries with 5 features\n" in outcome.output
    table = tmp_path / "train.csv"
    rows = [f"{row % 3},{row // 12},d{row},{row},{row * row},http://{row}" for row in range(48)]
    table.write_text("\n".join(["label,qid,docid,a,b,url", *rows]))
    outcome = run("train", table, "--out", out, *QUICK, "--ignore", "u*")
    assert (
        "training on 48 documents of 4 queries with 2 features; columns that are not features: label (labels), "
        "qid (query ids), docid (document ids), url (ignored)\n"
    ) in outcome.output
    assert "training on" not in run("train", files / "train.txt", "--out", out, "--quiet", *QUICK).output


def test_train_prints_the_model_file_and_its_metric(files, run, tmp_path):
    out = tmp_path / "model.txt"
    sets = [files / "train.txt", "--valid", files / "valid.txt", "--test", files / "test.txt"]
    outcome = run("train", *sets, "--out", out, *QUICK)
    assert outcome.code == 0
    forest = rs.load(out)
    shown = " ".join(outcome.output.split())
    test = rs.evaluate(forest, rs.read(files / "test.txt"))
    for text in (
        f"model {out}, {forest.n_trees} trees",
        "reading the data",
        "12/12 trees",
        f"best tree {forest.info['best_iteration']}",
        f"validation ndcg@10 {forest.info['best_score']:.4f}",
        f"test ndcg@10 {test.mean():.4f}",
        test.conventions[0],
    ):
        assert text in shown
    assert shown.count("conventions") == 1
    assert "first stage not compared: the data does not say which feature is its score; name its feature" in shown
    named = run("train", *sets, "--first-stage", "f2", "--out", out, *QUICK)
    assert named.code == 0, named.output
    found = rs.evaluate(
        {"model": forest, "f2": rs.read(files / "test.txt").features[:, 1]}, rs.read(files / "test.txt")
    )
    shown = " ".join(named.output.split())
    assert f"first stage ndcg@10 {found.mean('f2'):.4f} difference" in shown
    shown = run("evaluate", out, files / "test.txt", "--first-stage", "f2").output
    row = next(line for line in shown.splitlines() if "first stage" in line)
    assert f"{found.mean('f2'):.4f}" in row
    refused = run("train", files / "train.txt", "--first-stage", "f2", "--out", out)
    assert refused.code == 2 and "--first-stage is for the comparison on test data; add --test" in refused.output
    refused = run("train", *sets, "--first-stage", "bm25", "--out", out)
    assert refused.code == 2 and "no feature is named 'bm25'" in " ".join(refused.output.split())


def test_train_and_evaluate_show_the_first_stage_that_the_data_notes(run, tmp_path):
    names = ["age", "bm25", "links"]
    parts = {}
    for seed, name in enumerate(("train", "test")):
        made = small_dataset(seed=seed, n_features=3)
        parts[name] = rs.Dataset.from_arrays(made.features, made.labels, group=made.lists.sizes).with_features(
            names, first_stage="bm25"
        )
        rs.io.write_parquet(parts[name], tmp_path / f"{name}.parquet")
    test, out = parts["test"], tmp_path / "model.txt"
    words = [tmp_path / "train.parquet", "--test", tmp_path / "test.parquet", "--out", out, *QUICK]
    # without the column before it, which changes its number
    outcome = run("train", *words, "--ignore", "age")
    assert outcome.code == 0, outcome.output
    model = rs.load(out)
    scores = {"model": model.predict(test.features[:, 1:]), "bm25": np.nan_to_num(test.features[:, 1], nan=-np.inf)}
    found, shown = rs.evaluate(scores, test), " ".join(outcome.output.split())
    assert f"test ndcg@10 {found.mean('model'):.4f} first stage ndcg@10 {found.mean('bm25'):.4f} difference" in shown
    without = " ".join(run("train", *words, "--ignore", "bm25", "--out", tmp_path / "other.txt").output.split())
    assert "first stage not compared: its score is not among the features of the model" in without
    assert f"difference {found.compare('model', 'bm25')} conventions" in shown
    table = tmp_path / "values.tsv"
    shown = run("evaluate", out, tmp_path / "test.parquet", "--per-query", table).output
    (line,) = (line for line in shown.splitlines() if line.startswith("│ first stage"))
    assert f"{found.mean('bm25'):.4f}" in line and f"{found.table()[1]['ndcg@10 p-value']:.4f}" in line
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert [float(row[2]) for row in rows if row[1] == "first stage"] == pytest.approx(
        found.per_query("bm25"), abs=1e-5, nan_ok=True
    )
    # nothing where the model does not have that feature
    assert run("train", *words[:1], "--out", out, "--ignore", "bm25", *QUICK).code == 0
    assert "first stage" not in run("evaluate", out, tmp_path / "test.parquet").output


def test_the_summary_repeats_that_other_data_is_training_data(files, run, tmp_path):
    path = files / "train.txt"
    outcome = run("train", path, "--valid", path, "--out", tmp_path / "model.txt", *QUICK)
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("validation"))
    assert line.endswith(f"; {path} is training data, too")
    (tmp_path / "copy.txt").write_text("".join(path.read_text().splitlines(keepends=True)[:24]))
    outcome = run("train", path, "--test", tmp_path / "copy.txt", "--out", tmp_path / "model.txt", *QUICK)
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("test "))
    assert line.endswith("; 2 of 2 queries are training data, too")


def test_quiet_training_shows_no_progress(files, run, tmp_path):
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model.txt", "--quiet", *QUICK)
    assert "reading the data" not in outcome.output
    assert "12 trees" in outcome.output


def test_the_command_line_trains_what_python_trains(files, run, model):
    parameters = {"trees": 12, "leaves": 6, "min_docs": 3, "learning_rate": 0.2, "negatives": 0.3, "min_negatives": 1}
    forest = rs.train(rs.read(files / "train.txt"), valid=rs.read(files / "valid.txt"), **parameters)
    assert same_trees(forest, rs.load(model))


def test_flags_win_over_toml_and_toml_over_defaults(files, run, tmp_path):
    toml = tmp_path / "params.toml"
    toml.write_text('trees = 7\nlearning-rate = 0.3\nmin_docs = 4\nalgo = "lambdamart"\nleaves = 64\n')
    out = tmp_path / "model.txt"
    # --leaves is given with the value of its default: a flag wins because it was given, not because it differs
    flags = ["--trees", "3", "--leaves", "4"]
    assert run("train", files / "train.txt", "--out", out, "--params", toml, *flags).code == 0
    used = rs.load(out).info["params"]
    expected = rs.params.Params(trees=3, leaves=4, learning_rate=0.3, min_docs=4, algo="lambdamart")
    assert rs.params.Params.from_mapping(used) == expected and "threads" not in used
    toml.write_text("leaves = 5\ntrees = 2\n")
    assert run("train", files / "train.txt", "--out", out, "--params", toml, "--leaves", "64").code == 0
    assert rs.load(out).info["params"]["leaves"] == 64


def test_toml_may_set_missing(files, run, tmp_path):
    toml, out = tmp_path / "params.toml", tmp_path / "model.txt"
    toml.write_text('trees = 2\nmissing = "nan"\n')
    command = ["train", files / "train.txt", "--out", out, "--params", toml]
    assert run(*command).code == 0
    assert rs.load(out).info["missing"] == "nan"
    assert run(*command, "--missing", "zero").code == 0
    assert rs.load(out).info["missing"] == "zero"
    toml.write_text("missing = 3\n")
    outcome = run(*command)
    assert outcome.code == 2 and "--missing is 3; expected" in outcome.output


def test_predict_writes_one_score_a_line_in_file_order(files, run, model, tmp_path):
    lines = (files / "test.txt").read_text().splitlines(keepends=True)
    mixed = tmp_path / "mixed.txt"
    order = np.random.default_rng(0).permutation(len(lines))
    mixed.write_text("".join(lines[i] for i in order))
    assert run("predict", model, mixed, "--out", tmp_path / "scores.txt").code == 0
    scores = np.loadtxt(tmp_path / "scores.txt")
    straight = rs.load(model).predict(rs.read(files / "test.txt"))
    assert np.array_equal(scores, straight[order])


def test_predict_pads_what_text_leaves_out(files, run, model, tmp_path):
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("0 qid:1 1:0.5\n1 qid:1 2:0.5\n")
    outcome = run("predict", model, narrow, "--out", tmp_path / "scores.txt")
    assert outcome.code == 0 and "warning:" in outcome.output and "no feature beyond 2 occurs" in outcome.output
    rows = np.array([[0.5, 0, 0, 0, 0], [0, 0.5, 0, 0, 0]], dtype=np.float32)
    assert np.array_equal(np.loadtxt(tmp_path / "scores.txt"), rs.load(model).predict(rows))


def test_text_that_leaves_nothing_out_needs_all_features(files, run, model, tmp_path):
    narrow, scores = tmp_path / "narrow.txt", tmp_path / "scores.txt"
    narrow.write_text("0 qid:1 1:0.5 2:0 # a:1\n1 qid:1 1:0 2:0.5 # b:1\n")
    for command in (("predict", model, narrow, "--out", scores), ("evaluate", model, narrow),
                    ("explain", model, narrow, "--query", "1"), ("refit", model, "--data", narrow, "--out", scores),
                    ("prune", model, "--train", narrow, "--rate", "0.5", "--out", scores),
                    ("train", files / "train.txt", "--valid", narrow, "--out", scores, *QUICK)):  # fmt: skip
        outcome = run(*command)
        assert outcome.code == 2 and "names features 1 to 2 and no other, but 5 are expected" in outcome.output
    assert not scores.exists()
    narrow.write_text("0 qid:1 1:0.5 2:0 5:0\n1 qid:1 1:0 2:0.5\n")
    assert run("predict", model, narrow, "--out", scores).code == 0


def test_missing_values_are_read_as_in_training(files, run, tmp_path):
    sparse = tmp_path / "sparse.txt"
    lines = (files / "train.txt").read_text().splitlines()
    sparse.write_text("\n".join(re.sub(r" 1:0\.[0-4]\d*", "", line) for line in lines) + "\n")
    out, scores = tmp_path / "model.txt", tmp_path / "scores.txt"
    assert run("train", sparse, "--missing", "nan", "--out", out, "--quiet", *QUICK).code == 0
    forest = rs.load(out)
    assert run("predict", out, sparse, "--out", scores).code == 0
    assert np.array_equal(np.loadtxt(scores), forest.predict(rs.read(sparse, missing="nan").features))
    assert run("predict", out, sparse, "--missing", "zero", "--out", scores).code == 0
    assert np.array_equal(np.loadtxt(scores), forest.predict(rs.read(sparse).features))


def test_evaluate_compares_models(files, run, model, tmp_path):
    short = tmp_path / "short.txt"
    rs.load(model).first(1).save(short)
    table = tmp_path / "queries.tsv"
    metrics = ["--metric", "ndcg@10", "--metric", "map"]
    outcome = run("evaluate", model, short, files / "test.txt", *metrics, "--per-query", table)
    assert outcome.code == 0
    data = rs.read(files / "test.txt")
    result = rs.evaluate({"a": rs.load(model), "b": rs.load(short)}, data, ["ndcg@10", "map"])
    for name in "ab":
        for metric in ("ndcg@10", "map"):
            assert f"{result.mean(name, metric):.4f}" in outcome.output
    assert f"{result.compare('b', 'a', 'map').p_value:.4f}" in outcome.output
    assert "queries without positives left out" in outcome.output
    assert "randomization test" in outcome.output
    head, *rows = table.read_text().splitlines()
    assert head.split("\t") == ["query", "model", "ndcg@10", "map"]
    assert len(rows) == 2 * data.n_queries
    assert rows[0].split("\t")[:2] == [str(data.query_ids[0]), str(model)]
    assert float(rows[0].split("\t")[2]) == pytest.approx(result.values["a"]["ndcg@10"][0], abs=1e-5)


def test_evaluate_conventions_can_be_chosen(files, run, model):
    outcome = run("evaluate", model, files / "test.txt", "--ties", "worst", "--empty", "1")
    assert "ties in the worst order" in outcome.output
    assert "without positives count 1" in outcome.output
    assert run("evaluate", model, files / "test.txt", "--ties", "nonsense").code == 2


def test_pack_and_train_on_the_packed_file(files, run, model, tmp_path):
    packed = {}
    for name in ("train", "valid"):
        packed[name] = tmp_path / f"{name}.parquet"
        assert run("pack", files / f"{name}.txt", "--out", packed[name]).code == 0
    out = tmp_path / "model.txt"
    arguments = [packed["train"], "--valid", packed["valid"], "--out", out, "--quiet", *QUICK]
    assert run("train", *arguments).code == 0
    assert same_trees(rs.load(out), rs.load(model))


def test_describe_tells_data_from_models(files, run, model):
    data = run("describe", files / "train.txt")
    assert data.code == 0
    for text in ("360", "30,", "5", "12 to 12"):
        assert text in data.output
    forest = rs.load(model)
    text = run("describe", model).output
    shown = next(line for line in text.splitlines() if line.startswith("parameters"))
    assert "algo selgb" in shown and "hidden" not in shown and shown.endswith("all others at their defaults")
    assert f"{forest.n_trees}" in text
    assert "share of gain" in text
    assert "learning_rate 0.2" in text


KILLED = """
import os, signal
from ranksieve.boosting.checkpoint import Checkpointer
from ranksieve.cli import main

save = Checkpointer.save

def save_and_end(self, state):
    save(self, state)
    if len(state.trees) == 7:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpointer.save = save_and_end
main()
"""


def test_resume_after_kill_gives_the_same_model(files, run, tmp_path):
    whole, resumed = tmp_path / "whole.txt", tmp_path / "resumed.txt"
    arguments = [files / "train.txt", "--valid", files / "valid.txt", "--quiet", *QUICK]
    arguments += ["--trees", "40", "--early-stopping", "0"]
    assert run("train", *arguments, "--out", whole).code == 0
    folder = tmp_path / "state"
    checkpoint = ["--checkpoint", folder, "--checkpoint-every", "1", "--out", resumed]
    command = [sys.executable, "-c", KILLED, "train", *map(str, arguments), *map(str, checkpoint)]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
    assert not resumed.exists()
    assert run("train", *arguments, *checkpoint, "--resume").code == 0
    assert same_trees(rs.load(resumed), rs.load(whole))
    kept = dataclasses.asdict(rs.load(resumed))["info"]["history"]
    assert kept == rs.load(whole).info["history"]


def test_resume_needs_a_checkpoint_folder(files, run, tmp_path):
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model.txt", "--resume")
    assert outcome.code == 2
    assert "--checkpoint DIR" in outcome.output


def test_progress_bar_on_a_terminal(files, tmp_path):
    from rich.console import Console

    from ranksieve.progress import TrainingProgress

    with open(tmp_path / "screen", "w+") as screen:
        console = Console(file=screen, force_terminal=True, width=150)
        with TrainingProgress("selgb", console=console) as progress:
            rs.train(rs.read(files / "train.txt"), valid=rs.read(files / "valid.txt"), trees=4, callbacks=[progress])
        screen.seek(0)
        text = screen.read()
    assert "4/4" in text
    assert "s/tree" in text or "trees/s" in text
    assert "best" in text


def test_synth_writes_what_the_generators_make(run, tmp_path):
    for kind, suffix in (("cubic", "parquet"), ("cubic", "txt"), ("two-stage", "parquet")):
        out: Path = tmp_path / f"{kind}.{suffix}"
        assert run("synth", kind, "--queries", "3", "--seed", "5", "--out", out).code == 0
        made = {"cubic": rs.synth.cubic, "two-stage": rs.synth.two_stage}[kind](3, seed=5)
        back = rs.read(out)
        assert np.array_equal(back.features, made.features, equal_nan=True)
        assert np.array_equal(back.labels, made.labels)
        assert back.lists.sizes.tolist() == made.lists.sizes.tolist()
    more = tmp_path / "more.parquet"
    assert run("synth", "two-stage", "--queries", "2", "--seed", "5", "--start", "1", "--out", more).code == 0
    assert rs.read(more).n_docs == made.lists.sizes[1:].sum()
    assert run("synth", "nonsense", "--out", more).code == 2


def test_bench_shows_a_table(files, run, model):
    outcome = run("bench", model, files / "test.txt", "--threads", "1")
    assert outcome.code == 0, outcome.output
    assert "µs per document" in outcome.output
    assert "ranksieve" in outcome.output
    assert "scored: 168 documents" in outcome.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            bench, "PEERS", {name: lambda *_: None for name in ("gone", "json")} | {"broken": lambda *_: 1 / 0}
        )
        patch.setattr(bench, "MODULES", {"json": ("json", "nowhere"), "broken": ("json",)})
        patch.setattr(bench, "MOST_DOCUMENTS", 100)
        shown = run("bench", model, files / "test.txt", "--threads", "1").output
        assert "scored: the first 100 of 168 documents" in shown
        assert "broken failed: division by zero" in shown and "not installed: gone, json (lacks nowhere)" in shown
        assert "scored: 5,000 random documents" in run("bench", model, "--threads", "1").output


def test_demo_trains_and_compares(run, tmp_path):
    outcome = run("demo", "--queries", "20", "--trees", "6", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.output
    for text in ("λ-MART", "SelGB, half the trees", "50 trees", "100 trees", "all trees", "p = ", "6/6", "report.html"):
        assert text in outcome.output
    assert (tmp_path / "demo" / "report" / "report.html").exists()
    assert rs.load(tmp_path / "demo" / "pruned.txt").n_trees <= 3
    assert rs.load(tmp_path / "demo" / "selgb.txt").n_trees <= 6
    assert (tmp_path / "demo" / "lambdamart.txt").exists()
    search = tmp_path / "demo" / "search"
    assert f"ranksieve serve {search / 'index'} --model {search / 'lambdamart.txt'}" in outcome.output
    assert {path.name for path in search.iterdir()} == {
        "corpus.jsonl", "index", "judgements.txt", "lambdamart.txt", "queries.tsv", "selgb.txt",
    }  # fmt: skip
    assert rs.load(search / "selgb.txt").info["candidates"]["depth"] == 200


def test_the_collection_of_the_demo_is_made_again_but_grades_are_kept(tmp_path, monkeypatch):
    options = {"n_docs": 120, "n_queries": 8, "trees": 2, "seed": 0}
    make_search(tmp_path, **options)
    (tmp_path / "judgements.txt").write_text("q001 0 doc-0001 4\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert make_search(tmp_path, **options)[1].endswith("pip install 'ranksieve[serve]', then")
    assert (tmp_path / "judgements.txt").read_text() == "q001 0 doc-0001 4\n"


def test_the_command_line_and_python_write_the_same_bytes(run, tmp_path):
    """The two examples of the README, smaller."""
    train, valid, model = (tmp_path / name for name in ("train.parquet", "valid.parquet", "model.txt"))
    run("synth", "two-stage", "--queries", "6", "--out", train)
    run("synth", "two-stage", "--queries", "4", "--start", "6", "--out", valid)
    options = ("--trees", "3", "--leaves", "8", "--threads", "1")
    assert run("train", train, "--valid", valid, "--algo", "selgb", *options, "--out", model, "--quiet").code == 0
    data, watched = rs.synth.two_stage(6), rs.synth.two_stage(4, start=6)
    rs.train(data, valid=watched, algo="selgb", trees=3, leaves=8, threads=1).save(tmp_path / "python.txt")
    assert model.read_bytes() == (tmp_path / "python.txt").read_bytes()


def test_training_within_a_limit_of_memory(files, run, tmp_path, small_memory):
    """The same model; bins in a file beside the data, in a folder, or removed."""
    train = tmp_path / "train.txt"
    train.write_text((files / "train.txt").read_text())
    sets = [train, "--valid", files / "valid.txt", "--quiet", *QUICK]
    assert run("train", *sets, "--out", tmp_path / "a.txt").code == 0
    outcome = run("train", *sets, "--out", tmp_path / "b.txt", "--memory", "4K")
    assert outcome.code == 0 and f"they are kept in {tmp_path / 'train.txt.bins'}" in outcome.output
    assert (tmp_path / "train.txt.bins").exists()
    assert same_trees(rs.load(tmp_path / "a.txt"), rs.load(tmp_path / "b.txt"))
    assert run("train", *sets, "--out", tmp_path / "c.txt", "--memory", "4K", "--no-keep-bins").code == 0
    assert not (tmp_path / "train.txt.bins").exists()
    settings = tmp_path / "settings.toml"
    settings.write_text(f'memory = "4K"\nbin-folder = "{tmp_path / "bins"}"\n')
    outcome = run("train", *sets, "--out", tmp_path / "d.txt", "--params", settings)
    assert outcome.code == 2 and "--bin-folder FOLDER" in outcome.output
    (tmp_path / "bins").mkdir()
    assert run("train", *sets, "--out", tmp_path / "d.txt", "--params", settings).code == 0
    assert len(list((tmp_path / "bins").glob("train.txt.*.bins"))) == 1
    assert same_trees(rs.load(tmp_path / "a.txt"), rs.load(tmp_path / "d.txt"))


def test_a_depth_without_limit_as_in_lightgbm(files, run, tmp_path):
    (tmp_path / "deep.toml").write_text("max-depth = -1\n")
    models = []
    for options in ((), ("--max-depth", "-1"), ("--params", tmp_path / "deep.toml")):
        outcome = run("train", files / "train.txt", "--out", tmp_path / "m.txt", *QUICK, *options, "--quiet")
        assert outcome.code == 0, outcome.output
        models.append((tmp_path / "m.txt").read_bytes())
    assert models[0] == models[1] == models[2]


def test_on_short_lists_selgb_is_lambdamart(files, run, tmp_path):
    small = ["--trees", 3, "--leaves", 4, "--min-docs", 3, "--threads", 1]
    models = {}
    for name, options in {"all": (), "lambdamart": ("--algo", "lambdamart"), "some": ("--min-negatives", 1)}.items():
        outcome = run("train", files / "train.txt", "--out", tmp_path / f"{name}.txt", *small, *options)
        assert outcome.code == 0, outcome.output
        models[name] = rs.load(tmp_path / f"{name}.txt")
    assert same_trees(models["all"], models["lambdamart"]) and not same_trees(models["all"], models["some"])


def test_the_number_of_trees_is_cross_validated_if_nothing_says_when_to_stop(files, run, tmp_path):
    small = ["--leaves", 4, "--min-docs", 3, "--threads", 1]
    n_queries = rs.read(files / "train.txt").n_queries
    note = f"the number of trees is chosen by cross-validation on {n_queries} queries, 5 folds; give --valid for early "
    for options, is_chosen in {
        ("--early-stopping", 5): True,
        ("--trees", 4): False,
        ("--trees", 4, "--valid-fraction", 0.2): True,
        ("--trees", 4, "--early-stopping", 2): True,
        ("--trees", 4, "--early-stopping", 0): False,
        ("--valid", files / "valid.txt", "--early-stopping", 2): False,
    }.items():
        outcome = run("train", files / "train.txt", "--out", tmp_path / "m.txt", *small, *options)
        text = " ".join(outcome.output.split())
        assert outcome.code == 0 and (note in text) == is_chosen, outcome.output
        model = rs.load(tmp_path / "m.txt")
        assert model.info["data"]["queries"] == n_queries and ("cross_validation" in model.info) == is_chosen
        if is_chosen:
            facts = model.info["cross_validation"]
            shown = f"ndcg@10 {facts['value']:.4f} after {facts['rounds']} tree"
            assert shown in text and f"5 folds of {n_queries} queries" in text and "gain 2^label-1" in text


def test_test_queries_that_are_held_out_of_the_training_data_are_warned_of(files, run, tmp_path):
    data = rs.read(files / "train.txt")
    rs.io.write_letor(data, tmp_path / "again.txt")
    outcome = run(
        "train", files / "train.txt", "--test", tmp_path / "again.txt", "--out", tmp_path / "m.txt", "--leaves", 4,
        "--min-docs", 3, "--early-stopping", 20, "--size", 2,
    )  # fmt: skip
    held_out = rs.load(tmp_path / "m.txt").info["held_out_validation"]["queries"]
    assert held_out > 0 and outcome.code == 0
    assert f"{data.n_queries} of {data.n_queries} queries" in " ".join(outcome.output.split())


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_cross_validation_shows_notes_once(quiet, files, run):
    small = ["--trees", 2, "--leaves", 4, "--min-docs", 3000, "--threads", 1]
    outcome = run("cv", files / "train.txt", "--folds", 3, *small, *quiet)
    assert outcome.code == 0 and outcome.output.count("no tree can split") == 1


def test_too_few_documents_for_a_split_are_reported(files, run, tmp_path):
    outcome = run("train", files / "train.txt", "--out", tmp_path / "m.txt", "--trees", 1, "--min-docs", 1000)
    note = "no tree can split 360 documents into leaves of at least 1000: all documents get one score; lower "
    assert outcome.code == 0 and f"{note}--min-docs" in " ".join(outcome.output.split())


@pytest.mark.parametrize("command", ["train", "prune"])
def test_fields_with_the_names_of_options_are_refused(command, files, model, run, tmp_path):
    rules = tmp_path / "rules.py"
    text = "class {}:\n    {}: int = 1\n\n    def __call__(self, *given):\n        return None\n\n\n"
    names = {"Out": "out", "Help": "help", "Short": "n_features" if command == "prune" else "local_workers"}
    body = "".join(f"@dataclass(frozen=True)\n{text.format(*one)}" for one in names.items())
    rules.write_text(f"from dataclasses import dataclass\n\n\n{body}")
    words = {
        "train": ("train", files / "train.txt", "--out", tmp_path / "m.txt", "--selection"),
        "prune": (
            "prune",
            model,
            "--valid",
            files / "valid.txt",
            "--rate",
            0.5,
            "--out",
            tmp_path / "m.txt",
            "--strategy",
        ),
    }
    for rule, name in names.items():
        outcome = run(*words[command], f"{rules}:{rule}")
        shown, option = " ".join(outcome.output.split()), "--" + name.replace("_", "-")
        assert outcome.code == 2, shown
        assert f"the field '{name}' of a rule would become the option {option}, but this command has" in shown


def test_a_test_file_that_is_no_data_is_refused_before_training(run, files, tmp_path):
    (tmp_path / "other.txt").write_text("Q1 1:0.5\n")
    outcome = run(
        "train", files / "train.txt", "--test", tmp_path / "other.txt", "--out", tmp_path / "model.txt", *QUICK
    )
    assert outcome.code == 2 and "other.txt:1: label 'Q1' is not a number" in outcome.output
    assert not (tmp_path / "model.txt").exists()
