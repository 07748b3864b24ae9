"""Oblivious trees against a naive grower, and the collapsing of deep leaves."""

import numpy as np
import pytest

import ranksieve as rs
from naive_trees import gradients, leaves_of_rows, naive_levels
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.oblivious import ObliviousGrower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.data.binned import bin_data
from ranksieve.params import Params
from samples import small_dataset


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gain", "l2", "threads"), [("variance", 0.5, 1), ("newton", 0.7, 2)])
def test_levels_are_those_of_the_naive_grower(seed, gain, l2, threads):
    binned = bin_data(small_dataset(seed=seed, n_queries=3), max_bins=8)
    grad, hess = gradients(len(binned.bins), seed)
    params = Params(leaves=8, min_docs=4, gain=gain, l2=l2)
    tree, leaves = ObliviousGrower(binned, params, threads=threads).grow(
        TreeTarget(None, grad, hess), np.random.default_rng(0)
    )
    tests, expected = naive_levels(
        binned.bins, binned.binning.n_bins, grad, hess, depth=3, min_docs=4, newton=gain == "newton", l2=l2
    )
    assert len(tree.splits) == 2 ** len(tests) - 1
    for level, (feature, split_bin, missing_left) in enumerate(tests):
        nodes = tree.splits[2**level - 1 : 2 ** (level + 1) - 1]
        assert (nodes[:, :2] == [feature, split_bin]).all() and (nodes[:, 2] == nodes[0, 2]).all()
        if (binned.bins[:, feature] == 255).any():
            assert bool(nodes[0, 2]) == missing_left
    reached = leaves_of_rows(tree, binned.bins)
    for leaf, rows in enumerate(expected):
        assert (
            sorted(leaves.rows[slice(*leaves.bounds[leaf])])
            == rows.tolist()
            == np.flatnonzero(reached == leaf).tolist()
        )
        assert tree.leaf_counts[leaf] == len(rows)
        node, size = leaf, 1
        while len(rows) < 4:  # too small: the nearest node above that is not
            node, size = node // 2, 2 * size
            rows = np.concatenate(expected[node * size : (node + 1) * size])
        np.testing.assert_allclose(tree.leaf_values[leaf], grad[rows].sum() / (hess[rows].sum() + l2), rtol=1e-8)
    assert tree.counts[0] == len(grad) and (tree.gains >= 0).all()


@pytest.mark.parametrize("algo", ["oblivious-lambdamart", "oblivious-mart"])
def test_oblivious_algorithms_learn_and_do_not_depend_on_threads(algo, tmp_path):
    data = small_dataset(30)
    models = [rs.train(data, algo=algo, trees=12, leaves=16, learning_rate=0.3, threads=n) for n in (1, 2)]
    for number, model in enumerate(models):
        model.save(tmp_path / f"{number}.txt")
    assert (tmp_path / "0.txt").read_bytes() == (tmp_path / "1.txt").read_bytes()
    assert rs.evaluate(models[0], data).mean() > 0.75
    assert set(models[0].n_leaves) <= {1, 2, 4, 8, 16}
    shallow = rs.train(data, algo=algo, trees=2, leaves=64, max_depth=3)
    assert shallow.n_leaves.tolist() == [8, 8]
    np.testing.assert_allclose(models[0].predict(data), rs.load(tmp_path / "0.txt").predict(data))


def test_monotone_oblivious_trees_are_refused():
    with pytest.raises(rs.errors.ParameterError, match=r"^algo='oblivious-mart' does not support monotone"):
        rs.train(small_dataset(), algo="oblivious-mart", monotone="f1:+1")


def test_gbrt_is_another_name_of_mart():
    data = small_dataset()
    a, b = (rs.train(data, algo=algo, trees=3, leaves=4) for algo in ("gbrt", "mart"))
    np.testing.assert_array_equal(a.predict(data), b.predict(data))


@pytest.mark.parametrize("tolerance", [0.01, 0.2, 0.6])
def test_collapsed_trees_are_balanced_and_their_values_are_those_of_their_rows(binned, tolerance):
    grad, hess = gradients(len(binned.bins), 3)
    grad[:40] += 30.0  # a few rows worth splitting again and again
    params = Params(leaves=24, min_docs=1, l2=0.5)
    full, _ = Grower(binned, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    params = Params(leaves=24, min_docs=1, l2=0.5, collapse=tolerance)
    tree, leaves = Grower(binned, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    assert depth(full) > 1.2 * np.log2(len(full.leaf_values))
    assert depth(tree) <= (1 + tolerance) * np.log2(len(tree.leaf_values))
    assert 2 <= len(tree.leaf_values) < len(full.leaf_values)
    reached, of_full = leaves_of_rows(tree, binned.bins), leaves_of_rows(full, binned.bins)
    for leaf, (start, stop) in enumerate(leaves.bounds):
        rows = leaves.rows[start:stop]
        assert (reached[rows] == leaf).all() and tree.leaf_counts[leaf] == len(rows) == (reached == leaf).sum()
        np.testing.assert_allclose(tree.leaf_values[leaf], grad[rows].sum() / (hess[rows].sum() + 0.5), rtol=1e-9)
    for leaf in np.unique(of_full):  # leaves only ever join
        assert len(np.unique(reached[of_full == leaf])) == 1


def depth(tree) -> int:
    depths = np.ones(len(tree.splits), np.int64)
    for number, children in enumerate(tree.splits[:, 3:5]):
        depths[children[children >= 0]] = depths[number] + 1
    return int(depths.max(initial=0))


def test_collapse_is_a_parameter_of_training():
    data = small_dataset(30)
    full = rs.train(data, algo="lambdamart", trees=5, leaves=16, min_docs=1)
    balanced = rs.train(data, algo="lambdamart", trees=5, leaves=16, min_docs=1, collapse=0.2)
    assert balanced.n_leaves.sum() < full.n_leaves.sum()
    with pytest.raises(rs.errors.ParameterError, match=r"^collapse is -1"):
        rs.train(data, collapse=-1)
