"""XE-NDCG and YetiLoss as rules of training (kernels: `kernels/`), and what every objective must fulfil."""

import lightgbm
import numpy as np
import pytest

import naive_objectives
import ranksieve as rs
from naive_random import step_key, uniforms
from ranksieve.boosting.objectives.lambdas import LambdaNdcg
from ranksieve.boosting.objectives.xendcg import XeNdcg
from ranksieve.boosting.objectives.yetiloss import YetiLoss
from ranksieve.errors import DataError, ParameterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from rule_samples import gradients, lambda_gradients
from samples import small_dataset

NAMES = ["xendcg", "yetiloss"]


def lists(seed):
    rng = np.random.default_rng(seed)
    sizes = [7, 1, 12, 40, 3]
    labels = rng.integers(0, 4, sum(sizes)).astype(np.float32)
    labels[8:20] = 0  # a list without positives
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return labels, rng.standard_normal(len(labels)), offsets, rng.permutation(1000)[: len(labels)]


@pytest.mark.parametrize("seed", range(4))
def test_xendcg_is_the_plain_sum(seed):
    labels, scores, offsets, rows = lists(seed)
    grad, hess = gradients(XeNdcg(), labels, scores, offsets, rows=rows, step=3, seed=seed)
    expected = naive_objectives.xendcg(
        2.0 ** labels.astype(float) - 1, scores, offsets, uniforms(step_key(seed, 3), rows)
    )
    np.testing.assert_allclose(grad, expected[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(hess, expected[1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("truncation", "window"), [(30, 5), (2, 1), (5, 100)])
def test_yetiloss_is_the_plain_sum(truncation, window):
    labels, scores, offsets, rows = lists(1)
    rule = YetiLoss(truncation=truncation, neighbors=window, permutations=3)
    grad, hess = gradients(rule, labels, scores, offsets, rows=rows, step=3, seed=7)
    draws = [uniforms(step_key(step_key(7, 3), draw), rows) for draw in range(3)]
    expected = naive_objectives.yetiloss(2.0 ** labels.astype(float) - 1, scores, offsets, draws, truncation, window)
    np.testing.assert_allclose(grad, expected[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(hess, expected[1], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(np.add.reduceat(grad, offsets[:-1]), 0.0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algo", ["lambdamart", "selgb"])
def test_they_train_the_same_for_any_number_of_threads_and_resume(tmp_path, name, algo):
    data = small_dataset()
    options = {"algo": algo, "objective": name, "trees": 8, "leaves": 5, "min_docs": 2, "gain": "newton", "seed": 4}
    model = rs.train(data, threads=1, **options)
    assert to_text(rs.train(data, threads=2, **options)) == to_text(model)
    rs.train(data, checkpoint=tmp_path, **{**options, "trees": 5})
    assert to_text(rs.train(data, checkpoint=tmp_path, resume=True, **options)) == to_text(model)
    assert to_text(rs.train(data, **{**options, "seed": 5})) != to_text(model)


def test_xendcg_is_as_good_as_lightgbms():
    train, test = rs.synth.cubic(120), rs.synth.cubic(60, start=120)
    model = rs.train(
        train, algo="lambdamart", objective="xendcg", gain="newton", trees=60, leaves=16, learning_rate=0.1
    )
    settings = {"objective": "rank_xendcg", "num_leaves": 16, "learning_rate": 0.1, "lambda_l2": 1.0, "verbose": -1,
                "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 1e-9, "num_threads": 2}  # fmt: skip
    data = lightgbm.Dataset(train.features, train.labels, group=train.lists.sizes)
    theirs = lightgbm.train(settings, data, 60).predict(test.features)
    assert rs.evaluate(model, test).mean() == pytest.approx(rs.evaluate(theirs, test).mean(), abs=0.03)


def test_a_label_too_large_for_exponential_gain_is_refused():
    for label in (500, 5000):
        with pytest.raises(DataError, match=rf"label {label} is too large .* use metric='nDCG@10'"):
            lambda_gradients(np.array([0, label], np.float32), np.zeros(2), np.array([0, 2]))


def test_one_rule_serves_several_lists():
    rule, offsets, scores = LambdaNdcg(), np.array([0, 2, 5]), np.array([0.5, 0.2, 0.1, 0.7, 0.3])
    for labels in np.array([[0, 1, 2, 0, 1], [1, 0, 0, 2, 1]], np.float32):
        again = gradients(rule, labels, scores, offsets)
        np.testing.assert_array_equal(again, gradients(rule, labels, scores, offsets))
        np.testing.assert_array_equal(again, gradients(LambdaNdcg(), labels, scores, offsets))


@pytest.mark.parametrize("returned", ["array", "three"])
def test_an_objective_that_does_not_return_two_arrays_is_refused(returned):
    def objective(labels, scores, offsets):
        grad = labels - scores
        return grad if returned == "array" else (grad, grad, grad)

    with pytest.raises(
        ParameterError, match=r"the objective returned (an array of shape .*|tuple); expected gradients and second"
    ):
        rs.train(rs.synth.cubic(4), objective=objective, trees=1)
