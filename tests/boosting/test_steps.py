"""Optimal steps, other objectives and row sampling inside training."""

from unittest.mock import ANY

import numpy as np
import pytest

import naive_combination
import ranksieve as rs
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.loop import State
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.steps import OptimalStep
from ranksieve.boosting.training_rows import TrainingRows, TreeTarget
from ranksieve.data.binned import bin_data
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.forest.formats.lightgbm_writer import to_text
from rule_samples import lambda_gradients
from samples import small_dataset

SMALL = {"algo": "lambdamart", "trees": 8, "leaves": 6, "min_docs": 3}


def training_curve(model, data, metric="ndcg@10"):
    measured = parse_metric(metric, ties="mean")
    return [rs.evaluate(scores, data, [measured]).mean() for _, scores in model.staged_predict(data)]


@pytest.mark.parametrize("metric", ["ndcg@10", "map@5"])
def test_the_step_is_the_best_along_the_tree(metric):
    data = small_dataset(n_queries=3, most=40)
    binned = bin_data(data)
    params = rs.params.Params(step="optimal", step_range=(0.1, 5.0), metric=metric, **SMALL)
    before = np.random.default_rng(2).standard_normal(data.n_docs)
    grad, hess = lambda_gradients(data.labels, before, data.offsets)
    tree, leaves = Grower(binned, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    alone = Scores(binned)
    alone.add(tree)
    exact = parse_metric(metric, ties="mean")
    borders, values = naive_combination.sweep(exact, data.labels, before, alone.all(), data.offsets, 0.1, 5.0)
    for known in (leaves, None):
        state = State([], Scores(binned, start=before), TrainingRows.of(data.lists, None))
        step = params.step_rule((binned, state.scores), (), parse_metric(metric))(tree, known, state)
        assert 0.1 < step < 5.0
        assert values[np.searchsorted(borders, step) - 1] == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("init", [None, "f3"])
def test_steps_may_be_optimal_for_the_validation_lists(tmp_path, init):
    data, valid = small_dataset(n_features=5), small_dataset(seed=7, n_features=5)
    data, valid = (
        rs.Dataset.from_arrays(np.nan_to_num(d.features), d.labels, group=d.lists.sizes) for d in (data, valid)
    )
    options = dict(SMALL, step="optimal", valid=valid, init=init, early_stopping=0)
    on_train, on_valid = (rs.train(data, step_on=name, **options) for name in ("train", "valid"))
    first = [model.evals_result_["valid"]["ndcg@10"][0] for model in (on_train, on_valid)]
    assert first[1] >= first[0]
    rs.train(data, step_on="valid", checkpoint=tmp_path, **dict(options, trees=4))
    resumed = rs.train(data, step_on="valid", checkpoint=tmp_path, resume=True, **options)
    np.testing.assert_array_equal(resumed.predict(data), on_valid.predict(data))
    with pytest.raises(ParameterError, match="needs validation data"):
        rs.train(data, step="optimal", step_on="valid", **SMALL)


def test_optimal_steps_learn_faster(data):
    optimal, small = (training_curve(rs.train(data, step=step, **SMALL), data) for step in ("optimal", "shrinkage"))
    assert optimal[-1] > small[-1]
    assert (np.diff(optimal) > -0.05).all()


def test_the_factor_of_a_tree_lies_in_the_range(data):
    binned = bin_data(data)
    grad, hess = lambda_gradients(data.labels, np.zeros(data.n_docs), data.offsets, truncation=30, normalize=True)
    params = rs.params.Params(**SMALL)
    tree, _ = Grower(binned, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    for shrink in (1.0, 0.5):
        model = rs.train(binned, step="optimal", step_range=(0.3, 0.9), step_shrinkage=shrink, **dict(SMALL, trees=1))
        factors = model.leaf_values / tree.leaf_values
        np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
        assert 0.3 * shrink < factors[0] < 0.9 * shrink


@pytest.mark.parametrize("algo", ["selgb", "lambdamart"])
def test_optimal_steps_resume_and_do_not_depend_on_threads(tmp_path, data, algo):
    options = dict(
        SMALL, algo=algo, negatives=0.3, min_negatives=1, step="optimal", step_range=[0.1, 2], row_fraction=0.8
    )
    whole = rs.train(data, threads=1, **options)
    assert to_text(rs.train(data, threads=2, **options)) == to_text(whole)
    rs.train(data, checkpoint=tmp_path, **dict(options, trees=4))
    resumed = rs.train(data, checkpoint=tmp_path, resume=True, **options)
    assert to_text(resumed) == to_text(whole)
    steps = np.array(resumed.info["steps"])
    assert len(steps) == 8 and (steps > 0.1).all() and (steps < 2).all() and len(set(steps)) > 1


@pytest.mark.parametrize("objective", ["map", "mrr", "err"])
def test_each_objective_learns_its_metric(data, objective):
    model = rs.train(data, objective=objective, metric=objective, learning_rate=0.3, **SMALL)
    other = rs.train(data, learning_rate=0.3, **SMALL)
    assert model.info["params"]["objective"] == objective
    assert not np.array_equal(model.leaf_values, other.leaf_values)
    curve = training_curve(model, data, objective)
    assert curve[-1] > curve[0] > 0.2


def test_err_uses_the_highest_grade_of_the_whole_training_set(data):
    """Also where a selection leaves the only document of that grade out."""
    best = int(np.argmax(data.labels))
    others = np.flatnonzero(np.arange(data.n_docs) != best)
    model = rs.train(data, objective="err", selection=lambda view: others, init=np.zeros(data.n_docs), **SMALL)
    assert model.n_trees == 8


def test_rows_are_thinned_for_the_tree_only(data):
    seen = []

    def objective(labels, scores, offsets):
        seen.append(len(labels))
        return labels - scores, np.ones(len(labels))

    model = rs.train(data, objective=objective, row_fraction=0.7, **SMALL)
    assert seen == [data.n_docs] * 8
    roots = model.split_count[model.split_offsets[:-1]]
    assert (roots == np.ceil(0.7 * data.lists.sizes).sum()).all()
    assert len(set(model.feature.tolist())) > 1
    selected = rs.train(data, negatives=0.5, min_negatives=1, row_fraction=0.5, **dict(SMALL, algo="selgb"))
    assert selected.split_count[selected.split_offsets[3]] < 0.4 * data.n_docs


def test_adaptation_combines_a_base_with_row_sampling(data):
    background = rs.train(small_dataset(seed=3), **SMALL)
    valid = small_dataset(seed=6)
    model = rs.train(data, init=background, valid=valid, row_fraction=0.7, **SMALL)
    assert model.info["best_score"] >= rs.evaluate(background, valid).mean()
    assert model.n_trees == 8 + model.info["best_iteration"]


def test_bad_input(data):
    with pytest.raises(ParameterError, match=r"step_range is \(5.0, 0.1\); expected two numbers, the smaller"):
        rs.train(data, step="optimal", step_range=(5, 0.1))
    with pytest.raises(ParameterError, match="step_range"):
        rs.train(data, step_range=(1, 2, 3))
    with pytest.raises(ParameterError, match="the line search does not support"):
        rs.train(data, step="optimal", metric="avg-ndcg@5", **SMALL)
    with pytest.raises(ParameterError, match=r"objective is 'auc'; .*known: auto, err, map, mrr, ndcg"):
        rs.train(data, objective="auc")


def test_models_store_the_steps_of_a_rule_that_is_passed():
    data = small_dataset()
    by_name, passed = (rs.train(data, step=step, **SMALL) for step in ("optimal", OptimalStep()))
    assert len(passed.info["steps"]) == SMALL["trees"] and passed.info == {**by_name.info, "seconds": ANY}
    assert "steps" not in rs.train(data, **SMALL).info
