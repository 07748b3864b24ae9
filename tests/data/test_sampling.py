"""Static sampling, against plain Python, on several lists with ties, missing values and scattered queries."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from naive import best_first, kept_rows, top_negatives
from ranksieve.data.lists import share_of
from ranksieve.data.sampling import fold_queries, split_queries
from ranksieve.errors import DataError, ParameterError
from samples import small_dataset


def tied_dataset(seed=0):
    """A small data set whose rows were given in no order; feature 6 has three values."""
    data = small_dataset(seed=seed)
    order = np.random.default_rng(seed).permutation(data.n_docs)
    qid = data.query_ids.repeat(data.lists.sizes)[order]
    return rs.Dataset.from_arrays(data.features[order], data.labels[order], qid=qid, doc_ids=order).with_features(
        first_stage=6
    )


def negatives_of(data):
    """The number of negatives of each query."""
    return np.add.reduceat(data.labels == 0, data.offsets[:-1])


def assert_rows(sampled, data, rows):
    assert sampled.lists.doc_ids.tolist() == data.lists.doc_ids[rows].tolist()
    np.testing.assert_array_equal(sampled.features, data.take_rows(np.array(rows)).features)


@pytest.mark.parametrize("k", [1, 7, 500])
@pytest.mark.parametrize("feature", [None, 0, "f3"])
@pytest.mark.filterwarnings("ignore:.*positives")
def test_truncate(k, feature):
    data = tied_dataset()
    values = data.column(6 if feature is None else feature)
    dropped = kept_rows(data, lambda rows: best_first(rows, values)[:k])
    assert_rows(rs.sampling.truncate(data, k, by=feature, positives="drop"), data, dropped)
    kept = sorted({*dropped, *np.flatnonzero(data.labels)})
    assert_rows(rs.sampling.truncate(data, k, by=feature), data, kept)


def test_truncate_warns_of_the_trap():
    data = tied_dataset()
    with pytest.warns(UserWarning, match=r"positives \(\d+%\) are ranked beyond 2 .* consider positives='drop'"):
        rs.sampling.truncate(data, 2, by=5)
    best_first = rs.Dataset.from_arrays([[3.0], [2.0], [1.0], [9.0], [8.0]], [1, 0, 0, 2, 0], group=[3, 2])
    assert rs.sampling.truncate(best_first, 1, by=0).n_docs == 2


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_by_model(share):
    data = tied_dataset(1)
    scores = np.random.default_rng(0).integers(0, 5, data.n_docs).astype(float)
    counts = np.maximum(1, share_of(negatives_of(data), share))
    expected = top_negatives(data.labels, scores[data.lists.order], data.offsets, counts)
    assert_rows(rs.sampling.by_model(data, scores, share), data, expected)


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("amount", [{"n": 3}, {"n": 0}, {"share": 0.3}])
def test_undersample_by_feature(order, amount):
    data = tied_dataset(2)
    values = data.column("f7")
    n_negatives = negatives_of(data)
    counts = share_of(n_negatives, amount["share"]) if "share" in amount else np.full_like(n_negatives, amount["n"])
    expected = top_negatives(data.labels, values if order == "descending" else -values, data.offsets, counts)
    assert_rows(rs.sampling.undersample(data, order=order, by="f7", **amount), data, expected)


def test_random_undersamples_have_the_counts_and_follow_the_seed():
    data = tied_dataset(3)
    samples = [rs.sampling.undersample(data, share=0.3, seed=seed) for seed in (0, 0, 1)]
    n_negatives = negatives_of(data)
    for sampled in samples:
        assert (sampled.labels > 0).sum() == (data.labels > 0).sum()
        chosen = np.add.reduceat(sampled.labels == 0, sampled.offsets[:-1])
        assert chosen.tolist() == share_of(n_negatives, 0.3).tolist()
    first, same, other = (tuple(sampled.lists.doc_ids) for sampled in samples)
    assert first == same != other


def test_bad_wishes_are_refused():
    data = small_dataset()
    for call, message in (
        (lambda: rs.sampling.truncate(data, 5), "no first-stage feature is known"),
        (lambda: rs.sampling.truncate(data, 0, by=0), "k is 0"),
        (
            lambda: rs.sampling.truncate(data, 5, by=0, positives="lose"),
            "positives is 'lose'; expected one of keep, drop",
        ),
        (lambda: rs.sampling.undersample(data), "exactly one of n"),
        (lambda: rs.sampling.undersample(data, n=1, share=0.5), "exactly one of n"),
        (lambda: rs.sampling.undersample(data, n=-1), "n is -1"),
        (lambda: rs.sampling.undersample(data, share=1.5), "share is 1.5"),
        (lambda: rs.sampling.undersample(data, n=1, order="up"), "order is 'up'"),
        (lambda: rs.sampling.by_model(data, np.zeros(data.n_docs), 0.0), "share is 0.0"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises(DataError, match="give one per document"):
        rs.sampling.by_model(data, np.zeros(3), 0.5)
    with pytest.raises(DataError, match="no feature is named 'bm25'"):
        rs.sampling.truncate(data, 5, by="bm25")


def test_splits_cover_every_query_once():
    data = small_dataset(n_queries=23)
    parts = rs.sampling.split(data, (0.6, 0.2, 0.2), seed=4)
    assert [part.n_queries for part in parts] == [14, 4, 5]
    assert sorted(query for part in parts for query in part.query_ids) == data.query_ids.tolist()
    again = rs.sampling.split(rs.sampling.undersample(data, n=1), (0.6, 0.2, 0.2), seed=4)
    assert [part.query_ids.tolist() for part in again] == [part.query_ids.tolist() for part in parts]
    for shares in ((0.5, 0.6), (1.2, -0.2), ()):
        with pytest.raises(ParameterError, match="add up to 1"):
            split_queries(10, shares)
    with pytest.raises(DataError, match=r"0.6, 0.2, 0.2 of 2 queries leave a part empty"):
        split_queries(2)


def test_folds_test_and_validate_every_query_once():
    folds = list(fold_queries(13, 5, seed=1))
    for part in (1, 2):
        assert sorted(query for fold in folds for query in fold[part]) == list(range(13))
    for fold in folds:
        assert sorted(np.concatenate(fold)) == list(range(13))
    assert len(list(fold_queries(3, 3))) == 3
    with pytest.raises(ParameterError, match="at least 3"):
        next(fold_queries(10, 2))
    with pytest.raises(DataError, match="every fold"):
        next(fold_queries(4, 5))
