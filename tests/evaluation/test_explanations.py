"""Explanations of rankings, and the importance of features."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.evaluation.importance import permutation_drops
from samples import small_dataset


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    plain = small_dataset(n_queries=12, seed=4)
    names = [f"d{number}" for number in range(plain.n_docs)]
    return rs.Dataset.from_arrays(plain.features, plain.labels, qid=np.repeat(np.arange(12) + 50, plain.lists.sizes),
                                  doc_ids=names)  # fmt: skip


@pytest.fixture(scope="module")
def model(data: rs.Dataset) -> rs.Forest:
    return rs.train(data, algo="lambdamart", trees=20, leaves=8, min_docs=3, learning_rate=0.2)


@pytest.mark.parametrize("query", [50, "57"])
def test_an_explanation_is_of_the_given_query(data, model, query):
    q = int(query) - 50
    rows = slice(data.offsets[q], data.offsets[q + 1])
    found = rs.explain(model, data, query)
    assert found.documents == tuple(data.lists.doc_ids[rows])
    np.testing.assert_array_equal(found.scores, model.predict(data)[rows])
    np.testing.assert_array_equal(found.labels, data.labels[rows])
    np.testing.assert_allclose(found.expected + found.contributions.sum(axis=1), found.scores, atol=1e-12)
    assert (np.diff(found.scores[found.order]) <= 0).all()
    assert found.ranks[found.order].tolist() == list(range(1, len(found.scores) + 1))


def test_differences_add_up_to_the_distance_of_the_scores(data, model):
    found = rs.explain(model, data, 53)
    first, last = found.order[0], found.order[-1]
    differences = found.why(found.documents[first], len(found.order))
    total = sum(item.difference for item in differences)
    assert total == pytest.approx(found.scores[first] - found.scores[last], abs=1e-12)
    sizes = [abs(item.difference) for item in differences]
    assert sizes == sorted(sizes, reverse=True)
    best = differences[0]
    number = found.feature_names.index(best.feature)
    assert best.above == found.contributions[first, number]
    np.testing.assert_equal(best.value_below, float(found.features[last, number]))


def test_dropping_features(data, model):
    found = rs.explain(model, data, 58)
    by_both = found.scores_without(["f1", 1])
    np.testing.assert_allclose(by_both, found.expected + found.contributions[:, 2:].sum(axis=1), atol=1e-12)
    everything = found.scores_without(list(found.feature_names))
    np.testing.assert_allclose(everything, found.expected, atol=1e-12)
    lost = found.features.copy()
    lost[:, 0] = np.nan
    np.testing.assert_array_equal(found.scores_without("f1", by="missing"), model.predict(lost))
    assert sorted(found.ranks_without("f1")) == sorted(found.ranks)


def test_unknown_names_list_the_known_ones(data, model):
    found = rs.explain(model, data, 50)
    for wrong, message in [
        (lambda: rs.explain(model, data, 7), "no query is called '7'"),
        (lambda: found.document("nobody"), "no document 'nobody'"),
        (lambda: found.document(0), "from 1 to"),
    ]:
        with pytest.raises(DataError, match=message):
            wrong()
    for wrong, message in [
        (lambda: found.ranks_without("zz"), "no feature 'zz'"),
        (lambda: found.ranks_without("f1", by="magic"), "by is 'magic'"),
        (lambda: rs.importance(model, "size"), "kind is 'size'"),
        (lambda: rs.importance(model, "permutation"), "give data"),
        (lambda: rs.importance(model, "permutation", data=data, repeats=0), "repeats is 0"),
    ]:
        with pytest.raises(ParameterError, match=message):
            wrong()


def test_a_ranker_without_trees_is_refused():
    with pytest.raises(ModelError, match="is not a forest"):
        rs.importance(object())


def test_importances(data, model):
    gains, splits = rs.importance(model), rs.importance(model, "split")
    assert gains.sum() == pytest.approx(1.0)
    assert splits.sum() == len(model.feature)
    ours = rs.importance(model, "contribution", data=data)
    np.testing.assert_allclose(ours, np.abs(model.predict(data, contributions=True)[:, :-1]).mean(axis=0))
    ranker = rs.Ranker(algo="lambdamart", trees=3, leaves=4).fit(data.features, data.labels, group=data.lists.sizes)
    np.testing.assert_array_equal(ranker.feature_importances_, rs.importance(ranker))


def test_permutation_is_within_queries_and_depends_on_the_seed_alone(data, model):
    first = rs.importance(model, "permutation", data=data, repeats=3, seed=1)
    np.testing.assert_array_equal(first, rs.importance(model, "permutation", data=data, repeats=3, seed=1))
    assert (first != rs.importance(model, "permutation", data=data, repeats=3, seed=2)).any()
    assert first[:3].min() > 0.01  # the three features the labels are made of
    alike = data.features.copy()
    alike[:, 0] = np.repeat(np.arange(12.0), data.lists.sizes)  # the same within a query: shuffling changes nothing
    same = rs.Dataset.from_arrays(alike, data.labels, group=data.lists.sizes)
    assert permutation_drops(model, same, repeats=2)[0].tolist() == [0.0] * 12


def test_queries_without_positives_do_not_count(data, model):
    labels = data.labels.copy()
    labels[: data.offsets[1]] = 0
    reduced = rs.Dataset.from_arrays(data.features, labels, group=data.lists.sizes)
    drops = permutation_drops(model, reduced, repeats=1)
    assert np.isnan(drops[:, 0]).all() and not np.isnan(drops[:, 1:]).any()
    assert np.isfinite(rs.importance(model, "permutation", data=reduced, repeats=1)).all()
