"""A forest as an ONNX model: one `TreeEnsembleRegressor` in float64, behind a cast of the float32 input.

The operator's thresholds and leaves are float64 in tensors (since ai.onnx.ml 3), and the sum is rounded to float32 at
the end: every float32 document takes the same path as in the forest, and its score is the forest's, rounded once.
Splits by sets of categories need `TreeEnsemble` of ai.onnx.ml 5, whose nodes may ask for a member of a set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import MissingExtraError, import_extra
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.writing import DEFAULT, Options, check_directions
from ranksieve.forest.structure import checked_values, children_of, node_places, without_empty_sets

ML_VERSION, VERSION, IR_VERSION = 3, 17, 8  # of 2022: the oldest with float64 trees that runtimes of today still test
WITH_SETS = 5, 21, 10  # versions of 2024: the oldest with sets
SUM, NO_TRANSFORM, AT_MOST, MEMBER = 1, 0, 0, 6  # numbers of ai.onnx.ml 5


def to_onnx(forest: Forest, options: Options = DEFAULT) -> bytes:
    """The bytes of a model: input `features` (n, n_features) float32, output `scores` (n, 1) float32."""
    onnx = import_extra("onnx", "writing ONNX needs the onnx package", "ranksieve[onnx]")
    helper, TensorProto = onnx.helper, onnx.TensorProto
    cast = helper.make_node("Cast", ["features"], ["double"], to=TensorProto.DOUBLE)
    versions = WITH_SETS if forest.has_categories else (ML_VERSION, VERSION, IR_VERSION)
    if not forest.has_categories:
        attributes = _attributes(forest, options)
        trees = [helper.make_node("TreeEnsembleRegressor", ["double"], ["scores"], domain="ai.onnx.ml", **attributes)]
    elif not onnx.defs.has("TreeEnsemble", "ai.onnx.ml"):
        raise MissingExtraError("writing categories as ONNX needs onnx 1.17 or later; pip install -U onnx")
    else:
        attributes = _attributes_with_sets(forest, options)
        trees = [
            helper.make_node("TreeEnsemble", ["double"], ["sums"], domain="ai.onnx.ml", **attributes),
            helper.make_node("Cast", ["sums"], ["scores"], to=TensorProto.FLOAT),
        ]
    graph = helper.make_graph(
        [cast, *trees],
        options.name,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, forest.n_features])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", versions[1]), helper.make_opsetid("ai.onnx.ml", versions[0])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=versions[2], producer_name="ranksieve")
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def _attributes(forest: Forest, options: Options) -> dict[str, Any]:
    """The operator's arrays: every tree's splits, then its leaves, numbered through the tree."""
    from onnx import TensorProto, helper

    values = checked_values(forest)
    check_directions(forest, "ONNX", None, options)
    n_splits, n_leaves = np.diff(forest.split_offsets), forest.n_leaves
    split_at, leaf_at = node_places(forest)
    n_nodes = len(split_at) + len(leaf_at)

    def spread(of_splits: np.ndarray, dtype: type = np.int64) -> np.ndarray:
        nodes: np.ndarray = np.zeros(n_nodes, dtype)
        nodes[split_at] = of_splits
        return nodes

    before = np.repeat(n_splits, n_splits)
    left, right = (np.where(side < 0, before + ~side, side) for side in (forest.left, forest.right))
    trees = np.repeat(np.arange(forest.n_trees), n_splits + n_leaves)
    numbers = np.arange(n_nodes) - np.repeat(forest.split_offsets[:-1] + forest.leaf_offsets[:-1], n_splits + n_leaves)
    modes = np.full(n_nodes, "LEAF", dtype="<U10")
    modes[split_at] = "BRANCH_LEQ"
    doubles = {"nodes_values": spread(forest.threshold, np.float64), "target_weights": values}
    return {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "nodes_treeids": trees.tolist(),
        "nodes_nodeids": numbers.tolist(),
        "nodes_modes": modes.tolist(),
        "nodes_featureids": spread(forest.feature).tolist(),
        "nodes_truenodeids": spread(left).tolist(),
        "nodes_falsenodeids": spread(right).tolist(),
        "nodes_missing_value_tracks_true": spread(forest.default_left).tolist(),
        "target_treeids": trees[leaf_at].tolist(),
        "target_nodeids": numbers[leaf_at].tolist(),
        "target_ids": [0] * len(values),
        **{
            f"{key}_as_tensor": helper.make_tensor(key, TensorProto.DOUBLE, [len(array)], array.tolist())
            for key, array in doubles.items()
        },
    }


def _attributes_with_sets(forest: Forest, options: Options) -> dict[str, Any]:
    """The arrays of `TreeEnsemble`. Nodes are the splits; a tree of one leaf has a node, both of whose sides are it."""
    from onnx import TensorProto, helper

    values, forest = checked_values(forest), without_empty_sets(forest)
    check_directions(forest, "ONNX", None, options)
    n_splits, lone = len(forest.feature), np.flatnonzero(forest.n_leaves == 1)
    left, right = (np.append(side, ~forest.leaf_offsets[lone]) for side in children_of(forest))
    roots = forest.split_offsets[:-1].copy()
    roots[lone] = n_splits + np.arange(len(lone))
    sets = [forest.set_of(split) for split in np.flatnonzero(forest.categorical).tolist()]
    members = [np.append(codes, np.nan) for codes in sets]  # NaN ends a set

    def with_lone(of_splits: np.ndarray) -> np.ndarray:
        return np.append(of_splits, np.zeros(len(lone), of_splits.dtype))

    modes = with_lone(np.where(forest.categorical, MEMBER, AT_MOST)).astype(np.uint8)
    doubles = {
        "nodes_splits": with_lone(forest.threshold),
        "leaf_weights": values,
        "membership_values": np.concatenate(members),
    }
    return {
        "n_targets": 1,
        "aggregate_function": SUM,
        "post_transform": NO_TRANSFORM,
        "tree_roots": roots.tolist(),
        "nodes_featureids": with_lone(forest.feature).tolist(),
        "nodes_modes": helper.make_tensor("nodes_modes", TensorProto.UINT8, [len(modes)], modes.tobytes(), raw=True),
        "nodes_truenodeids": np.where(left < 0, ~left, left).tolist(),
        "nodes_falsenodeids": np.where(right < 0, ~right, right).tolist(),
        "nodes_trueleafs": (left < 0).astype(int).tolist(),
        "nodes_falseleafs": (right < 0).astype(int).tolist(),
        "nodes_missing_value_tracks_true": with_lone(forest.default_left).astype(int).tolist(),
        "leaf_targetids": [0] * len(values),
        **{
            key: helper.make_tensor(key, TensorProto.DOUBLE, [len(array)], array.tolist())
            for key, array in doubles.items()
        },
    }
