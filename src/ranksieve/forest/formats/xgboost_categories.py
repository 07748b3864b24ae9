"""Categories in XGBoost's models: the sets of a tree's splits, and the names of the categories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve.data.categories import MOST
from ranksieve.errors import ModelError
from ranksieve.forest.formats.nodes import REMEDY, Nodes


def category_names(stored: dict[str, Any], trees: Sequence[Nodes], given: Sequence[str]) -> dict[str, list[str]]:
    """The names of categories by feature; none where the model stores numbers only, as before XGBoost 3.1."""
    encodings = stored.get("cats", {}).get("enc", [])
    found = {number: _names(one) for number, one in enumerate(encodings) if len(one["values"])}
    split_by = {int(tree.feature[node]) for tree in trees for node in tree.sets}
    numbers = sorted(split_by | found.keys())
    return {given[n] if given else f"f{n + 1}": found.get(n, []) for n in numbers}


def _names(encoding: dict[str, Any]) -> list[str]:
    """Names that are stored as one array of bytes and where each begins, or as numbers.

    XGBoost 3 cuts off names that are not ASCII: it counts letters and stores bytes. There are no names then.
    """
    if "offsets" not in encoding:
        return [str(value) for value in encoding["values"]]
    text, offsets = bytes(int(value) & 255 for value in encoding["values"]), list(map(int, encoding["offsets"]))
    return [text[start:stop].decode() for start, stop in pairwise(offsets)] if text.isascii() else []


def sets_of(tree: dict[str, Any], where: str) -> dict[int, np.ndarray]:
    """The sets of the categorical splits, by node."""
    keys = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    categories, nodes, starts, sizes = (np.asarray(tree.get(key, ()), np.int64).ravel() for key in keys)
    by_set = np.flatnonzero(np.asarray(tree.get("split_type", ())))
    fits = len(nodes) == len(starts) == len(sizes) and min(starts.min(initial=0), sizes.min(initial=0)) >= 0
    if not fits or (starts + sizes).max(initial=0) > len(categories) or not np.array_equal(by_set, nodes):
        raise ModelError(f"{where} has sets of categories that do not fit its categorical splits; {REMEDY}")
    if not ((categories >= 0) & (categories < MOST)).all():
        raise ModelError(f"{where} has a category that is not a number from 0 to {MOST - 1:,}; {REMEDY}")
    parts = zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    return {node: np.unique(categories[start : start + size]) for node, start, size in parts}
