"""Trees as other libraries keep them, one table of nodes each, and the forest they make."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.data.features import default_names
from ranksieve.data.lists import starts_of
from ranksieve.dtypes import MOST_FEATURES
from ranksieve.errors import ModelError
from ranksieve.forest.forest import DTYPES, NO_CODES, Forest

BITS = 32  # bits of a word of a set of categories, as LightGBM and XGBoost store them
REMEDY = "the file was changed or is not whole: copy it again, or save it again"


@dataclass(frozen=True)
class Nodes:
    """The nodes of one tree, splits and leaves in one numbering, the root first.

    A node without children (`left < 0`) is a leaf and has a `value`; a split sends `x <= threshold` to `left`, and
    NaN to the left where `default_left` is set. Nodes that cannot be reached from the root are dropped.
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
    sets: Mapping[int, np.ndarray] = field(default_factory=dict)  # by categorical split: the categories that go left


@contextlib.contextmanager
def reading(source: str, expected: str) -> Iterator[None]:
    """Turn errors about missing keys and wrong types into a ModelError that says what was expected."""
    try:
        yield
    except ModelError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"holds something unexpected ({error})"
        raise ModelError(f"{source}: {what}; expected {expected}; {REMEDY}") from error


def is_count(text: Any) -> bool:
    """Whether a text is an integer below 10^9 in plain digits; `int` takes `1_0` and digits of any script."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10


def parse_number(number: Any) -> float:
    """A number that a file holds as a number or as text; raises ValueError where `float` alone is too generous."""
    if isinstance(number, str) and ("_" in number or not number.isascii()):
        raise ValueError(f"{number[:20]!r} is not a number")
    return float(number)


def parse_count(number: Any) -> int:
    """An integer from 0 that a file holds as a number or as text."""
    if not is_count(str(number)):
        raise ValueError(f"{str(number)[:20]!r} is not an integer from 0")
    return int(number)


def constant(value: float) -> Nodes:
    """A tree of one leaf, for a base score, a bias or an initial mean."""
    none, zero = np.array([-1]), np.zeros(1)
    return Nodes(none, none, none, zero, none > 0, np.array([value]))


def join_nodes(
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
    if not 0 <= n_features <= MOST_FEATURES:
        raise ModelError(f"{source}: has {n_features:,} features, expected at most {MOST_FEATURES:,}; {REMEDY}")
    weights = np.ones(len(trees)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(trees),):
        raise ModelError(f"{source}: has {weights.size} weights for {len(trees)} trees; {REMEDY}")
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
    leaf_offsets = starts_of(n_leaves)
    forest = Forest(
        **{
            name: np.concatenate([np.empty(0), *(part[name] for part in parts)]).astype(dtype)
            for name, dtype in DTYPES.items()
        },
        set_offsets=np.concatenate([[0], *(part["set_sizes"] for part in parts)]).cumsum().astype(np.int64),
        set_codes=np.concatenate([NO_CODES, *(part["set_codes"] for part in parts)]),
        split_offsets=leaf_offsets - np.arange(len(leaf_offsets)),
        leaf_offsets=leaf_offsets,
        weights=weights,
        feature_names=names,
        info=dict(info or {}),
    )
    with np.errstate(over="ignore"):
        if not np.isfinite(forest.scaled_leaf_values()).all():
            raise ModelError(f"{source}: a tree's weight times a leaf value is not a finite number; {REMEDY}")
    return forest


def _flat(nodes: Nodes, where: str, n_features: int) -> dict[str, np.ndarray]:
    """A tree's arrays as in a forest: splits and leaves are numbered separately, both in the order of the nodes."""
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
    sets = [nodes.sets.get(split, NO_CODES) for split in splits.tolist()]
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
        "categorical": np.array([split in nodes.sets for split in splits.tolist()], dtype=bool),
        "set_sizes": np.array([len(codes) for codes in sets], dtype=np.int64),
        "set_codes": np.concatenate([NO_CODES, *sets]),
        "gain": gain[splits],
        "split_count": count[splits],
        "leaf_values": value,
        "leaf_count": count[leaves],
        "leaf_weight": weight[leaves],
    }


def _reached(nodes: Nodes, where: str) -> np.ndarray:
    """Which nodes can be reached from the root; refuses children that do not exist or have two parents."""
    n_nodes = len(nodes.left)
    reached = np.zeros(n_nodes, dtype=bool)
    level = np.zeros(min(n_nodes, 1), dtype=np.int64)
    if not n_nodes:
        raise ModelError(f"{where} has no nodes; {REMEDY}")
    while len(level):
        if level.min() < 0 or level.max() >= n_nodes:
            raise ModelError(f"{where} is not a tree: a child does not exist; {REMEDY}")
        if reached[level].any() or len(np.unique(level)) < len(level):
            raise ModelError(f"{where} is not a tree: a node has two parents; {REMEDY}")
        reached[level] = True
        splits = level[nodes.left[level] >= 0]
        level = np.concatenate([nodes.left[splits], nodes.right[splits]])
    return reached


def codes_of_words(words: np.ndarray) -> np.ndarray:
    """The categories in a set of words of 32 bits: bit b of word w stands for category 32 w + b.

    Examples
    --------
    >>> codes_of_words(np.array([5, 1])).tolist()
    [0, 2, 32]
    """
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)


def words_of_codes(codes: np.ndarray) -> np.ndarray:
    """The words of a set, as many as its largest category needs, and at least one.

    Examples
    --------
    >>> words_of_codes(np.array([0, 2, 32])).tolist()
    [5, 1]
    """
    bits = np.zeros(BITS * (int(codes.max(initial=0)) // BITS + 1), np.uint8)
    bits[codes] = 1
    return np.packbits(bits, bitorder="little").view("<u4")
