"""The slow truth about forests: random ones, and a traversal of every tree for every document."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from naive_trees import leaves_of
from ranksieve.forest.compile_trees import compile_binned
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
        node = int((forest.left if goes_left(forest, split, row) else forest.right)[split])
    return ~node


def goes_left(forest: Forest, split: int, row: Sequence[float]) -> bool:
    """Whether a document goes left at a split."""
    value = row[forest.feature[split]]
    if np.isnan(value) or (forest.zero_missing[split] and abs(value) <= ZERO):
        return bool(forest.default_left[split])
    if forest.categorical[split]:  # LightGBM converts to int: infinite and huge values become negative
        return -1.0 < value < 2.0**31 and int(value) in forest.set_of(split)
    return bool(value <= forest.threshold[split])


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
    n_categories: int = 0,
) -> Forest:
    """A forest of random shapes; thresholds and leaf values are normal, or drawn from what is given.

    With `n_categories`, every other feature is categorical and has so many.
    """
    n_leaves = rng.integers(1, max_leaves + 1, n_trees)
    trees = [_random_children(rng, int(leaves)) for leaves in n_leaves]
    children = np.concatenate([np.empty((0, 2), np.int32), *trees])
    n_splits, total = len(children), int(n_leaves.sum())
    leaf_offsets = np.concatenate([[0], np.cumsum(n_leaves)]).astype(np.int64)
    forest = Forest(
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
    return with_categories(forest, rng, n_categories) if n_categories else forest


def with_categories(forest: Forest, rng: np.random.Generator, n_categories: int) -> Forest:
    """The forest with random sets of categories at the splits on every other feature; missing ones go right."""
    categorical = forest.feature % 2 == 1
    sets = [np.flatnonzero(rng.random(n_categories) < rng.random()) if one else np.empty(0, int) for one in categorical]
    return replace(
        forest,
        categorical=categorical,
        threshold=np.where(categorical, 0.0, forest.threshold),
        default_left=forest.default_left & ~categorical,
        zero_missing=forest.zero_missing & ~categorical,
        set_offsets=np.cumsum([0, *map(len, sets)]).astype(np.int64),
        set_codes=np.concatenate([np.empty(0, int), *sets]).astype(np.int64),
    )


def random_documents(rng: np.random.Generator, n_docs: int, n_features: int, n_categories: int) -> np.ndarray:
    """Documents whose every other feature is a category, some of them missing, unknown, negative or between two."""
    X = rng.normal(size=(n_docs, n_features))
    codes = rng.integers(0, n_categories, (n_docs, n_features)).astype(float)
    unusual = rng.choice(
        [np.nan, -1.0, -0.5, 0.5, n_categories, n_categories + 40, 1e10, np.inf, -np.inf, -3e9], X.shape
    )
    codes = np.where(rng.random(X.shape) < 0.2, unusual, codes)
    X[:, 1::2] = codes[:, 1::2]
    X[:, ::2][rng.random(X[:, ::2].shape) < 0.1] = np.nan
    return X


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


def binned_forest(rng, n_trees, max_leaves, n_features, with_sets=False):
    """Compiled trees, and a function that traverses them: a row of bins → the leaf of every tree."""
    forest = random_forest(rng, n_trees=n_trees, max_leaves=max_leaves, n_features=n_features)
    cuts, goes_left = rng.integers(0, 254, len(forest.feature)), rng.random((3, 256)) < 0.5
    goes_left[:, 255] = False
    if with_sets:
        cuts[1::2] = ~rng.integers(0, 3, len(cuts[1::2]))
    default_left = forest.default_left & (cuts >= 0)
    splits = np.stack([forest.feature, cuts, default_left, forest.left, forest.right], axis=1)
    trees = compile_binned(splits, forest.leaf_values, forest.split_offsets, forest.leaf_offsets, goes_left)

    return trees, lambda row: leaves_of(splits, forest.split_offsets, row, goes_left)


def random_bins(rng, n_docs, n_features):
    """Bins of documents, some of them missing."""
    bins = rng.integers(0, 256, (n_docs, n_features)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.1] = 255
    return bins


def naive_leaves(forest: Forest, X: np.ndarray) -> np.ndarray:
    """The leaf of every document in every tree."""
    rows = np.asarray(X, dtype=np.float64)
    return np.array([[naive_leaf(forest, t, row) for t in range(forest.n_trees)] for row in rows])


def shared_leaves(leaves: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """For each query the number of pairs of documents that share a leaf in 0, 1, 2, … of the trees."""
    counts = np.zeros((len(offsets) - 1, leaves.shape[1] + 1), np.int64)
    for q, (start, stop) in enumerate(itertools.pairwise(offsets)):
        for i, j in itertools.combinations(range(start, stop), 2):
            counts[q, (leaves[i] == leaves[j]).sum()] += 1
    return counts
