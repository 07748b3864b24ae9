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
