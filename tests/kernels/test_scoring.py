"""Scores in blocks, against a traversal of every tree; the registers are those of `naive_lanes`."""

import numpy as np
import pytest

from naive_forest import binned_forest, random_bins
from ranksieve.kernels import copy_bytes, scoring

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")


CASES = [(0, 70, 6, 12, 3, False), (1, 530, 3, 5, 20, False), (2, 90, 5, 9, 4, True), (3, 66, 1, 300, 17, False)]


@pytest.mark.parametrize(("seed", "n_docs", "n_trees", "max_leaves", "n_features", "with_sets"), CASES)
def test_blocks_give_what_traversal_gives(interpreted, seed, n_docs, n_trees, max_leaves, n_features, with_sets):
    interpreted(scoring, copy_bytes)
    rng = np.random.default_rng(seed)
    trees, leaves_of = binned_forest(rng, n_trees, max_leaves, n_features, with_sets)
    bins = random_bins(rng, n_docs, n_features)
    expected = np.array([leaves_of(row) for row in bins])
    by_number = [dict(zip(trees.leaves[a:b].tolist(), trees.values[a:b].tolist(), strict=True))
                 for a, b in zip(trees.leaf_starts[:-1], trees.leaf_starts[1:], strict=True)]  # fmt: skip
    done = rng.integers(2, 4 + n_trees, n_docs).astype(np.uint16)  # of three others and these
    for counts in (scoring.NO_DOCS, done):
        start = rng.normal(size=n_docs)
        sums, scores = start.copy(), start.copy()
        for t in range(n_trees):
            lacking = np.ones(n_docs, bool) if len(counts) == 0 else counts <= 3 + t
            sums[lacking] += [by_number[t][leaf] for leaf in expected[lacking, t]]
        scoring.add_trees_binned(bins, trees, 3, counts, scores)
        assert scores.tolist() == sums.tolist()
