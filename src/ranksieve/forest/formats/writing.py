"""Shared by the writers: checks of what a format can express, and trees as nested text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ranksieve.errors import ModelError, param
from ranksieve.forest.float32 import to_single
from ranksieve.forest.forest import Forest
from ranksieve.kernels.quantize import ZERO_THRESHOLD


@dataclass(frozen=True)
class Options:
    """The user's choices for a file to write; see `Forest.save`."""

    name: str = "model"
    missing: str = "nan"
    nearest: bool = False


DEFAULT = Options()
MISSING = {"nan": "go where each split sends them", "zero": "count as 0", "never": "do not occur"}


def check_directions(forest: Forest, consumer: str, nan_left: np.ndarray | None, options: Options) -> None:
    """Refuse splits that send NaN, or zeros as missing, where the consumer does not.

    Parameters
    ----------
    nan_left : array of bool, optional
        Per split, whether the consumer sends NaN left; None where it stores a direction per split as we do.
    """
    # a split that counts zeros as missing is a plain one where zeros go that way anyhow
    as_zero = np.where(forest.default_left, forest.threshold >= ZERO_THRESHOLD, forest.threshold < -ZERO_THRESHOLD)
    special = forest.zero_missing & ~as_zero
    if special.any():
        raise ModelError(
            f"{place(forest, special)} counts zeros as missing (LightGBM's zero_as_missing), which {consumer} cannot "
            "express; train without zero_as_missing, or use the formats lightgbm and c"
        )
    if options.missing != "nan" or nan_left is None:
        return
    differs = nan_left != forest.default_left
    if differs.any():
        side = "left" if forest.default_left[np.argmax(differs)] else "right"
        raise ModelError(
            f"{place(forest, differs)} sends missing values {side}, and {consumer} would not; give ",
            param("missing", "zero"),
            " if missing values count as 0, ",
            param("missing", "never"),
            " if no value is missing",
        )


def with_missing_as_zero(forest: Forest) -> Forest:
    """The forest that sends missing values where it sends 0."""
    zero_left = np.where(forest.zero_missing | forest.categorical, forest.default_left, forest.threshold >= 0)
    return replace(forest, default_left=zero_left)


def place(forest: Forest, splits: np.ndarray) -> str:
    """The first of some splits in words, and how many more there are."""
    at = int(np.argmax(splits))
    tree = int(np.searchsorted(forest.split_offsets, at, side="right")) - 1
    more = int(splits.sum()) - 1
    name = forest.feature_names[forest.feature[at]]
    others = f" (and {more:,} more)" if more else ""
    return f"split {at - forest.split_offsets[tree]} of tree {tree} on feature {name!r}{others}"


def single_values(values: np.ndarray, consumer: str) -> np.ndarray:
    """Leaf values rounded to float32, as the consumer stores them; refuses those too large for it."""
    singles = to_single(values)
    if not np.isfinite(singles).all():
        raise ModelError(
            f"a leaf value is {values[np.argmax(~np.isfinite(singles))]:g}, and {consumer} stores float32, "
            "up to 3.4e38; scale the tree weights down, which ranks the same"
        )
    return singles


def check_names(forest: Forest, consumer: str) -> None:
    """Refuse names that are empty or not unique, for a consumer that identifies features by name."""
    used = [forest.feature_names[number] for number in np.unique(forest.feature)]
    for name, times in Counter(used).items():
        if times > 1 or not name:
            raise ModelError(
                f"{times} features are named {name!r}, and {consumer} identifies features by name; "
                "give every feature a name of its own"
            )


Piece = Callable[[int, int], str]  # (split or leaf in the forest's arrays, depth) -> text


def nested(forest: Forest, tree: int, *, before: Piece, between: Piece, after: Piece, leaf: Piece) -> str:
    """The text of a tree: a split is `before`, its left child, `between`, its right child and `after`.

    Not recursive: a tree may be thousands of splits deep.
    """
    first_split, first_leaf = int(forest.split_offsets[tree]), int(forest.leaf_offsets[tree])
    left, right = (side[first_split : forest.split_offsets[tree + 1]].tolist() for side in (forest.left, forest.right))
    pieces: list[str] = []
    pending: list[tuple[Piece | None, int, int]] = [(None, 0 if left else ~0, 0)]
    while pending:
        piece, node, depth = pending.pop()
        if piece is not None:
            pieces.append(piece(first_split + node, depth))
        elif node < 0:
            pieces.append(leaf(first_leaf + ~node, depth))
        else:
            pending += [
                (after, node, depth),
                (None, right[node], depth + 1),
                (between, node, depth),
                (None, left[node], depth + 1),
                (before, node, depth),
            ]
    return "".join(pieces)
