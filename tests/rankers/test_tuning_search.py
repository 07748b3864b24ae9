"""A search on validation lists: resumable, never worse than its first trial, repeated by its flags."""

import dataclasses
import io
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.errors import InterruptedTraining, InterruptedTuning, MissingExtraError, ParameterError
from ranksieve.models.blend import Blend
from ranksieve.rankers import train as train_module
from ranksieve.rankers import tune as tune_module
from ranksieve.rankers.trials import SPACE

pytest.importorskip("optuna")
TRAIN, VALID = rs.synth.cubic(20), rs.synth.cubic(12, start=20)
SMALL = {"trees": 6, "space": {"leaves": [2, 4, 8], "learning-rate": {"low": 0.05, "high": 0.5, "log": True}}}


def test_with_average_1_the_model_is_that_of_the_best_trial():
    found = rs.tune(TRAIN, valid=VALID, trials=4, average=1, **SMALL)
    assert len(found.trials) == 4 and len(found.chosen) == 1
    assert found.best_score == max(one.value for one in found.trials)
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID, "ndcg@10").mean())
    again = rs.train(TRAIN, valid=VALID, trees=6, verbose=False, **found.values)
    assert again.leaf_values.tolist() == found.model.leaf_values.tolist()


@pytest.mark.parametrize("given", [TRAIN, "train.parquet"], ids=["memory", "file"])
def test_the_model_is_the_mean_of_the_best_trials(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.io.write_parquet(TRAIN, "train.parquet")
    found = rs.tune(given, valid=VALID, trials=6, average=3, **SMALL)
    values = sorted((one.value for one in found.trials if not one.stopped), reverse=True)
    assert [one.value for one in found.chosen] == values[:3] and values[2] > found.trials[0].value
    models = [rs.train(TRAIN, valid=VALID, verbose=False, trees=6, **one.values) for one in found.chosen]
    wanted = np.mean([model.predict(VALID) for model in models], axis=0)
    np.testing.assert_allclose(found.model.predict(VALID), wanted, rtol=1e-12)
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID, "ndcg@10").mean())
    assert found.model.info["best_score"] == found.best_score
    assert ", 6 trials, the mean of 3, --trees 6" in repr(found)


def test_trials_of_the_same_values_count_once_and_stopped_ones_do_not():
    found = rs.tune(TRAIN, valid=VALID, trials=8, space={"leaves": [2, 4]}, trees=3, learning_rate=0.3)
    assert len(found.trials) == 8
    assert len(found.chosen) == len({one.value for one in found.trials if one.value >= found.trials[0].value})
    stopped = [one for one in found.trials if one.stopped]
    assert all(one.value in {trial.value for trial in found.trials if trial not in stopped} for one in found.chosen)


def test_trials_that_are_worse_than_the_first_are_not_averaged():
    found = rs.tune(TRAIN, valid=VALID, trials=6, trees=6, space={"learning-rate": [0.05, 0.0001, 0.001]})
    assert {one.values["learning-rate"] for one in found.trials} == {0.05, 0.0001, 0.001}
    assert [one.values for one in found.chosen] == [{"learning-rate": 0.05}]


@pytest.mark.filterwarnings("ignore:.*after pruning and.*with the first . trees")
def test_the_mean_is_pruned_to_size_and_not_each_trial():
    found = rs.tune(TRAIN, valid=VALID, trials=3, size=5, **SMALL)
    assert sum(one.model.n_trees for one in found.chosen) > 5 == found.model.n_trees
    mean = rs.combine([one.model for one in found.chosen])
    pruned = rs.prune(mean, valid=VALID, rate=1 - 5 / mean.n_trees)
    assert found.model.leaf_values.tolist() == pruned.leaf_values.tolist()
    assert found.best_score == pruned.info["best_score"]
    assert found.params.size == 5 and "--size 5" in found.flags
    assert all(one.params.size == 0 and "--size" not in one.flags for one in found.chosen)
    alone = rs.tune(TRAIN, valid=VALID, trials=1, size=2, **SMALL)
    assert alone.params.size == 2 == alone.model.n_trees
    assert alone.chosen[0].params.size == 0 and alone.chosen[0].model.n_trees > 2


def test_a_mean_that_is_worse_than_the_first_trial_is_not_returned(monkeypatch):
    monkeypatch.setattr(tune_module._Search, "_measured", lambda *_: 0.0)
    found = rs.tune(TRAIN, valid=VALID, trials=4, **SMALL)
    best = max(found.trials, key=lambda one: one.value)
    assert [one.values for one in found.chosen] == [best.values] and found.best_score == best.value
    assert found.model is found.chosen[0].model and found.best_score == found.model.info["best_score"]


def test_other_rankers_are_averaged():
    space = {"learning-rate": [0.05, 0.1, 0.2]}
    found = rs.tune(TRAIN, valid=VALID, trials=4, space=space, algo="lambdarank", epochs=2)
    assert isinstance(found.model, Blend) and len(found.model.models) == len(found.chosen) > 1
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID).mean())


def test_the_first_trial_has_the_defaults():
    found = rs.tune(TRAIN, valid=VALID, trials=1, trees=3)
    assert ", 1 trial, " in repr(found)
    defaults = rs.params.Params()
    assert set(found.values) == set(SPACE) - {"negatives"}  # all lists have fewer than min_negatives
    found_with = rs.tune(TRAIN, valid=VALID, trials=1, trees=3, min_negatives=1)
    assert set(found_with.values) == set(SPACE)
    assert found.values["learning-rate"] == defaults.learning_rate
    assert found.values["min-docs"] == defaults.min_docs


def test_given_parameters_are_not_searched():
    found = rs.tune(TRAIN, valid=VALID, trials=2, trees=3, algo="lambdamart", num_leaves=5)
    assert set(found.values) == set(SPACE) - {"leaves", "negatives"}
    assert found.model.info["params"]["leaves"] == 5
    assert "--leaves 5" in found.flags


def test_a_search_continues_from_its_journal(tmp_path):
    whole = rs.tune(TRAIN, valid=VALID, trials=4, **SMALL)
    rs.tune(TRAIN, valid=VALID, trials=2, journal=tmp_path / "log", **SMALL)
    records = []
    continued = rs.tune(TRAIN, valid=VALID, trials=4, journal=tmp_path / "log", callbacks=[records.append], **SMALL)
    assert [one.values for one in continued.trials] == [one.values for one in whole.trials]
    assert continued.model.leaf_values.tolist() == whole.model.leaf_values.tolist()
    assert records[0].trials == 2
    other = rs.tune(TRAIN.take_queries(range(19)), valid=VALID, trials=1, journal=tmp_path / "log", **SMALL)
    assert len(other.trials) == 1  # other data, other trials


def test_trials_of_a_journal_are_trained_again_while_there_is_time(tmp_path):
    options = {"valid": VALID, "trials": 4, "journal": tmp_path / "log", **SMALL}
    whole = rs.tune(TRAIN, **options)
    late = rs.tune(TRAIN, minutes=1e-9, **options)
    assert [one.values for one in late.chosen] == [whole.values] and len(whole.chosen) > 1
    assert late.model.leaf_values.tolist() == whole.chosen[0].model.leaf_values.tolist()


def _interrupt_after(n_trials):
    def callback(record):
        if record.trials == n_trials and record.step > 1:
            raise KeyboardInterrupt

    return callback


def test_an_interrupted_search_has_the_best_of_its_trials_and_continues(tmp_path, capfd):
    whole = rs.tune(TRAIN, valid=VALID, trials=4, **SMALL)
    options = {"valid": VALID, "trials": 4, "journal": tmp_path / "log", **SMALL}
    with pytest.raises(KeyboardInterrupt) as early:
        rs.tune(TRAIN, callbacks=[_interrupt_after(0)], **options)
    assert not isinstance(early.value, InterruptedTuning)  # no trial is finished
    with pytest.raises(InterruptedTuning) as stopped:
        rs.tune(TRAIN, callbacks=[_interrupt_after(2)], **options)
    found = stopped.value.found
    assert [one.value for one in found.trials] == [one.value for one in whole.trials[:2]]
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID, "ndcg@10").mean())
    assert [one.values for one in rs.tune(TRAIN, **options).trials] == [one.values for one in whole.trials]
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore:.*after pruning and.*with the first 5 trees")
@pytest.mark.parametrize("phase", [None, "reweight"])
def test_a_search_interrupted_while_it_prunes_has_the_mean(monkeypatch, phase):
    def interrupted(*given, **named):
        if phase is None:
            raise KeyboardInterrupt
        pruned = rs.prune(*given, **named)
        return dataclasses.replace(pruned, info={**pruned.info, "pruning": {"interrupted": phase}})

    monkeypatch.setattr(train_module, "prune", interrupted)
    with pytest.raises(InterruptedTuning) as stopped:
        rs.tune(TRAIN, valid=VALID, trials=3, size=5, **SMALL)
    found = stopped.value.found
    assert len(found.chosen) > 1 and found.model.n_trees == sum(one.model.n_trees for one in found.chosen)
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID, "ndcg@10").mean())


@pytest.mark.parametrize("n_trained", [0, 1])
def test_a_search_interrupted_while_it_trains_again_has_the_models_at_hand(tmp_path, monkeypatch, n_trained):
    options = {"valid": VALID, "trials": 4, "journal": tmp_path / "log", **SMALL}
    whole, trained, real = rs.tune(TRAIN, **options), [], tune_module.run

    def run(job):
        if len(trained) == n_trained:
            raise InterruptedTraining(whole.model)  # with the trees of one trial so far
        trained.append(real(job))
        return trained[-1]

    monkeypatch.setattr(tune_module, "run", run)
    with pytest.raises(KeyboardInterrupt) as stopped:
        rs.tune(TRAIN, **options)
    assert isinstance(stopped.value, InterruptedTraining) == isinstance(stopped.value, InterruptedTuning)
    assert isinstance(stopped.value, InterruptedTuning) == bool(n_trained)
    if n_trained:
        assert [one.values for one in stopped.value.found.chosen] == [whole.values]


@pytest.mark.parametrize("n_trials", [0, 1])
def test_ctrl_c_saves_the_model_of_the_finished_trials(tmp_path, monkeypatch, n_trials):
    monkeypatch.chdir(tmp_path)
    rs.io.write_parquet(TRAIN, "train.parquet")
    real, at = tune_module.tune, _interrupt_after(n_trials)
    monkeypatch.setattr(tune_module, "tune", lambda *given, **named: real(*given, **named | {"callbacks": [at]}))
    options = ["--valid", "train.parquet", "--trials", "3", "--trees", "4", "--leaves", "4", "--quiet"]
    result = CliRunner().invoke(app, ["tune", "train.parquet", *options, "--out", "best.txt"])
    assert result.exit_code == 130
    saved = "the model of the finished trials is saved in best.txt; " if n_trials else ""
    assert f"error: interrupted; {saved}the trials are in best.txt.trials, the same command continues" in result.output
    assert "Traceback" not in result.output
    assert Path("best.txt").exists() == bool(n_trials)


def test_time_that_is_up_ends_the_trial_at_hand():
    found = rs.tune(TRAIN, valid=VALID, minutes=1e-6, trees=500, early_stopping=0)
    assert len(found.trials) == 1
    assert found.model.n_trees == found.params.trees < 500
    again = rs.train(TRAIN, valid=VALID, trees=found.params.trees, early_stopping=0, **found.values)
    assert again.leaf_values.tolist() == found.model.leaf_values.tolist()


def test_a_trial_cut_short_is_trained_again_up_to_its_last_tree(tmp_path):
    options = {"valid": VALID, "trials": 1, "trees": 500, "early_stopping": 0, "journal": tmp_path / "log"}
    cut = rs.tune(TRAIN, minutes=1e-6, **options)
    again = rs.tune(TRAIN, minutes=5, **options)
    assert cut.trials == again.trials and again.trials[0].trees == cut.model.n_trees == again.params.trees < 500
    assert again.model.leaf_values.tolist() == cut.model.leaf_values.tolist()
    assert again.best_score == cut.best_score == pytest.approx(rs.evaluate(again.model, VALID).mean())


def test_the_value_of_a_trial_is_that_of_its_model_which_is_trained_again(tmp_path, monkeypatch):
    options = {"valid": VALID, "trials": 1, "journal": tmp_path / "log", **SMALL}
    first, real = rs.tune(TRAIN, **options), tune_module.run
    monkeypatch.setattr(
        tune_module, "run", lambda job: real(dataclasses.replace(job, params=job.params.replace(trees=1)))
    )
    found = rs.tune(TRAIN, **options)
    assert found.trials[0].value == first.best_score != found.best_score == found.chosen[0].value
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID).mean())


@pytest.mark.parametrize("average", [1, 2])
def test_without_early_stopping_the_value_is_that_of_all_trees(average):
    options = {"trees": 40, "early_stopping": 0, "learning_rate": 0.5, "space": {"leaves": [4, 16]}}
    found = rs.tune(TRAIN, valid=VALID, trials=3, average=average, **options)
    assert found.best_score == pytest.approx(rs.evaluate(found.model, VALID).mean())
    for one in found.chosen:
        assert one.model.n_trees == 40 and one.value < max(one.model.info["history"]["valid"]["ndcg@10"])
        assert one.value == pytest.approx(rs.evaluate(one.model, VALID).mean())
    assert {one.value for one in found.chosen} <= {one.value for one in found.trials}


def test_the_command_that_repeats_a_trial_cut_short_has_its_trees(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.io.write_parquet(TRAIN, "train.parquet")
    common = ["train.parquet", "--valid", "train.parquet", "--quiet", "--trees", "100000", "--early-stopping", "0"]
    result = CliRunner().invoke(app, ["tune", *common, "--minutes", "0.01", "--out", "best.txt"])
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("repeat"))
    again = CliRunner().invoke(app, [*shlex.split(line)[2:-1], "again.txt"])
    assert again.exit_code == 0, again.output
    assert rs.load("again.txt").leaf_values.tolist() == rs.load("best.txt").leaf_values.tolist()


def test_one_trial_is_not_compared_with_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.io.write_parquet(TRAIN, "train.parquet")
    rs.io.write_parquet(VALID, "valid.parquet")
    words = [
        "train.parquet",
        "--valid",
        "valid.parquet",
        "--quiet",
        "--trees",
        "4",
        "--leaves",
        "4",
        "--out",
        "best.txt",
    ]
    result = CliRunner().invoke(app, ["tune", *words, "--trials", "1"])
    assert result.exit_code == 0, result.output
    assert "first trial" not in result.output and "best trial" not in result.output
    assert "│ --min-docs " in result.output and re.search(r"┃ +value ┃", result.output)
    more = ["--trials", "2", "--min-docs", "5", "--metric", "map", "--seed", "1"]
    result = CliRunner().invoke(app, ["tune", *words, *more])
    assert result.exit_code == 0 and re.search(r"┃ first trial ┃ +1 ┃ +2 ┃", result.output)
    assert ", the best trial 0." in result.output and ", the first trial 0." in result.output
    assert "the mean of the models of 2 trials" in result.output
    result = CliRunner().invoke(app, ["tune", *words, *more, "--average", "1"])
    assert result.exit_code == 0 and re.search(r"┃ first trial ┃ +chosen ┃", result.output)
    assert "mean" not in result.output


def test_bad_requests_are_refused(monkeypatch):
    with pytest.raises(ParameterError, match="minutes is 0; expected a number above 0"):
        rs.tune(TRAIN, valid=VALID, minutes=0)
    with pytest.raises(ParameterError, match="there is nothing to search"):
        rs.tune(TRAIN, valid=VALID, space={"leaves": [4, 8]}, leaves=4)
    with pytest.raises(ParameterError, match="unknown parameter 'leafs'"):
        rs.tune(TRAIN, valid=VALID, space={"leafs": [4, 8]})
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"ranksieve\[tune\]"):
        rs.tune(TRAIN, valid=VALID, trials=1)


def _repeated(output):
    """The commands that a search shows, each run."""
    lines = output.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("repeat"))
    commands = [shlex.split(line.removeprefix("repeat"))[1:] for line in lines[first:] if " ranksieve " in line]
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    return commands


@pytest.mark.parametrize(
    ("options", "worse", "n_commands"), [(["--average", "1"], False, 1), (["--average", "1", "--size", "2"], False, 1),
                                         ([], False, 5), (["--size", "5"], False, 6), (["--size", "2"], True, 1)],
)  # fmt: skip
def test_the_commands_that_are_shown_make_the_same_model(tmp_path, monkeypatch, options, worse, n_commands):
    monkeypatch.chdir(tmp_path)
    if worse:  # the mean, than the first trial
        monkeypatch.setattr(tune_module._Search, "_measured", lambda *_: 0.0)
    rs.io.write_parquet(TRAIN, "train.parquet")
    rs.io.write_parquet(VALID, "valid.parquet")
    given = ["--valid", "valid.parquet", "--minutes", "5", "--trials", "4", "--trees", "4", "--leaves", "4"]
    given += ["--min-docs", "5", "--metric", "map", "--seed", "1", "--quiet", *options]
    result = CliRunner().invoke(app, ["tune", "train.parquet", *given, "--out", "best.txt"])
    assert result.exit_code == 0, result.output
    assert Path("best.txt.trials").exists()
    model = rs.load("best.txt")
    Path("best.txt").unlink()
    assert len(_repeated(result.output)) == n_commands
    again = rs.load("best.txt")
    assert again.leaf_values.tolist() == model.leaf_values.tolist()
    assert again.weights.tolist() == model.weights.tolist()


def _csv(data):
    """A data set as CSV with another name of the labels, a categorical column and a column of texts."""
    lines = [
        f"{label},{qid},{'abc'[row % 3]},text {row},{','.join(map(str, data.features[row, :4]))}"
        for row, (label, qid) in enumerate(
            zip(data.labels, np.repeat(data.query_ids, np.diff(data.offsets)), strict=True)
        )
    ]
    return "\n".join(["grade,qid,brand,title,a,b,c,d", *lines, ""])


def test_the_command_that_repeats_has_the_options_of_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train set.csv").write_text(_csv(TRAIN))
    Path("valid.csv").write_text(_csv(VALID))
    Path("fixed.toml").write_text("trees = 4\nmonotone = 'a:+1'\n")
    Path("test.csv").write_text(_csv(rs.synth.cubic(6, start=60)))
    given = ["--valid", "valid.csv", "--test", "test.csv", "--label", "grade", "--categorical", "brand", "--ignore"]
    given += ["tit*", "--missing", "nan", "--params", "fixed.toml", "--leaves", "4"]
    rules = ["--algo", "lambdamart", "--step", "optimal", "--step-range", "0.0", "0.5"]
    options = [*given, *rules, "--trials", "2", "--average", "1", "--minutes", "5", "--journal", "j", "--quiet"]
    result = CliRunner().invoke(app, ["tune", "train set.csv", *options, "--out", "best.txt"])
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("repeat"))
    words = shlex.split(line)[2:]
    assert {*given, *rules, "--quiet", "--l2"} < set(words)
    assert not {"--trials", "--average", "--minutes", "--journal"} & set(words)
    again = CliRunner().invoke(app, [*words[:-1], "again.txt"])
    assert again.exit_code == 0, again.output
    (value,) = (line for line in result.output.splitlines() if line.startswith("test"))
    assert value in again.output.splitlines() and " ndcg@10 0." in value
    assert Path("again.txt").read_bytes() == Path("best.txt").read_bytes()


@pytest.mark.parametrize("algo", ["lambdamart", "lightgbm"])
def test_categorical_columns_are_named_as_in_training(algo):
    frames = [pd.read_csv(io.StringIO(_csv(data))).rename(columns={"grade": "label"}) for data in (TRAIN, VALID)]
    train, valid = (frame.drop(columns="title") for frame in frames)
    settings = {"algo": algo, "trees": 3, "leaves": 4, "categorical": "brand"}
    found = rs.tune(train, valid=valid, trials=1, **settings)
    assert found.model.info["categories"] == {"brand": ["a", "b", "c"]}
    result = rs.cv(train, 3, jobs=1, **settings)
    assert result.models[0].info["categories"] == {"brand": ["a", "b", "c"]}


def test_other_names_of_parameters_are_searched():
    found = rs.tune(TRAIN, valid=VALID, trials=1, trees=2, space={"num_leaves": [8, 4]})
    assert list(found.values) == ["leaves"]


@pytest.mark.parametrize("algo", ["lambdarank", "lambdamart"])
def test_trials_of_other_data_are_not_taken(tmp_path, algo):
    options = {"trials": 1, "algo": algo, "journal": tmp_path / "journal", "space": {"learning-rate": [0.1, 0.2]}}
    options |= {"epochs": 2} if algo == "lambdarank" else {"trees": 2}
    first = rs.tune(TRAIN, valid=VALID, **options)
    again = rs.tune(TRAIN, valid=VALID, **options)
    other = rs.tune(rs.synth.cubic(20, seed=7), valid=VALID, **options)
    assert len(first.trials) == len(again.trials) == len(other.trials) == 1
    assert again.best_score == first.best_score
    assert other.best_score == pytest.approx(rs.evaluate(other.model, VALID).mean())


def test_a_share_of_negatives_without_effect_is_not_searched(capfd):
    notes = []

    class Shown:
        def __call__(self, record): ...

        def note(self, *parts):
            notes.append("".join(map(str, parts)))

    options = {"valid": VALID, "trials": 1, "trees": 2}
    space = {"negatives": [0.1, 0.2], "leaves": [4, 8]}
    assert set(rs.tune(TRAIN, space=space, callbacks=[Shown()], **options).values) == {"leaves"}
    (note,) = notes
    assert note.startswith("negatives is not searched: all lists have at most ") and note.endswith(
        "selects all of them"
    )
    searched = {**space, "min-negatives": [1, 100]}
    assert set(rs.tune(TRAIN, space=searched, **options).values) == set(searched)
    with pytest.raises(ParameterError, match="there is nothing to search"):
        rs.tune(TRAIN, space={"negatives": [0.1, 0.2]}, **options)
