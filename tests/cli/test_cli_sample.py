"""`ranksieve sample`."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs


def test_three_ways_to_sample(files, model, run, tmp_path):
    data = rs.read(files / "train.txt")
    out = tmp_path / "out.parquet"
    expected = {
        ("truncate", "--k", 3, "--by", "f2", "--positives", "drop"): rs.sampling.truncate(
            data, 3, by="f2", positives="drop"
        ),
        ("by-model", "--model", model, "--share", 0.2): rs.sampling.by_model(data, rs.load(model).predict(data), 0.2),
        ("undersample", "--n", 2, "--seed", 5): rs.sampling.undersample(data, n=2, seed=5),
        ("undersample", "--share", 0.5, "--order", "ascending", "--by", "f1"): rs.sampling.undersample(
            data, share=0.5, order="ascending", by="f1"
        ),
    }
    for (how, *options), sampled in expected.items():
        outcome = run("sample", how, files / "train.txt", *options, "--out", out)
        assert outcome.code == 0, outcome.output
        assert f"{sampled.n_docs:,} of {data.n_docs:,} documents" in outcome.output
        np.testing.assert_array_equal(rs.read(out).features, sampled.features)


def test_positives_beyond_the_cut_give_a_warning(files, run, tmp_path):
    outcome = run("sample", "truncate", files / "train.txt", "--k", 1, "--by", "f5", "--out", tmp_path / "out.txt")
    assert outcome.code == 0
    assert "warning:" in outcome.output and "--positives drop" in outcome.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shrink",), "unknown way to sample 'shrink'"),
        (("truncate",), "truncate needs --k"),
        (("by-model", "--share", 0.5), "by-model needs --model"),
        (("undersample",), "exactly one of --n"),
        (("truncate", "--k", 5), "no first-stage feature is known"),
    ],
)
def test_wrong_wishes_are_exit_code_2(arguments, message, files, run, tmp_path):
    how, *options = arguments
    outcome = run("sample", how, files / "train.txt", *options, "--out", tmp_path / "out.txt")
    assert outcome.code == 2
    assert message in outcome.output
    assert not (tmp_path / "out.txt").exists()


def test_split_into_two_parts(files, run, tmp_path):
    outcome = run("split", files / "train.txt", "--out", tmp_path / "two", "--shares", "80/20")
    assert outcome.code == 0, outcome.output
    assert sorted(file.name for file in (tmp_path / "two").iterdir()) == ["test.parquet", "train.parquet"]
    assert [rs.read(tmp_path / "two" / f"{name}.parquet").n_queries for name in ("train", "test")] == [24, 6]
    refused = run("split", files / "train.txt", "--out", tmp_path / "x", "--shares", "80")
    assert refused.code == 2 and "as in 60/20/20 or 80/20" in refused.output


def test_split_says_which_columns_were_renamed(run, tmp_path):
    rows = "".join(f"{row % 9},{row % 2},{row}\n" for row in range(40))
    (tmp_path / "own.csv").write_text("session,grade,bm25\n" + rows)
    outcome = run("split", tmp_path / "own.csv", "--label", "grade", "--qid", "session", "--out", tmp_path / "parts")
    assert outcome.code == 0, outcome.output
    assert "columns label (before: grade), qid (before: session)" in " ".join(outcome.output.split())
    assert run("describe", tmp_path / "parts" / "train.parquet").code == 0


def test_split_into_folds(files, run, tmp_path):
    outcome = run("split", files / "train.txt", "--out", tmp_path / "folds", "--folds", 5, "--format", "letor")
    assert outcome.code == 0, outcome.output
    tested = []
    for fold in range(1, 6):
        parts = [rs.read(tmp_path / "folds" / f"fold{fold}" / f"{name}.txt") for name in ("train", "valid", "test")]
        assert [part.n_queries for part in parts] == [18, 6, 6]
        tested += parts[2].query_ids.tolist()
    assert sorted(tested) == sorted(rs.read(files / "train.txt").query_ids.tolist())
    refused = run("split", files / "train.txt", "--out", tmp_path / "x", "--folds", 5, "--shares", "80/20")
    assert refused.code == 2 and "--folds and --shares are mutually exclusive" in refused.output


def test_split_replaces_earlier_parts_only_where_told(files, run, tmp_path):
    parts = tmp_path / "parts"
    line = ("split", files / "train.txt", "--out", parts)
    assert run(*line).code == 0
    before = {file.name: file.read_bytes() for file in parts.iterdir()}
    refused = run(*line, "--seed", 4)
    shown = " ".join(refused.output.split())
    assert refused.code == 2 and "train.parquet: exists already; choose another folder, or replace" in shown
    assert "--replace" in shown
    assert {file.name: file.read_bytes() for file in parts.iterdir()} == before
    left = run(*line, "--shares", "80/20", "--replace")
    assert left.code == 2 and "valid.parquet: is a part of another split" in " ".join(left.output.split())
    assert {file.name: file.read_bytes() for file in parts.iterdir()} == before
    assert run(*line, "--seed", 4, "--replace").code == 0
    assert (parts / "train.parquet").read_bytes() != before["train.parquet"]
    assert run(*line, "--folds", 3).code == 0
    refused = run(*line, "--folds", 3)
    assert refused.code == 2 and "fold1/train.parquet: exists already" in " ".join(refused.output.split())
    left = run(*line, "--folds", 4, "--replace").output + run(*line, "--folds", 3, "--replace").output
    assert "fold4/train.parquet: is a part of another split" in " ".join(left.split())


def test_cv_replaces_earlier_models_only_where_told(files, run, tmp_path):
    line = ("cv", files / "train.txt", "--folds", 3, "--algo", "feature", "--feature", "f1", "-q", "--out", tmp_path)
    assert run(*line).code == 0
    refused = run(*line)
    assert refused.code == 2 and "fold1.json: exists already" in " ".join(refused.output.split())
    assert run(*line, "--replace").code == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "sample truncate DATA --k 3 --by f1 --out u.csv",
            "u.csv: expected a name that ends in .parquet, or for LETOR",
        ),
        (
            "synth cubic --queries 3 --out made",
            "made: expected a name that ends in .parquet, or for LETOR text in .txt",
        ),
        ("synth cubic --queries 3 --out made.parquet.gz", "followed by .gz, .xz, .zst"),
        ("pack DATA --out packed.csv", "packed.csv: the data is written as Parquet; name it packed.parquet"),
        ("clicks lists log.jsonl --data DATA --out lists.csv", "lists.csv: expected a name that ends in .parquet"),
        ("feature-log log.json --out logged.json", "logged.json: expected a name that ends in .parquet"),
    ],
)
def test_names_of_other_formats_are_refused(line, message, files, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run(*(files / "train.txt" if word == "DATA" else word for word in line.split()))
    assert outcome.code == 2 and message in " ".join(outcome.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.txt", "a.letor", "a.dat", "a.svm.gz", "a.TXT", "a.PARQUET", "a.b.txt.xz"])
def test_names_of_data_files(name, run, tmp_path):
    assert run("synth", "cubic", "--queries", 3, "--out", tmp_path / name).code == 0
    data = rs.read(tmp_path / name)
    assert data.n_queries == 3
    assert (tmp_path / name).read_bytes().startswith(b"PAR1") == name.endswith(".PARQUET")
