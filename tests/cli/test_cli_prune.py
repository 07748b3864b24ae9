"""`ranksieve prune` from file to file."""

from __future__ import annotations

import os
import re

import pytest

import ranksieve as rs
from ranksieve.progress import PruningProgress


def test_prune_writes_a_smaller_model_and_compares(files, model, run, tmp_path):
    out = tmp_path / "pruned.txt"
    outcome = run(
        "prune", model, "--train", files / "train.txt", "--valid", files / "valid.txt", "--test", files / "test.txt",
        "--rate", "0.5", "--rounds", "4", "--threads", "1", "--out", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.output
    full, pruned = rs.load(model), rs.load(out)
    assert pruned.n_trees == full.n_trees - full.n_trees // 2
    for words in ("cross-fitting: 100%", f"{pruned.n_trees} of {full.n_trees} trees", "p =", "ndcg@10: gain"):
        assert words in outcome.output, outcome.output
    assert f"cross-fitted  ndcg@10 {pruned.info['best_score']:.4f}" in outcome.output
    values = ("test", "cross-fitted", "validation", "training")
    shown = [line.split()[0] for line in outcome.output.splitlines() if line.startswith(values)]
    assert tuple(shown) == values
    assert outcome.output.count("in-sample: trees were judged on these lists") == 1
    worse = pruned.info["pruning"]["returned"] == "first trees"
    assert (f"the first {pruned.n_trees} trees are returned" in outcome.output) == worse
    assert "pruning" in pruned.info
    same = tmp_path / "same.txt"
    again = run("prune", model, "--train", files / "train.txt", "--valid", files / "valid.txt", "--rate", "0.5",
                "--rounds", "4", "--threads", "1", "--out", same, "--quiet", "--test", files / "valid.txt")  # fmt: skip
    assert "is validation and test data; the model is chosen on it" in " ".join(again.output.split())
    assert "is validation and test data" not in outcome.output
    assert rs.load(same).info["pruning"]["weights"] == pruned.info["pruning"]["weights"]


def test_progress_ends_with_why_it_ended(files, model, run, tmp_path):
    outcome = run("prune", model, "--train", files / "train.txt", "--valid", files / "valid.txt", "--rate", "0.5",
                  "--judge-on", "train", "--patience", "1", "--threads", "1",
                  "--out", tmp_path / "pruned.txt")  # fmt: skip
    assert outcome.code == 0, outcome.output
    assert re.search(r"re-weighting: 100%  ended after \d+ rounds, no gain for 1  training", outcome.output), (
        outcome.output
    )
    assert "at most" not in outcome.output.split("ended after")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rate", "1.5", "--valid", "gone.txt"), ("--rate is 1.5", "between 0 and 1")),  # before data is read
        (("--valid", "gone.txt"), ("--rate and --size are not given; give the share",)),
        (("--rate", "0.5", "--size", "3"), ("--rate and --size are both given", "or the number of trees to keep")),
        (("--size", "0"), ("--size is 0; expected an integer from 1",)),
        (("--size", "1000", "--valid", "gone.txt"), ("--size is 1000, but the model has", "give a number from 1 to")),
        (("--rate", "0.5", "--strategy", "best"), ("--strategy is 'best'", "quality-loss")),
        (("--rate", "0.5", "--metric", "ndgc"), ("unknown metric 'ndgc'",)),
        (("--rate", "0.5", "--samples", "1"), ("--samples is 1", "an integer from 2")),
        (("--rate", "0.5", "--strategy", "skip", "--draws", "5"), ("--draws is not used by --strategy skip", "random")),
        (("--rate", "0.5", "--judge-on", "test"), ("--judge-on is 'test'", "'valid' or 'train'")),
        (("--rate", "0.5", "--valid", "gone.txt"), ("gone.txt",)),
    ],
)
def test_bad_input_is_one_line(files, model, run, tmp_path, arguments, words):
    outcome = run("prune", model, "--train", files / "train.txt", "--out", tmp_path / "p.txt", "--quiet", *arguments)
    assert outcome.code == 2
    assert all(word in outcome.output for word in words), outcome.output
    assert not os.listdir(tmp_path)


def test_prune_to_a_number_of_trees(files, model, run, tmp_path):
    out = tmp_path / "pruned.txt"
    outcome = run(
        "prune", model, "--valid", files / "valid.txt", "--size", "3", "--rounds", "2", "--quiet", "--out", out
    )
    assert outcome.code == 0 and f"3 of {rs.load(model).n_trees} trees" in outcome.output, outcome.output
    assert rs.load(out).n_trees == 3 and rs.load(out).info["pruning"]["size"] == 3


def test_a_strategy_of_a_file_has_flags(files, model, run, tmp_path):
    (tmp_path / "own.py").write_text(
        "from dataclasses import dataclass\nimport numpy as np\n\n\n@dataclass(frozen=True)\nclass From:\n"
        "    own_first: int = 0\n\n    def __call__(self, outputs, n, rng):\n"
        "        return (np.arange(n) + self.own_first) % outputs.n_trees\n"
    )
    given = ("--strategy", f"{tmp_path}/own.py:From", "--own-first", "2", "--no-reweight", "--quiet")
    out = tmp_path / "pruned.txt"
    outcome = run("prune", model, "--train", files / "train.txt", "--rate", "0.3", "--out", out, *given)
    assert outcome.code == 0, outcome.output
    full, record = rs.load(model), rs.load(out).info["pruning"]
    n = int(0.3 * full.n_trees)
    assert record["kept"] == [0, 1, *range(2 + n, full.n_trees)]
    assert "--own-first INT" in run("prune", *given[:2], "--help").output


def test_lists_to_judge_on(files, model, run, tmp_path):
    out = ("--rate", "0.5", "--rounds", "2", "--quiet", "--out", tmp_path / "p.txt")
    missing = run("prune", model, *out)
    assert missing.code == 2 and "there are no lists to judge trees on; give --valid" in missing.output
    alone = run("prune", model, "--train", files / "train.txt", *out)
    assert alone.code == 0 and "not trained on as --valid, or --judge-on train" in alone.output.replace("\n", " ")
    assert run("prune", model, "--valid", files / "valid.txt", "--strategy", "random", "--draws", "3", *out).code == 0
    assert rs.load(tmp_path / "p.txt").info["pruning"]["judge_on"] == "valid"


def test_ctrl_c_saves_what_there_is(files, model, run, tmp_path, monkeypatch):
    def stop(self, record):
        if record.phase == "prune" and record.done > 0.3:
            raise KeyboardInterrupt

    monkeypatch.setattr(PruningProgress, "__call__", stop)
    out = tmp_path / "pruned.txt"
    outcome = run("prune", model, "--train", files / "train.txt", "--judge-on", "train", "--rate", "0.5", "--out", out)
    assert outcome.code == 130 and "interrupted in the phase 'prune'; the best model so far is saved" in outcome.output
    assert rs.load(model).n_trees > rs.load(out).n_trees > rs.load(model).n_trees // 2


def test_xcleaver_on_the_command_line(files, run, tmp_path):
    out = tmp_path / "model.txt"
    settings = tmp_path / "settings.toml"
    settings.write_text("global = true\nrate = 0.5\n")
    outcome = run(
        "train", files / "train.txt", "--valid", files / "valid.txt", "--algo", "xcleaver", "--base", "lambdamart",
        "--grow", "6", "--trees", "6", "--leaves", "5", "--min-docs", "2", "--params", settings, "--threads", "1",
        "--out", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.output
    model = rs.load(out)
    assert model.info["params"]["global_"] is True and 3 <= model.n_trees <= 6
    for words in ("round 1: growing", "cross-fitting", "s per round", "validation"):
        assert words in outcome.output, outcome.output
