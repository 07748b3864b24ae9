"""XGBoost models, JSON or UBJSON, as `Booster.save_model` writes them.

XGBoost turns features into float32 and sends `x < split_condition` left; a forest sends `x <= threshold`, so the
threshold is the next float32 below. Leaf values and the base score are float32 and are kept exactly.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats import ubjson
from ranksieve.forest.formats.nodes import REMEDY, Nodes, reading, to_forest
from ranksieve.forest.singles import below_single, to_single

# Objectives whose prediction is the plain sum of base score and leaves; "custom" ones are not stored.
PLAIN_OBJECTIVES = (
    "rank:ndcg",
    "rank:map",
    "rank:pairwise",
    "reg:squarederror",
    "reg:linear",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:squaredlogerror",
    "reg:quantileerror",
)


EXPECTED = "an XGBoost model as Booster.save_model writes it (not dump_model)"


def read_xgboost(content: bytes, source: str) -> Forest:
    """The forest of a model in JSON or UBJSON; `source` names it in errors."""
    with reading(source, "JSON or UBJSON"):
        model = decode(content)
    return forest_of(model, source)


def decode(content: bytes) -> Any:
    """The value that some JSON or UBJSON holds; in JSON a quotation mark or a blank comes after the brace."""
    return json.loads(content) if content[1:2] in b'" \t\r\n}' else ubjson.decode(content)


def forest_of(model: Any, source: str) -> Forest:
    """The forest of a decoded model."""
    with reading(source, EXPECTED):
        return _forest(model, source)


def _forest(model: dict[str, Any], source: str) -> Forest:
    learner = model["learner"]
    param = learner["learner_model_param"]
    _check_kind(learner, param, source)
    booster = learner["gradient_booster"]
    is_dart = booster["name"] == "dart"
    stored = (booster["gbtree"] if is_dart else booster)["model"]
    trees = [_nodes(tree, f"{source}: tree {number}") for number, tree in enumerate(stored["trees"])]
    if len(trees) != int(stored["gbtree_model_param"]["num_trees"]):
        raise ModelError(f"{source}: holds {len(trees)} trees but announces more or fewer; {REMEDY}")
    n_features = int(param["num_feature"])
    names = [str(name) for name in learner.get("feature_names", [])]
    return to_forest(
        trees,
        source,
        n_features=n_features,
        feature_names=names or None,
        weights=to_single(booster["weight_drop"]) if is_dart else None,
        base=_base_score(param["base_score"]),
        info={"params": {"objective": learner["objective"]["name"]}, "read_from": "xgboost"},
    )


def _check_kind(learner: dict[str, Any], param: dict[str, Any], source: str) -> None:
    """Refuse what is no plain sum of one leaf a tree."""
    objective = learner["objective"]["name"]
    if objective not in PLAIN_OBJECTIVES:
        raise ModelError(
            f"{source}: objective {objective!r} transforms its output; read are {', '.join(PLAIN_OBJECTIVES)}. "
            "Train with one of these"
        )
    booster = learner["gradient_booster"]["name"]
    if booster not in ("gbtree", "dart"):
        raise ModelError(f"{source}: booster is {booster!r}, expected gbtree or dart: only trees make a forest")
    if int(param.get("num_class", 0)) > 1 or int(param.get("num_target", 1)) > 1:
        raise ModelError(f"{source}: gives several scores a document, expected one; train with one target")


def _base_score(text: str) -> float:
    """`5E-1`, or since XGBoost 3 `[5E-1]`: in float32, one number."""
    values = json.loads(text) if str(text).startswith("[") else [float(text)]
    if len(values) != 1:
        raise ValueError(f"{len(values)} base scores")
    return float(to_single(values[0]))


def _nodes(tree: dict[str, Any], where: str) -> Nodes:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise ModelError(
            f"{where} has several values a leaf, expected one; train with multi_strategy=one_output_per_tree"
        )
    if len(tree.get("categories_nodes", ())) or np.any(tree.get("split_type", 0)):
        raise ModelError(
            f"{where} has categorical splits, only numerical ones are read; train with these features as numbers"
        )
    n_nodes = int(tree["tree_param"]["num_nodes"])
    arrays = {key: np.asarray(tree[key]) for key in ("left_children", "right_children", "split_indices")}
    singles = {key: to_single(tree[key]) for key in ("split_conditions", "loss_changes", "sum_hessian")}
    default_left = np.asarray(tree["default_left"]).astype(bool)
    for key, array in (arrays | singles | {"default_left": default_left}).items():
        if array.shape != (n_nodes,):
            raise ModelError(f"{where} has {array.size} {key} for {n_nodes} nodes; {REMEDY}")
    for key, array in arrays.items():
        if array.dtype.kind not in "iu":
            raise ModelError(f"{where} has {key} that are no whole numbers; {REMEDY}")
    return Nodes(
        left=arrays["left_children"].astype(np.int64),
        right=arrays["right_children"].astype(np.int64),
        feature=arrays["split_indices"].astype(np.int64),
        threshold=below_single(singles["split_conditions"]).astype(np.float64),
        default_left=default_left,
        value=singles["split_conditions"].astype(np.float64),
        gain=singles["loss_changes"].astype(np.float64),
        weight=singles["sum_hessian"].astype(np.float64),
    )
