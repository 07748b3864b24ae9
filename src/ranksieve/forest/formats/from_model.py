"""`from_model`: a forest from a fitted model of another library."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ranksieve.errors import ModelError, ParameterError, param
from ranksieve.forest.ctr_forest import CtrForest
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats import catboost, sklearn_trees, xgboost
from ranksieve.forest.formats.lightgbm_reader import from_text


def from_model(model: Any, *, pool: Any = None) -> Forest | CtrForest:
    """The forest of a fitted model of LightGBM, XGBoost, CatBoost or scikit-learn.

    Parameters
    ----------
    model : object
        `lightgbm.Booster`, `LGBMRanker`, `LGBMRegressor`; `xgboost.Booster`, `XGBRanker`, `XGBRegressor`; a `CatBoost`
        ranker or regressor; a scikit-learn regressor of trees. After early stopping only the trees up to the best
        round are used, as the model itself does.
    pool : catboost.Pool, optional
        The training data of a CatBoost model with categories, which does not have their names itself.

    Raises
    ------
    ModelError
        The model is of another kind, or is not a plain sum of leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> forest = from_model(RandomForestRegressor(3, random_state=0).fit(X, X[:, 0]))
    >>> forest
    Forest(3 trees of up to 6 leaves, 1 feature)
    """
    home = type(model).__module__.split(".")[0]
    if home not in READERS:  # a subclass defined elsewhere
        homes = [base.__module__.split(".")[0] for base in type(model).__mro__]
        home = next((name for name in homes if name in READERS), home)
    if home not in READERS:
        raise ModelError(
            f"got {type(model).__module__}.{type(model).__name__}; expected a model of {', '.join(READERS)}"
        )
    if pool is not None and home != "catboost":
        raise ParameterError(param("pool"), f" is for models of CatBoost; leave it out for {home}")
    return READERS[home](model) if pool is None else READERS[home](model, pool)


def _from_lightgbm(model: Any) -> Forest:
    booster = getattr(model, "booster_", model)
    return from_text(booster.model_to_string(), source=type(model).__name__)


def _from_xgboost(model: Any) -> Forest:
    booster = model
    if hasattr(model, "get_booster"):
        booster = model.get_booster()
        if getattr(model, "early_stopping_rounds", None) is not None and booster.attr("best_iteration") is not None:
            booster = booster[: booster.best_iteration + 1]
    return xgboost.read_xgboost(bytes(booster.save_raw("ubj")), type(model).__name__)


def _from_catboost(model: Any, pool: Any = None) -> Forest | CtrForest:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        return catboost.forest_of(json.loads(path.read_bytes()), type(model).__name__)


READERS: dict[str, Callable[..., Forest | CtrForest]] = {
    "lightgbm": _from_lightgbm,
    "xgboost": _from_xgboost,
    "catboost": _from_catboost,
    "sklearn": sklearn_trees.from_sklearn,
}
