"""The lines of compiled trees, run one document at a time, end in the leaf that a walk from the root finds."""

import numpy as np
import pytest

from naive_forest import random_forest
from ranksieve.forest import compile_trees as forests
from ranksieve.kernels import compile_trees as kernels

N_FEATURES = 5


def random_trees(rng, n_trees, max_leaves):
    """The arrays of trees on bins."""
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=N_FEATURES)
    cuts = rng.integers(0, 254, len(forest.feature)).astype(np.int32)
    return forest, cuts


def walk(forest, cuts, tree, row):
    base, node = int(forest.split_offsets[tree]), 0
    if base == forest.split_offsets[tree + 1]:
        return 0
    while node >= 0:
        split = base + node
        value = row[forest.feature[split]]
        left = forest.default_left[split] if value == 255 else value <= cuts[split]
        node = int((forest.left if left else forest.right)[split])
    return ~node


def outcomes(compiled, row):
    """Every test of a document: true is right."""
    found = []
    for u, column in enumerate(compiled.columns):
        for missing_left in range(2):
            shifted = (int(row[column]) + missing_left) % 256
            first, last = compiled.test_starts[2 * u + missing_left], compiled.test_starts[2 * u + missing_left + 1]
            found += [shifted > limit for limit in compiled.limits[first:last]]
    return found


def leaves_by_lines(compiled, row):
    tests, words = outcomes(compiled, row), kernels.WORDS_PER_ROW
    room, n_trees = kernels.rows_per_tree(compiled.leaf_starts), len(compiled.levels)
    found = []
    for group in range(len(compiled.line_starts) - 1):
        first = kernels.TOGETHER * group
        beyond = np.zeros(kernels.TOGETHER * room, bool)
        beyond[::room] = True
        lines = compiled.lines.reshape(-1, 4)[compiled.line_starts[group] : compiled.line_starts[group + 1]]
        for test, low, high, middle in lines // words:
            beyond[middle] = beyond[high] or (beyond[low] and tests[test])
        for tree in range(first, min(first + kernels.TOGETHER, n_trees)):
            n_bits, start = compiled.levels[tree, 0], compiled.leaf_starts[tree]
            if n_bits:
                place = sum(
                    tests[test // words] << bit for bit, test in enumerate(compiled.levels[tree, 1 : 1 + n_bits])
                )
            else:
                n_leaves, base = compiled.leaf_starts[tree + 1] - start, (tree - first) * room
                place = max(j for j in range(n_leaves) if beyond[base + j])
            found.append(start + place)
    return found


@pytest.mark.parametrize(("seed", "n_trees", "max_leaves"), [(0, 1, 2), (1, 6, 9), (2, 9, 20), (3, 4, 1)])
def test_lines_end_in_the_leaf_of_a_walk(seed, n_trees, max_leaves, interpreted):
    interpreted(kernels, forests)
    rng = np.random.default_rng(seed)
    forest, cuts = random_trees(rng, n_trees, max_leaves)
    values = rng.normal(size=len(forest.leaf_values))
    compiled = forests.compile_binned(
        forest.feature, cuts, forest.left, forest.right, forest.default_left, values, forest.split_offsets,
        forest.leaf_offsets,
    )  # fmt: skip
    bins = rng.integers(0, 256, (40, N_FEATURES))
    bins[rng.random(bins.shape) < 0.2] = 255
    for row in bins:
        expected = [walk(forest, cuts, tree, row) for tree in range(n_trees)]
        places = leaves_by_lines(compiled, row)
        assert compiled.leaves[places].tolist() == expected
        assert compiled.values[places].tolist() == [
            values[forest.leaf_offsets[tree] + leaf] for tree, leaf in enumerate(expected)
        ]


def test_a_tree_with_one_test_per_level_needs_no_lines(interpreted):
    interpreted(kernels, forests)
    left, right = np.array([1, ~0, ~2]), np.array([2, ~1, ~3])
    trees = forests.compile_binned(
        [0, 1, 1], [9, 4, 4], left, right, [False] * 3, np.arange(4.0), np.array([0, 3]), np.array([0, 4])
    )
    assert (trees.levels[0, 0], trees.line_starts.tolist()) == (2, [0, 0])
    for row, leaf in (([0, 0], 0), ([0, 5], 1), ([10, 0], 2), ([10, 255], 3)):
        assert leaves_by_lines(trees, row) == [leaf]
