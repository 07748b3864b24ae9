"""The lines of compiled trees, run one document at a time, end in the leaf that a traversal from the root finds."""

import numpy as np
import pytest

from naive_forest import random_forest
from naive_trees import leaves_by_lines, leaves_of
from ranksieve.forest import compile_trees as forests
from ranksieve.kernels import compile_trees as kernels

N_FEATURES = 5


def random_trees(rng, n_trees, max_leaves):
    """The arrays of trees on bins."""
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=N_FEATURES)
    cuts = rng.integers(0, 254, len(forest.feature)).astype(np.int32)
    return forest, cuts


@pytest.mark.parametrize(("seed", "n_trees", "max_leaves"), [(0, 1, 2), (1, 6, 9), (2, 9, 20), (3, 4, 1)])
def test_lines_end_in_the_leaf_of_a_traversal(seed, n_trees, max_leaves, interpreted):
    interpreted(kernels, forests)
    rng = np.random.default_rng(seed)
    forest, cuts = random_trees(rng, n_trees, max_leaves)
    values = rng.normal(size=len(forest.leaf_values))
    splits = np.stack([forest.feature, cuts, forest.default_left, forest.left, forest.right], axis=1)
    compiled = forests.compile_binned(splits, values, forest.split_offsets, forest.leaf_offsets)
    bins = rng.integers(0, 256, (40, N_FEATURES))
    bins[rng.random(bins.shape) < 0.2] = 255
    for row in bins:
        expected = leaves_of(splits, forest.split_offsets, row)
        places = leaves_by_lines(compiled, row)
        assert compiled.leaves[places].tolist() == expected
        assert compiled.values[places].tolist() == [
            values[forest.leaf_offsets[tree] + leaf] for tree, leaf in enumerate(expected)
        ]


def test_a_tree_with_one_test_per_level_needs_no_lines(interpreted):
    interpreted(kernels, forests)
    splits = [[0, 9, False, 1, 2], [1, 4, False, ~0, ~1], [1, 4, False, ~2, ~3]]
    trees = forests.compile_binned(splits, np.arange(4.0), np.array([0, 3]), np.array([0, 4]))
    assert (trees.levels[0, 0], trees.line_starts.tolist()) == (2, [0, 0])
    for row, leaf in (([0, 0], 0), ([0, 5], 1), ([10, 0], 2), ([10, 255], 3)):
        assert leaves_by_lines(trees, row) == [leaf]
