"""The rankers beside forests on the command line: trained, applied, compared and described like any model."""

from __future__ import annotations

import numpy as np
import pytest
from cli_samples import QUICK

import ranksieve as rs

GROWING = [*QUICK[: QUICK.index("--negatives")], "--threads", "1", "--trees", "3"]  # McRank selects nothing
ALGORITHMS = {
    "ranksvm": ([], "5 weights", "weight"),
    "lambdarank": (["--hidden", "3", "--epochs", "4"], "3 hidden units", "influence"),
    "mcrank": (GROWING, "trees", "share of gain"),
    "mcrank-ordinal": (GROWING, "trees", "share of gain"),
    "feature": (["--feature", "f1"], "1 weight", "weight"),
    "lightgbm": (GROWING, "trees", "share of gain"),
}


@pytest.fixture(scope="module", params=ALGORITHMS)
def trained(request, files, run, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "model"
    flags, size, column = ALGORITHMS[request.param]
    sets = [files / "train.txt", "--valid", files / "valid.txt", "--test", files / "test.txt"]
    outcome = run("train", *sets, "--out", path, "--algo", request.param, *flags)
    assert outcome.code == 0, outcome.output
    return path, outcome.output, size, column


def test_training_prints_its_metrics(trained, files):
    path, output, size, _ = trained
    shown, model = " ".join(output.split()), rs.load(path)
    assert size in model.size
    assert f"model {path}, {model.size}" in shown
    assert f"validation ndcg@10 {rs.evaluate(model, rs.read(files / 'valid.txt')).mean():.4f}" in shown
    assert f"test ndcg@10 {rs.evaluate(model, rs.read(files / 'test.txt')).mean():.4f}" in shown


def test_predict_streams(trained, files, run, tmp_path):
    path, scores = trained[0], tmp_path / "scores.txt"
    assert run("predict", path, files / "test.txt", "--out", scores).code == 0
    assert np.array_equal(np.loadtxt(scores), rs.load(path).predict(rs.read(files / "test.txt")))


def test_only_forests_are_scored_on_a_gpu(trained, files, run, tmp_path):
    path, scores = trained[0], tmp_path / "scores.txt"
    if not isinstance(rs.load(path), rs.Forest):
        done = run("predict", path, files / "test.txt", "--out", scores, "--device", "cuda")
        assert done.code != 0
        assert "only forests are scored on a GPU; use --device cpu" in " ".join(done.output.split())
        assert not scores.exists()
    assert run("predict", path, files / "test.txt", "--out", scores, "--device", "auto").code == 0


def test_evaluate_beside_a_forest(trained, model, files, run):
    path, _, size, _ = trained
    outcome = run("evaluate", model, path, files / "test.txt")
    assert outcome.code == 0
    assert size in outcome.output
    assert f"{rs.load(model).n_trees} trees" in outcome.output
    assert f"{rs.evaluate(rs.load(path), rs.read(files / 'test.txt')).mean():.4f}" in outcome.output


def test_describe(trained, run):
    path, _, size, column = trained
    outcome = run("describe", path)
    assert outcome.code == 0
    for text in (size, column, "f1", "ndcg@10"):
        assert text in outcome.output


def test_what_only_forests_can_do_is_refused(files, run, tmp_path):
    flags = ["--algo", "ranksvm", "--checkpoint", tmp_path / "state"]
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model", *flags)
    assert outcome.code == 2
    assert "--checkpoint is not used by --algo ranksvm" in outcome.output
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--algo", "ranksvm", "--trees", "3"], "--trees is not used by --algo ranksvm, only by --algo lambdamart"),
        (["--algo", "mcrank", "--negatives", "0.2", "--c", "3"], "--negatives is not used by --algo mcrank"),
        (
            ["--algo", "lambdamart", "--negatives", "0.2"],
            "not used by --algo lambdamart, only by --selection goss, ",
        ),
        (["--grow", "3"], "--grow is not used by --algo selgb, only by --algo xcleaver; leave it out"),
        (["--selection", "adaptive", "--rest", "0.2"], "--rest is not used by --algo selgb with --selection adaptive"),
        (["--step-range", "0", "1"], "--step-range is not used by --algo selgb, only by --step optimal"),
        (
            ["--step", "optimal", "--learning-rate", "0.5"],
            "--learning-rate is not used by --algo selgb, only by --step",
        ),
        (["--algo", "xcleaver", "--step", "optimal", "--step-on", "valid"], "--step-on is not used by --algo xcleaver"),
        (["--algo", "mart", "--no-normalize"], "--normalize is not used by --algo mart"),
        (["--algo", "mcrank", "--metric", "err", "--gains", "0,1,3"], "--gains is 0,1,3, and neither the metric err"),
    ],
)
def test_parameters_that_are_not_used_are_refused(files, run, tmp_path, flags, message):
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model", *flags)
    assert outcome.code == 2
    assert message in " ".join(outcome.output.split())
    assert not (tmp_path / "model").exists()


def test_a_file_for_several_algorithms_changes_no_ranker(files, run, tmp_path):
    """Parameters of forests in the file have no effect on McRank, which the boosting loop trains too."""
    (tmp_path / "params.toml").write_text("selection = 'top'\nstep = 'optimal'\nrow-fraction = 0.5\nhidden = 7\n")
    for name, more in (("plain", ()), ("file", ("--params", tmp_path / "params.toml"))):
        outcome = run("train", files / "train.txt", "--algo", "mcrank", "--out", tmp_path / name, *GROWING, *more)
        assert outcome.code == 0, outcome.output
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "file").read_bytes()
