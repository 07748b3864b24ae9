"""Small data sets for the tests."""

from __future__ import annotations

import numpy as np

from ranksieve.data.dataset import Dataset


def small_dataset(n_queries: int = 12, seed: int = 0, n_features: int = 7, most: int = 80) -> Dataset:
    """Lists of uneven sizes, few positives, a missing value here and there, and a feature of few values."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, most, n_queries)
    X = rng.standard_normal((sizes.sum(), n_features)).astype(np.float32)
    X[:, -1] = rng.integers(0, 3, len(X))
    quality = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(len(X))
    X[rng.random(X.shape) < 0.05] = np.nan
    labels = np.zeros(len(X))
    start = 0
    for size in sizes:
        best = start + np.argsort(-quality[start : start + size])[: max(1, size // 12)]
        labels[best] = rng.integers(1, 5, len(best))
        start += size
    return Dataset.from_arrays(X, labels, group=sizes)


def coarse_lists(seed: int, *, by_label: bool) -> Dataset:
    """Lists of 20 documents with three features of 0 and 1: most scores are equal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, (30, 20))
    if by_label:
        labels = -np.sort(-labels)
    features = rng.random((30, 20, 3)) < 0.3 + 0.1 * labels[:, :, None]
    return Dataset.from_arrays(features.reshape(-1, 3).astype(np.float32), labels.ravel(), np.arange(600) // 20)
