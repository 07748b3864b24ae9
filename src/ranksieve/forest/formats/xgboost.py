"""XGBoost models: JSON and UBJSON are read, JSON and the plain dump for search engines are written.

XGBoost turns features into float32 and sends `x < split_condition` left; a forest sends `x <= threshold`. So a
threshold read is the next float32 below the condition, and a condition written the next float32 above the threshold.
Leaf values and the base score are float32 and are kept exactly when read; tree weights are multiplied into the leaves
when written. Each split stores the direction of NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve.data.features import default_names
from ranksieve.errors import ModelError
from ranksieve.forest.float32 import above_single, below_single, single_texts, to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats import ubjson
from ranksieve.forest.formats.lightgbm_writer import category_numbers, internal, is_regression
from ranksieve.forest.formats.nodes import REMEDY, Nodes, join_nodes, parse_count, parse_number, reading
from ranksieve.forest.formats.writing import DEFAULT, Options, check_directions, check_names, nested, single_values
from ranksieve.forest.formats.xgboost_categories import (
    category_names,
    encodings_of,
    sets_of,
    sets_to_right,
    stored_sets,
)
from ranksieve.forest.structure import checked_values, without_empty_sets

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
VERSION = [2, 0, 0]  # version of XGBoost; tried with 1.7, 2.1 and 3.2
# the second key is for versions before 2, which require it
RANKING = {
    "name": "rank:ndcg",
    "lambdarank_param": {},
    "lambda_rank_param": {"num_pairsample": "1", "fix_list_weight": "0"},
}
NO_PARENT = 2**31 - 1


def read_xgboost(content: bytes, source: str) -> Forest:
    """The forest of a model in JSON or UBJSON; `source` names it in errors."""
    with reading(source, "JSON or UBJSON"):
        model = decode(content)
    return forest_of(model, source)


def decode(content: bytes) -> Any:
    """The value of JSON or UBJSON; in JSON a quotation mark or a blank follows the first brace."""
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
    if len(trees) != parse_count(stored["gbtree_model_param"]["num_trees"]):
        raise ModelError(f"{source}: holds {len(trees)} trees but num_trees is another number; {REMEDY}")
    n_features = parse_count(param["num_feature"])
    names = [str(name) for name in learner.get("feature_names", [])]
    categories = category_names(stored, trees, names, source)
    return join_nodes(
        trees,
        source,
        n_features=n_features,
        feature_names=names or None,
        weights=to_single(booster["weight_drop"]) if is_dart else None,
        base=_base_score(param["base_score"]),
        info={
            "params": {"objective": learner["objective"]["name"]},
            "read_from": "xgboost",
            **({"categories": categories} if categories else {}),
        },
    )


def _check_kind(learner: dict[str, Any], param: dict[str, Any], source: str) -> None:
    """Refuse models that are not a plain sum of one leaf per tree."""
    objective = learner["objective"]["name"]
    if objective not in PLAIN_OBJECTIVES:
        raise ModelError(
            f"{source}: objective {objective!r} transforms its output; train with one of {', '.join(PLAIN_OBJECTIVES)}"
        )
    booster = learner["gradient_booster"]["name"]
    if booster not in ("gbtree", "dart"):
        raise ModelError(f"{source}: booster is {booster!r}, expected gbtree or dart: only trees make a forest")
    if parse_count(param.get("num_class", 0)) > 1 or parse_count(param.get("num_target", 1)) > 1:
        raise ModelError(f"{source}: gives several scores per document, expected one; train with one target")


def _base_score(text: str) -> float:
    """One float32 number: `5E-1`, or `[5E-1]` since XGBoost 3."""
    values = json.loads(text) if str(text).startswith("[") else [parse_number(text)]
    if len(values) != 1:
        raise ValueError(f"{len(values)} base scores")
    return float(to_single(values[0]))


def _nodes(tree: dict[str, Any], where: str) -> Nodes:
    if parse_count(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise ModelError(
            f"{where} has several values per leaf, expected one; train with multi_strategy=one_output_per_tree"
        )
    n_nodes = parse_count(tree["tree_param"]["num_nodes"])
    arrays = {key: np.asarray(tree[key]) for key in ("left_children", "right_children", "split_indices")}
    singles = {key: to_single(tree[key]) for key in ("split_conditions", "loss_changes", "sum_hessian")}
    default_left = np.asarray(tree["default_left"]).astype(bool)
    for key, array in (arrays | singles | {"default_left": default_left}).items():
        if array.shape != (n_nodes,):
            raise ModelError(f"{where} has {array.size} {key} for {n_nodes} nodes; {REMEDY}")
    for key, array in arrays.items():
        if array.dtype.kind not in "iu":
            raise ModelError(f"{where} has {key} that are not integers; {REMEDY}")
    sets = sets_of(tree, where)
    left, right = arrays["left_children"].astype(np.int64), arrays["right_children"].astype(np.int64)
    by_set = list(sets)  # categories in the set go right there, and left here
    left[by_set], right[by_set] = right[by_set], left[by_set]
    default_left[by_set] = ~default_left[by_set]
    return Nodes(
        left=left,
        right=right,
        feature=arrays["split_indices"].astype(np.int64),
        threshold=below_single(singles["split_conditions"]).astype(np.float64),
        default_left=default_left,
        sets=sets,
        value=singles["split_conditions"].astype(np.float64),
        gain=singles["loss_changes"].astype(np.float64),
        weight=singles["sum_hessian"].astype(np.float64),
    )


def to_xgboost(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON of a model that `xgboost.Booster(model_file=…)` loads.

    Its base score is 0 and its objective `rank:ndcg`, or `reg:squarederror` for a model of squared errors.
    """
    values = checked_values(forest)
    check_directions(forest, "XGBoost", None, options)
    forest = sets_to_right(without_empty_sets(forest))
    leaves = single_values(values, "XGBoost")
    named = forest.feature_names != default_names(forest.n_features)
    is_category = np.isin(np.arange(forest.n_features), list(category_numbers(forest)))
    regression = is_regression(forest)
    model = _object(
        **encodings_of(forest),
        gbtree_model_param={"num_parallel_tree": "1", "num_trees": str(forest.n_trees)},
        iteration_indptr=list(range(forest.n_trees + 1)),
        tree_info=[0] * forest.n_trees,
        trees=JsonText(f"[{','.join(_tree_texts(forest, values, leaves))}]"),
    )
    learner = _object(
        attributes={},
        # without names XGBoost takes any array; with names it requires the same ones
        feature_names=list(forest.feature_names) if named else [],
        feature_types=["c" if one else "float" for one in is_category] if named or is_category.any() else [],
        gradient_booster=_object(model=model, name="gbtree"),
        learner_model_param={
            "base_score": "0E0",
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": str(forest.n_features),
            "num_target": "1",
        },
        objective={"name": "reg:squarederror", "reg_loss_param": {}} if regression else RANKING,
    )
    return _object(learner=learner, version=VERSION) + "\n"


class JsonText(str):
    """JSON already written."""


def _object(**values: Any) -> JsonText:
    return JsonText("{" + ",".join(f"{json.dumps(key)}:{_json(value)}" for key, value in values.items()) + "}")


def _json(value: Any) -> str:
    """JSON of a value; float32 in their shortest decimals, which `json` does not write."""
    if isinstance(value, JsonText):
        return value
    if not isinstance(value, np.ndarray):
        return json.dumps(value, ensure_ascii=False)  # XGBoost does not read \\u00fc
    return f"[{','.join(single_texts(value) if value.dtype == np.float32 else map(str, value.tolist()))}]"


def _numbering(forest: Forest, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """Node numbers of a tree's splits and leaves: in XGBoost the right child follows the left one."""
    splits = slice(forest.split_offsets[tree], forest.split_offsets[tree + 1])
    split_nodes, leaf_nodes = np.zeros(splits.stop - splits.start, int), np.zeros(forest.n_leaves[tree], int)
    for side, children in enumerate((forest.left[splits], forest.right[splits])):
        nodes = 2 * np.arange(len(children)) + 1 + side
        is_leaf = children < 0
        split_nodes[children[~is_leaf]] = nodes[~is_leaf]
        leaf_nodes[~children[is_leaf]] = nodes[is_leaf]
    return split_nodes, leaf_nodes


def _tree_texts(forest: Forest, values: np.ndarray, leaves: np.ndarray) -> Iterator[str]:
    means, hessians = (numbers.astype(np.float32) for numbers in internal(forest, values))
    conditions, gains = above_single(forest.threshold), forest.gain.astype(np.float32)
    leaf_hessians = forest.leaf_weight.astype(np.float32)
    for tree in range(forest.n_trees):
        splits = slice(forest.split_offsets[tree], forest.split_offsets[tree + 1])
        own = slice(forest.leaf_offsets[tree], forest.leaf_offsets[tree + 1])
        split_nodes, leaf_nodes = _numbering(forest, tree)
        order = np.argsort(np.concatenate([split_nodes, leaf_nodes]))
        n_splits, n_leaves = len(split_nodes), len(leaf_nodes)
        first_child = 2 * np.arange(n_splits) + 1

        def by_node(of_splits: Any, of_leaves: Any, order: np.ndarray = order, n: int = n_leaves) -> Any:
            """Values of splits and of leaves in the order of nodes."""
            return np.concatenate([of_splits, np.broadcast_to(of_leaves, n)])[order]

        yield _object(
            id=tree,
            left_children=by_node(first_child, -1),
            right_children=by_node(first_child + 1, -1),
            parents=np.concatenate([[NO_PARENT], np.repeat(split_nodes, 2)]),
            split_indices=by_node(forest.feature[splits], 0),
            default_left=by_node(forest.default_left[splits].astype(int), 0),
            split_type=by_node(forest.categorical[splits].astype(int), 0),
            split_conditions=by_node(conditions[splits], leaves[own]),
            base_weights=by_node(means[splits], leaves[own]),
            loss_changes=by_node(gains[splits], np.float32(0)),
            sum_hessian=by_node(hessians[splits], leaf_hessians[own]),
            **stored_sets(forest, splits, split_nodes),
            tree_param={
                "num_deleted": "0",
                "num_feature": str(forest.n_features),
                "num_nodes": str(n_splits + n_leaves),
                "size_leaf_vector": "1",
            },
        )


def to_dump(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON list of trees that `Booster.get_dump(dump_format="json")` gives: `model/xgboost+json` of the plugins
    for Elasticsearch and OpenSearch. They add float32 leaves, and identify features by name."""
    values = checked_values(forest, numerical_only="the LTR plugin")
    check_directions(forest, "the plugin", None, options)
    check_names(forest, "the plugin")
    leaves, conditions = single_texts(single_values(values, "the plugin")), single_texts(above_single(forest.threshold))
    names = [json.dumps(name, ensure_ascii=False) for name in forest.feature_names]
    numbered = [_numbering(forest, number) for number in range(forest.n_trees)]
    split_nodes, leaf_nodes = (np.concatenate([np.empty(0, int), *(nodes[k] for nodes in numbered)]) for k in (0, 1))

    def before(at: int, depth: int) -> str:
        yes = 2 * (at - int(forest.split_offsets[tree])) + 1
        return (
            f'{{"nodeid":{split_nodes[at]},"depth":{depth},"split":{names[forest.feature[at]]},'
            f'"split_condition":{conditions[at]},"yes":{yes},"no":{yes + 1},'
            f'"missing":{yes + (not forest.default_left[at])},"children":['
        )

    def leaf(at: int, depth: int) -> str:
        return f'{{"nodeid":{leaf_nodes[at]},"leaf":{leaves[at]}}}'

    trees = []
    for tree in range(forest.n_trees):
        trees.append(nested(forest, tree, before=before, between=lambda *_: ",", after=lambda *_: "]}", leaf=leaf))
    return "[" + ",\n".join(trees) + "]\n"
