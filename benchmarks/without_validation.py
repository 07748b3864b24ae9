"""Training without validation data: the number of trees by cross-validation, with all its folds or one.

    python benchmarks/without_validation.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …]
        [--sides NAME …]

Sides without validation data train on the training and the validation lists of a fold; LightGBM's first setting has
LightGBM's defaults, and its second is the best one of `defaults.py` for most collections, with early stopping on the
validation lists. A run that was interrupted continues with the cells that are missing. One thread; p-values of the
two-sided randomization test.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import ranksieve as rs
from cells import Learned, Setting
from comparison import Comparison
from defaults import HALF, LIGHTGBM, SMALL
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.read import read_source
from ranksieve.rankers.early_stopping import ENOUGH
from split_gain import Fold
from split_gain import learn as learn_with_validation

MOST = "held-out queries that are enough"  # not a parameter of training: after which folds cross-validation ends
SIDES: dict[str, Setting] = {
    "cross-validation": {"algo": "selgb", MOST: ENOUGH},
    "one fold": {"algo": "selgb", MOST: 1},
    "validation lists": {"algo": "selgb"},
    "LightGBM, validation lists": {**LIGHTGBM, **SMALL, **HALF},
    "LightGBM, its defaults, 100 trees": {
        **LIGHTGBM, "leaves": 31, "min_docs": 20, "l2": 0.0, "learning_rate": 0.1, "trees": 100, "early_stopping": 0,
        MOST: 0,
    },
}  # fmt: skip


def learn(fold: Fold, setting: Setting) -> Learned:
    if MOST not in setting:
        return learn_with_validation(fold, setting)
    given: dict[str, Any] = {name: value for name, value in setting.items() if name != MOST}
    data = read_source(JoinedSource([Piece(fold.train), Piece(fold.valid)]))
    with patch("ranksieve.rankers.early_stopping.ENOUGH", setting[MOST]):
        model = rs.train(data, **given)
    value = model.info.get("cross_validation", {}).get("value", model.info.get("best_score"))
    return np.nan if value is None else value, model.n_trees, model.predict(fold.test)


if __name__ == "__main__":
    Comparison("without_validation", SIDES, learn).main(__doc__ or "")
