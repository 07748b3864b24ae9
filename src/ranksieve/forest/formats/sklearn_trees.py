"""Forests from scikit-learn's fitted trees and tree ensembles.

`DecisionTree*`, `RandomForest*`, `ExtraTrees*` and `GradientBoosting*` turn features into float32 and compare them with
float64 thresholds; `HistGradientBoosting*` uses float64. Both send `x <= threshold` left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import Nodes, to_forest

READ = (
    "DecisionTreeRegressor, ExtraTreeRegressor, RandomForestRegressor, ExtraTreesRegressor, "
    "GradientBoostingRegressor, HistGradientBoostingRegressor"
)


def from_sklearn(model: Any) -> Forest:
    """The forest of a fitted regressor of trees; scores as `model.predict` does, up to the order of sums.

    The initial prediction becomes a first tree of one leaf. The learning rate, or 1 / n_trees for a mean, becomes the
    weight of each tree.
    """
    from sklearn.ensemble import (
        ExtraTreesRegressor,
        GradientBoostingRegressor,
        HistGradientBoostingRegressor,
        RandomForestRegressor,
    )
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeRegressor
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError) as error:
        raise ModelError(f"got {type(model).__name__}, not a fitted model; fit it first") from error
    if isinstance(model, HistGradientBoostingRegressor):
        trees, weights, base = _histogram_trees(model), None, float(np.ravel(model._baseline_prediction)[0])
    elif isinstance(model, GradientBoostingRegressor):
        trees = [_nodes(tree.tree_) for tree in model.estimators_[:, 0]]
        weights, base = np.full(len(trees), model.learning_rate), _initial(model)
    elif isinstance(model, (RandomForestRegressor, ExtraTreesRegressor)):
        trees = [_nodes(tree.tree_) for tree in model.estimators_]
        weights, base = np.full(len(trees), 1 / len(trees)), 0.0
    elif isinstance(model, DecisionTreeRegressor):
        trees, weights, base = [_nodes(model.tree_)], None, 0.0
    else:
        raise ModelError(f"got {type(model).__name__}; expected one of {READ}")
    names = getattr(model, "feature_names_in_", None)
    return to_forest(
        trees,
        type(model).__name__,
        n_features=model.n_features_in_,
        feature_names=None if names is None else [str(name) for name in names],
        weights=weights,
        base=base,
        info={"params": {"objective": "regression"}, "read_from": "scikit-learn"},
    )


def _initial(model: Any) -> float:
    """The initial prediction of GradientBoosting, 0 or one number."""
    if isinstance(model.init_, str):  # "zero"
        return 0.0
    constant = getattr(model.init_, "constant_", None)
    if constant is None:
        raise ModelError(
            f"GradientBoosting starts from {type(model.init_).__name__}, expected a constant; "
            "fit with init=None or init='zero'"
        )
    return float(np.ravel(constant)[0])


def _nodes(tree: Any) -> Nodes:
    if tree.n_outputs != 1:
        raise ModelError(f"gives {tree.n_outputs} values per document, expected one; fit with one target")
    unknown = np.zeros(tree.node_count, dtype=bool)
    return Nodes(
        left=tree.children_left.astype(np.int64),
        right=tree.children_right.astype(np.int64),
        feature=tree.feature.astype(np.int64),
        threshold=tree.threshold,
        default_left=np.asarray(getattr(tree, "missing_go_to_left", unknown)).astype(bool),
        value=tree.value[:, 0, 0],
        count=tree.n_node_samples,
        weight=tree.weighted_n_node_samples,
    )


def _histogram_trees(model: Any) -> list[Nodes]:
    if model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise ModelError(
            f"loss {model.loss!r} transforms its output; fit with squared_error, absolute_error or quantile"
        )
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        if nodes["is_categorical"][~is_leaf].any():
            raise ModelError("has categorical splits, only numerical ones are read; fit with these features as numbers")
        trees.append(
            Nodes(
                left=np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
                right=np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
                feature=nodes["feature_idx"].astype(np.int64),
                threshold=nodes["num_threshold"].astype(np.float64),
                default_left=nodes["missing_go_to_left"].astype(bool),
                value=nodes["value"].astype(np.float64),
                gain=nodes["gain"].astype(np.float64),
                count=nodes["count"].astype(np.int64),
            )
        )
    return trees
