"""A forest as an ONNX model: one `TreeEnsembleRegressor` in float64, behind a cast of the float32 input.

The operator's thresholds and leaves are float64 in tensors (since ai.onnx.ml 3), and the sum is rounded to float32 at
the end: every float32 document takes the same path as in the forest, and its score is the forest's, rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import MissingExtraError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.writing import DEFAULT, Options, check_missing
from ranksieve.forest.structure import checked_values

ML_VERSION, VERSION, IR_VERSION = 3, 17, 8  # of 2022: the oldest with float64 trees that runtimes of today still test


def to_onnx(forest: Forest, options: Options = DEFAULT) -> bytes:
    """The bytes of a model: input `features` (n, n_features) float32, output `scores` (n, 1) float32."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError as error:
        raise MissingExtraError("writing ONNX needs the onnx package; pip install 'ranksieve[onnx]'") from error
    attributes = _attributes(forest, options)
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["features"], ["double"], to=TensorProto.DOUBLE),
            helper.make_node("TreeEnsembleRegressor", ["double"], ["scores"], domain="ai.onnx.ml", **attributes),
        ],
        options.name,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, forest.n_features])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", VERSION), helper.make_opsetid("ai.onnx.ml", ML_VERSION)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="ranksieve")
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def _attributes(forest: Forest, options: Options) -> dict[str, Any]:
    """The operator's arrays: every tree's splits, then its leaves, numbered through the tree."""
    from onnx import TensorProto, helper

    values = checked_values(forest, numerical_only="ONNX's TreeEnsembleRegressor")
    check_missing(forest, "ONNX", None, options)
    n_splits, n_leaves = np.diff(forest.split_offsets), forest.n_leaves
    # the place of each split and each leaf among all nodes of all trees
    split_at = np.arange(len(forest.feature)) + np.repeat(forest.leaf_offsets[:-1], n_splits)
    leaf_at = np.arange(len(values)) + np.repeat(forest.split_offsets[1:], n_leaves)
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
