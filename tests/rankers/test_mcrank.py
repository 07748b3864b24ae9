"""McRank: gradients of the likelihood, probabilities as LightGBM computes them, one file for all forests."""

from __future__ import annotations

import re

import lightgbm
import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, InterruptedTraining, ModelError, ParameterError
from ranksieve.models.grades import LINKS
from ranksieve.rankers.mcrank import Outputs
from samples import small_dataset

ALGORITHMS = {"mcrank": "multinomial", "mcrank-ordinal": "cumulative"}
QUICK = {"trees": 6, "leaves": 5, "learning_rate": 0.3, "min_docs": 3}


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return small_dataset()


@pytest.fixture(scope="module", params=ALGORITHMS)
def model(request, data):
    return rs.train(data, algo=request.param, **QUICK)


def log_likelihood(link, sums: np.ndarray, targets: np.ndarray) -> float:
    probabilities = link.probabilities(sums)
    if link.objective == "multiclass":
        return float(np.log(probabilities[targets]).sum())
    return float(np.log(np.where(targets, probabilities, 1 - probabilities)).sum())


@pytest.mark.parametrize("name", LINKS)
def test_gradients_are_those_of_the_likelihood(name):
    link, rng = LINKS[name], np.random.default_rng(0)
    grades = np.array([0.0, 1.0, 1.5, 4.0])
    labels = rng.choice(grades, 9)
    targets = link.targets(labels, grades)
    sums = rng.normal(size=targets.shape)
    outputs = Outputs([None] * len(targets), [], link, link.probabilities(sums))
    for output, document in np.ndindex(targets.shape):
        step = np.zeros_like(sums)
        step[output, document] = 1e-5
        slope = (log_likelihood(link, sums + step, targets) - log_likelihood(link, sums - step, targets)) / 2e-5
        grad, hess = outputs.objective(output, targets[output])(labels, sums[output], np.array([0, 4, 9]))
        assert grad[document] == pytest.approx(slope, abs=1e-8)
        probability = outputs.probabilities[output, document]
        assert hess[document] == pytest.approx(probability * (1 - probability) * link.curvature(len(targets)))


@pytest.mark.parametrize("name", LINKS)
def test_the_start_has_the_probabilities_of_the_labels(name):
    link, grades = LINKS[name], np.array([0.0, 1.0, 3.0])
    labels = np.array([0, 0, 0, 1, 1, 3.0])
    targets = link.targets(labels, grades)
    probabilities = link.probabilities(link.initial_sums(targets.mean(axis=1))[:, None])
    np.testing.assert_allclose(probabilities[:, 0], targets.mean(axis=1))
    np.testing.assert_allclose(link.expected(probabilities, grades), labels.mean())


def test_probabilities_are_those_of_lightgbm(data, model, tmp_path):
    model.save(tmp_path / "model.txt")
    theirs = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    assert theirs.num_model_per_iteration() == model.n_outputs
    np.testing.assert_allclose(theirs.predict(data.features), model.predict_proba(data), atol=1e-12)


def test_the_score_is_the_expected_grade(data, model):
    probabilities = model.predict_proba(data)
    if model.link == "multinomial":
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        expected = probabilities @ model.grades
    else:
        expected = model.grades[0] + probabilities @ np.diff(model.grades)
    np.testing.assert_allclose(model.predict(data), expected)
    assert np.array_equal(model.predict(data.features[7:30]), model.predict(data)[7:30])
    assert rs.evaluate(model, data).mean() > 0.8


def test_the_first_rounds_are_those_of_a_shorter_training(data, model):
    shorter = rs.train(data, **{**QUICK, "algo": model.info["params"]["algo"], "trees": 2})
    assert np.array_equal(model.first(2).predict(data), shorter.predict(data))


def test_a_saved_model_is_the_same(data, model, tmp_path):
    model.save(tmp_path / "model.txt")
    again = rs.load(tmp_path / "model.txt")
    assert repr(again) == repr(model)
    assert np.array_equal(again.predict(data), model.predict(data))
    assert again.info["params"] == model.info["params"]
    again.save(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "model.txt").read_bytes()


def test_validation_keeps_the_best_round(data):
    valid = small_dataset(seed=1, n_queries=20)
    records = []
    settings = {**QUICK, "trees": 40, "early_stopping": 4}
    for algo, link in ALGORITHMS.items():
        model = rs.train(data, valid=valid, algo=algo, callbacks=[records.append], **settings)
        curve = model.info["history"]["valid"]["ndcg@10"]
        assert model.info["best_score"] == max(curve)
        assert rs.evaluate(model, valid).mean() == pytest.approx(max(curve), abs=1e-12)
        assert model.n_trees == model.n_outputs * model.info["best_iteration"]
        assert len(curve) in (40, model.info["best_iteration"] + 4)
        assert model.link == link
    assert {record.round for record in records} == {"round"}


def test_threads_change_nothing_and_bins_will_do(data):
    from ranksieve.data.binned import bin_data

    one = rs.train(data, algo="mcrank", threads=1, **QUICK)
    two = rs.train(bin_data(data), algo="mcrank", threads=2, **QUICK)
    assert np.array_equal(one.predict(data), two.predict(data))


def test_it_learns_what_lightgbm_learns():
    train, test = rs.synth.cubic(60), rs.synth.cubic(60, start=60)
    ours = rs.train(train, algo="mcrank", trees=30, leaves=8, learning_rate=0.1, min_docs=20, l2=0.0, gain="newton")
    settings = {"objective": "multiclass", "num_class": 5, "num_leaves": 8, "min_sum_hessian_in_leaf": 0.0}
    theirs = lightgbm.train(
        {**settings, "min_data_in_leaf": 20, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 0},
        lightgbm.Dataset(train.features, train.labels),
        30,
    )
    probabilities = theirs.predict(test.features)
    likelihood = [
        -np.log(p[np.arange(len(p)), test.labels.astype(int)]).mean() for p in (ours.predict_proba(test), probabilities)
    ]
    assert likelihood[0] == pytest.approx(likelihood[1], rel=0.01)


def test_lightgbm_models_of_several_classes_load(tmp_path):
    data = rs.synth.cubic(20)
    path = tmp_path / "model.txt"
    settings = {"num_class": 5, "num_leaves": 4, "verbose": -1, "num_threads": 1}
    theirs = lightgbm.train({**settings, "objective": "multiclass"}, lightgbm.Dataset(data.features, data.labels), 3)
    theirs.save_model(path)
    model = rs.load(path)
    np.testing.assert_allclose(model.predict(data), theirs.predict(data.features) @ np.arange(5.0), atol=1e-12)
    others = lightgbm.train({**settings, "objective": "multiclassova"}, lightgbm.Dataset(data.features, data.labels), 3)
    others.save_model(path)
    with pytest.raises(ModelError, match=r"model\.txt:\d+: .* gives no expected grade"):
        rs.load(path)


def test_two_grades_and_weights(data):
    labels = (data.labels > 0).astype(float)
    heavy = np.where(labels > 0, 3.0, 1.0)
    for algo in ALGORITHMS:
        two = rs.Dataset.from_arrays(data.features, labels, group=data.lists.sizes, weights=heavy)
        model = rs.train(two, algo=algo, **QUICK)
        assert model.n_outputs == (2 if algo == "mcrank" else 1)
        share = np.average(labels, weights=heavy)
        assert np.average(model.predict(two), weights=heavy) == pytest.approx(share, abs=0.05)


def test_bad_input_is_reported(data, tmp_path):
    many = rs.Dataset.from_arrays(data.features, np.arange(data.n_docs), group=data.lists.sizes)
    with pytest.raises(DataError, match="different labels, and one forest is grown per label"):
        rs.train(many, algo="mcrank")
    with pytest.raises(ParameterError, match=r"checkpoint is not used by .* only by boosted forests"):
        rs.train(data, algo="mcrank", checkpoint=tmp_path)
    model = rs.train(data, algo="mcrank", **{**QUICK, "trees": 2})
    path = tmp_path / "model.txt"
    model.save(path)
    text = path.read_text()
    for old, new, message in (
        ("num_tree_per_iteration=5", "num_tree_per_iteration=2", "one tree per class"),
        ("num_class=5\n", "num_class=x\n", "expected an integer from 1"),
        ('"grades": [0.0, ', '"grades": [', "5 classes do not fit the grades"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(ModelError, match=message):
            rs.load(path)


def test_gains_apply_to_the_validation_metric(data):
    table = (0.0, 1.0, 1.0, 1.0, 7.0)
    model = rs.train(data, valid=data, algo="mcrank", gains=table, early_stopping=0, **{**QUICK, "trees": 2})
    expected = rs.evaluate(model, data, rs.metrics.parse_metric("ndcg@10", gain=table)).mean()
    assert model.info["history"]["valid"]["ndcg@10"][-1] == pytest.approx(expected)


def test_ctrl_c_keeps_the_finished_rounds(data):
    options = {"algo": "mcrank", "trees": 6, "leaves": 4, "valid": data, "early_stopping": 0}

    def stop(record):
        if record.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedTraining) as stopped:
        rs.train(data, callbacks=[stop], **options)
    kept = rs.train(data, **{**options, "trees": 3})
    np.testing.assert_array_equal(stopped.value.model.predict(data), kept.predict(data))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"grades": [', '"grades": [Infinity, '),
        ('"grades": [', '"grades": ["1_0", '),
        ('"grades": [', '"grades": [[1], '),
        ('"link": "multinomial"', '"link": []'),
        ("num_class=", "num_class=²"),
    ],
)
def test_damaged_grades_are_refused(data, tmp_path, old, new):
    path = tmp_path / "model.txt"
    rs.train(data, algo="mcrank", trees=2, leaves=4, min_docs=3).save(path)
    text = path.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    if "grades" in old:  # as many grades as before
        text = re.sub(r"(\"grades\": \[[^\]]*?(?:\[1\])?[^\]]*), [^,\]]+\]", r"\1]", text, count=1)
    path.write_text(text)
    with pytest.raises(ModelError, match=r"model\.txt:\d+: "):
        rs.load(path)
