"""The slow truth about forests: random ones, and a walk down every tree for every document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve.forest.forest import Forest

ZERO = float(np.float32(1e-35))  # LightGBM's zero: what is not larger


def naive_scores(forest: Forest, X: np.ndarray) -> np.ndarray:
    """Score of every row: the sum over trees, in order, of weight * leaf value."""
    return np.array([_score(forest, row) for row in np.asarray(X, dtype=np.float64)])


def naive_leaf(forest: Forest, tree: int, row: Sequence[float]) -> int:
    """The leaf, counted within the tree, that a document falls into."""
    base = int(forest.split_offsets[tree])
    if base == forest.split_offsets[tree + 1]:
        return 0
    node = 0
    while node >= 0:
        split = base + node
        value = row[forest.feature[split]]
        missing = np.isnan(value) or (forest.zero_missing[split] and abs(value) <= ZERO)
        goes_left = forest.default_left[split] if missing else value <= forest.threshold[split]
        node = int(forest.left[split] if goes_left else forest.right[split])
    return ~node


def _score(forest: Forest, row: Sequence[float]) -> float:
    total = 0.0
    for tree in range(forest.n_trees):
        leaf = forest.leaf_offsets[tree] + naive_leaf(forest, tree, row)
        total += forest.weights[tree] * forest.leaf_values[leaf]
    return total


def random_forest(
    rng: np.random.Generator,
    *,
    n_trees: int = 3,
    max_leaves: int = 8,
    n_features: int = 4,
    thresholds: Sequence[float] | None = None,
    leaf_values: Sequence[float] | None = None,
    zero_missing: bool = False,
) -> Forest:
    """A forest of random shapes; thresholds and leaf values are normal, or drawn from what is given."""
    n_leaves = rng.integers(1, max_leaves + 1, n_trees)
    trees = [_random_children(rng, int(leaves)) for leaves in n_leaves]
    children = np.concatenate([np.empty((0, 2), np.int32), *trees])
    n_splits, total = len(children), int(n_leaves.sum())
    leaf_offsets = np.concatenate([[0], np.cumsum(n_leaves)]).astype(np.int64)
    return Forest(
        feature=rng.integers(0, n_features, n_splits).astype(np.int32),
        threshold=rng.normal(size=n_splits) if thresholds is None else rng.choice(thresholds, n_splits),
        left=children[:, 0].copy(),
        right=children[:, 1].copy(),
        default_left=rng.random(n_splits) < 0.5,
        zero_missing=(rng.random(n_splits) < 0.3) & zero_missing,
        gain=rng.exponential(size=n_splits),
        split_count=rng.integers(1, 1000, n_splits),
        leaf_values=rng.normal(size=total) if leaf_values is None else rng.choice(leaf_values, total),
        leaf_count=rng.integers(1, 1000, total),
        leaf_weight=rng.exponential(size=total),
        split_offsets=leaf_offsets - np.arange(n_trees + 1),
        leaf_offsets=leaf_offsets,
        weights=rng.normal(size=n_trees),
        feature_names=tuple(f"f{number}" for number in range(1, n_features + 1)),
        info={"params": {"n_trees": n_trees}, "history": {"valid": {"ndcg@10": [0.1, 1 / 3]}}},
    )


def _random_children(rng: np.random.Generator, n_leaves: int) -> np.ndarray:
    """Children grown by splitting random leaves, as a leaf-wise grower numbers them."""
    children = np.empty((n_leaves - 1, 2), np.int32)
    holder: list[tuple[int, int] | None] = [None]  # where each leaf hangs
    for split in range(n_leaves - 1):
        leaf = int(rng.integers(len(holder)))
        if (place := holder[leaf]) is not None:
            children[place] = split
        children[split] = ~leaf, ~len(holder)
        holder[leaf] = (split, 0)
        holder.append((split, 1))
    return children
