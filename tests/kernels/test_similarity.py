"""Pairs of documents that share leaves, against counting each pair."""

import numpy as np

from naive_forest import shared_leaves
from ranksieve.kernels import similarity


def test_pairs_of_each_query_by_shared_leaves(interpreted, monkeypatch):
    module = interpreted(similarity)
    monkeypatch.setattr(module, "prange", range)
    monkeypatch.setattr(module, "WIDTH", 3)  # so that a list needs several blocks
    monkeypatch.setattr(module, "MOST", 4)  # and the trees several sums of bytes
    rng, offsets = np.random.default_rng(0), np.array([0, 6, 7, 11])
    leaves = rng.integers(0, 3, (9, 11)).astype(np.uint16)
    counts = np.zeros((3, 10), np.int64)
    module.count_pairs(leaves, offsets, counts)
    assert np.array_equal(counts, shared_leaves(leaves.T, offsets))
