"""Which parameters count for which learner; the others are refused rather than ignored."""

from __future__ import annotations

EVERYWHERE = ("algo", "metric", "gains", "threads", "seed")  # a ranker that draws nothing is the same for any seed
GROWING = ("trees", "leaves", "learning_rate", "early_stopping", "gain", "min_docs", "min_hessian", "l2", "max_depth",
           "collapse", "feature_fraction", "max_bins", "seed")  # fmt: skip
BOOSTING = ("step", "selection", "objective", "features", "monotone", "row_fraction")
LAMBDAS = ("truncation", "normalize", "first_tree")
OPTIMAL = ("step_range", "step_on", "step_shrinkage")  # of optimal steps
PRUNING = ("rate", "strategy")
RANKERS: dict[str, tuple[str, ...]] = {
    # rankers that are no boosted forest
    "ranksvm": ("c",),
    "lambdarank": ("hidden", "epochs", "learning_rate", "truncation", "normalize", "early_stopping", "seed"),
    "mcrank": GROWING,
    "mcrank-ordinal": GROWING,
    "feature": ("feature",),
    "lightgbm": ("trees", "leaves", "learning_rate", "early_stopping", "min_docs", "min_hessian", "l2", "max_depth",
                 "feature_fraction", "row_fraction", "max_bins", "truncation", "normalize", "seed"),
    "xcleaver": ("base", "grow", *PRUNING, "global_"),  # and what the forest of its base heeds
}  # fmt: skip
SELECTING: dict[str, tuple[str, ...]] = {
    # rules for who teaches a tree; a user's own heeds `every` alone
    "everything": (),
    "top": ("negatives", "min_negatives", "every"),
    "random": ("negatives", "min_negatives", "every"),
    "rows": ("negatives", "every"),
    "gradient": ("negatives", "min_negatives", "every"),
    "adaptive": ("margin", "min_negatives", "max_negatives", "every"),
    "progress": ("negatives", "margin", "min_negatives", "max_negatives", "every"),
    "top+random": ("negatives", "rest", "min_negatives", "every"),
    "top+bottom": ("negatives", "rest", "min_negatives", "every"),
    "goss": ("negatives", "rest", "every"),
}


def of_boosting(selection: str, objective: str, step: str) -> tuple[str, ...]:
    """What a boosted forest heeds, with such a rule for who teaches, such an objective and such steps."""
    lambdas = LAMBDAS if objective == "lambda" else ()
    stepping = OPTIMAL if step == "optimal" else ("learning_rate",)
    growing = (name for name in GROWING if name != "learning_rate")
    return (*growing, *stepping, *BOOSTING, *SELECTING.get(selection, ("every",)), *lambdas)
