"""The slow truth about contributions: every subset of features; and a forest as the `shap` package reads one."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from naive_forest import goes_left
from ranksieve.forest.forest import Forest


def naive_contributions(forest: Forest, row: np.ndarray) -> np.ndarray:
    """Shapley values of one document, feature by feature, then the score of a document of which nothing is known."""
    n = forest.n_features
    games = {
        subset: sum(_known_score(forest, tree, row, subset) for tree in range(forest.n_trees))
        for size in range(n + 1)
        for subset in combinations(range(n), size)
    }
    phi = np.zeros(n + 1)
    phi[n] = games[()]
    for feature in range(n):
        for subset, score in games.items():
            if feature not in subset:
                weight = factorial(len(subset)) * factorial(n - len(subset) - 1) / factorial(n)
                phi[feature] += weight * (games[tuple(sorted((*subset, feature)))] - score)
    return phi


def _known_score(forest: Forest, tree: int, row: np.ndarray, known: tuple[int, ...]) -> float:
    """A tree's mean value where only some features of the document are known."""
    a, b = int(forest.split_offsets[tree]), int(forest.leaf_offsets[tree])

    def cover(node: int) -> float:
        return forest.leaf_count[b + ~node] if node < 0 else sum(map(cover, children(node)))

    def children(node: int) -> tuple[int, int]:
        return int(forest.left[a + node]), int(forest.right[a + node])

    def mean(node: int) -> float:
        if node < 0:
            return forest.leaf_values[b + ~node]
        left, right = children(node)
        if forest.feature[a + node] in known:
            return mean(left if goes_left(forest, a + node, row) else right)
        return (cover(left) * mean(left) + cover(right) * mean(right)) / cover(node)

    return forest.weights[tree] * mean(0 if forest.split_offsets[tree + 1] > a else -1)


def shap_model(forest: Forest) -> dict[str, Any]:
    """What `shap.TreeExplainer` takes as a model, for its own compiled code to work on."""
    trees = []
    for t in range(forest.n_trees):
        splits = slice(forest.split_offsets[t], forest.split_offsets[t + 1])
        leaves = slice(forest.leaf_offsets[t], forest.leaf_offsets[t + 1])
        n_splits, n_leaves = splits.stop - splits.start, leaves.stop - leaves.start
        none, zeros = np.full(n_leaves, -1), np.zeros(n_splits)
        left, right = (np.where(c >= 0, c, n_splits + ~c) for c in (forest.left[splits], forest.right[splits]))
        trees.append(
            {
                "children_left": np.append(left, none),
                "children_right": np.append(right, none),
                "children_default": np.append(np.where(forest.default_left[splits], left, right), none),
                "features": np.append(forest.feature[splits], none),
                "thresholds": np.append(forest.threshold[splits], np.zeros(n_leaves)),
                "values": np.append(zeros, forest.scaled_leaf_values()[leaves])[:, None],
                "node_sample_weight": np.append(forest.split_count[splits], forest.leaf_count[leaves]).astype(float),
            }
        )
    return {"trees": trees, "internal_dtype": np.float64, "input_dtype": np.float64, "tree_output": "raw_value"}
