"""Cells whose forest is made in rounds."""

from __future__ import annotations

import json

import numba
import numpy as np
import pytest
from experiment_samples import SPEC, write_spec

import ranksieve as rs
from ranksieve.errors import ParameterError
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.run_cell import run_cell
from ranksieve.experiments.studies import search, studies
from ranksieve.pruning.reweighting import search_weights

RUNS = SPEC[: SPEC.index("[[runs]]")] + (
    '[[runs]]\nname = "plain"\nalgo = "lambdamart"\n\n'
    '[[runs]]\nname = "X"\nalgo = "xcleaver"\nbase = "selgb"\ngrow = 4\nrate = 0.5\nglobal = false\n'
)


def test_xcleaver_is_followed_tree_by_tree_too(tmp_path):
    results = run_experiment(load_spec(write_spec(tmp_path, RUNS)), tmp_path / "out", jobs=1)
    cell = results.cells[1]
    train, valid, test = (rs.synth.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 6), (2, 8)))
    by_hand = rs.train(
        train, valid=valid, algo="xcleaver", base="selgb", grow=4, rate=0.5, trees=4, leaves=4, min_docs=2
    )
    np.testing.assert_array_equal(cell.model().predict(test), by_hand.predict(test))
    curve = cell.table("curve")
    assert len(curve["test"]) == cell.facts["n_trees"] and curve["test"][-1] == rs.evaluate(by_hand, test).mean()
    assert cell.facts["valid"] == by_hand.info["best_score"]  # by cross-fitting
    assert curve["valid"][-1] == pytest.approx(rs.evaluate(by_hand, valid).mean(), abs=1e-11)


def test_an_interrupted_cell_is_not_stored(tmp_path, monkeypatch):
    def interrupted(*args, **options):
        yield next(search_weights(*args, **options))
        raise KeyboardInterrupt

    spec = load_spec(write_spec(tmp_path, RUNS))
    monkeypatch.setattr("ranksieve.pruning.forest_pruner.search_weights", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(spec, tmp_path / "out", jobs=1)
    assert [path.name for path in (tmp_path / "out" / "cells").iterdir()] == [spec.cells[0].key]


def test_threads_are_those_of_the_specification(tmp_path, monkeypatch):
    used = []

    def watching(*args, **options):
        used.append(numba.get_num_threads())
        return search_weights(*args, **options)

    monkeypatch.setattr("ranksieve.pruning.forest_pruner.search_weights", watching)
    run_cell(load_spec(write_spec(tmp_path, RUNS)).cells[1], tmp_path / "out")
    assert set(used) == {1}


def test_xcleaver_can_be_tuned(tmp_path):
    pytest.importorskip("optuna")
    spec = load_spec(write_spec(tmp_path, RUNS + "\n[tune]\nrate = [0.25, 0.5]\n"))
    (study,) = studies(spec.cells[1:], spec.tune, 2)
    search(study, tmp_path)
    found = json.loads((tmp_path / "tune" / f"{study.key}.json").read_text())
    assert len(found["trials"]) == 2 and 0 < found["value"] <= 1


@pytest.mark.parametrize(("line", "message"), [
    ("selections = true", "algo = 'xcleaver' does not record selections"),
    ('selection = "tpo"', "did you mean 'top'"),
])  # fmt: skip
def test_what_xcleaver_cannot_do_is_reported_with_its_line(tmp_path, line, message):
    with pytest.raises(ParameterError, match=rf"small.toml:{len(RUNS.splitlines()) + 1}: .*{message}"):
        load_spec(write_spec(tmp_path, RUNS + line + "\n"))
