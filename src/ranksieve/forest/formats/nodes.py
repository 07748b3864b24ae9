"""Trees as other libraries keep them, one table of nodes each, and the forest they make."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import default_names
from ranksieve.errors import ModelError
from ranksieve.forest.forest import DTYPES, LEAF_ARRAYS, SPLIT_ARRAYS, Forest

REMEDY = "the file was changed or is not whole: copy it again, or save it again"


@dataclass(frozen=True)
class Nodes:
    """The nodes of one tree, splits and leaves in one numbering, the root first.

    A node without children (`left < 0`) is a leaf and has a `value`; a split sends `x <= threshold` to `left` and
    NaN where `default_left` says. Nodes the root does not lead to are dropped.
    """

    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    default_left: np.ndarray
    value: np.ndarray
    gain: np.ndarray | None = None  # of a split
    count: np.ndarray | None = None  # training documents that passed
    weight: np.ndarray | None = None  # sum of second derivatives


@contextlib.contextmanager
def reading(source: str, expected: str) -> Iterator[None]:
    """Turn what goes wrong inside on a file with other keys or values into an error that says what was expected."""
    try:
        yield
    except ModelError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"holds something unexpected ({error})"
        raise ModelError(f"{source}: {what}; expected {expected}; {REMEDY}") from error


def constant(value: float) -> Nodes:
    """A tree that is one leaf: what a base score, a bias or an initial mean becomes."""
    none, zero = np.array([-1]), np.zeros(1)
    return Nodes(none, none, none, zero, none > 0, np.array([value]))


def to_forest(
    trees: Sequence[Nodes],
    source: str,
    *,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
    base: float = 0.0,
    info: Mapping[str, Any] | None = None,
) -> Forest:
    """The forest of some trees, and of a first one for `base` where it is not 0; `source` names them in errors."""
    weights = np.ones(len(trees)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and np.isfinite(base)):
        raise ModelError(f"{source}: the base score or a tree's weight is not a finite number; {REMEDY}")
    parts = [_flat(nodes, f"{source}: tree {number}", n_features) for number, nodes in enumerate(trees)]
    if base != 0:
        parts.insert(0, _flat(constant(base), source, n_features))
        weights = np.concatenate([[1.0], weights])
    names = default_names(n_features) if feature_names is None else tuple(feature_names)
    if len(names) != n_features:
        raise ModelError(f"{source}: names {len(names)} features but has {n_features}; {REMEDY}")
    n_leaves = [len(part["leaf_values"]) for part in parts]
    leaf_offsets = np.concatenate([[0], np.cumsum(n_leaves)]).astype(np.int64)
    return Forest(
        **{
            name: np.concatenate([np.empty(0), *(part[name] for part in parts)]).astype(DTYPES[name])
            for name in SPLIT_ARRAYS + LEAF_ARRAYS
        },
        split_offsets=leaf_offsets - np.arange(len(leaf_offsets)),
        leaf_offsets=leaf_offsets,
        weights=weights,
        feature_names=names,
        info=dict(info or {}),
    )


def _flat(nodes: Nodes, where: str, n_features: int) -> dict[str, np.ndarray]:
    """A tree's arrays as a forest keeps them: splits and leaves numbered apart, both in the order of the nodes."""
    kept = np.flatnonzero(_reached(nodes, where))
    is_leaf = nodes.left[kept] < 0
    splits, leaves = kept[~is_leaf], kept[is_leaf]
    child_number = np.zeros(len(nodes.left), dtype=np.int64)
    child_number[splits] = np.arange(len(splits))
    child_number[leaves] = ~np.arange(len(leaves))
    feature, threshold, value = nodes.feature[splits], nodes.threshold[splits], nodes.value[leaves]
    if len(feature) and not 0 <= feature.min() <= feature.max() < n_features:
        raise ModelError(f"{where} uses feature number {feature.max()}, expected 0 to {n_features - 1}; {REMEDY}")
    if np.isnan(threshold).any() or not np.isfinite(value).all():
        raise ModelError(f"{where} has a threshold that is NaN or a leaf value that is not finite; {REMEDY}")
    unknown = np.zeros(len(nodes.left))
    gain, count, weight = (
        unknown if numbers is None else np.nan_to_num(numbers) for numbers in (nodes.gain, nodes.count, nodes.weight)
    )
    return {
        "feature": feature,
        "threshold": threshold,
        "left": child_number[nodes.left[splits]],
        "right": child_number[nodes.right[splits]],
        "default_left": nodes.default_left[splits],
        "zero_missing": np.zeros(len(splits), dtype=bool),
        "gain": gain[splits],
        "split_count": count[splits],
        "leaf_values": value,
        "leaf_count": count[leaves],
        "leaf_weight": weight[leaves],
    }


def _reached(nodes: Nodes, where: str) -> np.ndarray:
    """Which nodes the root leads to; refuses children that are not there or have two parents."""
    n_nodes = len(nodes.left)
    reached = np.zeros(n_nodes, dtype=bool)
    level = np.zeros(min(n_nodes, 1), dtype=np.int64)
    if not n_nodes:
        raise ModelError(f"{where} has no nodes; {REMEDY}")
    while len(level):
        if level.min() < 0 or level.max() >= n_nodes:
            raise ModelError(f"{where} is no tree: a child does not exist; {REMEDY}")
        if reached[level].any() or len(np.unique(level)) < len(level):
            raise ModelError(f"{where} is no tree: a node is the child of two; {REMEDY}")
        reached[level] = True
        splits = level[nodes.left[level] >= 0]
        level = np.concatenate([nodes.left[splits], nodes.right[splits]])
    return reached
