import numpy as np
import pytest

import naive
import ranksieve as rs
from naive_trees import gradients, leaves_of_rows
from ranksieve.boosting import fixed_point
from ranksieve.boosting import grower as grower_of_rows
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.binned import Binned, bin_data
from ranksieve.params import Params
from samples import small_dataset


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("gain", "l2"), [("variance", 0.0), ("newton", 0.0), ("newton", 0.7)])
def test_first_split_is_the_naive_best(seed, gain, l2):
    binned = bin_data(small_dataset(seed=seed, n_queries=4), max_bins=16)
    grad, hess = gradients(len(binned.bins), seed)
    params = Params(leaves=2, min_docs=5, gain=gain, l2=l2)
    tree, _ = Grower(binned, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    _, feature, split_bin, missing_left = naive.best_split(
        binned.bins, binned.binning.n_bins, grad, hess, min_docs=5, newton=gain == "newton", l2=l2
    )
    assert tree.splits[0, :2].tolist() == [feature, split_bin]
    if (binned.bins[:, feature] == 255).any():
        assert bool(tree.splits[0, 2]) == missing_left


def test_leaves_hold_the_rows_that_reach_them(binned):
    grad, hess = gradients(len(binned.bins))
    params = Params(leaves=9, min_docs=3, l2=0.5)
    tree, leaves = Grower(binned, params, threads=2).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    reached = leaves_of_rows(tree, binned.bins)
    for leaf, (start, stop) in enumerate(leaves.bounds):
        rows = leaves.rows[start:stop]
        assert (reached[rows] == leaf).all()
        assert tree.leaf_counts[leaf] == len(rows) >= 3
        np.testing.assert_allclose(tree.leaf_values[leaf], grad[rows].sum() / (hess[rows].sum() + 0.5), rtol=1e-9)
    assert len(tree.leaf_values) == 9


@pytest.mark.parametrize("rows", [slice(0, 40), slice(None, None, 2)])
def test_a_tree_on_some_rows_is_the_tree_on_a_data_set_of_those_rows(binned, rows):
    """Holds for the compact copy of few rows and for the work in place on many."""
    chosen = np.arange(len(binned.bins), dtype=np.int32)[rows]
    grad, hess = gradients(len(chosen))
    params = Params(leaves=6, min_docs=2)
    reduced = Binned(binned.bins[chosen], binned.lists, binned.binning, binned.info)
    a, _ = Grower(binned, params, threads=1).grow(TreeTarget(chosen, grad, hess), np.random.default_rng(0))
    b, _ = Grower(reduced, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    np.testing.assert_array_equal(a.splits, b.splits)
    np.testing.assert_array_equal(a.leaf_values, b.leaf_values)


def test_limits_on_leaves(binned):
    grad, hess = gradients(len(binned.bins))
    rng, target = np.random.default_rng(0), TreeTarget(None, grad, hess)
    tree, _ = Grower(binned, Params(leaves=64, max_depth=2, min_docs=1), threads=1).grow(
        TreeTarget(None, grad, hess), rng
    )
    assert len(tree.leaf_values) <= 4
    tree, _ = Grower(binned, Params(leaves=64, min_docs=50), threads=1).grow(target, rng)
    assert tree.leaf_counts.min() >= 50
    tree, _ = Grower(binned, Params(leaves=64, min_docs=1, min_hessian=9.0), threads=1).grow(
        TreeTarget(None, grad, hess), rng
    )
    assert tree.leaf_weights.min() >= 9.0
    tree, _ = Grower(binned, Params(leaves=64, min_docs=10**6), threads=1).grow(target, rng)
    assert len(tree.splits) == 0 and len(tree.leaf_values) == 1
    tree, _ = Grower(binned, Params(leaves=8, feature_fraction=0.15), threads=1).grow(target, rng)
    assert len(set(tree.splits[:, 0])) == 1


def test_cuts_that_round_to_nearly_equal_gains_do_not_depend_on_threads():
    random = np.random.default_rng(23)
    n_docs = int(random.integers(10, 24))
    features = random.integers(0, 6, (n_docs, 32)).astype(float)
    binned = bin_data(rs.Dataset.from_arrays(features, np.zeros(n_docs), group=[n_docs]))
    for _ in range(1239):  # of these trees the last has two cuts whose gains are one rounding apart
        grad = random.random() * random.integers(-2, 3, n_docs)
    params = Params(leaves=2, min_docs=1, l2=1.0)
    one, two = (
        Grower(binned, params, threads=n).grow(TreeTarget(None, grad, np.ones(n_docs)), random)[0] for n in (1, 2)
    )
    assert np.array_equal(one.splits, two.splits) and np.array_equal(one.gains, two.gains)


@pytest.mark.parametrize("options", [{}, {"l2": 0.7}, {"min_hessian": 3.0}, {"monotone": [1, -1, 1, -1, 1, -1, 1]}])
@pytest.mark.parametrize("seed", range(3))
def test_splits_of_rounded_sums_gain_as_much_as_those_of_exact_ones(monkeypatch, seed, options):
    """Gradient, second derivative and count in one integer against two planes of exact sums."""
    binned = bin_data(small_dataset(seed=seed, n_queries=8), max_bins=32)
    grad, hess = gradients(len(binned.bins), seed)
    params = Params(**{"leaves": 8, "min_docs": 3, "gain": "newton", "l2": 1.0, **options})
    target = TreeTarget(None, grad, hess)
    rounded, _ = Grower(binned, params, threads=2).grow(target, np.random.default_rng(0))
    monkeypatch.setattr(fixed_point, "LEAST_BITS", 64)
    exact, _ = Grower(binned, params, threads=2).grow(target, np.random.default_rng(0))
    np.testing.assert_allclose(rounded.gains.sum(), exact.gains.sum(), rtol=1e-5)
    np.testing.assert_array_equal(rounded.splits, exact.splits)  # none of these are nearly equal
    if "monotone" not in options:  # limits follow from rounded sums
        np.testing.assert_array_equal(rounded.leaf_values, exact.leaf_values)
    np.testing.assert_allclose(rounded.leaf_values, exact.leaf_values, rtol=1e-5)
    np.testing.assert_array_equal(rounded.leaf_weights, exact.leaf_weights)
    np.testing.assert_array_equal(rounded.leaf_counts, exact.leaf_counts)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_round_to_zero_are_counted_and_not_summed(monkeypatch, threads):
    binned = bin_data(small_dataset(seed=4, n_queries=8), max_bins=32)
    grad, hess = gradients(len(binned.bins))
    grad[np.arange(len(grad)) % 3 > 0], hess[np.arange(len(grad)) % 4 > 0] = 0.0, 0.0
    params = Params(leaves=8, min_docs=3, gain="newton")
    trees, used, counts = [], [], Grower._counts
    monkeypatch.setattr(Grower, "_counts", lambda *given: used.append(1) or counts(*given))
    for sparse in (False, True):
        monkeypatch.setattr(grower_of_rows, "MANY_ROWS", 1 if sparse else 1 << 60)
        grower, rng = Grower(binned, params, threads=threads), np.random.default_rng(0)
        trees.append([grower.grow(TreeTarget(None, g, hess), rng)[0] for g in (grad, -grad)])
    assert len(used) == 2  # two trees, and none where rows are not sparse
    for one, other in zip(*trees, strict=True):
        np.testing.assert_array_equal(one.splits, other.splits)
        np.testing.assert_array_equal(one.gains, other.gains)
        np.testing.assert_array_equal(one.counts, other.counts)


@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_leaf_values_are_those_of_exact_sums(binned, share):
    """Sums that splits are chosen by are rounded; leaf values do not depend on the rounding. In a copy and in place."""
    rng = np.random.default_rng(0)
    n = len(binned.bins)
    rows = None if share == 1.0 else np.flatnonzero(rng.random(n) < share).astype(np.int32)
    every = np.arange(n) if rows is None else rows
    grad, hess = gradients(len(every))
    grad[::5] *= 1e-6  # less than a unit
    params = Params(leaves=5, min_docs=3, gain="newton", l2=0.5)
    tree, _ = Grower(binned, params, threads=2).grow(TreeTarget(rows, grad, hess), rng)
    of_leaf = leaves_of_rows(tree, binned.bins[every])
    for leaf in range(len(tree.leaf_values)):
        mine = of_leaf == leaf
        assert tree.leaf_counts[leaf] == mine.sum()
        np.testing.assert_allclose(tree.leaf_weights[leaf], hess[mine].sum(), rtol=1e-12)
        np.testing.assert_allclose(tree.leaf_values[leaf], grad[mine].sum() / (hess[mine].sum() + 0.5), rtol=1e-10)


def test_rounding_depends_on_the_random_generator_alone(binned):
    grad, hess = gradients(len(binned.bins))
    params = Params(leaves=16, min_docs=1, gain="newton")
    trees = [
        Grower(binned, params, threads=threads).grow(TreeTarget(None, grad, hess), np.random.default_rng(seed))[0]
        for threads, seed in ((1, 0), (2, 0), (1, 1))
    ]
    np.testing.assert_array_equal(trees[0].gains, trees[1].gains)
    assert not np.array_equal(trees[0].gains, trees[2].gains)
