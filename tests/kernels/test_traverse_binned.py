"""Rows brought up to date, against adding the trees that each of them lacks."""

import numpy as np
import pytest

from naive_forest import random_forest
from naive_trees import leaves_of
from ranksieve.kernels import traverse_binned as kernels

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")


@pytest.mark.parametrize("with_sets", [False, True])
@pytest.mark.parametrize("with_slots", [False, True])
def test_rows_get_the_trees_they_lack(interpreted, with_sets, with_slots):
    module, rng = interpreted(kernels), np.random.default_rng(2 * with_sets + with_slots)
    n_rows, n_trees, n_features = 37, 5, 4
    forest = random_forest(rng, n_trees=n_trees, max_leaves=7, n_features=n_features)
    cuts, goes_left = rng.integers(0, 255, len(forest.feature)), rng.random((2, 256)) < 0.5
    splits = np.stack([forest.feature, cuts, forest.default_left, forest.left, forest.right], axis=1).astype(np.int32)
    n_nodes = len(splits) + len(forest.leaf_values)
    tests, children, depths = np.empty(n_nodes, np.uint64), np.empty(2 * n_nodes, np.int32), np.empty(n_trees, int)
    node_sets = np.full(n_nodes if with_sets else 0, -1, np.int32)
    for t in range(n_trees):
        a, b, root = forest.split_offsets[t], forest.split_offsets[t + 1], 2 * forest.leaf_offsets[t] - t
        depths[t] = module.pack_tree(splits[a:b], b - a + 1, tests[root:], children[2 * root :])
        if with_sets:
            node_sets[root : root + b - a : 2] = rng.integers(0, 2, len(range(a, b, 2)))
            splits[a:b:2, 1] = ~node_sets[root : root + b - a : 2]  # as traversal reads sets
    trees = module.BinnedTrees(
        tests, children, depths, forest.leaf_values, forest.leaf_offsets, node_sets, goes_left.ravel()
    )
    bins = rng.integers(0, 256, (n_rows, n_features)).astype(np.uint8)
    slots = rng.permutation(n_rows).astype(np.int32) if with_slots else np.empty(0, np.int32)
    rows = rng.permutation(n_rows)[:29]
    done, scores = rng.integers(0, n_trees + 1, n_rows).astype(np.uint16), rng.normal(size=n_rows)
    expected = scores.copy()
    for row in rows[2:]:
        leaves = leaves_of(splits, forest.split_offsets, bins[slots[row]] if with_slots else bins[row], goes_left)
        for t in range(done[row], n_trees):
            expected[row] += forest.leaf_values[forest.leaf_offsets[t] + leaves[t]]
    due = int((n_trees - done[rows[2:]].astype(int)).sum())
    row_bins = module.RowBins(bins, slots)
    with np.errstate(over="ignore"):  # places begin below 0 and end above it
        assert module.catch_up(2, len(rows), row_bins, rows, trees, n_trees, scores, done) == due
        assert scores.tolist() == expected.tolist()
        assert (done[rows[2:]] == n_trees).all()
        found = np.empty(len(rows))
        module.score_rows(row_bins, rows, trees, n_trees, scores, done, found)
    assert scores[rows[2:]].tolist() == expected[rows[2:]].tolist()
    assert found.tolist() == scores[rows].tolist() and (done[rows] == n_trees).all()
