"""Exact combinations of two rankers, interpolation of several, refitted weights, and blends as models."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_combination
import ranksieve as rs
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.models.blend import Blend, blend
from samples import small_dataset

SMALL = {"algo": "lambdamart", "trees": 6, "leaves": 5, "min_docs": 3, "learning_rate": 0.2}


@pytest.fixture
def data():
    return small_dataset()


@pytest.fixture
def two(data):
    return rs.train(data, **SMALL), rs.train(small_dataset(seed=4), **SMALL)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["convex", "additive"]), st.sampled_from(["ndcg@3", "map", "err@2"]))
def test_alpha_is_the_best_of_all_intervals(seed, form, metric):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 3)
    labels = rng.integers(0, 3, sizes.sum())
    labels[-1] = 1
    # halves and eighths: differences are exact, and several crossings fall together
    a, b = rng.integers(-8, 9, (2, sizes.sum())) / rng.choice([1, 2, 8])
    data = rs.Dataset.from_arrays(np.zeros((len(labels), 1)), labels, group=sizes)
    found = rs.combine(a, b, data, metric, form=form)
    low, high = (0.0, 1.0) if form == "convex" else (0.1, 5.0)
    exact = parse_metric(metric, ties="mean")
    direction = b - a if form == "convex" else b
    borders, values = naive_combination.sweep(exact, labels, a, direction, data.offsets, low, high)
    alone = ((0.0, a), (1.0, b)) if form == "convex" else ()
    ends = {place: rs.evaluate(one, data, [exact]).mean() for place, one in alone}
    assert found.value == pytest.approx(max([*values, *ends.values()]), abs=1e-12)
    if found.alpha in ends:
        assert found.value == ends[found.alpha]
    else:  # a sum, and neither ranker alone is as good
        assert values[np.searchsorted(borders, found.alpha) - 1] == pytest.approx(max(values), abs=1e-12)
        assert all(found.value > value + 1e-13 for value in ends.values())
    middles = 0.5 * (np.array(borders[:-1]) + np.array(borders[1:]))
    np.testing.assert_allclose(found.curve.at(middles), values, atol=1e-12)


def test_two_forests_become_one_file(tmp_path, two):
    data = small_dataset(seed=9)
    found = rs.combine(*two, data)
    model = found.model(*two)
    assert isinstance(model, rs.Forest) and model.n_trees == 12
    np.testing.assert_allclose(
        model.predict(data), found.scores(two[0].predict(data), two[1].predict(data)), rtol=1e-12
    )
    assert rs.evaluate(model, data, [parse_metric("ndcg@10", ties="mean")]).mean() == pytest.approx(found.value)
    assert found.value >= max(rs.evaluate(one, data).mean() for one in two) - 1e-9
    model.save(tmp_path / "both.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "both.txt").predict(data), model.predict(data))
    assert rs.load(tmp_path / "both.txt").info["combination"]["alpha"] == found.alpha


def test_a_ranker_that_adds_nothing_is_left_out(data, two):
    scores = data.labels.astype(float)
    assert rs.combine(scores, -scores, data).alpha == 0.0
    found = rs.combine(-scores, scores, data)
    assert found.weights == (0.0, 1.0) and found.value == 1.0
    model = found.model(*two)
    assert model.n_trees == 6 and model.info["combination"]["alpha"] == 1.0
    np.testing.assert_array_equal(model.predict(data), two[1].predict(data))
    assert rs.combine(scores, -scores, data, form="additive", range=(0, 5)).alpha == 0.0
    assert rs.combine(scores, -scores, data, form="additive").alpha >= 0.1
    linear = rs.train(data, algo="ranksvm")
    assert found.model(two[0], linear).models == (linear,)


def test_any_two_rankers_become_one_model(tmp_path, data, two):
    data = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    linear = rs.train(data, algo="ranksvm")
    found = rs.combine(two[0], linear, data, form="additive", range=(0.1, 2))
    model = found.model(two[0], linear)
    assert isinstance(model, Blend) and "6 trees" in model.size
    model.save(tmp_path / "blend.json")
    again = rs.load(tmp_path / "blend.json")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    np.testing.assert_allclose(model.predict(data), two[0].predict(data) + found.alpha * linear.predict(data))
    nested = blend((again, two[1]), (0.5, 2.0), {})
    nested.save(tmp_path / "nested.json")
    np.testing.assert_array_equal(rs.load(tmp_path / "nested.json").predict(data), nested.predict(data))


def test_rows_of_mixed_queries_keep_their_scores(data, two):
    mixed = np.random.default_rng(4).permutation(data.n_docs)
    qid = np.repeat(np.arange(data.n_queries), data.lists.sizes)
    shuffled = rs.Dataset.from_arrays(data.features[mixed], data.labels[mixed], qid=qid[mixed])
    plain, other = rs.combine(*two, data), rs.combine(*two, shuffled)
    assert other.value == pytest.approx(plain.value, abs=1e-12)


def test_bad_combinations(data, two):
    with pytest.raises(ParameterError, match="smaller one first"):
        rs.combine(*two, data, range=(1, 0))
    with pytest.raises(ParameterError, match="two finite numbers"):
        rs.combine(*two, data, range=3)
    with pytest.raises(ParameterError, match="convex, additive"):
        rs.combine(*two, data, form="concave")
    with pytest.raises(DataError, match=r"'b' has scores of shape \(3,\)"):
        rs.combine(two[0], [1, 2, 3], data)
    with pytest.raises(DataError, match="document 0 by 'a' is nan"):
        rs.combine(np.full(data.n_docs, np.nan), two[1], data)
    with pytest.raises(ParameterError, match="the cut-off of 'ndcg@0' is"):
        rs.combine(*two, data, "ndcg@0")
    with pytest.raises(ModelError, match="do not fit together"):
        blend((two[0], rs.train(small_dataset(n_features=5), **SMALL)), (1, 1), {})


def test_interpolation_is_never_worse_than_the_best_alone(data, two):
    rankers = {"a": two[0], "b": two[1], "noise": np.random.default_rng(0).standard_normal(data.n_docs)}
    found = rs.interpolate(rankers, data)
    assert found.value >= found.alone.max() and (found.weights >= 0).all()
    scores = [two[0].predict(data), two[1].predict(data), rankers["noise"]]
    assert rs.evaluate(found.scores(scores), data).mean() == pytest.approx(found.value, abs=1e-12)
    again = rs.interpolate(rankers, data)
    np.testing.assert_array_equal(again.weights, found.weights)


def test_interpolated_forests_are_one_forest(data, two):
    found = rs.interpolate(two, data, "map")
    model = found.model(two)
    assert isinstance(model, rs.Forest)
    assert rs.evaluate(model, data, "map").mean() == pytest.approx(found.value, abs=1e-12)
    one = rs.interpolate(two[:1], data)
    assert one.weights[0] > 0 and one.value == one.alone[0]


def test_scales_of_scores_do_not_matter(data, two):
    scores = [one.predict(data) for one in two]
    plain = rs.interpolate(scores, data)
    scaled = rs.interpolate([scores[0] * 2.0**20, scores[1]], data)
    np.testing.assert_allclose(scaled.weights * [2.0**20, 1.0], plain.weights)


def test_bad_interpolations(data, two):
    with pytest.raises(ParameterError, match="no rankers"):
        rs.interpolate([], data)
    with pytest.raises(ParameterError, match="2 weights"):
        rs.interpolate(two, data, start=[1.0])
    with pytest.raises(ParameterError, match="not negative"):
        rs.interpolate(two, data, start=[1.0, -1.0])


@pytest.mark.parametrize("metric", ["ndcg@10", "map"])
def test_refitting_never_lowers_the_metric(data, two, metric):
    seen = []
    model = rs.pruning.refit(two[0], data, metric, rounds=3, callback=lambda tree, value: seen.append(value))
    values = model.info["refit"]["values"]
    assert (np.diff(values) >= 0).all() and values[-1] > values[0] and values[1:] == seen
    exact = parse_metric(metric, ties="mean")
    assert rs.evaluate(two[0], data, [exact]).mean() == pytest.approx(values[0], abs=1e-12)
    assert rs.evaluate(model, data, [exact]).mean() == pytest.approx(values[-1], abs=1e-9)
    assert (model.weights >= 0.1 * two[0].weights).all() and (model.weights <= 5 * two[0].weights).all()


def test_refitting_continues_from_weights_and_refuses_nonsense(data, two):
    weighted = two[0].reweighted(np.linspace(0.5, 2, 6))
    model = rs.pruning.refit(weighted, data, range=(0.0, 2.0))
    assert model.info["refit"]["values"][-1] >= model.info["refit"]["values"][0]
    with pytest.raises(ParameterError, match="smaller one first"):
        rs.pruning.refit(two[0], data, range=(2, 1))
    with pytest.raises(ParameterError, match="rounds"):
        rs.pruning.refit(two[0], data, rounds=0)


def test_a_feature_or_linear_base_is_saved_with_the_trees(tmp_path, data):
    lists = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    rs.train(lists, algo="ranksvm").save(tmp_path / "linear.json")
    for init in ("f3", tmp_path / "linear.json"):
        model = rs.train(lists, init=init, valid=lists, **SMALL)
        assert isinstance(model, Blend) and model.evals_result_["valid"]["ndcg@10"][-1] > model.info["init"]["score"]
        assert rs.evaluate(model, lists).mean() == pytest.approx(model.info["best_score"], abs=1e-9)
        model.save(tmp_path / "model.json")
        np.testing.assert_array_equal(rs.load(tmp_path / "model.json").predict(lists), model.predict(lists))


def test_a_base_that_cannot_be_saved_is_reported(tmp_path, data):
    class Mine:
        def predict(self, X):
            return np.nan_to_num(X[:, 0])

    model = rs.train(data, init=Mine(), **SMALL)
    with pytest.raises(ModelError, match="Mine cannot be saved inside another model"):
        model.save(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


def test_changed_blend_files_are_refused(tmp_path, two):
    Blend(two, np.ones(2), two[0].feature_names).save(tmp_path / "blend.json")
    text = (tmp_path / "blend.json").read_text()
    (tmp_path / "blend.json").write_text(text.replace('"weights":[1.0,1.0]', '"weights":[1.0]'))
    with pytest.raises(ModelError, match="as many files as weights"):
        rs.load(tmp_path / "blend.json")


def test_absent_features_are_read_as_the_models_were_trained(data, two):
    zero, nan = two[0], replace(two[1], info={**two[1].info, "missing": "nan"})
    zero = replace(zero, info={**zero.info, "missing": "zero"})
    found = rs.interpolate([nan, nan], data)
    assert found.model([nan, nan]).info["missing"] == "nan"
    assert rs.combine(nan, nan, data).model(nan, nan).info["missing"] == "nan"
    for make in (found.model, lambda models, **options: rs.combine(zero, nan, data).model(*models, **options)):
        with pytest.raises(ModelError, match="different values for absent features"):
            make([zero, nan])
        assert make([zero, nan], missing="nan").info["missing"] == "nan"
    with pytest.raises(ParameterError, match="missing is 'x'"):
        found.model([nan, nan], missing="x")


def test_threads_reach_every_model_that_takes_them(data):
    seen = []

    class Takes:
        def predict(self, X, *, threads=None):
            seen.append(threads)
            return np.zeros(data.n_docs)

    class TakesNone:
        def predict(self, X):
            return np.ones(data.n_docs)

    both = Blend((Takes(), TakesNone()), np.ones(2), data.feature_names)
    assert both.predict(data, threads=3).tolist() == [1.0] * data.n_docs
    assert seen == [3]


def test_the_mean_of_several_forests_is_one_forest(tmp_path, data):
    models = [rs.train(small_dataset(seed=seed), **SMALL) for seed in (1, 2, 3)]
    mean = rs.combine(models)
    assert isinstance(mean, rs.Forest) and mean.n_trees == sum(model.n_trees for model in models)
    scores = [model.predict(data) for model in models]
    np.testing.assert_allclose(mean.predict(data), np.mean(scores, axis=0), rtol=1e-12, atol=1e-12)
    assert mean.info["combination"]["weights"] == [1 / 3] * 3
    mean.save(tmp_path / "mean.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "mean.txt").predict(data), mean.predict(data))
    weighted = rs.combine(models, weights=[0.5, 0.0, 2.0])
    assert weighted.n_trees == models[0].n_trees + models[2].n_trees
    np.testing.assert_allclose(weighted.predict(data), 0.5 * scores[0] + 2.0 * scores[2], rtol=1e-12, atol=1e-12)


def test_the_mean_of_other_models_is_a_blend(tmp_path, data, two):
    models = [*two, rs.train(data, algo="ranksvm")]
    mean = rs.combine(models)
    assert isinstance(mean, Blend)
    expected = np.mean([model.predict(data) for model in models], axis=0)
    np.testing.assert_allclose(mean.predict(data), expected, rtol=1e-12, atol=1e-12)
    mean.save(tmp_path / "mean.json")
    np.testing.assert_array_equal(rs.load(tmp_path / "mean.json").predict(data), mean.predict(data))


@pytest.mark.parametrize(
    ("weights", "message"), [([1, 2, 3], "expected 2 finite numbers"), ([0, 0], "not all 0"), ([1, np.inf], "finite")]
)
def test_weights_of_a_mean_are_checked(two, weights, message):
    with pytest.raises(ParameterError, match=message):
        rs.combine(two, weights=weights)


def test_a_mean_needs_models(two):
    for models in ([two[0]], two[0], [], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(ParameterError, match="expected a list of two or more models"):
            rs.combine(models)
    narrow = replace(two[1], feature_names=two[1].feature_names[:-1])
    with pytest.raises(ModelError, match="do not fit together"):
        rs.combine([two[0], narrow])


def test_a_blend_whose_models_have_other_features_is_refused(tmp_path, data, two):
    path = tmp_path / "blend.json"
    rs.combine([two[0], rs.train(data, algo="ranksvm")]).save(path)
    names = "".join(f'"{name}",' for name in two[0].feature_names)[:-1]
    text = path.read_text()
    assert names in text
    path.write_text(text.replace(names, names + ',"more"', 1))
    with pytest.raises(ModelError, match="model 1 has"):
        rs.load(path)
