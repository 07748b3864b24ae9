"""Forests from scikit-learn's fitted trees and tree ensembles.

`DecisionTree*`, `RandomForest*`, `ExtraTrees*` and `GradientBoosting*` turn features into float32 and compare them with
float64 thresholds; `HistGradientBoosting*` uses float64. Both send `x <= threshold` left.

`HistGradientBoosting*` numbers the categories of a feature, and puts categorical features before the others. Categories
that it does not know go where missing ones do; in a forest they go right. So the sides of a split that sends missing
ones left are exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.categories import MAX_CATEGORIES
from ranksieve.data.features import default_names
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import Nodes, codes_of_words, join_nodes

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
    names = getattr(model, "feature_names_in_", None)
    names = default_names(model.n_features_in_) if names is None else tuple(map(str, names))
    categories = {}
    if isinstance(model, HistGradientBoostingRegressor):
        codes = _category_codes(model, names)
        trees, weights, base = _histogram_trees(model, codes), None, float(np.ravel(model._baseline_prediction)[0])
        categories = {names[feature]: list(known.names) for feature, known in codes.items()}
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
    return join_nodes(
        trees,
        type(model).__name__,
        n_features=model.n_features_in_,
        feature_names=names,
        weights=weights,
        base=base,
        info={
            "params": {"objective": "regression"},
            "read_from": "scikit-learn",
            **({"categories": categories} if categories else {}),
        },
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


class KnownCategories(NamedTuple):
    """The categories of a feature: the number that the forest has for each, and their names unless they are numbers."""

    numbers: np.ndarray
    names: Sequence[str]


def _category_codes(model: Any, names: Sequence[str]) -> dict[int, KnownCategories]:
    """The categories of each categorical feature, in the order of scikit-learn's numbers."""
    if getattr(model, "_preprocessor", None) is None:
        return {}
    found = {}
    stored = model._preprocessor.named_transformers_["encoder"].categories_
    for feature, values in zip(np.flatnonzero(model.is_categorical_).tolist(), stored, strict=True):
        values = np.array([value for value in values.tolist() if value is not None and value == value])  # not NaN
        if (
            values.dtype.kind in "biuf"
            and ((values >= 0) & (values < MAX_CATEGORIES) & (values == np.floor(values))).all()
        ):
            found[feature] = KnownCategories(values.astype(np.int64), ())
        elif values.dtype.kind in "iU":
            found[feature] = KnownCategories(np.arange(len(values)), values.astype(str).tolist())
        else:
            raise ModelError(
                f"feature {names[feature]!r} has categories such as {values[0]}; expected texts or integers, "
                "fit with such categories"
            )
    return found


def _histogram_trees(model: Any, codes: Mapping[int, KnownCategories]) -> list[Nodes]:
    if model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise ModelError(
            f"loss {model.loss!r} transforms its output; fit with squared_error, absolute_error or quantile"
        )
    order = np.arange(model.n_features_in_)
    if codes:
        order = np.concatenate([order[model.is_categorical_], order[~model.is_categorical_]])
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        feature, default_left = order[nodes["feature_idx"]], nodes["missing_go_to_left"].astype(bool)
        left, right = (np.where(is_leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
        sets = {}
        for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf).tolist():
            numbers = codes[int(feature[node])].numbers
            inside = np.isin(
                np.arange(len(numbers)), codes_of_words(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            )
            if default_left[node]:
                left[node], right[node], inside = right[node], left[node], ~inside
            sets[node], default_left[node] = np.sort(numbers[inside]), False
        trees.append(
            Nodes(
                left=left,
                right=right,
                feature=feature,
                threshold=nodes["num_threshold"].astype(np.float64),
                default_left=default_left,
                sets=sets,
                value=nodes["value"].astype(np.float64),
                gain=nodes["gain"].astype(np.float64),
                count=nodes["count"].astype(np.int64),
            )
        )
    return trees
