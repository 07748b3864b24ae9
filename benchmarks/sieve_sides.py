"""The sides of `sieve.py`: what each is, and the settings it may choose from."""

from __future__ import annotations

from collections.abc import Callable

import lightgbm
import numpy as np

import ranksieve as rs
from bug_lists import Fold
from cells import METRIC, Learned, Setting

COMMON: Setting = {
    "feature_fraction": 0.3, "leaves": 16, "min_docs": 50, "min_hessian": 0.001, "l2": 10.0, "seed": 0,
}  # fmt: skip
AS_LIGHTGBM = {
    "learning_rate": "learning_rate", "feature_fraction": "feature_fraction", "leaves": "num_leaves",
    "min_docs": "min_data_in_leaf", "min_hessian": "min_sum_hessian_in_leaf", "l2": "lambda_l2", "seed": "seed",
}  # fmt: skip


def train_ours(fold: Fold, setting: Setting) -> Learned:
    own = {name: value for name, value in setting.items() if name != "cut"}
    lists = fold.shortened(setting.get("cut"))
    model = rs.train(lists, valid=fold.valid, threads=1, gain="newton", **{**COMMON, **own})
    return model.info["best_score"], model.n_trees, model.predict(fold.test)


def train_lightgbm(fold: Fold, setting: Setting) -> Learned:
    """LightGBM's λ-MART; the number of trees is chosen by our metric, as ours is."""
    part = fold.data.take_queries(fold.valid_queries)

    def measured(scores: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        return "ndcg", float(np.nanmean(METRIC.per_query(part.labels, scores, part.offsets))), True

    train = fold.lightgbm_shortened(setting.get("cut"))
    valid = train.create_valid(part.features, part.labels, group=part.lists.sizes)
    given = {**COMMON, **setting}
    ranks = given["truncation"]
    params = {
        "objective": "lambdarank", "metric": "none", "verbose": -1, "num_threads": 1, "deterministic": True,
        "force_col_wise": True, "lambdarank_truncation_level": ranks if ranks > 0 else 10_000,
        **{theirs: given[ours] for ours, theirs in AS_LIGHTGBM.items()},
    }  # fmt: skip
    stop = lightgbm.early_stopping(given["early_stopping"], verbose=False)
    booster = lightgbm.train(params, train, given["trees"], valid_sets=[valid], feval=measured, callbacks=[stop])
    scores = np.asarray(booster.predict(fold.test.features, num_iteration=booster.best_iteration))
    return booster.best_score["valid_0"]["ndcg"], booster.best_iteration, scores


LEARNERS: dict[str, Callable[[Fold, Setting], Learned]] = {"ours": train_ours, "LightGBM": train_lightgbm}


FAST = {"learning_rate": 0.1, "trees": 250, "early_stopping": 25, "truncation": 30}
SLOW = {"learning_rate": 0.05, "trees": 500, "early_stopping": 60, "truncation": 30}
EVERY_RANK = {"truncation": -1}  # λ of all pairs, not only of those with one of the first 30 ranks


def _near(margin: float, at_most: float) -> Setting:
    return {"algo": "sieve", "margin": margin, "max_negatives": at_most, "min_negatives": 20}


def _share(algo: str, share: float) -> Setting:
    return {"algo": algo, "negatives": share, **({} if algo == "sgb" else {"min_negatives": 1})}


MART = {"algo": "lambdamart"}
LEARNER_OF = {"sieve": "ours", "SelGB": "ours", "λ-MART": "ours", "LightGBM": "LightGBM", "SGB": "ours"}
# what is run, in this order, so that a run that ends early ends with whole settings
TRIED: list[tuple[str, Setting]] = [
    *(("sieve", {**own, **FAST}) for own in (_near(1.5, 0.5), _near(0.5, 0.25))),
    *(("SelGB", {**own, **FAST}) for own in (_share("selgb", 0.2), _share("selgb", 0.07))),
    *(("λ-MART", {**MART, **own, **FAST}) for own in ({}, {"cut": 100})),
    *(("LightGBM", {**own, **FAST}) for own in ({}, {"cut": 100})),
    ("sieve", {**_near(1.5, 0.5), **SLOW, **EVERY_RANK}),
    ("LightGBM", SLOW),
    ("SelGB", {**_share("selgb", 0.2), **SLOW}),
    ("SGB", {**_share("sgb", 0.5), **FAST}),  # a plain sample of all rows: is a selection more than that?
    ("λ-MART", {**MART, **SLOW}),
    ("sieve", {**_near(1.5, 0.5), **SLOW}),
    ("SelGB", {**_share("selgb", 0.2), **SLOW, **EVERY_RANK}),
    ("LightGBM", {**SLOW, **EVERY_RANK}),
    ("λ-MART", {**MART, **SLOW, **EVERY_RANK}),
    ("SGB", {**_share("sgb", 0.5), **SLOW}),
]
EXPLORED = (0, 1)  # parts of the reports on which rules for the sieve were tried, as validation lists of folds 0 and 1
