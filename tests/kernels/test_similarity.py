from itertools import combinations

import numpy as np

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
    expected = np.zeros_like(counts)
    for q in range(3):
        for a, b in combinations(range(offsets[q], offsets[q + 1]), 2):
            expected[q, (leaves[:, a] == leaves[:, b]).sum()] += 1
    assert np.array_equal(counts, expected)
