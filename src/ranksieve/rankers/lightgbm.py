"""LightGBM's λ-MART with our parameters, metrics and file format, for comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import Monitor, checked_mean
from ranksieve.boosting.job import TrainingJob, model_info, sizes_of
from ranksieve.boosting.loop import Rounds
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, InterruptedTraining, param
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.params import Params
from ranksieve.rankers.inputs import load_library, training_set, validation_sets
from ranksieve.text_formats import AUTO, read_gains

ALL_RANKS = 2**31 - 1
SMALLEST_HESSIAN = 1e-9  # LightGBM fails on leaves without any: it computes counts from second derivatives
MOST_GRADES = 31  # LightGBM has no gain table beyond, unless one is given


@dataclass
class LightgbmState(Rounds):
    """A LightGBM model during training."""

    booster: Any  # a lightgbm.Booster


@dataclass
class LightgbmValidSet:
    """A validation set. LightGBM scores it while it grows each tree; fetching the scores is part of measuring."""

    name: str
    data: Dataset
    lightgbm_data: Any  # a lightgbm.Dataset

    def measure(self, state: LightgbmState, metric: Metric) -> float:
        fetched: list[np.ndarray] = []

        def fetch(scores: np.ndarray, lightgbm_data: Any) -> tuple[str, float, bool]:
            fetched.append(scores.copy())
            return "", 0.0, True

        state.booster.eval(self.lightgbm_data, self.name, fetch)
        return checked_mean(metric, self.data.lists, fetched[0], self.name)


def train_lightgbm(job: TrainingJob) -> Forest:
    """Grow trees one by one with LightGBM's `lambdarank`; the forest ends at the best tree by our metric."""
    lightgbm = load_library(job.params.algo)
    params, data = job.params, training_set(job)
    QueryLabels.of(data.lists).check_grades(data.source, pairs=True)
    settings = {**_settings(params, data), "num_threads": job.threads}
    train = _lightgbm_data(lightgbm, data, settings)
    watched = [
        LightgbmValidSet(name, valid, _lightgbm_data(lightgbm, valid, settings, train))
        for name, valid in validation_sets(job, data)
    ]
    monitor = Monitor(watched, metric_of(params), params.trees, params.early_stopping, job.callbacks)
    booster = lightgbm.Booster(settings, train)
    state = LightgbmState(booster)
    for one in watched:
        booster.add_valid(one.lightgbm_data, one.name)

    try:
        while state.step < params.trees and not state.stopped:
            if booster.update():  # no leaf can be split
                break
            monitor(state)
    except KeyboardInterrupt:
        if not state.step:
            raise
        raise InterruptedTraining(_forest(job, data, monitor, state)) from None
    return _forest(job, data, monitor, state)


def _forest(job: TrainingJob, data: Dataset, monitor: Monitor, state: LightgbmState) -> Forest:
    """The trees up to the best of them."""
    state.drop_unmeasured()
    facts = monitor.facts(state)
    forest = from_text(state.booster.model_to_string(num_iteration=facts["best_iteration"]), source="LightGBM")
    own = model_info(job.params, data.info, data=sizes_of(data.lists))
    info = {**own, **facts, "lightgbm": load_library(job.params.algo).__version__}
    return replace(forest, feature_names=data.feature_names, info=info)


def _settings(params: Params, data: Dataset) -> dict[str, Any]:
    """LightGBM's names for our parameters; its other parameters keep their defaults."""
    cut_off = metric_of(params).k or ALL_RANKS
    settings = {
        "objective": "lambdarank", "metric": "none", "verbose": -1, "deterministic": True, "force_col_wise": True,
        "num_leaves": params.leaves, "learning_rate": params.learning_rate, "max_depth": params.max_depth or -1,
        "min_data_in_leaf": params.min_docs, "lambda_l2": params.l2,
        "min_sum_hessian_in_leaf": max(params.min_hessian, SMALLEST_HESSIAN),
        "feature_fraction": params.feature_fraction, "max_bin": params.max_bins, "seed": params.seed,
        "lambdarank_norm": params.normalize, "lambdarank_position_bias_regularization": params.position_l2,
        "lambdarank_truncation_level": {0: cut_off, -1: ALL_RANKS}.get(params.truncation, params.truncation),
    }  # fmt: skip
    if data.categories:
        settings |= {
            "max_cat_threshold": params.max_cat_threshold, "max_cat_to_onehot": params.max_cat_to_onehot,
            "cat_l2": params.cat_l2, "cat_smooth": params.cat_smooth, "min_data_per_group": params.min_docs_per_group,
        }  # fmt: skip
    if params.row_fraction < 1:
        settings |= {"bagging_fraction": params.row_fraction, "bagging_freq": 1}
    labels = data.lists.labels
    highest = MOST_GRADES - 1
    if params.gains != AUTO:
        gains = read_gains(params.gains)
        settings["label_gain"], highest = list(gains), len(gains) - 1
    unfit = labels[(labels != np.floor(labels)) | (labels > highest)]
    if len(unfit):
        raise DataError(
            f"{data.source}: a label is {unfit[0]:g}; LightGBM takes whole grades from 0 to {highest}; give a gain "
            "table with ",
            param("gains"),
            ", or use ",
            param("algo", "lambdamart"),
        )
    return settings


def _lightgbm_data(lightgbm: Any, data: Dataset, settings: dict[str, Any], train: Any = None) -> Any:
    lists = data.lists
    positions = None if train is not None else lists.positions  # validation has no biases
    made = lightgbm.Dataset(
        data.rows(0, data.n_docs), lists.labels, group=lists.sizes, weight=lists.weights, params=settings,
        reference=train, position=positions, categorical_feature=data.info.categorical.tolist(),
    )  # fmt: skip
    return made.construct()
