"""Parameters by search: on validation lists, the same after an interruption."""

from __future__ import annotations

import json
import sys

import pytest
from experiment_samples import SPEC, run_table, write_spec

from ranksieve.errors import MissingExtraError, ParameterError
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.studies import search, studies
from ranksieve.rankers.trials import SPACE, check_space

pytest.importorskip("optuna")
TUNE = SPEC + "\n[tune]\nleaves = { low = 2, high = 8 }\nlearning-rate = { low = 0.05, high = 0.5, log = true }\n"


def test_the_best_trial_becomes_the_cell(tmp_path):
    spec = load_spec(write_spec(tmp_path, TUNE))
    results = run_experiment(spec, tmp_path / "out", jobs=1, tune=3)
    assert [cell.label for cell in results.cells] == ["plain", "SelGB", "some", "some", "hard"]
    found = [json.loads(path.read_text()) for path in sorted((tmp_path / "out" / "tune").glob("*.json"))]
    assert len(found) == 4
    for cell in results.cells:
        params = cell.settings["params"]
        mine = [one for one in found if one["best"]["leaves"] == params["leaves"]]
        assert any(one["best"]["learning-rate"] == params["learning_rate"] for one in mine)
    plain = results.cells[0]
    assert plain.facts["valid"] in [one["value"] for one in found]
    for one in found:
        assert len(one["trials"]) == 3
        assert one["value"] == max(trial["value"] for trial in one["trials"])


RANKER_RUNS = (
    run_table("plain", "lambdamart")
    + run_table("SVM", "ranksvm")
    + run_table("net", "lambdarank", "epochs = 2")
    + run_table("SVM or not", "ranksvm", "c = [0.01, 1.0]")
    + '\n[[runs]]\nname = "smaller"\nprune = "plain"\nrate = [0.0, 0.5]\n'
)


def test_runs_search_what_they_use_and_run_as_they_are_if_nothing_is_left(tmp_path):
    spec = load_spec(write_spec(tmp_path, SPEC[: SPEC.index("[[runs]]")] + RANKER_RUNS))
    results = run_experiment(spec, tmp_path / "out", jobs=1, tune=2)
    labels = ["plain", "SVM", "net", "SVM or not", "smaller, rate 0.0", "smaller, rate 0.5"]
    assert [cell.label for cell in results.cells] == labels
    found = [json.loads(path.read_text()) for path in sorted((tmp_path / "out" / "tune").glob("*.json"))]
    chosen = {tuple(sorted(one["best"])): one["best"] for one in found}
    assert set(chosen) == {("grid",), ("learning-rate",), tuple(sorted(set(SPACE) - {"negatives"}))}
    cells = {cell.label: cell for cell in results.cells}
    assert cells["SVM"].facts["key"] == spec.cells[1].key
    assert cells["smaller, rate 0.5"].facts["settings"]["model_cell"] == cells["plain"].facts["key"]
    rate = chosen["learning-rate",]["learning-rate"]
    assert cells["net"].facts["settings"]["params"]["learning_rate"] == rate


def test_an_interrupted_search_continues_as_an_uninterrupted_one(tmp_path):
    spec = load_spec(write_spec(tmp_path, TUNE))
    found = []
    for steps in ((4,), (1, 4)):
        for n_trials in steps:
            (study,) = studies(spec.cells[1:3], spec.tune, n_trials)
            search(study, tmp_path / str(len(steps)))
        found.append(json.loads((tmp_path / str(len(steps)) / "tune" / f"{study.key}.json").read_text()))
    assert found[0] == found[1]
    assert {trial["params"]["grid"] for trial in found[0]["trials"]} <= {cell.label for cell in spec.cells[1:3]}


def test_without_optuna_the_error_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"ranksieve\[tune\]"):
        run_experiment(load_spec(write_spec(tmp_path)), tmp_path / "out", jobs=1, tune=2)


def test_wrong_spaces_are_refused(tmp_path):
    for space, message in (
        ({"leafs": [2]}, "unknown parameter 'leafs'"),
        ({"leaves": {"low": 1, "high": 9}}, "leaves is 1"),
        ({"leaves": {"low": 9, "high": 3}}, "expected low below high"),
        ({"leaves": 9}, "expected a list of values"),
        ({"leaves": {"low": 9}}, "expected a list of values"),
    ):
        with pytest.raises(ParameterError, match=message):
            check_space(space)
    path = write_spec(tmp_path, SPEC + "\n[tune]\nleaves = 3\n")
    with pytest.raises(ParameterError, match=rf"small.toml:{len(SPEC.splitlines()) + 3}: tune.leaves is 3"):
        load_spec(path)
