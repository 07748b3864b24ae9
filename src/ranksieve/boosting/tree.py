"""`Tree`: one grown tree on bins, and the way from trees to a `Forest` and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.binning import LARGEST, Binning
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest


@dataclass(frozen=True)
class Tree:
    """Splits as rows (column, bin, missing left, left child, right child); a child < 0 is leaf `~child`."""

    splits: np.ndarray  # int32, n_splits × 5
    gains: np.ndarray
    counts: np.ndarray
    leaf_values: np.ndarray
    leaf_counts: np.ndarray
    leaf_weights: np.ndarray


def to_forest(trees: Sequence[Tree], binning: Binning, feature_names: Sequence[str], info: Mapping[str, Any]) -> Forest:
    """The forest of the trees, its thresholds in feature values."""
    splits = np.concatenate([tree.splits for tree in trees] or [np.empty((0, 5), np.int32)])
    n_splits = [len(tree.splits) for tree in trees]
    n_leaves = [len(tree.leaf_values) for tree in trees]
    return Forest(
        feature=binning.features[splits[:, 0]].astype(np.int32),
        threshold=binning.threshold(splits[:, 0], splits[:, 1]),
        left=splits[:, 3].astype(np.int32),
        right=splits[:, 4].astype(np.int32),
        default_left=splits[:, 2] == 1,
        zero_missing=np.zeros(len(splits), np.bool_),
        gain=_joined([tree.gains for tree in trees], np.float64),
        split_count=_joined([tree.counts for tree in trees], np.int64),
        leaf_values=_joined([tree.leaf_values for tree in trees], np.float64),
        leaf_count=_joined([tree.leaf_counts for tree in trees], np.int64),
        leaf_weight=_joined([tree.leaf_weights for tree in trees], np.float64),
        split_offsets=np.concatenate([[0], np.cumsum(n_splits)]).astype(np.int64),
        leaf_offsets=np.concatenate([[0], np.cumsum(n_leaves)]).astype(np.int64),
        weights=np.ones(len(trees)),
        feature_names=tuple(feature_names),
        info=dict(info),
    )


def to_trees(forest: Forest, binning: Binning) -> list[Tree]:
    """The trees of a forest on the bins it was trained with; refuses thresholds that are not borders of bins."""
    if forest.n_features != binning.n_features:
        raise ModelError(f"the model has {forest.n_features} features, the data {binning.n_features}")
    bins = np.empty(len(forest.feature), np.int32)
    columns = np.argsort(binning.features)[forest.feature]
    for column in np.unique(columns):
        mine = columns == column
        borders = np.append(binning.thresholds[binning.offsets[column] : binning.offsets[column + 1]], LARGEST)
        bins[mine] = np.searchsorted(borders, forest.threshold[mine])
        if not np.array_equal(borders[bins[mine]].astype(np.float64), forest.threshold[mine]):
            raise ModelError(f"a threshold of feature {binning.features[column]} is no border of the data's bins")
    splits = np.stack([columns, bins, forest.default_left, forest.left, forest.right], axis=1).astype(np.int32)
    values = forest.scaled_leaf_values()
    trees = []
    for t in range(forest.n_trees):
        s = slice(forest.split_offsets[t], forest.split_offsets[t + 1])
        leaf = slice(forest.leaf_offsets[t], forest.leaf_offsets[t + 1])
        trees.append(
            Tree(
                splits[s],
                forest.gain[s],
                forest.split_count[s],
                values[leaf],
                forest.leaf_count[leaf],
                forest.leaf_weight[leaf],
            )
        )
    return trees


def _joined(arrays: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([*arrays, np.empty(0, dtype)]).astype(dtype)
