"""CatBoost models as `save_model(…, format="json")` writes them: numerical splits, oblivious trees or others.

CatBoost turns features into float32 and borders are float32; `x > border` goes right. Bit k of the leaf's number in an
oblivious tree is set if split k goes right. Missing values count as smaller or larger than everything, by feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.float32 import to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import MOST_FEATURES, REMEDY, Nodes, reading, to_forest

LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}  # where NaN goes: as it is, NaN > border is false
DEEPEST = 16  # CatBoost's own limit
EXPECTED = 'a CatBoost model as save_model(…, format="json") writes it'


def forest_of(model: Any, source: str) -> Forest:
    """The forest of a decoded model; `source` names it in errors."""
    with reading(source, EXPECTED):
        return _forest(model, source)


def _forest(model: dict[str, Any], source: str) -> Forest:
    kinds = model["features_info"]
    for kind in ("categorical_features", "text_features", "embedding_features", "ctrs"):
        if kinds.get(kind):
            raise ModelError(f"{source}: uses {kind}, only numerical features are read; train without them")
    scale, (base, *more) = model["scale_and_bias"]
    if more:
        raise ModelError(f"{source}: gives several scores per document, expected one; train with a ranking objective")
    features = {feature["feature_index"]: feature for feature in kinds.get("float_features", ())}
    n_features = 1 + max((feature["flat_feature_index"] for feature in features.values()), default=0)
    if n_features > MOST_FEATURES:
        raise ModelError(f"{source}: has {n_features:,} features, expected at most {MOST_FEATURES:,}; {REMEDY}")
    names = [""] * n_features
    for feature in features.values():
        names[feature["flat_feature_index"]] = str(feature.get("feature_id", ""))
    trees = [
        *(
            _oblivious(tree, features, f"{source}: tree {at}")
            for at, tree in enumerate(model.get("oblivious_trees", ()))
        ),
        *(_branching(tree, features, f"{source}: tree {at}") for at, tree in enumerate(model.get("trees", ()))),
    ]
    return to_forest(
        trees,
        source,
        n_features=n_features,
        feature_names=names if all(names) else None,
        weights=np.full(len(trees), float(scale)),
        base=float(base),
        info={"read_from": "catboost"},
    )


def _split(split: dict[str, Any], features: dict[int, dict[str, Any]], where: str) -> tuple[int, float, bool]:
    """Feature, threshold and where NaN goes."""
    if split["split_type"] != "FloatFeature":
        raise ModelError(
            f"{where} has a split of type {split['split_type']!r}, only FloatFeature is read; train without categories"
        )
    feature = features[split["float_feature_index"]]
    return feature["flat_feature_index"], float(to_single(split["border"])), LEFT[feature["nan_value_treatment"]]


def _oblivious(tree: dict[str, Any], features: dict[int, dict[str, Any]], where: str) -> Nodes:
    splits = [_split(split, features, where) for split in tree["splits"] or ()]
    depth = len(splits)
    values = np.asarray(tree["leaf_values"], dtype=np.float64)
    if depth > DEEPEST or values.shape != (2**depth,):
        raise ModelError(f"{where} has {values.size} leaf values for {depth} splits, expected 2^{depth}; {REMEDY}")
    n_splits = 2**depth - 1
    numbers = np.arange(n_splits)
    # the last split is the highest bit of a leaf's number, and here the root
    level = np.floor(np.log2(numbers + 1)).astype(int)
    feature, threshold, default_left = (
        np.array([split[part] for split in reversed(splits)])[level] if depth else np.empty(0) for part in range(3)
    )
    weight = tree.get("leaf_weights")
    return Nodes(
        left=np.concatenate([2 * numbers + 1, np.full(2**depth, -1)]),
        right=np.concatenate([2 * numbers + 2, np.full(2**depth, -1)]),
        feature=feature,
        threshold=threshold,
        default_left=default_left.astype(bool),
        value=np.concatenate([np.zeros(n_splits), values]),
        weight=None if weight is None else np.concatenate([np.zeros(n_splits), np.asarray(weight, np.float64)]),
    )


def _branching(tree: dict[str, Any], features: dict[int, dict[str, Any]], where: str) -> Nodes:
    """A tree of grow_policy Depthwise or Lossguide."""
    nodes = [tree]
    left, right, splits, values = [], [], [], []
    for node in nodes:  # children are appended during the loop
        if "split" in node:
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left"], node["right"]]
            splits.append(_split(node["split"], features, where))
            values.append(0.0)
        else:
            left.append(-1)
            right.append(-1)
            splits.append((0, 0.0, False))
            values.append(float(node["value"]))
    feature, threshold, default_left = (np.array(part) for part in zip(*splits, strict=True))
    return Nodes(np.array(left), np.array(right), feature, threshold, default_left, np.array(values))
