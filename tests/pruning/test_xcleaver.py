"""X-CLEaVER: rounds of growing, pruning and re-weighting over every base."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.params import Params
from ranksieve.pruning.xcleaver import plan
from samples import small_dataset

QUICK = {"algo": "xcleaver", "grow": 8, "rate": 0.5, "trees": 10, "leaves": 5, "min_docs": 2, "learning_rate": 0.3}

pytestmark = pytest.mark.filterwarnings("ignore:trees are judged on the training")


@pytest.fixture(scope="module")
def data():
    return small_dataset(14, most=60)


@pytest.fixture(scope="module")
def valid():
    return small_dataset(10, seed=1, most=60)


@pytest.mark.parametrize("base", ["lambdamart", "selgb", "gbrt", "oblivious-lambdamart"])
@pytest.mark.parametrize("whole", [False, True])
def test_every_base_learns_in_rounds(data, base, whole, tmp_path):
    share = {"negatives": 0.3, "min_negatives": 1} if base == "selgb" else {}
    model = rs.train(data, base=base, global_=whole, **share, **QUICK)
    rounds = model.info["rounds"]
    values = [facts["after"]["train"] for facts in rounds if facts["improved"]]
    assert values == sorted(values) and len(rounds) >= 2
    assert values[-1] == pytest.approx(rs.evaluate(model, data).mean(), abs=1e-11)
    for facts in rounds:
        assert facts["after"]["train"] >= facts["after_pruning"]["train"]
    assert set(model.info["phase_seconds"]) == {"grow", "leaves", "prune", "reweight"}
    assert sum(model.info["phase_seconds"].values()) == pytest.approx(sum(model.info["seconds"]))
    trees = [facts["trees"] for facts in rounds]
    assert trees[0] == 4 and model.n_trees == trees[-1] <= 10
    model.save(tmp_path / "model.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "model.txt").predict(data), model.predict(data))


def test_the_first_round_is_the_base_pruned_and_reweighted(data, valid):
    model = rs.train(data, valid=valid, base="lambdamart", **{**QUICK, "trees": 4})
    base = rs.train(data, algo="lambdamart", trees=8, leaves=5, min_docs=2, learning_rate=0.3, early_stopping=0)
    pruned = rs.prune(base, data, valid=valid, rate=0.5)
    np.testing.assert_array_equal(model.predict(data), pruned.predict(data))
    assert model.info["best_score"] == pruned.info["best_score"] == model.info["rounds"][0]["unseen"]
    assert model.info["rounds"][0]["after"]["valid"] == pytest.approx(rs.evaluate(model, valid).mean(), abs=1e-11)


def test_later_rounds_leave_the_trees_before_them_alone_unless_global(data):
    model = rs.train(data, **QUICK)
    first = rs.train(data, **{**QUICK, "trees": 4})
    np.testing.assert_array_equal(model.first(4).predict(data), first.predict(data))
    whole = rs.train(data, global_=True, **QUICK)
    assert whole.info["rounds"][0]["kept"] == model.info["rounds"][0]["kept"]
    assert len(whole.info["rounds"][1]["kept"]) == 8


def test_no_bit_depends_on_the_number_of_threads(data, valid):
    a, b = (rs.train(data, valid=valid, threads=n, **QUICK) for n in (1, 2))
    np.testing.assert_array_equal(a.predict(data), b.predict(data))


def test_the_same_training_gives_the_same_bytes(data, valid, tmp_path):
    for name in ("a.txt", "b.txt"):
        rs.train(data, valid=valid, **QUICK).save(tmp_path / name)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


def test_a_round_without_gain_is_the_last_and_does_not_count(data, valid):
    model = rs.train(data, valid=valid, **{**QUICK, "trees": 400})
    rounds = model.info["rounds"]
    assert [facts["improved"] for facts in rounds] == [True] * (len(rounds) - 1) + [False]
    assert model.n_trees == rounds[-2]["trees"]
    assert model.info["best_score"] == rounds[-2]["unseen"]


def test_rate_0_only_reweights(data):
    model = rs.train(data, **{**QUICK, "rate": 0.0, "trees": 16})
    assert [len(facts["kept"]) for facts in model.info["rounds"]] == [8, 8][: len(model.info["rounds"])]
    assert "after_pruning" not in model.info["rounds"][0]


def test_rounds_end_at_the_number_of_trees():
    assert plan(Params(grow=200, rate=0.5, trees=1000), 950) == (100, 50)
    assert plan(Params(grow=100, rate=0.0, trees=130), 100) == (30, 0)
    assert plan(Params(grow=400, rate=0.75, trees=3), 0) == (12, 9)


@pytest.mark.parametrize(("phase", "number"), [("grow", 1), ("prune", 1), ("reweight", 1), ("grow", 2), ("prune", 2)])
def test_ctrl_c_keeps_the_best_so_far(data, phase, number):
    heard = []

    def stop(record):
        if record.phase == phase and record.round == number and record.done > 0:
            heard.append(record)
            if len(heard) == 2:
                raise KeyboardInterrupt

    model = rs.train(data, callbacks=[stop], **QUICK)
    assert model.info["interrupted"] == phase and len(heard) == 2
    assert model.n_trees > 0
    if number == 2:
        first = rs.train(data, **{**QUICK, "trees": 4})
        assert rs.evaluate(model, data).mean() >= rs.evaluate(first, data).mean()


@pytest.mark.parametrize(
    ("phase", "number", "n_trees"),
    [("leaves", 1, 8), ("prune", 1, 8), ("reweight", 1, 4), ("leaves", 2, 4), ("prune", 2, 12), ("reweight", 2, 8)],
)
def test_ctrl_c_at_the_very_start_of_a_phase_keeps_it_too(data, phase, number, n_trees):
    def stop(record):
        if (record.phase, record.round, record.done) == (phase, number, 0):
            raise KeyboardInterrupt

    model = rs.train(data, callbacks=[stop], **QUICK)
    assert model.info["interrupted"] == phase
    assert model.n_trees == n_trees  # all that were grown if they improve the model before


def test_the_curve_of_growing_is_that_of_the_first_trees(data, valid):
    facts = rs.train(data, valid=valid, **{**QUICK, "trees": 8}).info["rounds"]
    grown = rs.train(data, algo="lambdamart", trees=8, leaves=5, min_docs=2, learning_rate=0.3, early_stopping=0)
    assert facts[0]["growth"]["trees"] == list(range(9)) and facts[1]["growth"]["trees"] == list(range(9))
    for name, lists in (("train", data), ("valid", valid)):
        expected = [rs.evaluate(grown.first(n), lists).mean() for n in range(9)]
        np.testing.assert_allclose(facts[0]["growth"][name], expected, atol=1e-11)
        assert facts[1]["growth"][name][0] == facts[0]["after"][name]


def test_monotone_promises_are_kept_round_by_round():
    data = small_dataset(14, seed=3, most=40)
    model = rs.train(data, monotone="1:+1,2:-1", **QUICK)
    assert len(model.info["rounds"]) >= 2 and (model.weights >= 0).all()
    rows = np.repeat(data.features[:20], 30, axis=0)
    for feature, sign in ((0, 1), (1, -1)):
        moved = rows.copy()
        moved[:, feature] = np.tile(np.linspace(-3, 3, 30), 20)
        assert (sign * np.diff(model.predict(moved).reshape(20, 30), axis=1) >= 0).all()


def test_parameters_of_boosting_are_handed_on(data):
    options = {"selection": "random", "negatives": 0.3, "min_negatives": 1, "objective": "map", "features": "1-4"}
    model = rs.train(data, **{**QUICK, "trees": 4}, **options)
    base = rs.train(data, algo="lambdamart", trees=8, leaves=5, min_docs=2, learning_rate=0.3, **options)
    np.testing.assert_array_equal(model.predict(data), rs.prune(base, data, judge_on="train", rate=0.5).predict(data))
    assert model.feature.max() < 4 and model.info["params"]["selection"] == "random"


def test_queries_count_by_their_weights(data, valid):
    train, watched = (
        rs.Dataset.from_arrays(d.features, d.labels, group=d.lists.sizes, weights=1.0 + np.arange(d.lists.n_queries))
        for d in (data, valid)
    )
    model = rs.train(train, valid=watched, **QUICK)
    last = next(facts for facts in reversed(model.info["rounds"]) if facts["improved"])
    expected = rs.evaluate(model, watched, weighted=True).mean()
    assert last["after"]["valid"] == pytest.approx(expected, abs=1e-11)


def test_what_only_boosting_uses_is_refused(data):
    with pytest.raises(rs.errors.ParameterError, match=r"step_on is not used by algo='xcleaver'"):
        rs.train(data, algo="xcleaver", step_on="valid")
    with pytest.raises(rs.errors.ParameterError, match=r"negatives is not used by algo='xcleaver', only by"):
        rs.train(data, algo="xcleaver", base="lambdamart", negatives=0.5)
    with pytest.raises(rs.errors.ParameterError, match=r"init is not used by algo='xcleaver'"):
        rs.train(data, algo="xcleaver", init="model.txt")
    with pytest.raises(rs.errors.ParameterError, match=r"rate is 1"):
        rs.train(data, algo="xcleaver", rate=1.0)
    with pytest.raises(rs.errors.ParameterError, match=r"base is 'xcleaver'"):
        rs.train(data, algo="xcleaver", base="xcleaver")


def test_rounds_are_judged_on_validation_lists(data, valid):
    model = rs.train(data, valid=valid, **QUICK)
    for facts in model.info["rounds"]:
        assert facts["returned"] in ("pruned", "first trees") and "check" in model.info["phase_seconds"]
        if facts["returned"] == "first trees":
            assert facts["unseen"] == facts["after"]["valid"]
    with pytest.warns(rs.errors.RanksieveWarning, match="trees are judged on the training lists"):
        rs.train(data, **{**QUICK, "trees": 4})
