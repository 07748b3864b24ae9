"""Monotone constraints, feature subsets, label gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import ranksieve as rs
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.binned import bin_data
from ranksieve.data.features import monotone_signs
from ranksieve.errors import DataError, ParameterError, RanksieveError
from ranksieve.text_formats import SIGNS
from rule_samples import lambda_gradients
from samples import small_dataset

SMALL = {"trees": 8, "leaves": 12, "min_docs": 2, "learning_rate": 0.3, "threads": 1}


def rises(model: rs.Forest, X: np.ndarray, feature: int) -> np.ndarray:
    """Differences of scores as one feature rises over all its thresholds, for every row."""
    values = np.unique(np.concatenate([model.threshold[model.feature == feature], [-9.0, 9.0]]))
    X = np.repeat(X, len(values), axis=0)
    X[:, feature] = np.tile(values, len(X) // len(values))
    return np.diff(model.predict(X).reshape(-1, len(values)), axis=1)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=7, max_size=7),
    gain=st.sampled_from(["variance", "newton"]),
    l2=st.sampled_from([0.0, 1.0]),
    algo=st.sampled_from(["lambdamart", "selgb", "mart"]),
)
def test_scores_are_monotone_along_every_constrained_feature(seed, signs, gain, l2, algo):
    data = small_dataset(seed=seed, n_queries=6)
    model = rs.train(data, algo=algo, negatives=0.5, min_negatives=1, monotone=signs, gain=gain, l2=l2, **SMALL)
    for feature, sign in enumerate(signs):
        if sign:
            assert (sign * rises(model, data.features[:25].copy(), feature) >= 0.0).all()


def test_without_the_constraint_the_same_model_is_not_monotone(data):
    """Otherwise the test above would be trivial."""
    free = rs.train(data, algo="lambdamart", **SMALL)
    assert any((rises(free, data.features[:25].copy(), f) < 0).any() for f in range(3))
    bound = rs.train(data, algo="lambdamart", monotone={"f1": 1, "f2": 1, "f3": 1}, **SMALL)
    assert set(np.unique(bound.feature)) & {0, 1, 2}


def test_a_constraint_that_never_binds_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2)).astype(np.float32)
    data = rs.Dataset.from_arrays(X, np.floor(3 * X[:, 0]), group=[100, 200])
    free, bound = (
        rs.train(data, algo="mart", monotone=monotone, **{**SMALL, "trees": 1, "leaves": 3, "l2": 0.0})
        for monotone in ("none", "f1:+1")
    )
    assert free.feature.tolist() == bound.feature.tolist() == [0, 0]
    np.testing.assert_array_equal(free.threshold, bound.threshold)
    np.testing.assert_array_equal(free.leaf_values, bound.leaf_values)


@pytest.mark.parametrize("gain", ["variance", "newton"])
@pytest.mark.parametrize("seed", range(3))
def test_first_split_is_the_naive_best_among_those_allowed(seed, gain):
    binned = bin_data(small_dataset(seed=seed, n_queries=4), max_bins=16)
    rng = np.random.default_rng(seed)
    grad, hess = rng.standard_normal(len(binned.bins)), rng.random(len(binned.bins))
    signs = np.array([1, -1, 1, -1, 1, -1, 1])
    params = rs.params.Params(leaves=2, min_docs=5, gain=gain, l2=0.5, monotone=signs.tolist())
    tree, _ = Grower(binned, params, threads=2).grow(TreeTarget(None, grad, hess), rng)
    _, feature, split_bin, _ = naive.best_split(
        binned.bins, binned.binning.n_bins, grad, hess, min_docs=5, newton=gain == "newton", l2=0.5,
        signs=signs[binned.binning.features],
    )  # fmt: skip
    assert tree.splits[0, :2].tolist() == [feature, split_bin]


def test_threads_change_no_bit(data):
    one, two = (rs.train(data, algo="lambdamart", monotone="f1:+1,f3:-1", **{**SMALL, "threads": n}) for n in (1, 2))
    np.testing.assert_array_equal(one.leaf_values, two.leaf_values)
    np.testing.assert_array_equal(one.threshold, two.threshold)


@pytest.mark.parametrize("algo", ["lambdamart", "selgb", "negsgb"])
def test_training_on_some_features_is_training_on_data_that_has_no_others(data, algo):
    chosen = [1, 2, 6]
    reduced = rs.Dataset.from_arrays(data.features[:, chosen], data.labels, group=data.lists.sizes)
    some = rs.train(data, algo=algo, negatives=0.3, min_negatives=1, features=chosen, **SMALL)
    alone = rs.train(reduced, algo=algo, negatives=0.3, min_negatives=1, **SMALL)
    assert np.array(chosen)[alone.feature].tolist() == some.feature.tolist()
    np.testing.assert_array_equal(alone.threshold, some.threshold)
    np.testing.assert_array_equal(alone.leaf_values, some.leaf_values)
    assert some.n_features == 7  # scores the same documents as before


def test_features_and_constraints_and_fractions_go_together(data):
    model = rs.train(data, features="f2,f3,f7", monotone="f3:+1", feature_fraction=0.5, **SMALL)
    assert set(np.unique(model.feature)) <= {1, 2, 6}
    assert (rises(model, data.features[:25].copy(), 2) >= 0).all()


def test_gains_apply_to_gradients_and_metrics(data):
    table = (0.0, 1.0, 1.0, 1.0, 7.0)
    model = rs.train(data, valid=data, algo="lambdamart", gains=table, early_stopping=0, **SMALL)
    metric = rs.metrics.parse_metric("ndcg@10", gain=table)
    assert rs.evaluate(model, data, metric).mean() == pytest.approx(model.evals_result_["valid"]["ndcg@10"][-1])
    plain = rs.train(data, valid=data, algo="lambdamart", early_stopping=0, **SMALL)
    assert (plain.leaf_values[:12] != model.leaf_values[:12]).any()
    # a table of 2^label - 1 is the default
    same = rs.train(data, valid=data, algo="lambdamart", gains="0,1,3,7,15", early_stopping=0, **SMALL)
    np.testing.assert_array_equal(same.leaf_values, plain.leaf_values)
    labels, offsets = data.labels, data.offsets
    grad, _ = lambda_gradients(labels, np.zeros(len(labels)), offsets, gain=table)
    equal = np.where(labels == 4, 2, np.minimum(labels, 1)).astype(np.float32)  # grades 1 to 3 are alike
    expected, _ = lambda_gradients(equal, np.zeros(len(labels)), offsets, gain=(0.0, 1.0, 7.0))
    np.testing.assert_array_equal(grad, expected)


def test_labels_beyond_the_table_are_refused(data):
    with pytest.raises(DataError, match="no entry in the gain table"):
        rs.train(data, gains="0,1", **SMALL)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gains": "1,2,3"}, "^gains is '1,2,3'"),
        ({"gains": [0, 3, 1]}, "never decrease"),
        ({"gains": "0,x"}, "^gains"),
        ({"gains": 3}, "^gains"),
        ({"monotone": "f1:2"}, "^monotone is 'f1:2'"),
        ({"monotone": 1}, "^monotone"),
        ({"monotone": [1, 0]}, "2 signs for 7 features"),
        ({"monotone": "g1:+1"}, "no feature is named 'g1'"),
        ({"features": ""}, "features"),
        ({"features": "f1x"}, "did you mean 'f1'"),
        ({"features": [7]}, "feature 8 does not exist; there are 7"),
        ({"features": "!f*"}, "selects no feature"),
        ({"monotone": "f1:+1", "algo": "ranksvm"}, "monotone is not used by algo='ranksvm'"),
        ({"monotone": "1,f2:-1"}, "not both"),
        ({"monotone": "f1:+1,:-1"}, "^monotone is 'f1:.1,:-1'"),
        ({"monotone": "f1:+1", "step": "optimal", "step_range": (-1, 2)}, "^step_range begins at -1"),
        (
            {"gains": "0,1,2,3,4", "objective": "map", "metric": "err"},
            "^gains is 0,1,2,3,4, and neither the metric err",
        ),
        ({"gains": "0,1,2,3,4", "algo": "mart", "metric": "map"}, "^gains"),
    ],
)
def test_impossible_values_are_refused(data, params, message):
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        rs.train(data, **{**SMALL, **params})


def test_every_sign_that_is_read_has_a_meaning(data):
    names = [f"f{number}" for number in range(1, 8)]
    for text, sign in SIGNS.items():
        signs = monotone_signs(f"f1:{text},f2 : {text},f3:-1", names)
        assert signs.tolist() == [sign, sign, -1, 0, 0, 0, 0]
        signs = monotone_signs(",".join([text] * 6 + ["1"]), names)
        assert signs.tolist() == [sign] * 6 + [1]
        assert rs.params.Params(monotone=f"f1:{text}").monotone == f"f1:{text}"
    assert rs.params.Params(monotone={"f1": 1, "f2": 0}).monotone == "f1:+1,f2:+0"
    assert monotone_signs("f1:-0", names) is None
    rs.params.Params(monotone="f1:-0", step_range=(-1, 2))  # promises nothing


def test_refitted_models_stay_monotone(data):
    model = rs.train(data, algo="lambdamart", monotone="f3:+1", **SMALL)
    with pytest.raises(ParameterError, match="range begins at -1"):
        rs.pruning.refit(model, data, range=(-1, 2))
    assert (rises(rs.pruning.refit(model, data, range=(0, 2)), data.features[:25].copy(), 2) >= 0).all()


def test_one_vocabulary():
    params = rs.params.Params(gains=[0, 1, 2.5], monotone={"a": 1, "b": -1}, features=["bm25_*", 0])
    assert (params.gains, params.monotone, params.features) == ("0,1,2.5", "a:+1,b:-1", "bm25_*,1")
    assert rs.params.Params(**params.as_dict()) == params


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"features": "pagerank"}, "no feature is named 'pagerank'"),
        ({"monotone": [1, 0]}, "2 signs for 1 feature"),
        ({"device": "cuda"}, "device='cuda' cannot be used: no GPU"),
    ],
)
def test_names_and_devices_are_checked_before_the_data_is_read(params, message, tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.cuda.device.missing", lambda: "no GPU")
    (tmp_path / "train.csv").write_text("label,qid,bm25\n" + "0,1,0.5\n" * 2000 + '0,1,"\n')  # its end is damaged
    with pytest.raises(RanksieveError, match=message):
        rs.train(tmp_path / "train.csv", trees=2, **params)
    with pytest.raises(DataError, match=r"train\.csv"):
        rs.train(tmp_path / "train.csv", trees=2)
