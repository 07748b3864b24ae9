"""Scoring: every way of it gives the bits of a naive traversal."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve
from naive_forest import naive_leaves, naive_scores, random_forest
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.forest import scorer as scorer_module
from ranksieve.forest.compile_trees import compile_binned, number_tests
from ranksieve.forest.forest import Forest, empty_forest
from ranksieve.kernels.scoring import NO_DOCS, add_trees_binned

GRID = (-1.5, -0.0, 0.0, 0.25, 1e-36, 0.1, 1 / 3, 1e300, -1e300, 3.4028235e38)


def documents(rng: np.random.Generator, n_docs: int, n_features: int, dtype: type = np.float32) -> np.ndarray:
    """Values near and at the thresholds of `GRID`, infinities and NaN among them."""
    with np.errstate(over="ignore", under="ignore"):
        X = rng.choice([*GRID, -1.0, 0.5, np.inf, -np.inf, np.nan], (n_docs, n_features)).astype(dtype)
        beside = np.nextafter(X, rng.choice([-np.inf, np.inf, 0.0], X.shape).astype(dtype))
    return np.where(rng.random(X.shape) < 0.5, X, beside)


def oblivious(rng: np.random.Generator, *, depth: int, n_trees: int, n_features: int) -> Forest:
    """Full trees with one test per level."""
    n_splits = 2**depth - 1
    forest = random_forest(rng, n_trees=n_trees, max_leaves=1, n_features=n_features)
    level = np.floor(np.log2(np.arange(1, n_splits + 1))).astype(int)
    numbers = np.arange(n_splits)
    child = 2 * numbers + 1
    left, right = (np.where(c < n_splits, c, ~(c - n_splits)).astype(np.int32) for c in (child, child + 1))
    tests = np.arange(n_trees)[:, None] * depth + level

    def per_level(values: np.ndarray) -> np.ndarray:
        return values[tests].ravel()

    n_levels = n_trees * depth
    return dataclasses.replace(
        forest,
        feature=per_level(rng.integers(0, n_features, n_levels).astype(np.int32)),
        threshold=per_level(rng.choice(GRID, n_levels)),
        left=np.tile(left, n_trees),
        right=np.tile(right, n_trees),
        default_left=per_level(rng.random(n_levels) < 0.5),
        zero_missing=np.zeros(n_trees * n_splits, bool),
        gain=np.ones(n_trees * n_splits),
        split_count=np.ones(n_trees * n_splits, np.int64),
        leaf_values=rng.normal(size=n_trees * (n_splits + 1)),
        leaf_count=np.ones(n_trees * (n_splits + 1), np.int64),
        leaf_weight=np.ones(n_trees * (n_splits + 1)),
        split_offsets=np.arange(n_trees + 1) * n_splits,
        leaf_offsets=np.arange(n_trees + 1) * (n_splits + 1),
    )


def check(forest: Forest, X: np.ndarray) -> None:
    """Scores, staged scores and leaves, against a naive traversal."""
    expected = naive_scores(forest, X)
    np.testing.assert_array_equal(forest.predict(X), expected)
    np.testing.assert_array_equal(forest.predict(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(forest.predict_leaves(X), naive_leaves(forest, X).reshape(len(X), forest.n_trees))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_trees=st.integers(1, 11),
    max_leaves=st.sampled_from([1, 2, 9, 64, 65, 130]),
    n_features=st.sampled_from([1, 5, 16, 37]),
    n_docs=st.sampled_from([1, 12, 13, 64, 65, 129]),
    dtype=st.sampled_from([np.float32, np.float64]),
    zero_missing=st.booleans(),
    near=st.booleans(),
)
def test_any_forest_scores_as_the_naive_traversal_does(
    seed, n_trees, max_leaves, n_features, n_docs, dtype, zero_missing, near
) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=n_features,
                           thresholds=GRID if near else None, zero_missing=zero_missing)  # fmt: skip
    X = documents(rng, n_docs, n_features, dtype) if near else rng.normal(size=(n_docs, n_features)).astype(dtype)
    check(forest, X)


@pytest.mark.parametrize("n_docs", [0, 511, 512, 513, 1030])
def test_blocks_of_any_size(n_docs: int) -> None:
    rng = np.random.default_rng(n_docs)
    forest = random_forest(rng, n_trees=6, max_leaves=20, n_features=20, thresholds=GRID)
    check(forest, documents(rng, n_docs, 20))


def test_float64_between_float32_neighbours_is_compared_as_float64() -> None:
    threshold = 0.1  # not a float32
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=4, max_leaves=4, n_features=1, thresholds=[threshold])
    X = np.array([[np.nextafter(threshold, -1)], [threshold], [np.nextafter(threshold, 1)]])
    X = np.concatenate([X] * 10)
    assert len(set(X[:3].astype(np.float32).ravel())) == 1
    assert len(set(naive_scores(forest, X[:3]))) == 2
    check(forest, X)
    check(forest, X[:3])


def test_more_thresholds_than_a_column_holds() -> None:
    rng = np.random.default_rng(1)
    forest = random_forest(rng, n_trees=30, max_leaves=100, n_features=2)
    assert max(len(np.unique(forest.threshold[forest.feature == f])) for f in range(2)) > 2 * 254
    X = rng.normal(size=(200, 2))
    X[::7, 0] = rng.choice(forest.threshold, len(X[::7]))
    X[::9, 1] = np.nan
    check(forest, X)
    check(forest, X.astype(np.float32))


@pytest.mark.parametrize("max_leaves", [600, 5000])
def test_large_trees(max_leaves: int) -> None:
    rng = np.random.default_rng(2)
    forest = random_forest(rng, n_trees=6, max_leaves=max_leaves, n_features=3)
    assert forest.n_leaves.max() > max_leaves / 2
    X = rng.normal(size=(40, 3))
    check(forest, X)
    stages = dict(forest.staged_predict(X, every=4))
    for number, scores in forest.staged_predict(X, every=4, threads=1):
        np.testing.assert_array_equal(scores, stages[number])
    np.testing.assert_array_equal(forest.predict_leaves(X, threads=1), forest.predict_leaves(X, threads=2))
    np.testing.assert_array_equal(stages[6], naive_scores(forest, X))


@pytest.mark.parametrize("depth", [1, 3, 9])
def test_oblivious_trees(depth: int) -> None:
    rng = np.random.default_rng(depth)
    forest = oblivious(rng, depth=depth, n_trees=5, n_features=17)
    levels = forest._scorer._compiled.levels[:, 0]
    assert levels.tolist() == [depth] * 5
    check(forest, documents(rng, 70, 17))


def test_thread_count_and_batch_change_no_bit() -> None:
    rng = np.random.default_rng(3)
    forest = random_forest(rng, n_trees=30, max_leaves=64, n_features=20)
    X = rng.normal(size=(5000, 20)).astype(np.float32)
    scores = forest.predict(X, threads=1)
    np.testing.assert_array_equal(scores, forest.predict(X, threads=2))
    np.testing.assert_array_equal(scores, forest.predict(X))
    np.testing.assert_array_equal(scores[:700], np.concatenate([forest.predict(row) for row in X[:700]]))
    np.testing.assert_array_equal(scores.astype(np.float32), forest.predict(X, dtype=np.float32))


def test_first_trees_and_stages() -> None:
    rng = np.random.default_rng(4)
    forest = random_forest(rng, n_trees=7, max_leaves=30, n_features=18)
    X = rng.normal(size=(100, 18))
    for docs in (X, X[:5]):
        stages = list(forest.staged_predict(docs, every=3))
        assert [n for n, _ in stages] == [3, 6, 7]
        for n, scores in stages:
            np.testing.assert_array_equal(scores, naive_scores(forest.first(n), docs))
            np.testing.assert_array_equal(scores, forest.predict(docs, trees=n))
        assert not forest.predict(docs, trees=0).any()
        np.testing.assert_array_equal(forest.predict(docs, trees=99), forest.predict(docs))


def test_no_trees_and_trees_of_one_leaf() -> None:
    X = np.ones((20, 3), np.float32)
    empty = empty_forest(["a", "b", "c"])
    assert empty.predict(X).tolist() == [0.0] * 20
    assert empty.predict_leaves(X).shape == (20, 0)
    assert list(empty.staged_predict(X)) == []
    stump = random_forest(np.random.default_rng(5), n_trees=3, max_leaves=1, n_features=3)
    check(stump, X)
    check(stump, X[:2])


def test_every_form_of_documents() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(6)
    forest = random_forest(rng, n_trees=5, max_leaves=20, n_features=4)
    X = np.round(rng.normal(size=(60, 4)), 1).astype(np.float32)
    scores = naive_scores(forest, X)
    read_only = X.copy()
    read_only.flags.writeable = False
    spread = np.repeat(X, 2, axis=1)[:, ::2]
    table = pd.DataFrame(X, columns=list(forest.feature_names))
    forms = [read_only, spread, X.astype(">f4"), X.tolist(), scipy.sparse.csr_matrix(X), table, table.iloc[:, ::-1]]
    for form in forms[:3] + forms[4:]:
        np.testing.assert_array_equal(forest.predict(form), scores)
    np.testing.assert_array_equal(forest.predict(X.tolist()), naive_scores(forest, np.array(X.tolist())))
    data = Dataset.from_arrays(X, np.zeros(60), qid=rng.integers(0, 5, 60))
    assert data.lists.order is not None
    np.testing.assert_array_equal(forest.predict(data), scores)
    np.testing.assert_array_equal(forest.predict_leaves(data), naive_leaves(forest, X))
    np.testing.assert_array_equal(dict(forest.staged_predict(data))[5], scores)
    whole = rng.integers(-2, 3, (30, 4))
    np.testing.assert_array_equal(forest.predict(whole), naive_scores(forest, whole))


def test_tables_without_a_feature_are_not_scored_by_position() -> None:
    pd = pytest.importorskip("pandas")
    data = Dataset.from_arrays(np.zeros((4, 3)), [0, 1, 0, 1], qid=[1, 1, 2, 2]).with_features(["bm25", "age", "links"])
    model = ranksieve.train(data, trees=1, leaves=2, min_docs=1)
    table = pd.DataFrame(np.ones((2, 3)), columns=["bm25", "age", "links"])
    expected = model.predict(table)
    np.testing.assert_array_equal(model.predict(table.assign(label=9, qid=1)), expected)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(np.ones((2, 3)))), expected)  # no names
    for wrong in (table.drop(columns="age").assign(label=9), table.rename(columns={"age": "Age"})):
        with pytest.raises(DataError, match=r"lacks 1 of the 3 features of the training data \(age\)"):
            model.predict(wrong)
    with pytest.raises(
        DataError, match=r"lacks 1 of the 3 features of the training data .age.; the columns are bm25, links;"
    ):
        model.predict(table.drop(columns="age"))


def test_documents_that_do_not_fit_are_refused() -> None:
    forest = random_forest(np.random.default_rng(7), n_features=4)
    with pytest.raises(ModelError, match="got documents of 3 features, but the model was trained on 4; give"):
        forest.predict(np.ones((2, 3)))
    with pytest.raises(ModelError, match="3 dimensions"):
        forest.predict(np.ones((2, 4, 1)))
    with pytest.raises(DataError):
        forest.predict(np.full((2, 4), "x"))
    with pytest.raises(ParameterError, match="threads is 0"):
        forest.predict(np.ones((20, 4)), threads=0)
    with pytest.raises(ParameterError, match="trees is -1"):
        forest.predict(np.ones((2, 4)), trees=-1)
    with pytest.raises(ParameterError, match="every is 0"):
        forest.staged_predict(np.ones((2, 4)), every=0)


def test_traversal_and_blocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    forest = random_forest(rng, n_trees=9, max_leaves=64, n_features=16, thresholds=GRID, zero_missing=True)
    X = documents(rng, 40, 16, np.float64)
    blocks = forest.predict(X)
    monkeypatch.setattr(scorer_module, "FEW", 100)
    np.testing.assert_array_equal(forest.predict(X), blocks)


def as_bins(forest: Forest, cuts: np.ndarray) -> tuple:
    splits = np.stack([forest.feature, cuts, forest.default_left, forest.left, forest.right], axis=1)
    return splits, forest.scaled_leaf_values(), forest.split_offsets, forest.leaf_offsets


@pytest.mark.parametrize("n_features", [3, 16, 50, 75])
@pytest.mark.parametrize("max_leaves", [1, 64, 300])
def test_binned(n_features: int, max_leaves: int) -> None:
    rng = np.random.default_rng(n_features)
    cuts = rng.integers(0, 255, 5000)
    forest = random_forest(rng, n_trees=6, max_leaves=max_leaves, n_features=n_features)
    forest = dataclasses.replace(forest, threshold=cuts[: len(forest.feature)].astype(float))
    trees = compile_binned(*as_bins(forest, cuts[: len(forest.feature)]))
    bins = rng.integers(0, 256, (2100, n_features)).astype(np.uint8)
    start = rng.normal(size=len(bins))
    expected, missing = start.copy(), start.copy()
    done = rng.integers(0, 12 + forest.n_trees, len(bins)).astype(np.uint16)  # of 10 other trees and these
    for tree in range(forest.n_trees):  # in the order of the trees, onto what is there
        one = forest.take([tree])
        values = naive_scores(one, np.where(bins == 255, np.nan, bins.astype(float)))
        expected += values
        missing[done <= 10 + tree] += values[done <= 10 + tree]
    scores = start.copy()
    add_trees_binned(bins, trees, 0, NO_DOCS, scores)
    np.testing.assert_array_equal(scores, expected)
    scores = start.copy()
    add_trees_binned(bins, trees, 10, done, scores)
    np.testing.assert_array_equal(scores, missing)


def test_equal_tests_are_made_once() -> None:
    test = np.empty(5, np.int32)
    column, cut = np.array([3, 1, 3, 3, 1], np.int32), np.array([7, 7, 7, 2, 7], np.int32)
    missing_left = np.array([False, True, False, False, True])
    columns, starts, limits = number_tests(column, cut, missing_left, test)
    assert (columns.tolist(), starts.tolist(), limits.tolist()) == ([1, 3], [0, 0, 1, 3, 3], [8, 2, 7])
    assert test.tolist() == [2, 0, 2, 1, 0]


def test_equal_tests_of_different_trees_are_made_once() -> None:
    rng = np.random.default_rng(9)
    forest = random_forest(rng, n_trees=20, max_leaves=30, n_features=2, thresholds=[0.1, 0.2, 0.3])
    assert len(forest._scorer._compiled.limits) <= 2 * 3 * 2
    assert len(forest.feature) > 100
