"""Synthetic data: the same by seed and query, with the sizes, grades and difficulties it promises."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from ranksieve.data.generators import GeneratedSource, _Cubic, cubic, two_stage
from ranksieve.errors import ParameterError


@pytest.fixture(scope="module")
def narrow():
    """Many queries with few features: sizes and grades do not depend on the number of features."""
    return two_stage(400, seed=3, n_features=1)


@pytest.fixture(scope="module")
def wide():
    return two_stage(30, seed=3)


def same(got, expected):
    return (
        got.features.tobytes() == expected.features.tobytes()
        and got.labels.tobytes() == expected.labels.tobytes()
        and got.offsets.tolist() == expected.offsets.tolist()
        and got.query_ids.tolist() == expected.query_ids.tolist()
        and got.feature_names == expected.feature_names
    )


def ranks(data):
    return np.concatenate([np.arange(size) for size in data.lists.sizes])


@pytest.mark.parametrize("generate", [two_stage, cubic])
def test_queries_do_not_depend_on_their_number(generate):
    whole = generate(6, seed=5, n_features=30)
    assert same(generate(6, seed=5, n_features=30), whole)
    assert same(generate(2, seed=5, n_features=30), whole.take_queries([0, 1]))
    assert same(generate(3, seed=5, n_features=30, start=2), whole.take_queries([2, 3, 4]))
    other = generate(1, seed=6, n_features=30)
    assert other.features[:10].tobytes() != whole.features[:10].tobytes()


def test_blocks_are_the_whole():
    whole = two_stage(7, seed=1, n_features=12)
    source = GeneratedSource(functools.partial(two_stage, n_features=12), range(7), 1, 3)
    assert source.n_docs is None
    blocks = list(source.blocks())
    assert [len(set(block.run_ids)) for block in blocks] == [3, 3, 1]
    assert np.concatenate([block.features for block in blocks]).tobytes() == whole.features.tobytes()
    assert np.concatenate([block.labels for block in blocks]).tobytes() == whole.labels.tobytes()
    assert list(itertools.chain(*(block.run_ids for block in blocks))) == list(range(7))
    assert source.n_docs == whole.n_docs


def test_shapes_and_types(wide):
    assert wide.features.shape == (wide.n_docs, 220)
    assert wide.features.dtype == np.float32
    assert wide.features.flags.c_contiguous
    assert wide.labels.dtype == np.float32
    assert wide.offsets.dtype == np.int64
    assert len(set(wide.feature_names)) == 220
    assert wide.feature_names[wide.first_stage] == "bm25f"
    assert two_stage(1, n_features=230).n_features == len(set(two_stage(1, n_features=230).feature_names)) == 230


def test_list_sizes(narrow):
    sizes = narrow.lists.sizes
    assert sizes.min() >= 10
    assert sizes.max() == 5000
    assert pytest.approx((sizes <= 100).mean(), abs=0.05) == 0.15
    assert pytest.approx((sizes >= 4900).mean(), abs=0.07) == 0.39
    assert pytest.approx(sizes.mean(), rel=0.1) == 2700


def test_grades(narrow):
    positives = np.add.reduceat(narrow.labels > 0, narrow.offsets[:-1], dtype=int)
    assert positives.min() >= 1
    assert pytest.approx(positives.mean(), rel=0.1) == 4.6
    counts = np.bincount(narrow.labels.astype(int), minlength=5)
    assert len(counts) == 5
    assert (np.diff(counts[1:]) < 0).all()


def test_lists_are_sorted_by_the_first_stage(narrow):
    descending = np.diff(narrow.column("bm25f")) <= 0
    descending[narrow.offsets[1:-1] - 1] = True  # from one query to the next
    assert descending.all()


def test_the_first_stage_finds_much_and_misses_some(narrow):
    found = ranks(narrow)[narrow.labels > 0]
    assert 0.02 < (found >= 1000).mean() < 0.25
    assert 0.1 < (found < 10).mean() < 0.5


def test_values_are_finite_or_missing(wide):
    assert not np.isinf(wide.features).any()
    missing = np.isnan(wide.features).mean(axis=0)
    assert (missing > 0.05).sum() >= 15
    assert missing.max() < 0.9
    assert missing[wide.first_stage] == 0


def test_kinds_of_features(wide):
    whole = [np.unique(column[~np.isnan(column)]) for column in wide.features[:2000].T]
    counts = sum((values == np.floor(values)).all() for values in whole)
    sparse = sum((column == 0).mean() > 0.5 for column in wide.features.T)
    assert counts > 30
    assert sparse > 10
    for number, name in enumerate(wide.feature_names):
        if name.startswith("query_"):
            starts = wide.features[wide.offsets[:-1], number]
            assert (wide.features[:, number] == np.repeat(starts, wide.lists.sizes)).all()


def test_hard_negatives_differ_in_how_features_go_together():
    data = two_stage(80, seed=3, n_features=40)
    topic, profile = data.column("topic_1").astype(float), data.column("profile_1").astype(float)
    positive = data.labels > 0
    top = ~positive & (ranks(data) < 20)
    assert abs(topic[positive].mean() - topic[top].mean()) < 0.2
    assert abs(profile[positive].mean() - profile[top].mean()) < 0.2
    assert np.corrcoef(topic[positive], profile[positive])[0, 1] > 0.3
    assert np.corrcoef(topic[top], profile[top])[0, 1] < -0.1


def test_cubic_grades_follow_a_polynomial():
    data = cubic(200, seed=2)
    assert data.features.shape == (10_000, 50)
    assert np.abs(data.features).max() <= 1
    shares = np.bincount(data.labels.astype(int), minlength=5) / data.n_docs
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.15, 0.07, 0.03], atol=0.03)
    assert abs(np.corrcoef(data.features[:, 0], data.labels)[0, 1]) < 0.6


def test_the_cubic_polynomial_has_three_parts_of_equal_weight():
    rng = np.random.default_rng(0)
    polynomial = _Cubic(6, rng)
    X = rng.uniform(-1, 1, (5000, 6))
    q, r, s = polynomial.partners
    terms = np.zeros((3, len(X)))
    for i in range(6):
        terms += [polynomial.linear[i] * X[:, i], X[:, i] * X[:, q[i]], X[:, i] * X[:, r[i]] * X[:, s[i]]]
    np.testing.assert_allclose(polynomial.terms(X), terms, atol=1e-12)
    parts = (terms - polynomial.means) / polynomial.scales
    np.testing.assert_allclose(parts.mean(axis=1), 0, atol=0.06)
    np.testing.assert_allclose(parts.std(axis=1), 1, atol=0.06)
    np.testing.assert_allclose(polynomial.values(X), parts.sum(axis=0) / 3)
    one = np.concatenate([polynomial.values(X[i : i + 1]) for i in range(20)])
    assert np.array_equal(one, polynomial.values(X)[:20])


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: two_stage(0), "n_queries is 0; expected an integer from 1"),
        (lambda: two_stage(1, seed=-1), "seed is -1"),
        (lambda: two_stage(1, n_features=0), "n_features is 0"),
        (lambda: cubic(1, start=-2), "start is -2"),
        (lambda: cubic(1, docs=0), "docs is 0"),
        (lambda: cubic(1.5), "n_queries is 1.5"),
    ],
)
def test_bad_parameters_are_named(call, what):
    with pytest.raises(ParameterError, match=what):
        call()
