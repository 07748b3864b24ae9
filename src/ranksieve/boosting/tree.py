"""`Tree`: one grown tree on bins, and the way from trees to a `Forest` and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.data.binning import LARGEST, Binning
from ranksieve.data.lists import starts_of
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest

NO_SETS = np.zeros((0, 256), np.bool_)


@dataclass(frozen=True)
class Tree:
    """Splits as rows (column, bin, missing left, left child, right child); a child < 0 is leaf `~child`.

    A bin < 0 is set `~bin`: the bins in it go left.
    """

    splits: np.ndarray  # int32, n_splits × 5
    gains: np.ndarray
    counts: np.ndarray
    leaf_values: np.ndarray
    leaf_counts: np.ndarray
    leaf_weights: np.ndarray
    sets: np.ndarray = field(default_factory=lambda: NO_SETS)  # bool, n_sets × 256


def to_forest(trees: Sequence[Tree], binning: Binning, feature_names: Sequence[str], info: Mapping[str, Any]) -> Forest:
    """The forest of the trees, its thresholds in feature values."""
    splits = np.concatenate([tree.splits for tree in trees] or [np.empty((0, 5), np.int32)])
    n_splits = [len(tree.splits) for tree in trees]
    n_leaves = [len(tree.leaf_values) for tree in trees]
    sets = [_codes(tree, split, binning) for tree in trees for split in tree.splits]
    return Forest(
        feature=binning.features[splits[:, 0]].astype(np.int32),
        threshold=np.where(splits[:, 1] < 0, 0.0, binning.threshold(splits[:, 0], splits[:, 1])),
        left=splits[:, 3].astype(np.int32),
        right=splits[:, 4].astype(np.int32),
        default_left=splits[:, 2] == 1,
        zero_missing=np.zeros(len(splits), np.bool_),
        categorical=splits[:, 1] < 0,
        set_offsets=starts_of(list(map(len, sets))),
        set_codes=np.concatenate([np.empty(0, np.int64), *sets]),
        gain=_joined([tree.gains for tree in trees], np.float64),
        split_count=_joined([tree.counts for tree in trees], np.int64),
        leaf_values=_joined([tree.leaf_values for tree in trees], np.float64),
        leaf_count=_joined([tree.leaf_counts for tree in trees], np.int64),
        leaf_weight=_joined([tree.leaf_weights for tree in trees], np.float64),
        split_offsets=starts_of(n_splits),
        leaf_offsets=starts_of(n_leaves),
        weights=np.ones(len(trees)),
        feature_names=tuple(feature_names),
        info=dict(info),
    )


def to_sets(words: np.ndarray) -> np.ndarray:
    """Sets of bins, given as four words of 64 bits each, as rows of 256 truth values."""
    rows = np.ascontiguousarray(words.astype("<i8")).view(np.uint8).reshape(len(words), 32)
    return np.unpackbits(rows, axis=1, bitorder="little").astype(np.bool_)


def _codes(tree: Tree, split: np.ndarray, binning: Binning) -> np.ndarray:
    """The categories that a split sends left, ascending; none for a numerical split."""
    if split[1] >= 0:
        return np.empty(0, np.int64)
    codes = binning.codes[int(binning.features[split[0]])]
    return np.sort(codes[tree.sets[~split[1]][: len(codes)]])


def to_trees(forest: Forest, binning: Binning) -> list[Tree]:
    """The trees of a forest on the bins it was trained with; refuses thresholds that are not borders of bins."""
    if forest.n_features != binning.n_features:
        raise ModelError(f"the model has {forest.n_features} features, the data {binning.n_features}")
    bins = np.empty(len(forest.feature), np.int32)
    columns = np.argsort(binning.features)[forest.feature]
    sets = _sets(forest, binning)
    for column in np.unique(columns[~forest.categorical]):
        mine = (columns == column) & ~forest.categorical
        borders = np.append(binning.thresholds[binning.offsets[column] : binning.offsets[column + 1]], LARGEST)
        bins[mine] = np.searchsorted(borders, forest.threshold[mine])
        if not np.array_equal(borders[bins[mine]].astype(np.float64), forest.threshold[mine]):
            name = forest.feature_names[binning.features[column]]
            raise ModelError(f"a threshold of feature {name!r} is not a border of the data's bins")
    splits = np.stack([columns, bins, forest.default_left, forest.left, forest.right], axis=1).astype(np.int32)
    first_set = np.cumsum(forest.categorical) - forest.categorical  # of each split's tree, counted from 0
    values = forest.scaled_leaf_values()
    trees = []
    for t in range(forest.n_trees):
        s = slice(forest.split_offsets[t], forest.split_offsets[t + 1])
        leaf = slice(forest.leaf_offsets[t], forest.leaf_offsets[t + 1])
        by_set, mine = forest.categorical[s], splits[s]
        mine[by_set, 1] = ~np.arange(by_set.sum())
        trees.append(
            Tree(
                mine,
                forest.gain[s],
                forest.split_count[s],
                values[leaf],
                forest.leaf_count[leaf],
                forest.leaf_weight[leaf],
                sets[first_set[s][by_set]],
            )
        )
    return trees


def _sets(forest: Forest, binning: Binning) -> np.ndarray:
    """The sets of the categorical splits on bins; refuses categories that have no bin of their own."""
    splits = np.flatnonzero(forest.categorical).tolist()
    sets = np.zeros((len(splits), 256), np.bool_)
    for number, split in enumerate(splits):
        codes = binning.codes.get(int(forest.feature[split]), np.empty(0, np.int64))
        sets[number, : len(codes)] = np.isin(codes, forest.set_of(split))
        if sets[number].sum() != len(forest.set_of(split)):
            name, code = forest.feature_names[forest.feature[split]], np.setdiff1d(forest.set_of(split), codes)[0]
            names = forest.categories.get(name, ())
            category = repr(names[code]) if code < len(names) else code
            raise ModelError(f"the category {category} of feature {name!r} has no bin of its own in the data")
    return sets


def _joined(arrays: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([*arrays, np.empty(0, dtype)]).astype(dtype)
