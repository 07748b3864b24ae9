"""A forest as an XGBoost model (JSON), and as the plain dump that the search engines' plugins read.

Both compare `x < split_condition` in float32: for a threshold t that is the smallest float32 above t. Tree weights are
multiplied into the leaves, which are float32. NaN goes where the split says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve.data.dataset import default_names
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.expressible import DEFAULT, Options, check_missing, check_names, single_values
from ranksieve.forest.formats.nesting import nested
from ranksieve.forest.lightgbm_writer import internal, is_regression
from ranksieve.forest.singles import above_single, single_texts
from ranksieve.forest.structure import checked_values

VERSION = [2, 0, 0]  # of XGBoost; tried with 1.7, 2.1 and 3.2
# the second key is for versions before 2, which insist on it
RANKING = {
    "name": "rank:ndcg",
    "lambdarank_param": {},
    "lambda_rank_param": {"num_pairsample": "1", "fix_list_weight": "0"},
}
NO_PARENT = 2**31 - 1


def to_xgboost(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON of a model that `xgboost.Booster(model_file=…)` loads.

    Its base score is 0 and its objective `rank:ndcg`, or `reg:squarederror` for a model of squared errors.
    """
    values = checked_values(forest)
    check_missing(forest, "XGBoost", None, options)
    leaves = single_values(values, "XGBoost")
    named = forest.feature_names != default_names(forest.n_features)
    regression = is_regression(forest)
    model = _object(
        gbtree_model_param={"num_parallel_tree": "1", "num_trees": str(forest.n_trees)},
        iteration_indptr=list(range(forest.n_trees + 1)),
        tree_info=[0] * forest.n_trees,
        trees=Text(f"[{','.join(_tree_texts(forest, values, leaves))}]"),
    )
    learner = _object(
        attributes={},
        # without names XGBoost takes any array; with them it insists on the same names
        feature_names=list(forest.feature_names) if named else [],
        feature_types=["float"] * forest.n_features if named else [],
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


class Text(str):
    """JSON already written."""


def _object(**values: Any) -> Text:
    return Text("{" + ",".join(f"{json.dumps(key)}:{_json(value)}" for key, value in values.items()) + "}")


def _json(value: Any) -> str:
    """JSON of a value; float32 in their shortest decimals, which `json` does not know."""
    if isinstance(value, Text):
        return value
    if not isinstance(value, np.ndarray):
        return json.dumps(value, ensure_ascii=False)  # XGBoost does not read \\u00fc
    return f"[{','.join(single_texts(value) if value.dtype == np.float32 else map(str, value.tolist()))}]"


def _numbering(forest: Forest, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """Node numbers of a tree's splits and leaves: XGBoost finds the right child one behind the left."""
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
            split_type=np.zeros(n_splits + n_leaves, int),
            split_conditions=by_node(conditions[splits], leaves[own]),
            base_weights=by_node(means[splits], leaves[own]),
            loss_changes=by_node(gains[splits], np.float32(0)),
            sum_hessian=by_node(hessians[splits], leaf_hessians[own]),
            categories=[],
            categories_nodes=[],
            categories_segments=[],
            categories_sizes=[],
            tree_param={
                "num_deleted": "0",
                "num_feature": str(forest.n_features),
                "num_nodes": str(n_splits + n_leaves),
                "size_leaf_vector": "1",
            },
        )


def to_dump(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON list of trees that `Booster.get_dump(dump_format="json")` gives: `model/xgboost+json` of the plugins
    for Elasticsearch and OpenSearch. They add float32 leaves, and know features by name."""
    values = checked_values(forest)
    check_missing(forest, "the plugin", None, options)
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
