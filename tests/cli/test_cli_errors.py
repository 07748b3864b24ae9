"""Bad input: one clear line, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import pytest
from cli_samples import QUICK, letor_text

import ranksieve as rs
from ranksieve.cli.console import show_error
from ranksieve.retrieval.index import Index

GOOD = letor_text(10, 9)
TEN_GOOD_LINES = letor_text(1, 9, size=10)


def refused(outcome, *words: str) -> None:
    assert outcome.code == 2, outcome.output
    assert "Traceback" not in outcome.output
    lines = [line for line in outcome.output.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, outcome.output
    for word in words:
        assert word in lines[0], lines[0]


BAD_LINES = {
    "label": ("x qid:1 1:0.5\n", "not a number"),
    "no qid": ("1 1:0.5 2:1\n", "qid"),
    "value": ("1 qid:1 1:abc\n", "not a number"),
    "infinite": ("1 qid:1 1:inf\n", "inf"),
    "feature 0": ("1 qid:1 0:0.5\n", "0"),
    "order": ("1 qid:1 2:0.5 1:0.5\n", "order"),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named(run, tmp_path, bad):
    line, word = BAD_LINES[bad]
    path = tmp_path / "train.txt"
    path.write_text(TEN_GOOD_LINES + line)
    refused(run("train", path, "--out", tmp_path / "model.txt", "--quiet", *QUICK), f"{path}:11", word)
    assert os.listdir(tmp_path) == ["train.txt"]
    refused(run("pack", path, "--out", tmp_path / "data.parquet"), f"{path}:11", word)
    refused(run("describe", path), f"{path}:11", word)
    assert os.listdir(tmp_path) == ["train.txt"]


def test_an_empty_file(files, run, tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("")
    refused(run("train", path, "--out", tmp_path / "model.txt"), str(path), "empty")
    path.write_text("\n\n")
    refused(run("train", path, "--out", tmp_path / "model.txt"), str(path), "no documents")
    refused(run("train", files / "train.txt", "--valid", path, "--out", tmp_path / "model.txt"), "no documents")


def test_a_file_that_is_not_there(files, run, model, tmp_path):
    gone = tmp_path / "gone.txt"
    for option in ("--valid", "--test"):
        refused(run("train", files / "train.txt", option, gone, "--out", tmp_path / "m.txt"), "gone.txt")
    refused(run("train", gone, "--out", tmp_path / "m.txt"), "gone.txt", "no such file")
    refused(run("predict", gone, files / "test.txt", "--out", tmp_path / "s.txt"), "gone.txt")
    refused(run("predict", model, gone, "--out", tmp_path / "s.txt"), "gone.txt")
    refused(run("evaluate", model, gone, files / "test.txt"), "gone.txt")
    refused(run("describe", gone), "gone.txt", "no such file")
    refused(run("train", files / "train.txt", "--out", tmp_path / "m.txt", "--params", gone), "gone.txt")
    assert os.listdir(tmp_path) == []


def test_a_truncated_gz(run, tmp_path):
    path = tmp_path / "train.txt.gz"
    content = gzip.compress(GOOD.encode())
    path.write_bytes(content[: len(content) // 2])
    refused(run("train", path, "--out", tmp_path / "model.txt"), str(path), "cut short")


def test_a_folder_that_cannot_be_written_is_found_before_training(files, run, model, tmp_path, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("ranksieve.rankers.train.run", never)
    blocked = files / "train.txt" / "model.txt"
    for out in (tmp_path / "missing" / "model.txt", blocked):
        refused(run("train", files / "train.txt", "--out", out), str(out), "folder that exists")
    refused(run("train", files / "train.txt", "--out", tmp_path), "is a folder")
    refused(run("train", files / "train.txt", "--out", "/dev/null"), "not a regular file")
    refused(run("train", files / "train.txt", "--out", tmp_path / "m.txt", "--checkpoint", blocked), "cannot write")
    refused(run("predict", model, files / "test.txt", "--out", blocked), "cannot write")
    refused(run("evaluate", model, files / "test.txt", "--per-query", blocked), "cannot write")
    refused(run("demo", "--out", files / "train.txt"), "train.txt")
    (tmp_path / "selgb.txt").write_text("mine")
    refused(run("demo", "--out", tmp_path), "selgb.txt: exists already, and is not of a demonstration; choose another")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(files, run, tmp_path):
    tmp_path.chmod(0o500)
    refused(run("train", files / "train.txt", "--out", tmp_path / "model.txt"), "Permission denied")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_leaves_nothing(files, run, model, tmp_path, monkeypatch):
    out = tmp_path / "scores.txt"

    def full(*_: object) -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    monkeypatch.setattr("os.fsync", full)
    refused(run("predict", model, files / "test.txt", "--out", out), "No space left", "nothing was changed")
    assert os.listdir(tmp_path) == []


def test_a_model_cut_in_half(files, run, model, tmp_path):
    cut = tmp_path / "cut.txt"
    cut.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    scores = tmp_path / "scores.txt"
    refused(run("predict", cut, files / "test.txt", "--out", scores), str(cut))
    refused(run("evaluate", cut, files / "test.txt"), str(cut))
    refused(run("describe", cut), str(cut))
    refused(run("predict", files / "train.txt", files / "test.txt", "--out", scores), "train.txt")
    assert not scores.exists()


def test_data_with_other_features(files, run, model, tmp_path):
    wide = tmp_path / "wide.txt"
    wide.write_text(letor_text(5, 4, n_features=7))
    out = tmp_path / "model.txt"
    refused(run("train", files / "train.txt", "--valid", wide, "--out", out, "--quiet"), "wide.txt", "7", "5")
    refused(run("predict", model, wide, "--out", tmp_path / "s.txt"), "wide.txt", "7 features", "5")
    refused(run("evaluate", model, wide), "wide.txt", "7 features")
    assert os.listdir(tmp_path) == ["wide.txt"]


def test_one_class_only(run, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"0 qid:1 1:{value}\n" for value in range(50)))
    refused(run("train", path, "--out", tmp_path / "model.txt", "--quiet"), str(path), "two grades")


BAD_FLAGS = {
    "p above 1": (["--negatives", "1.5"], "--negatives is 1.5; expected a number in (0, 1]"),
    "algo": (["--algo", "nonsense"], "lambdamart"),
    "nearly": (["--algo", "SelGBB"], "did you mean 'selgb'?"),
    "leaves": (["--leaves", "1"], "--leaves is 1"),
    "rate": (["--learning-rate", "nan"], "--learning-rate is nan"),
    "metric": (["--metric", "nonsense@10"], "unknown metric"),
    "cut-off": (["--metric", "NDCG10"], "did you mean 'ndcg@10'?"),
    "hyphen": (["--metric", "rr-5"], "did you mean 'rr@5'?"),
    "missing": (["--missing", "nonsense"], "zero"),
}


@pytest.mark.parametrize("case", BAD_FLAGS)
def test_a_parameter_out_of_range(files, run, tmp_path, case):
    flags, message = BAD_FLAGS[case]
    refused(run("train", files / "train.txt", "--out", tmp_path / "model.txt", *flags), message)


BAD_TOML = {
    "unknown": ("learnin-rate = 0.1", "did you mean 'learning_rate'?"),
    "range": ("trees = 0", "--trees is 0"),
    "type": ('leaves = "many"', "--leaves is 'many'"),
    "syntax": ("leaves = = 3", "not a TOML file"),
}


@pytest.mark.parametrize("case", BAD_TOML)
def test_a_bad_toml_file_is_named(files, run, tmp_path, case):
    text, message = BAD_TOML[case]
    toml = tmp_path / "params.toml"
    toml.write_text(f"# mine\n{text}")
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model.txt", "--params", toml)
    refused(outcome, str(toml) if case == "syntax" else f"{toml}:2: ", message)


def test_the_same_model_twice(files, run, model):
    refused(run("evaluate", model, model, files / "test.txt"), "twice")


def test_brackets_in_messages_are_not_markup(capsys):
    show_error("expected one of [a, b]\nor [/c]")
    assert capsys.readouterr().err == "error: expected one of [a, b] or [/c]\n"


def test_an_empty_file_names_the_formats(run, model, tmp_path):
    (tmp_path / "none.csv").touch()
    refused(run("evaluate", model, tmp_path / "none.csv"), "the file is empty; expected LETOR lines", "CSV or Parquet")


def test_data_in_the_place_of_a_model(run, files, model, tmp_path):
    refused(run("evaluate", files / "test.txt", model), "test.txt", "is data, not a model")
    table = tmp_path / "test.csv"
    table.write_text("query;clicked;bm25\n7;1;2.5\n")
    for words in (("evaluate", table, model), ("convert", table, "--out", tmp_path / "m.onnx")):
        refused(run(*words), "test.csv: is data, not a model; models come before data")


@pytest.mark.parametrize(
    "command",
    [
        "train data.txt --trees 2 --out data.txt",
        "predict model.txt data.txt --out data.txt",
        "convert model.txt --out model.txt --format elasticsearch",
        "prune model.txt --train data.txt --rate 0.5 --out model.txt",
        "pack data.txt --out data.txt",
        "split train.txt --format letor --out .",
        "sample truncate data.txt --k 3 --out data.txt",
        "combine model.txt model.txt --data data.txt --out data.txt",
    ],
)
def test_what_is_read_is_not_overwritten(files, run, model, tmp_path, monkeypatch, command):
    for name in ("data.txt", "train.txt"):
        (tmp_path / name).write_bytes((files / "train.txt").read_bytes())
    (tmp_path / "model.txt").write_bytes(model.read_bytes())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    outcome = run(*command.split())
    assert outcome.code == 2 and "is read by this command" in outcome.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_name_that_promises_another_format_is_found_before_training(files, run, model, tmp_path):
    train = files / "train.txt"
    for name, words in (("m.onnx", "--format onnx"), ("m.c", "--format c"), ("m.json", "--format xgboost")):
        refused(run("train", train, "--out", tmp_path / name), "LightGBM text", words)
        refused(run("prune", model, "--train", train, "--rate", "0.5", "--out", tmp_path / name), words)
    assert os.listdir(tmp_path) == []


def test_a_model_in_the_place_of_data(run, model, tmp_path):
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "text": "x"}\n')
    refused(
        run("train", tmp_path / "documents.jsonl", "--out", tmp_path / "new.txt"),
        "is JSON Lines, not data; it is for ranksieve index (documents)",
    )
    refused(run("train", model, "--out", tmp_path / "new.txt"), "model.txt: is a model, not data")


def test_an_index_in_the_place_of_data(run, tmp_path):
    Index.build([{"id": "a", "text": "red"}], tmp_path / "index").close()
    refused(
        run("train", tmp_path / "index", "--out", tmp_path / "new.txt"),
        "index: is an index, not data; make data of it with: ranksieve features",
    )


def test_a_run_in_the_place_of_a_model(run, tmp_path):
    path = tmp_path / "first.run"
    path.write_text("1 Q0 d0 1 2.5 x\n")
    (tmp_path / "qrels").write_text("1 0 d0 1\n")
    refused(run("evaluate", path, tmp_path / "qrels"), "is a TREC run, not a model", "evaluate --run RUN --qrels QRELS")


OTHERS = {"run": "1 Q0 d0 1 2.5 x\n", "qrels": "1 0 d0 1\n", "queries.tsv": "q1\tred wine\n"}
NAMES = {"run": "a TREC run", "qrels": "a file of judgements (TREC qrels)", "queries.tsv": "a file of queries"}


@pytest.mark.parametrize("name", OTHERS)
def test_runs_judgements_and_queries_in_the_place_of_data_and_models(files, run, model, tmp_path, name):
    path, out = tmp_path / name, ("--out", tmp_path / "out")
    path.write_text(OTHERS[name])
    for words in (
        ("train", path, *out),
        ("train", files / "train.txt", "--valid", path, *out),
        ("train", files / "train.txt", "--test", path, *out),
        ("train", path, "--ignore", "title", *out),
        ("predict", model, path, *out),
        ("evaluate", model, path),
    ):
        refused(run(*words), f"{name}: is {NAMES[name]}, not data; it is for ranksieve ")
    for words in (("predict", path, files / "test.txt", *out), ("evaluate", path, files / "test.txt")):
        refused(run(*words), f"{name}: is {NAMES[name]}, not a model; it is for ranksieve ")


@pytest.mark.parametrize(
    ("package", "options", "extra"),
    [("lightgbm", ("--algo", "lightgbm"), "lightgbm"), ("distributed", ("--local-workers", 2), "dask")],
)
def test_missing_extras_are_reported_first(files, run, tmp_path, monkeypatch, package, options, extra):
    monkeypatch.setitem(sys.modules, package, None)
    outcome = run("train", files / "train.txt", "--out", tmp_path / "m.txt", *options)
    refused(outcome, f"ranksieve[{extra}]")
    assert "reading" not in outcome.output


MISTAKES = {
    ("train", "DATA", "--trees", "twenty"): "--trees is 'twenty'; expected an integer from 1; see ranksieve train",
    ("train", "DATA", "--step-range", "1", "b"): "--step-range is '1 b'; expected two numbers",
    ("train", "DATA", "--tree", "20"): "unknown option --tree; did you mean '--trees'? see ranksieve train --help",
    ("train", "DATA", "--n-estimators", "20"): "unknown option --n-estimators; did you mean '--trees'? see",
    ("train", "DATA", "--lr", "0.1"): "unknown option --lr; did you mean '--learning-rate'? see",
    ("train", "DATA", "--boosting-type", "goss"): "there is no dart and no rf; for goss use --selection goss; --algo",
    ("train", "DATA", "--lambda-l1", "1"): "there is no L1 regularisation of leaf values, only --l2",
    ("train", "DATA", "--eval-at", "10"): "the rank is part of the metric's name, as in --metric ndcg@10; evaluate",
    ("evaluate", "M", "DATA", "--eval-at", "10"): "the rank is part of the metric's name, as in --metric ndcg@10",
    ("train", "DATA", "--out", "x", "--algo", "DART"): "there is no DART: trees are never dropped; use --algo",
    ("train", "DATA", "--out", "x", "--algo", "dart"): "there is no DART: trees are never dropped; use --algo",
    ("cv", "DATA", "--gamma", "1"): "there is no minimum split gain; limit trees by --leaves",
    ("train", "DATA", "--out", "x", "--objective", "lambdarank"): "did you mean 'ndcg'? known: auto",
    ("train", "DATA", "--out", "x", "--objective", "rank:ndcg"): "--objective is 'rank:ndcg'; did you mean 'ndcg'?",
    ("train", "DATA", "--out", "x", "--objective", "binary"): "use --objective ndcg; known: auto",
    ("train", "DATA", "--is-unbalance", "1"): "unknown option --is-unbalance; there are no class weights in ranking",
    ("train", "DATA", "--categorical-feature", "1"): "did you mean '--categorical'? see ranksieve train",
    ("convert", "M", "--to", "xgboost"): "unknown option --to; did you mean '--format'? see",
    ("prune", "M", "--trees", "5"): "unknown option --trees; did you mean '--size'? see",
    ("clicks", "fit", "LOG", "--out", "x"): "unknown option --out; did you mean '--qrels'? see",
    ("train", "DATA", "--verbosity", "-1"): "unknown option --verbosity; did you mean '--quiet'? see",
    ("train", "DATA", "--verbose"): "unknown option --verbose; did you mean '--quiet'? see",
    ("train", "DATA", "--init-model", "M"): "unknown option --init-model; training starts from --init; see",
    ("train", "DATA", "--num-trees", "5"): "unknown option --num-trees; did you mean '--trees'? see",
    ("train", "DATA", "--min-data-in-leaf", "5"): "unknown option --min-data-in-leaf; did you mean '--min-docs'? see",
    ("predict", "MODEL", "DATA", "--threads=x"): "--threads is 'x'; expected an integer from 0",
    ("explain", "MODEL", "DATA", "--top", "0"): "--top is '0'; ",
    ("train", "DATA", "--lambdarank-truncation-level", "5"): "did you mean '--truncation'? see",
    ("cv", "DATA", "--nfold", "5"): "unknown option --nfold; did you mean '--folds'? see",
    ("tune", "DATA", "--n-trials", "5"): "unknown option --n-trials; did you mean '--trials'? see",
    ("convert", "MODEL", "--format", "xgbost", "--out", "x"): "--format is 'xgbost'; did you mean 'xgboost'? expected",
    ("compare", "MODEL", "DATA"): "unknown command compare; did you mean 'evaluate'? see ranksieve --help",
    ("prune", "MODEL", "--data", "DATA"): "unknown option --data; give the data as --valid FILE; see ranksieve prune",
    ("prune", "MODEL", "DATA", "--rate", "0.5", "--out", "x"): "; give the data as --valid FILE; see ranksieve prune",
    ("train", "DATA", "--max-depth", "-2", "--out", "x"): "--max-depth is -2; expected an integer from 0",
    (
        "split",
        "DATA",
        "--shares",
        "60/20/10",
        "--out",
        "x",
    ): "which adds up to 90; expected 100 or 1, as in 60/20/20",
    ("trian", "DATA"): "unknown command trian; did you mean 'train'? see ranksieve --help",
    ("predict", "MODEL"): "DATA is missing; see ranksieve predict --help",
    ("sample", "truncate", "DATA"): "--out is missing; see ranksieve sample --help",
    ("sample", "DATA", "--out", "x"): "expected one of truncate, by-model, undersample",
    ("sample", "truncat", "DATA", "--out", "x"): "did you mean 'truncate'?",
    (
        "evaluate",
        "MODEL",
        "DATA",
        "--metric",
        "ndcg@0",
    ): "the cut-off of 'ndcg@0' is '0'; expected an integer from 1",
    ("evaluate", "MODEL", "MODEL", "DATA"): "is given twice; name each model or run once",
    ("train", "DATA", "--params", "no.toml", "--out", "x"): "no.toml: cannot be read (No such file or directory); give",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistyped_commands(files, run, model, words):
    paths = {"DATA": files / "test.txt", "MODEL": model}
    refused(run(*(paths.get(word, word) for word in words)), MISTAKES[words])


def test_data_without_positives_is_reported(files, run, model, tmp_path):
    path = tmp_path / "zeros.txt"
    lines = (files / "test.txt").read_text().splitlines()
    path.write_text("".join(f"0{line[1:]}\n" for line in lines))
    outcome = run("evaluate", model, path)
    assert outcome.code == 0 and "warning: ndcg@10 is undefined because no query has a positive" in outcome.output


FAILING = """def unknown_name(*_):
    return missing_name


def in_a_library(outputs, n, rng):
    import json

    return json.loads("{")


def gone(outputs, n, rng):
    return open("gone.csv")
"""


def test_an_error_in_a_users_function_names_its_line(files, model, run, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    training = ("train", files / "train.txt", "--quiet", "--out", "m.txt", "--trees", "3", "--threads", "1")
    pruning = ("prune", model, "--valid", files / "valid.txt", "--rate", "0.5", "--quiet", "--out", "m.txt")
    unknown = "mine.py:2 in unknown_name: NameError: name 'missing_name' is not defined; correct the function"
    refused(run(*training, "--objective", "mine.py:unknown_name"), f"error: {unknown}")
    refused(run(*training, "--selection", "mine.py:unknown_name"), f"error: {unknown}")
    refused(run(*pruning, "--strategy", "mine.py:unknown_name"), f"error: {unknown}")
    refused(run(*pruning, "--strategy", "mine.py:in_a_library"), "mine.py:8 in in_a_library: JSONDecodeError: Exp")
    refused(run(*pruning, "--strategy", "mine.py:gone"), "mine.py:12 in gone: FileNotFoundError")
    monkeypatch.syspath_prepend(tmp_path)
    refused(run(*training, "--objective", "mine:unknown_name"), f"error: {tmp_path / unknown}")
    assert "m.txt" not in os.listdir(tmp_path)
    with pytest.raises(NameError):
        rs.prune(model, valid=files / "valid.txt", rate=0.5, strategy="mine.py:unknown_name")


def test_an_error_of_the_package_keeps_its_traceback(files, model, run, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("ranksieve.pruning.prune.prune", broken)
    with pytest.raises(ZeroDivisionError):
        run("prune", model, "--valid", files / "valid.txt", "--rate", "0.5", "--out", tmp_path / "m.txt")
