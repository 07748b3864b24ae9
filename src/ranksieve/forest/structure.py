"""The structure of trees: whether child numbers make trees, and the splits level by level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.errors import ModelError, param
from ranksieve.text_formats import some_of

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest


def first_broken(
    left: np.ndarray, right: np.ndarray, split_offsets: np.ndarray, leaf_offsets: np.ndarray
) -> tuple[int, str] | None:
    """The first tree whose children do not make a tree, and why; None where all do.

    In a tree, every split but the root and every leaf is the child of exactly one split, and can be reached from the
    root.

    Examples
    --------
    >>> import numpy as np
    >>> offsets = np.array([0, 1]), np.array([0, 2])
    >>> first_broken(np.array([-1]), np.array([-2]), *offsets)
    >>> first_broken(np.array([-1]), np.array([-3]), *offsets)
    (0, 'a child does not exist')
    """
    n_splits, n_leaves = np.diff(split_offsets), np.diff(leaf_offsets)
    tree = np.repeat(np.arange(len(n_splits)), n_splits)
    missing = np.zeros(len(tree), dtype=bool)
    for child in (left, right):
        missing |= (child >= n_splits[tree]) | (child < -n_leaves[tree])
    if missing.any():
        return int(tree[np.argmax(missing)]), "a child does not exist"
    children = np.concatenate([left, right])
    tree_of_child = np.concatenate([tree, tree])
    is_leaf = children < 0
    leaf_parents = np.bincount(
        ~children[is_leaf] + leaf_offsets[tree_of_child[is_leaf]], minlength=int(leaf_offsets[-1])
    )
    split_parents = np.bincount(
        children[~is_leaf] + split_offsets[tree_of_child[~is_leaf]], minlength=int(split_offsets[-1])
    )
    split_parents[split_offsets[:-1][n_splits > 0]] += 1  # the root needs no parent
    leaf_parents[leaf_offsets[:-1][n_splits == 0]] += 1  # a tree without splits is its only leaf
    for parents, offsets in ((split_parents, split_offsets), (leaf_parents, leaf_offsets)):
        wrong = parents != 1
        if wrong.any():
            number = int(np.searchsorted(offsets, np.argmax(wrong), side="right")) - 1
            return number, "a node is not the child of exactly one split"
    reached = np.zeros(len(tree), dtype=bool)
    for splits in levels(left, right, split_offsets):
        reached[splits] = True
    if not reached.all():
        return int(tree[np.argmin(reached)]), "a split cannot be reached from the root"
    return None


def levels(left: np.ndarray, right: np.ndarray, split_offsets: np.ndarray) -> list[np.ndarray]:
    """The splits of all trees by depth: the roots, then their children that are splits, and so on.

    Splits are numbered through the whole forest. Loops over levels instead of trees keep whole-forest sums in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> [level.tolist() for level in levels(np.array([1, -1, -1]), np.array([-3, -2, -2]), np.array([0, 2, 3]))]
    [[0, 2], [1]]
    """
    n_splits = np.diff(split_offsets)
    base = np.repeat(split_offsets[:-1], n_splits)
    level = split_offsets[:-1][n_splits > 0]
    found = []
    while len(level):
        found.append(level)
        children = np.concatenate([left[level], right[level]])
        level = (children + np.concatenate([base[level], base[level]]))[children >= 0]
    return found


def node_places(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    """The places of all splits and of all leaves in one array of nodes: of each tree its splits, then its leaves."""
    splits = np.arange(len(forest.feature)) + np.repeat(forest.leaf_offsets[:-1], np.diff(forest.split_offsets))
    leaves = np.arange(len(forest.leaf_values)) + np.repeat(forest.split_offsets[1:], forest.n_leaves)
    return splits, leaves


def children_of(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    """The left and right children of all splits, numbered through the whole forest: a split, or `~leaf`."""
    n_splits = np.diff(forest.split_offsets)
    splits, leaves = (np.repeat(offsets[:-1], n_splits) for offsets in (forest.split_offsets, forest.leaf_offsets))
    left, right = (np.where(side < 0, ~(~side + leaves), side + splits) for side in (forest.left, forest.right))
    return left, right


def of_children(children: np.ndarray, of_splits: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """The values of some children, given those of all splits and of all leaves."""
    is_leaf = children < 0
    return np.where(is_leaf, of_leaves[np.where(is_leaf, ~children, 0)], of_splits[np.where(is_leaf, 0, children)])


def checked_values(forest: Forest, *, numerical_only: str = "") -> np.ndarray:
    """Weighted leaf values of a forest that can be written; refuses arrays that are not trees, and infinite values.

    `numerical_only` names a consumer that has no splits by categories; they are refused then.
    """
    broken = first_broken(forest.left, forest.right, forest.split_offsets, forest.leaf_offsets)
    if broken is not None:
        raise ModelError(
            f"tree {broken[0]} cannot be written: {broken[1]}; build forests with ranksieve's own functions"
        )
    if len(forest.feature) and not 0 <= forest.feature.min() <= forest.feature.max() < forest.n_features:
        raise ModelError(
            f"a split uses feature {forest.feature.max()} but the forest names {forest.n_features}; name every feature"
        )
    if forest.has_categories and numerical_only:
        names = dict.fromkeys(forest.feature_names[number] for number in forest.feature[forest.categorical])
        raise ModelError(
            f"the model splits by sets of categories of {some_of(list(names))}, and {numerical_only} only compares "
            "features with thresholds; use ", param("format", "lightgbm"), ", xgboost, vespa, onnx or c, or train "
            "without these features",
        )  # fmt: skip
    values = forest.scaled_leaf_values()
    if not np.isfinite(values).all() or np.isnan(forest.threshold).any():
        raise ModelError("a leaf value is not finite, or a threshold is NaN; such a model cannot rank, train it again")
    return values


def without_empty_sets(forest: Forest) -> Forest:
    """The forest whose splits by an empty set are by a threshold that all numbers are above.

    XGBoost and ONNX have no empty sets.
    """
    empty = forest.categorical & (np.diff(forest.set_offsets) == 0)
    threshold = np.where(empty, np.float64(np.finfo(np.float32).min), forest.threshold)
    return replace(forest, categorical=forest.categorical & ~empty, threshold=threshold)
