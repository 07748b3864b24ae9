"""Names of LightGBM, XGBoost, CatBoost and scikit-learn for parameters: what they are called here, or what to use."""

from __future__ import annotations

from ranksieve.errors import ParamName, param

# Other names of parameters, which users of scikit-learn, LightGBM and XGBoost expect.
ALIASES = {
    "n_estimators": "trees",
    "num_boost_round": "trees",
    "num_iterations": "trees",
    "num_round": "trees",
    "num_trees": "trees",
    "num_leaves": "leaves",
    "max_leaf_nodes": "leaves",
    "max_leaves": "leaves",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "early_stopping_round": "early_stopping",
    "early_stopping_rounds": "early_stopping",
    "min_data_in_leaf": "min_docs",
    "min_child_samples": "min_docs",
    "min_data_per_group": "min_docs_per_group",
    "min_samples_leaf": "min_docs",
    "min_sum_hessian_in_leaf": "min_hessian",
    "min_child_weight": "min_hessian",
    "lambda_l2": "l2",
    "reg_lambda": "l2",
    "colsample_bytree": "feature_fraction",
    "bagging_fraction": "row_fraction",
    "subsample": "row_fraction",
    "max_bin": "max_bins",
    "monotone_constraints": "monotone",
    "label_gain": "gains",
    "lambdarank_truncation_level": "truncation",
    "random_state": "seed",
    "n_jobs": "threads",
    "num_threads": "threads",
    "nthread": "threads",
}
# What LightGBM, XGBoost and CatBoost call a thing that has another name, or another form, here; for advice.
NEAREST = {
    "categorical_feature": "categorical",
    "categorical_features": "categorical",
    "cat_features": "categorical",
    "eval_metric": "metric",
    "eval_set": "valid",
    "valid_sets": "valid",
    "evals": "valid",
    "lambdarank": "ndcg",
    "lambdarank_norm": "normalize",
    "lambdarank_normalization": "normalize",
    "lambdarank_num_pair_per_sample": "truncation",
    "n_folds": "folds",
    "n_splits": "folds",
    "n_trials": "trials",
    "nfold": "folds",
    "rank:ndcg": "ndcg",
    "rank:pairwise": "ndcg",
    "rank:map": "map",
    "rank_xendcg": "xendcg",
    "yetirank": "yetiloss",
}
# What to do instead of names of LightGBM and XGBoost that have no equivalent, or are a part of another parameter here.
Advice = tuple[str | ParamName, ...]
_NO_L1: Advice = ("there is no L1 regularisation of leaf values, only ", param("l2"))
_BOOSTED: Advice = (
    "trees are always boosted as with gbdt; dart and rf do not exist, goss is ", param("selection", "goss"), ", and ",
    param("algo"), " chooses the algorithm",
)  # fmt: skip
_NO_DART: Advice = ("there is no DART, no trees are dropped; use ", param("algo", "lambdamart"))
_NO_LEAST_GAIN: Advice = (
    "there is no minimum split gain; limit trees by ", param("leaves"), ", ", param("min_docs"), " and ",
    param("min_hessian"),
)  # fmt: skip
_EACH_TREE: Advice = ("rows are sampled again for every tree; ", param("row_fraction"), " is the share")
_RANK: Advice = (
    "the rank is part of the metric's name, as in ",
    param("metric", "ndcg@10"),
    "; evaluate takes several",
)
_PROGRESS: Advice = (param("verbose"), " decides whether progress is shown")
_SAME_BITS: Advice = ("training always gives the same model, whatever the number of threads; leave it out",)
ADVICE: dict[str, Advice] = {
    "params": ("parameters are keyword arguments; give **params",),
    "init_model": ("training starts from ", param("init")),
    "evals_result": ("values after each tree are in the model's info['history']",),
    "feature_name": ("names belong to the data, Dataset.with_features(names); ", param("features"), " chooses some"),
    **dict.fromkeys(("verbosity", "verbose_eval", "silent"), _PROGRESS),
    **dict.fromkeys(("deterministic", "force_row_wise", "force_col_wise"), _SAME_BITS),
    **dict.fromkeys(("lambda_l1", "l1", "reg_alpha", "l1_regularization"), _NO_L1),
    **dict.fromkeys(("boosting", "boosting_type", "booster", "boost"), _BOOSTED),
    **dict.fromkeys(("dart", "drop_rate", "rate_drop", "max_drop", "skip_drop", "uniform_drop"), _NO_DART),
    **dict.fromkeys(("min_gain_to_split", "min_split_gain", "min_split_loss", "gamma"), _NO_LEAST_GAIN),
    **dict.fromkeys(("bagging_freq", "subsample_freq"), _EACH_TREE),
    **dict.fromkeys(("eval_at", "ndcg_eval_at", "ndcg_at"), _RANK),
}
VALUE_ADVICE: dict[tuple[str, str], Advice] = {  # by parameter and value
    ("algo", "dart"): _NO_DART,
    ("algo", "rf"): ("there are no random forests; ", param("bag"), " averages boosted forests"),
    ("algo", "gbdt"): ("for ranking, gradient boosting is ", param("algo", "lambdamart")),
    ("algo", "gbtree"): ("for ranking, gradient boosting is ", param("algo", "lambdamart")),
    ("algo", "goss"): ("GOSS is ", param("algo", "lambdamart"), " with ", param("selection", "goss")),
}
