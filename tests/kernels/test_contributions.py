"""Paths of `kernels.contributions`: what a path says about its leaf."""

import numpy as np
import pytest

from naive_forest import random_forest
from ranksieve.kernels import contributions


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_a_path_multiply_to_that_of_its_leaf(interpreted, seed):
    module, rng = interpreted(contributions), np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=4, max_leaves=12, n_features=3)
    leaf_covers, split_covers = (
        rng.integers(1, 50, len(forest.leaf_values)).astype(float),
        np.zeros(len(forest.feature)),
    )
    for t in range(4):  # a split covers what its children cover; children of a split come after it
        base, first = forest.split_offsets[t], forest.leaf_offsets[t]
        for split in range(forest.split_offsets[t + 1] - 1, base - 1, -1):
            for child in (forest.left[split], forest.right[split]):
                split_covers[split] += split_covers[base + child] if child >= 0 else leaf_covers[first + ~child]
    n_nodes = len(leaf_covers) + len(split_covers)
    starts = forest.leaf_offsets + forest.split_offsets
    whole = [np.zeros(n_nodes, np.int32) for _ in range(4)]
    paths = module.Paths(*whole, np.zeros(n_nodes), np.zeros(n_nodes), starts, np.zeros(4, np.int64), starts[:-1])
    module.collect_paths(
        forest.feature, forest.left, forest.right, forest.split_offsets, forest.leaf_offsets, forest.leaf_values,
        leaf_covers, split_covers, paths,
    )  # fmt: skip
    for t in range(4):
        base, leaves, longest = starts[t], [], 0
        for node in range(starts[t + 1] - base):
            if paths.split[base + node] >= 0:
                continue
            shares, at = {}, node  # the last edge of each feature has the share of all its tests
            while at > 0:
                parent = paths.parent[base + at]
                assert at in (parent + 1, paths.right[base + parent])
                shares.setdefault(forest.feature[paths.split[base + parent]], paths.shares[base + at])
                at = parent
            leaves.append((paths.values[base + node], np.prod([*shares.values()])))
            longest = max(longest, len(shares))
        first, stop = forest.leaf_offsets[t], forest.leaf_offsets[t + 1]
        total = leaf_covers[first:stop].sum()
        expected = sorted(zip(forest.leaf_values[first:stop], leaf_covers[first:stop] / total, strict=True))
        np.testing.assert_allclose(sorted(leaves), expected)
        assert paths.n_points[t] == max(1, (longest + 1) // 2)
