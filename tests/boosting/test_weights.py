"""Weights of documents and of queries."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError
from samples import small_dataset

SMALL = {"algo": "lambdamart", "trees": 6, "leaves": 8, "min_docs": 3, "learning_rate": 0.3, "threads": 1}


def weighted(weights: np.ndarray, **options) -> rs.Dataset:
    data = small_dataset()
    return rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights, **options)


@pytest.fixture(scope="module")
def query_weights() -> np.ndarray:
    return np.random.default_rng(1).random(12) + 0.1


def test_weights_per_query_are_weights_of_its_documents(query_weights):
    sizes = small_dataset().lists.sizes
    by_query, by_document = weighted(query_weights), weighted(np.repeat(query_weights, sizes))
    np.testing.assert_array_equal(by_query.lists.weights, by_document.lists.weights)
    np.testing.assert_allclose(by_query.lists.query_weights, query_weights)


def test_weights_per_query_follow_queries_that_lie_apart():
    X, qid = np.zeros((6, 1)), ["b", "a", "b", "c", "a", "b"]
    data = rs.Dataset.from_arrays(X, np.zeros(6), qid=qid, weights=[1.0, 2.0, 3.0])
    assert data.lists.to_user_order(data.lists.weights).tolist() == [1, 2, 1, 3, 2, 1]


def test_weights_change_the_model_through_every_door(tmp_path, query_weights):
    data = weighted(query_weights)
    model = rs.train(data, **SMALL)
    assert (model.leaf_values != rs.train(small_dataset(), **SMALL).leaf_values).any()
    rs.io.write_letor(data, tmp_path / "train.txt")
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    for door in (tmp_path / "train.txt", tmp_path / "train.parquet", rs.read(tmp_path / "train.parquet")):
        np.testing.assert_array_equal(rs.train(door, missing="nan", **SMALL).leaf_values, model.leaf_values)
    ranker = rs.Ranker(**SMALL).fit(data.features, data.labels, group=data.lists.sizes, sample_weight=query_weights)
    np.testing.assert_array_equal(ranker.model_.leaf_values, model.leaf_values)


def test_documents_of_weight_two_teach_like_two_of_them():
    """Regression: a weight is a number of equal documents, for values and for the constant boosting starts from."""
    data = small_dataset(n_queries=4)
    weights = np.random.default_rng(0).integers(1, 3, data.n_docs)
    rows = np.repeat(np.arange(data.n_docs), weights)
    sizes = np.add.reduceat(weights, data.offsets[:-1])
    options = {"algo": "mart", "gain": "newton", "trees": 4, "leaves": 5, "min_docs": 1, "threads": 1}
    twice = rs.Dataset.from_arrays(data.features[rows], data.labels[rows], group=sizes)
    once = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights)
    np.testing.assert_allclose(
        rs.train(once, **options).predict(data), rs.train(twice, **options).predict(data), rtol=1e-6
    )


def test_lightgbm_multiplies_gradients_by_weights_as_we_do(query_weights):
    """One tree of two leaves from zero scores: Σ weight·λ / Σ weight·w, on whole lists where both mean the same λ."""
    data = weighted(np.repeat(query_weights, small_dataset().lists.sizes) * 1.5)
    X = np.nan_to_num(data.features)
    plain = rs.Dataset.from_arrays(X, data.labels, group=data.lists.sizes, weights=data.lists.weights)
    ours = rs.train(plain, algo="lambdamart", gain="newton", trees=1, leaves=2, min_docs=5, l2=0.0, learning_rate=1.0,
                    truncation=1000, normalize=False)  # fmt: skip
    params = {"objective": "lambdarank", "lambdarank_truncation_level": 1000, "lambdarank_norm": False, "num_leaves": 2}
    params |= {"learning_rate": 1.0, "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0, "verbose": -1, "max_bin": 255}
    train_set = lightgbm.Dataset(X, data.labels, group=data.lists.sizes, weight=data.lists.weights)
    theirs = lightgbm.train({**params, "num_threads": 1, "deterministic": True}, train_set, 1)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=2e-3)


def test_validation_and_evaluation_count_queries_by_their_weights(query_weights):
    data = weighted(query_weights)
    model = rs.train(small_dataset(), valid=data, early_stopping=0, **SMALL)
    result = rs.evaluate(model, data, weighted=True)
    assert result.mean() == pytest.approx(np.average(result.per_query(), weights=query_weights))
    assert result.mean() == pytest.approx(model.evals_result_["valid"]["ndcg@10"][-1], abs=1e-12)
    assert result.table()[0]["ndcg@10"] == result.mean()
    assert result.conventions[0].endswith("by their weights")
    assert rs.evaluate(model, data).mean() == pytest.approx(np.mean(result.per_query()))
    ranker = rs.Ranker(**SMALL, early_stopping=0).fit(
        data.features, data.labels, group=data.lists.sizes, eval_set=[(data.features, data.labels)],
        eval_group=[data.lists.sizes], eval_sample_weight=[query_weights],
    )  # fmt: skip
    scored = ranker.score(data.features, data.labels, group=data.lists.sizes, sample_weight=query_weights)
    assert scored == pytest.approx(ranker.evals_result_["valid"]["ndcg@10"][-1], abs=1e-12)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="one per document or one per query"):
        weighted(np.ones(5))
    with pytest.raises(DataError, match="not negative"):
        weighted(-np.ones(12))
    with pytest.raises(ParameterError, match="has no weights"):
        rs.evaluate(np.zeros(small_dataset().n_docs), small_dataset(), weighted=True)
