"""Scores and leaf numbers in blocks, against a walk down every tree; the registers are those of `naive_lanes`."""

import numpy as np
import pytest

from naive_forest import random_forest
from ranksieve.kernels import copy_bytes, leaf_numbers, scoring
from ranksieve.kernels.compile_trees import compile_binned

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")


def binned_forest(rng, n_trees, max_leaves, n_features, with_sets=False):
    """Compiled trees, and a function that walks them: a row of bins → the leaf of every tree."""
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=n_features)
    cuts, goes_left = rng.integers(0, 254, len(forest.feature)), rng.random((3, 256)) < 0.5
    goes_left[:, 255] = False
    if with_sets:
        cuts[1::2] = ~rng.integers(0, 3, len(cuts[1::2]))
    default_left = forest.default_left & (cuts >= 0)
    trees = compile_binned(
        forest.feature, cuts, forest.left, forest.right, default_left, forest.leaf_values, forest.split_offsets,
        forest.leaf_offsets, goes_left,
    )  # fmt: skip

    def leaves(row):
        found = []
        for base, stop in zip(forest.split_offsets[:-1], forest.split_offsets[1:], strict=True):
            node = 0 if stop > base else ~0
            while node >= 0:
                cut, value = cuts[base + node], row[forest.feature[base + node]]
                left = goes_left[~cut, value] if cut < 0 else value <= cut
                left = default_left[base + node] if value == 255 and cut >= 0 else left
                node = int((forest.left if left else forest.right)[base + node])
            found.append(~node)
        return found

    return trees, leaves


CASES = [(0, 70, 6, 12, 3, False), (1, 530, 3, 5, 20, False), (2, 90, 5, 9, 4, True), (3, 66, 1, 300, 17, False)]


@pytest.mark.parametrize(("seed", "n_docs", "n_trees", "max_leaves", "n_features", "with_sets"), CASES)
def test_blocks_give_what_walks_give(interpreted, seed, n_docs, n_trees, max_leaves, n_features, with_sets):
    interpreted(scoring, copy_bytes, leaf_numbers)
    rng = np.random.default_rng(seed)
    trees, leaves_of = binned_forest(rng, n_trees, max_leaves, n_features, with_sets)
    bins = rng.integers(0, 256, (n_docs, n_features)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.1] = 255
    expected = np.array([leaves_of(row) for row in bins])
    leaves = np.full((n_docs, n_trees), -1, np.int32)
    leaf_numbers.leaves_of_binned(bins, trees, leaves)
    assert leaves.tolist() == expected.tolist()
    by_number = [dict(zip(trees.leaves[a:b].tolist(), trees.values[a:b].tolist(), strict=True))
                 for a, b in zip(trees.leaf_starts[:-1], trees.leaf_starts[1:], strict=True)]  # fmt: skip
    done = rng.integers(2, 4 + n_trees, n_docs).astype(np.uint16)  # of three others and these
    for counts in (scoring.NO_DOCS, done):
        start = rng.normal(size=n_docs)
        sums, scores = start.copy(), start.copy()
        for t in range(n_trees):
            lacking = np.ones(n_docs, bool) if len(counts) == 0 else counts <= 3 + t
            sums[lacking] += [by_number[t][leaf] for leaf in expected[lacking, t]]
        scoring.add_trees_binned(bins, trees, scores, counts, 3)
        assert scores.tolist() == sums.tolist()
