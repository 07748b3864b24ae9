"""Leaf numbers in blocks, against a traversal of every tree; the registers are those of `naive_lanes`."""

import numpy as np
import pytest

from naive_forest import binned_forest, random_bins
from ranksieve.kernels import copy_bytes, leaf_numbers, scoring

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")


@pytest.mark.parametrize(("n_docs", "n_features", "with_sets"), [(70, 3, False), (530, 20, False), (90, 4, True)])
def test_blocks_give_what_traversal_gives(interpreted, n_docs, n_features, with_sets):
    interpreted(leaf_numbers, scoring, copy_bytes)
    rng = np.random.default_rng(n_docs)
    trees, leaves_of = binned_forest(rng, 4, 12, n_features, with_sets)
    bins = random_bins(rng, n_docs, n_features)
    leaves = np.full((n_docs, 4), -1, np.int32)
    leaf_numbers.leaves_of_binned(bins, trees, leaves)
    assert leaves.tolist() == [leaves_of(row) for row in bins]
