"""When a bag of five forests is better than one: the defaults, their bag, and LightGBM on all collections.

    python benchmarks/bagging.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--sides NAME …]

The number of trees is that with the best NDCG@10 on a fold's validation lists, see `defaults.py`, whose best setting of
LightGBM for most collections stands beside. A run that was interrupted continues with the cells that are missing. One
thread; p-values of the two-sided randomization test.
"""

from __future__ import annotations

from cells import Setting
from comparison import Comparison
from defaults import HALF, LIGHTGBM, SMALL
from split_gain import learn

SIDES: dict[str, Setting] = {
    "defaults": {"algo": "selgb"},
    "bag of five, 30% of the features": {"algo": "selgb", "bag": 5, "feature_fraction": 0.3},
    "LightGBM": {**LIGHTGBM, **SMALL, **HALF},
}

if __name__ == "__main__":
    Comparison("bagging", SIDES, learn).main(__doc__ or "")
