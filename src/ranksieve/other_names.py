"""Names of LightGBM, XGBoost, CatBoost and scikit-learn for parameters: what they are called here, or what to use."""

from __future__ import annotations

from ranksieve.errors import ParamName, param

ALL_PARAMETERS = "ranksieve train --help lists all parameters"
# Other names of parameters, which users of LightGBM, XGBoost, CatBoost and scikit-learn expect.
ALIASES = {
    "n_estimators": "trees",
    "num_boost_round": "trees",
    "num_iterations": "trees",
    "num_round": "trees",
    "num_rounds": "trees",
    "nrounds": "trees",
    "num_trees": "trees",
    "iterations": "trees",
    "max_iter": "trees",
    "num_leaves": "leaves",
    "max_leaf_nodes": "leaves",
    "max_leaves": "leaves",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "early_stopping_round": "early_stopping",
    "early_stopping_rounds": "early_stopping",
    "validation_fraction": "valid_fraction",
    "min_data_in_leaf": "min_docs",
    "min_child_samples": "min_docs",
    "min_data_per_group": "min_docs_per_group",
    "min_samples_leaf": "min_docs",
    "min_sum_hessian_in_leaf": "min_hessian",
    "min_child_weight": "min_hessian",
    "lambda_l2": "l2",
    "reg_lambda": "l2",
    "l2_leaf_reg": "l2",
    "l2_regularization": "l2",
    "colsample_bytree": "feature_fraction",
    "bagging_fraction": "row_fraction",
    "subsample": "row_fraction",
    "max_bin": "max_bins",
    "monotone_constraints": "monotone",
    "label_gain": "gains",
    "lambdarank_truncation_level": "truncation",
    "random_state": "seed",
    "random_seed": "seed",
    "n_jobs": "threads",
    "num_threads": "threads",
    "nthread": "threads",
    "thread_count": "threads",
}
# What LightGBM, XGBoost and CatBoost call a thing that has another name, or another form, here; for advice.
NEAREST = {
    "border_count": "max_bins",
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
    "pairlogit": "ndcg",
    "pairlogitpairwise": "ndcg",
    "queryrmse": "squared",
    **dict.fromkeys(("regression", "regression_l2", "mse", "rmse", "squared_error", "reg:linear"), "squared"),
    "reg:squarederror": "squared",
    "yetirankpairwise": "yetiloss",
    "rank_xendcg": "xendcg",
    "yetirank": "yetiloss",
}
# What to do instead of names of these libraries that have no equivalent, or are a part of another parameter here.
Advice = tuple[str | ParamName, ...]
_NO_L1: Advice = ("there is no L1 regularisation of leaf values, only ", param("l2"))
_BOOSTED: Advice = (
    "trees are boosted as with gbdt; there is no dart and no rf; for goss use ", param("selection", "goss"), "; ",
    param("algo"), " chooses the algorithm",
)  # fmt: skip
_NO_DART: Advice = ("there is no DART: trees are never dropped; use ", param("algo", "lambdamart"))
_NO_LEAST_GAIN: Advice = (
    "there is no minimum split gain; limit trees by ", param("leaves"), ", ", param("min_docs"), " and ",
    param("min_hessian"),
)  # fmt: skip
_EACH_TREE: Advice = ("rows are sampled again for every tree; ", param("row_fraction"), " is the share")
_FEATURES: Advice = ("features are sampled for each tree, not for each split; use ", param("feature_fraction"))
_BINNING: Advice = ("thresholds come from a sample of documents whose size is fixed",)
_STOPPING: Advice = ("use ", param("early_stopping"), " with validation data")
_RANK: Advice = (
    "the rank is part of the metric's name, as in ",
    param("metric", "ndcg@10"),
    "; evaluate takes several",
)
_PROGRESS: Advice = (param("verbose"), " decides whether progress is shown")
_SAME_BITS: Advice = ("training always gives the same model, whatever the number of threads; leave it out",)
_NO_CLASSES: Advice = (
    "there are no class weights in ranking; documents and queries may have weights, as in "
    "rs.Dataset.from_arrays(…, weights=…)",
)
_CATEGORICAL: Advice = (
    "name columns with categories where data is read, as in rs.read(file, categorical=['brand']); columns of a "
    "categorical type in a DataFrame need not be named",
)  # fmt: skip
_NO_CLASSIFICATION: Advice = (
    "there is no classification; to rank by labels of 0 and 1, use ",
    param("objective", "ndcg"),
)
_NO_OTHER_REGRESSION: Advice = ("of regression there is ", param("objective", "squared"), " only")
ADVICE: dict[str, Advice] = {
    "params": ("parameters are keyword arguments; give **params",),
    **dict.fromkeys(("init_model", "warm_start"), ("training starts from ", param("init"))),
    "evals_result": ("values after each tree are in the model's info['history']",),
    "feature_name": ("names belong to the data, Dataset.with_features(names); ", param("features"), " chooses some"),
    **dict.fromkeys(("is_unbalance", "unbalance", "unbalanced_sets", "scale_pos_weight", "class_weight"), _NO_CLASSES),
    **dict.fromkeys(("class_weights", "auto_class_weights"), _NO_CLASSES),
    **dict.fromkeys(("categorical_feature", "categorical_features", "cat_features"), _CATEGORICAL),
    **dict.fromkeys(("verbosity", "verbose_eval", "silent"), _PROGRESS),
    **dict.fromkeys(("deterministic", "force_row_wise", "force_col_wise"), _SAME_BITS),
    **dict.fromkeys(("lambda_l1", "l1", "reg_alpha", "l1_regularization"), _NO_L1),
    **dict.fromkeys(("boosting", "boosting_type", "booster", "boost"), _BOOSTED),
    **dict.fromkeys(("dart", "drop_rate", "rate_drop", "max_drop", "skip_drop", "uniform_drop"), _NO_DART),
    **dict.fromkeys(("min_gain_to_split", "min_split_gain", "min_split_loss", "gamma"), _NO_LEAST_GAIN),
    **dict.fromkeys(("bagging_freq", "subsample_freq"), _EACH_TREE),
    **dict.fromkeys(("eval_at", "ndcg_eval_at", "ndcg_at"), _RANK),
    **dict.fromkeys(("max_features", "feature_fraction_bynode", "colsample_bynode"), _FEATURES),
    **dict.fromkeys(("colsample_bylevel", "rsm"), _FEATURES),
    **dict.fromkeys(("n_iter_no_change", "od_type", "od_wait"), _STOPPING),
    **dict.fromkeys(("loss", "loss_function"), ("use ", param("objective"))),
    **dict.fromkeys(("interaction_constraints", "interaction_cst"), ("there are no interaction constraints",)),
    **dict.fromkeys(("subsample_for_bin", "bin_construct_sample_cnt"), _BINNING),
    "path_smooth": ("leaf values are not smoothed; use ", param("l2"), " or ", param("min_docs")),
    "max_delta_step": ("leaf values are not limited; use ", param("l2")),
    "linear_tree": ("leaves have constant values",),
    "extra_trees": ("there are no extremely randomised trees",),
    "lambdarank_unbiased": ("position biases are learned if the data has positions, see ", param("position_rate")),
    "importance_type": ("rs.importance(model, kind) takes the kind",),
    "num_class": _NO_CLASSIFICATION,
}
VALUE_ADVICE: dict[tuple[str, str], Advice] = {  # by parameter and value, in lower case
    ("algo", "dart"): _NO_DART,
    ("algo", "rf"): ("there are no random forests; ", param("bag"), " averages boosted forests"),
    ("algo", "gbdt"): ("for ranking, gradient boosting is ", param("algo", "lambdamart")),
    ("algo", "gbtree"): ("for ranking, gradient boosting is ", param("algo", "lambdamart")),
    **{
        ("objective", name): _NO_CLASSIFICATION
        for name in (
            "binary",
            "multiclass",
            "multiclassova",
            "cross_entropy",
            "xentropy",
            "logloss",
            "binary:logistic",
            "binary:logitraw",
            "binary:hinge",
            "multi:softmax",
            "multi:softprob",
        )
    },
    **{
        ("objective", name): _NO_OTHER_REGRESSION
        for name in (
            "regression_l1",
            "mae",
            "huber",
            "fair",
            "poisson",
            "quantile",
            "mape",
            "gamma",
            "tweedie",
            "count:poisson",
            "reg:absoluteerror",
            "reg:gamma",
            "reg:logistic",
            "reg:pseudohubererror",
            "reg:quantileerror",
            "reg:squaredlogerror",
            "reg:tweedie",
            "survival:aft",
            "survival:cox",
        )
    },
    **dict.fromkeys((("algo", "lgbm"), ("algo", "lgb")), ("LightGBM is ", param("algo", "lightgbm"))),
    ("algo", "goss"): ("GOSS is ", param("algo", "lambdamart"), " with ", param("selection", "goss")),
}
OTHER_ALGORITHMS: dict[str, Advice] = {  # by the name of an algorithm that is another one elsewhere
    "lambdarank": ("lambdarank is the neural net; LightGBM's objective of this name is ", param("algo", "lambdamart")),
}
_BEST_TREES: Advice = ("the model ends at its best number of trees; for n trees give model_.first(n).predict(X)",)
_INITIAL_SCORES: Advice = ("training starts from scores or from a model with rs.train(data, init=…)",)
_RAW_SCORES: Advice = ("predictions are raw scores; leave it out",)
ARGUMENT_ADVICE: dict[str, dict[str, Advice]] = {  # by the method of an estimator and the name of an argument
    "fit": {
        **dict.fromkeys(("init_score", "eval_init_score", "base_margin", "base_margin_eval_set"), _INITIAL_SCORES),
        **dict.fromkeys(("init_model", "xgb_model"), _INITIAL_SCORES),
        "eval_names": ("evals_result_ names one validation set valid, and several valid_0, valid_1, …; leave it out",),
        "eval_at": ("the rank is part of the metric's name, as in eval_metric='ndcg@10'",),
        "eval_class_weight": _NO_CLASSES,
        "feature_name": ("names are those of the columns if X is a table",),
        "sample_weight_eval_set": ("did you mean 'eval_sample_weight'?",),
        **dict.fromkeys(("valid", "valid_sets", "evals"), ("did you mean 'eval_set'?",)),
        "params": ("parameters are keyword arguments of the estimator, Ranker(**params)",),
    },
    "predict": {
        "pred_contrib": ("use contributions=True",),
        "pred_contribs": ("use contributions=True",),
        "pred_leaf": ("use model_.predict_leaves(X)",),
        **dict.fromkeys(("num_iteration", "iteration_range", "ntree_limit", "ntree_end"), _BEST_TREES),
        **dict.fromkeys(("raw_score", "output_margin", "prediction_type"), _RAW_SCORES),
    },
}
