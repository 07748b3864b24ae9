"""Forest: parts and sums of forests, and the checks of their structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_forest import naive_scores, random_forest
from ranksieve.errors import ModelError
from ranksieve.forest.forest import concatenate, empty_forest
from ranksieve.forest.structure import first_broken, levels


def documents(seed: int, n_features: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, n_features))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def test_empty_forest_scores_zero():
    forest = empty_forest(["a", "b"])
    assert (forest.n_trees, forest.n_features, len(forest.n_leaves)) == (0, 2, 0)
    assert naive_scores(forest, np.ones((2, 2))).tolist() == [0.0, 0.0]
    assert forest.evals_result_ == {}


@given(st.integers(0, 2**32), st.integers(0, 5))
def test_first_and_rest_make_the_whole(seed, n_first):
    forest = random_forest(np.random.default_rng(seed), n_trees=5)
    whole = concatenate([forest.first(n_first), forest.take(np.arange(n_first, 5))])
    X = documents(seed)
    assert naive_scores(whole, X).tobytes() == naive_scores(forest, X).tobytes()
    assert whole.leaf_offsets.tolist() == forest.leaf_offsets.tolist()


@given(st.integers(0, 2**32), st.permutations(range(4)))
def test_take_picks_trees_in_order(seed, order):
    forest = random_forest(np.random.default_rng(seed), n_trees=4)
    taken = forest.take(order)
    X = documents(seed)
    expected = sum(naive_scores(forest.take([tree]), X) for tree in order)
    assert naive_scores(taken, X).tobytes() == expected.tobytes()
    assert taken.n_leaves.tolist() == forest.n_leaves[list(order)].tolist()


def test_weights_multiply_leaves():
    forest = random_forest(np.random.default_rng(3))
    heavier = forest.reweighted(np.array([2.0, 0.5, -1.0]))
    X = documents(0)
    parts = [naive_scores(forest.reweighted(np.eye(3)[tree]).take([tree]), X) for tree in range(3)]
    expected = 2.0 * parts[0] + 0.5 * parts[1] - parts[2]
    np.testing.assert_allclose(naive_scores(heavier, X), expected, rtol=1e-14)
    at = heavier.leaf_offsets[1]
    assert heavier.scaled_leaf_values()[:at].tolist() == (2.0 * forest.leaf_values[:at]).tolist()


def test_history_is_in_info():
    assert random_forest(np.random.default_rng(0)).evals_result_["valid"]["ndcg@10"] == [0.1, 1 / 3]


def test_misuse_is_named():
    forest = random_forest(np.random.default_rng(0))
    with pytest.raises(ModelError, match="tree 3 does not exist; the forest has 3"):
        forest.take([3])
    with pytest.raises(ModelError, match="got 2 weights for 3 trees"):
        forest.reweighted(np.ones(2))
    with pytest.raises(ModelError, match="different features"):
        concatenate([forest, empty_forest(["other"])])


@given(st.integers(0, 2**32))
def test_levels_hold_every_split_once_parents_first(seed):
    forest = random_forest(np.random.default_rng(seed), n_trees=4)
    assert first_broken(forest.left, forest.right, forest.split_offsets, forest.leaf_offsets) is None
    found = levels(forest.left, forest.right, forest.split_offsets)
    splits = np.concatenate([np.empty(0, np.int64), *found])
    assert sorted(splits.tolist()) == list(range(len(forest.feature)))
    depth = np.empty(len(splits), np.int64)
    for number, level in enumerate(found):
        depth[level] = number
    base = np.repeat(forest.split_offsets[:-1], np.diff(forest.split_offsets))
    for children in (forest.left, forest.right):
        inner = children >= 0
        assert (depth[children[inner] + base[inner]] == depth[inner] + 1).all()


@pytest.mark.parametrize(
    ("left", "right", "what"),
    [
        ([1, -1, -3], [2, -2, -5], "does not exist"),
        ([1, -1, -3], [3, -2, -4], "does not exist"),
        ([1, -1, -3], [1, -2, -4], "exactly one"),
        ([1, -1, -3], [2, -2, -3], "exactly one"),
        ([1, 0, -3], [2, -2, -4], "exactly one"),
        ([-1, 2, 1], [-2, -3, -4], "cannot be reached from the root"),
    ],
)
def test_broken_trees_are_found(left, right, what):
    whole = ([1, -1, -3], [2, -2, -4])
    left, right = np.array(whole[0] + left), np.array(whole[1] + right)
    tree, message = first_broken(left, right, np.array([0, 3, 6]), np.array([0, 4, 8]))
    assert tree == 1
    assert what in message


def test_forests_and_data_sets_print_briefly():
    import ranksieve as rs

    assert repr(rs.synth.cubic(2)) == "Dataset(2 queries, 100 documents, 50 features)"
    assert repr(rs.train(rs.synth.cubic(4), trees=2, leaves=3)) == "Forest(2 trees of up to 3 leaves, 50 features)"
