"""`ranksieve experiment`."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from ranksieve.cli.app import app
from ranksieve.experiments.spec import shipped_specs

SPEC = """
[data.web]
generate = "two-stage"
queries = 10
features = 5
[[runs]]
name = "SelGB"
algo = "selgb"
negatives = [0.05, 0.2]
min-negatives = 1
trees = 3
leaves = 4
threads = 1
"""


def test_an_experiment_runs_and_goes_on(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    outcome = run("experiment", path, "--out", tmp_path / "out", "--jobs", 1)
    assert outcome.code == 0, outcome.output
    assert "2/2 cells  web: SelGB, negatives 0.2, seed 0" in outcome.output
    assert "ndcg@10: " in outcome.output
    again = run("experiment", path, "--out", tmp_path / "out", "--jobs", 1)
    assert "/2 cells  web" not in again.output


def test_own_files_replace_the_data(run, files, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    parts = [item for name in ("train", "valid", "test") for item in (f"--{name}", files / f"{name}.txt")]
    outcome = run("experiment", path, "--out", tmp_path / "out", "--jobs", 1, *parts)
    assert outcome.code == 0, outcome.output
    assert "2/2 cells  train: SelGB" in outcome.output
    folded = run(
        "experiment", path, "--out", tmp_path / "folds", "--jobs", 1, "--data", files / "train.txt", "--folds", 3
    )
    assert "6/6 cells  train fold 3: SelGB" in folded.output
    smaller = run(
        "experiment", path, "--out", tmp_path / "set", "--set", "negatives=0.1", "--set", "gain=newton", *parts
    )
    assert "1/1 cells  train: SelGB" in smaller.output


def test_own_data_without_a_first_stage(run, files, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC + '[[runs]]\nname = "short"\nsample = { how = "truncate", k = 3 }\ntrees = 2\n')
    line = ["experiment", path, "--out", tmp_path / "out", "--jobs", 1, "--data", files / "train.txt"]
    refused = run(*line)
    shown = " ".join(refused.output.split())
    assert refused.code == 2 and f"error: {files / 'train.txt'}: does not say which feature is the first" in shown
    assert "'short' samples; name it: --first-stage FEATURE" in shown
    path.write_text(path.read_text().replace('generate = "two-stage"', 'generate = "cubic"'))
    refused = " ".join(run(*line[:-2]).output.split())
    assert f"{path}:16: data 'web' has no first-stage feature; name it (first-stage = " in refused
    assert run(*line, "--first-stage", "f1", "--set", "min-docs=1").code == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_data_from_a_pipe(jobs, files, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    command = ["experiment", str(path), "--data", "-", "--out", str(tmp_path), "--jobs", jobs]
    for expected in (2, 0):  # cells that run
        done = CliRunner().invoke(app, command, input=(files / "train.txt").read_bytes())
        assert done.exit_code == 0 and done.output.count("seed 0") == expected
        assert "standard input" in done.output
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_tuning_shows_what_it_chose(run, tmp_path):
    pytest.importorskip("optuna")
    path = tmp_path / "mine.toml"
    path.write_text(SPEC + "[tune]\nleaves = [5]\n")
    outcome = run("experiment", path, "--out", tmp_path / "out", "--jobs", 1, "--tune", 2, "--quiet")
    assert outcome.code == 0, outcome.output
    best = json.loads(next((tmp_path / "out" / "tune").glob("*.json")).read_text())
    shown = " ".join(outcome.output.replace("│", " ").split())
    assert "Parameters chosen by search" in shown
    assert f"leaves 5 {best['value']:.4f} 2" in shown.replace(best["best"]["grid"] + ", ", "")
    report = run("report", tmp_path / "out")
    assert report.code == 0, report.output
    text = (tmp_path / "out" / "report" / "report.md").read_text()
    assert "**Parameters chosen by search**" in text and f"grid {best['best']['grid']}, leaves 5" in text


def test_mistakes_are_one_line(run, files, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC.replace("0.2]", "2]"))
    outcome = run("experiment", path, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "mine.toml:9: --negatives is 2.0; expected a number in (0, 1]" in outcome.output
    assert not (tmp_path / "out").exists()
    path.write_text(SPEC)
    both = run(
        "experiment", path, "--out", tmp_path / "out", "--data", files / "train.txt", "--train", files / "train.txt"
    )
    assert "mutually exclusive" in both.output
    assert "as in trees=200" in run("experiment", path, "--out", tmp_path / "out", "--set", "trees").output
    missing = run("experiment", path, "--out", tmp_path / "out", "--data", tmp_path / "none.txt")
    assert missing.code == 2 and "none.txt" in missing.output
    assert "fig1" in run("experiment", "fig99", "--out", tmp_path / "out").output


def test_a_report_is_made_from_the_folder(run, tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    assert run("experiment", path, "--out", tmp_path / "out", "--jobs", 1, "--quiet").code == 0
    outcome = run("report", tmp_path / "out")
    assert outcome.code == 0, outcome.output
    assert (tmp_path / "out" / "report" / "report.md").exists()
    nothing = run("report", tmp_path)
    assert nothing.code == 2
    assert "holds no experiment; give the folder" in " ".join(nothing.output.split())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    without = run("report", tmp_path / "out")
    assert without.code == 2 and "ranksieve[plots]" in without.output


def test_the_quick_size_prints_a_caveat(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    common = ("experiment", path, "--jobs", 1, "--quiet", "--out")
    assert "too small to compare models; test queries: 2 on web" in run(*common, tmp_path / "quick", "--quick").output
    assert "too small" not in run(*common, tmp_path / "full").output


def test_help_names_the_shipped_specifications(run):
    text = run("experiment", "--help").output
    assert all(name in text for name in shipped_specs())
