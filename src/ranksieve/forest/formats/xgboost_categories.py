"""Categories in XGBoost's models: the sets of a tree's splits, and the names of the categories.

A category in the set of a split goes right in XGBoost, and left in a forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve.data.categories import MAX_CATEGORIES
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import REMEDY, Nodes


def category_names(
    stored: dict[str, Any], trees: Sequence[Nodes], given: Sequence[str], source: str
) -> dict[str, list[str]]:
    """The names of categories by feature; none where the model stores numbers only, as before XGBoost 3.1."""
    encodings = [one if len(one["values"]) else None for one in stored.get("cats", {}).get("enc", [])]
    split_by = {int(tree.feature[node]) for tree in trees for node in tree.sets}
    numbers = sorted(split_by | {number for number, one in enumerate(encodings) if one is not None})
    found = {}
    for n in numbers:
        name = given[n] if given else f"f{n + 1}"
        encoding = encodings[n] if n < len(encodings) else None
        found[name] = [] if encoding is None else _names(encoding, f"{source}: feature {name!r}")
    return found


def _names(encoding: dict[str, Any], where: str) -> list[str]:
    """Names that are stored as one array of bytes and where each begins, or as numbers.

    Names that are not ASCII are refused: XGBoost 3 counts letters and stores as many bytes, so the last ones are lost.
    """
    if "offsets" not in encoding:
        return [str(value) for value in encoding["values"]]
    text, offsets = bytes(int(value) & 255 for value in encoding["values"]), list(map(int, encoding["offsets"]))
    if not text.isascii():
        raise ModelError(
            f"{where} has categories that are not ASCII, whose names XGBoost has cut off in the file; rename them to "
            "ASCII, or give the numbers of the categories, and train the model again"
        )
    return [text[start:stop].decode() for start, stop in pairwise(offsets)]


def sets_of(tree: dict[str, Any], where: str) -> dict[int, np.ndarray]:
    """The sets of the categorical splits, by node."""
    keys = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    categories, nodes, starts, sizes = (np.asarray(tree.get(key, ()), np.int64).ravel() for key in keys)
    by_set = np.flatnonzero(np.asarray(tree.get("split_type", ())))
    fits = len(nodes) == len(starts) == len(sizes) and min(starts.min(initial=0), sizes.min(initial=0)) >= 0
    if not fits or (starts + sizes).max(initial=0) > len(categories) or not np.array_equal(by_set, nodes):
        raise ModelError(f"{where} has sets of categories that do not fit its categorical splits; {REMEDY}")
    if not ((categories >= 0) & (categories < MAX_CATEGORIES)).all():
        raise ModelError(f"{where} has a category that is not a number from 0 to {MAX_CATEGORIES - 1:,}; {REMEDY}")
    parts = zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    return {node: np.unique(categories[start : start + size]) for node, start, size in parts}


def sets_to_right(forest: Forest) -> Forest:
    """The forest with the sides of its categorical splits exchanged, as XGBoost has them."""
    swapped = forest.categorical
    return replace(
        forest,
        left=np.where(swapped, forest.right, forest.left),
        right=np.where(swapped, forest.left, forest.right),
        default_left=forest.default_left ^ swapped,
    )


def stored_sets(forest: Forest, splits: slice, nodes: np.ndarray) -> dict[str, np.ndarray]:
    """The sets of a tree's splits, whose nodes have these numbers, as `sets_of` reads them."""
    by_set = np.flatnonzero(forest.categorical[splits])
    by_set = by_set[np.argsort(nodes[by_set])]
    sets = [forest.set_of(splits.start + split) for split in by_set.tolist()]
    sizes = np.array([len(codes) for codes in sets], np.int64)
    return {
        "categories": np.concatenate([np.empty(0, np.int64), *sets]),
        "categories_nodes": nodes[by_set],
        "categories_segments": np.cumsum(sizes) - sizes,
        "categories_sizes": sizes,
    }


def encodings_of(forest: Forest) -> dict[str, Any]:
    """The names of categories as XGBoost stores them since 3.1; it finds the numbers of those in a DataFrame by them.

    Nothing where there are none, or some are not ASCII.
    """
    names = [list(forest.categories.get(feature, ())) for feature in forest.feature_names]
    if not any(names) or not all(name.isascii() for some in names for name in some):
        return {}
    encodings = [
        {"offsets": np.cumsum([0, *map(len, some)]).tolist() if some else [], "values": list("".join(some).encode())}
        for some in names
    ]
    order = [number for some in names for number in sorted(range(len(some)), key=some.__getitem__)]
    segments = np.cumsum([0, *map(len, names)]).tolist()
    return {"cats": {"enc": encodings, "feature_segments": segments, "sorted_idx": order}}
