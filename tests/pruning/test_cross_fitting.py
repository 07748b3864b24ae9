"""Pruning that generalises: trees are judged on lists that they were not fitted to."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import ParameterError, RanksieveWarning
from ranksieve.pruning.cross_fitting import _halves
from ranksieve.pruning.forest_pruner import ForestPruner
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.records import Reporter


def noisy_lists(n, start, docs=60, n_features=30):
    """Grades from the sum of a few features and as much noise, so that a forest fits its training lists too well."""
    rng = np.random.default_rng(start)
    X = rng.normal(size=(n * docs, n_features)).astype(np.float32)
    value = X[:, :5].sum(axis=1) / np.sqrt(5) + rng.normal(size=n * docs)
    return rs.Dataset.from_arrays(X, np.searchsorted([1.2, 1.9, 2.6], value), group=np.full(n, docs))


@pytest.fixture(scope="module")
def train():
    return noisy_lists(80, 0)


@pytest.fixture(scope="module")
def valid():
    return noisy_lists(40, 1)


@pytest.fixture(scope="module")
def forest(train):
    return rs.train(
        train, algo="lambdamart", gain="newton", trees=60, leaves=31, min_docs=5, learning_rate=0.2, truncation=30
    )


def pruner_on(forest, lists):
    sets = {"valid": find_leaves(forest, lists)}
    return ForestPruner(forest, sets, "valid", None, rs.metrics.parse_metric("ndcg@10"), Reporter("", ()))


def test_a_fitted_forest_is_not_made_worse(forest, train, valid):
    """Judged on its training lists it loses far more than by being cut to the same size."""
    test, first = noisy_lists(100, 2), forest.first(24)
    full, cut = (rs.evaluate(model, test).mean() for model in (forest, first))
    assert rs.evaluate(forest, train).mean() > 1.5 * full
    by_training = rs.prune(forest, train, judge_on="train", rate=0.6)
    assert rs.evaluate(by_training, test).mean() < cut - 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RanksieveWarning)
        default = rs.prune(forest, train, valid=valid, rate=0.6)
        on_training = rs.prune(forest, train, valid=valid, judge_on="train", rate=0.6)
    for pruned in (default, on_training):
        assert pruned.n_trees == 24
        assert rs.evaluate(pruned, test).mean() > cut - 0.01
        assert rs.evaluate(pruned, valid).mean() >= rs.evaluate(first, valid).mean()


@pytest.mark.parametrize("judge_on", ["valid", "train"])
def test_the_first_trees_are_returned_where_they_are_better(forest, train, valid, judge_on):
    with pytest.warns(RanksieveWarning) as caught:
        pruned = rs.prune(forest, train, valid=valid, judge_on=judge_on, rate=0.6, strategy="skip", reweight=False)
    facts, first = pruned.info["pruning"], forest.first(24)
    assert facts["returned"] == "first trees" and facts["judge_on"] == judge_on
    assert facts["kept"] == list(range(24)) and facts["weights"] == first.weights.tolist()
    np.testing.assert_array_equal(pruned.predict(valid), first.predict(valid))
    values = {name: rs.evaluate(first, lists).mean() for name, lists in (("train", train), ("valid", valid))}
    assert facts["after"] == pytest.approx(values, abs=1e-11)
    assert pruned.info["best_score"] == facts["after"]["valid"]
    assert f"{values['valid']:.4f} with the first 24 trees; the first 24 trees are returned" in str(caught[-1].message)


@pytest.fixture(scope="module")
def unfinished():
    """A forest that needs all its trees, so that the first of them are worse than pruned ones."""
    return rs.train(rs.synth.cubic(200), algo="lambdamart", trees=30, leaves=16, learning_rate=0.1)


@pytest.fixture(scope="module")
def more():
    return rs.synth.cubic(40, start=200)


@pytest.mark.parametrize("judge_on", ["valid", "train"])
def test_without_a_fallback_pruned_trees_are_returned(forest, train, valid, judge_on):
    pruned = rs.prune(
        forest, train, valid=valid, judge_on=judge_on, rate=0.6, strategy="skip", reweight=False, fallback=False
    )
    assert pruned.info["pruning"]["returned"] == "pruned" and pruned.info["pruning"]["kept"][:3] != [0, 1, 2]


def test_the_value_is_of_lists_that_trees_were_not_judged_on(unfinished, more):
    pruned = rs.prune(unfinished, valid=more, rate=0.5, reweight=False)
    halves = _halves(pruner_on(unfinished, more), 0)
    assert sorted(np.concatenate(halves)) == list(range(40))
    values = np.empty(40)
    for fit, check in (halves, halves[::-1]):
        half = rs.prune(unfinished, more.take_queries(fit), judge_on="train", rate=0.5, reweight=False)
        values[check] = rs.evaluate(half, more.take_queries(check)).per_query()
    assert pruned.info["best_score"] == pytest.approx(values.mean(), abs=1e-11)
    assert pruned.info["pruning"]["returned"] == "pruned"
    by_all = rs.prune(unfinished, more, judge_on="train", rate=0.5, reweight=False)
    np.testing.assert_array_equal(pruned.predict(more), by_all.predict(more))
    assert pruned.info["best_score"] < pruned.info["pruning"]["after"]["valid"]


def test_weights_are_searched_for_as_many_rounds_as_help_on_the_other_half(unfinished, more):
    model = rs.pruning.reweight(unfinished, valid=more, rounds=6, samples=8)
    facts = model.info["pruning"]
    curves = []
    halves = _halves(pruner_on(unfinished, more), 0)
    for fit, check in (halves, halves[::-1]):
        fit, check = more.take_queries(fit), more.take_queries(check)
        half = rs.pruning.reweight(unfinished, fit, valid=check, judge_on="train", rounds=6, samples=8)
        curves.append([step["valid"] for step in half.info["pruning"]["rounds"]])
    means = np.mean(curves, axis=0)
    assert model.info["best_score"] == pytest.approx(means.max(), abs=1e-11)
    assert len(facts["rounds"]) == (means.argmax() + 1 if means.argmax() else 0)


def test_training_lists_are_used_with_a_warning(forest, train, valid):
    with pytest.warns(RanksieveWarning, match="judged on the training lists, which they were fitted to; give lists"):
        alone = rs.prune(forest, train, rate=0.5, strategy="last", reweight=False)
    assert alone.info["pruning"]["judge_on"] == "train" and alone.info["best_score"] is None
    before = [rs.evaluate(forest, lists).mean() for lists in (train, valid)]
    words = f"ndcg@10 is {before[0]:.4f}; on the validation lists it is {before[1]:.4f}"
    with pytest.warns(RanksieveWarning, match=words):
        rs.prune(forest, train, valid=valid, judge_on="train", rate=0.5, strategy="last", reweight=False)
    rs.prune(forest, train, judge_on="train", rate=0.5, strategy="last", reweight=False)  # explicit: no warning


def test_a_single_list_is_judged_without_a_check(forest, valid):
    pruned = rs.prune(forest, valid=valid.take_queries([3]), rate=0.5, rounds=2)
    assert pruned.n_trees == 30 and pruned.info["best_score"] is None


def test_ctrl_c_while_cross_fitting_keeps_nothing(forest, valid):
    def stop(record):
        if record.phase == "check" and record.done > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.prune(forest, valid=valid, rate=0.5, callbacks=[stop], reweight=False)


def test_lists_must_be_given(forest, train, valid):
    with pytest.raises(ParameterError, match="there are no lists to judge trees on; give valid"):
        rs.prune(forest, rate=0.5)
    with pytest.raises(ParameterError, match="judge_on is 'test'; expected 'valid' or 'train'"):
        rs.prune(forest, train, rate=0.5, judge_on="test")
    with pytest.raises(ParameterError, match="judge_on='train' needs the training lists; give train"):
        rs.prune(forest, valid=valid, rate=0.5, judge_on="train")
