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


def test_the_trap_is_told(files, run, tmp_path):
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
