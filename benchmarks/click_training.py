"""Training on simulated clicks beside LightGBM and XGBoost: the systems, the collections and the cells of the table.

A cell is one system with one setting on the log of one run; it is kept on disk when it is done, so that a run which was
interrupted goes on, and a setting that changes is run anew. `benchmarks/clicks.py` has the protocol.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost

import ranksieve as rs
from categories import lists_of
from kept import kept_path
from quality import folds
from ranksieve.data.splits import fold_queries
from ranksieve.files import atomic_path

COLLECTIONS = ("MQ2008", "OHSUMED", "movies", "generated")
DEVELOPMENT = ("MQ2008 validation", "generated, other seeds")  # settings are chosen here
PAGES = 10_000
MANY_PAGES = 1_000_000
ETAS = (0.0, 1.0, 2.0)
RUNS = 5
TEMPERATURE = 0.3
OTHER_SEEDS = 100
MOVIE_QUERIES = 600
TREES: dict[str, Any] = {"trees": 100, "leaves": 10, "learning_rate": 0.1, "threads": 1, "early_stopping": 0}
OURS = {**TREES, "algo": "lambdamart", "gain": "newton"}
PAGE_DOCS = 50  # least documents in a leaf where lists are pages, and documents repeat
LIST_DOCS = 5  # and where lists are queries with true labels

Predict = Callable[[np.ndarray], np.ndarray]
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """One run of a collection: training and test lists, and the log of a weak ranker."""

    collection: str
    eta: float
    number: int
    train: rs.Dataset
    test: rs.Dataset

    @cached_property
    def weak(self) -> Any:
        return rs.clicks.logging_ranker(self.train, share=0.01, seed=self.number)

    def log_of(self, pages: int) -> rs.clicks.ClickLog:
        options = {"eta": self.eta, "temperature": TEMPERATURE, "seed": self.number}
        return rs.clicks.simulate(self.train, self.weak, pages=pages, **options)

    @cached_property
    def log(self) -> rs.clicks.ClickLog:
        return self.log_of(PAGES)

    @cached_property
    def pages(self) -> rs.Dataset:
        return rs.clicks.page_lists(self.log, self.train)

    @cached_property
    def propensities(self) -> rs.clicks.Propensities:
        return rs.clicks.propensities(self.log)


def parts(name: str, folder: Path, features: Path) -> Iterator[tuple[rs.Dataset, rs.Dataset]]:
    """Training and test lists of each run."""
    if name.startswith("generated"):
        first = OTHER_SEEDS if name in DEVELOPMENT else 0
        for seed in range(first, first + RUNS):
            yield rs.synth.cubic(300, seed=seed), rs.synth.cubic(200, seed=seed, start=300)
    elif name == "movies":
        place = argparse.Namespace(collections=folder / "ir", features=features, queries=MOVIE_QUERIES)
        lists = lists_of("movies", place)
        for train, _, test in fold_queries(lists.n_queries, RUNS, seed=0):
            yield lists.take_queries(train), lists.take_queries(test)
    else:
        for train, valid, test in folds(folder / "ltr" / name.split()[0]):
            yield train, valid if name in DEVELOPMENT else test


def lightgbm_model(data: rs.Dataset, l2: float, *, with_positions: bool) -> Predict:
    settings = {
        "objective": "lambdarank", "num_leaves": 10, "learning_rate": 0.1, "min_data_in_leaf": PAGE_DOCS,
        "lambda_l2": l2, "verbose": -1, "num_threads": 1, "deterministic": True,
    }  # fmt: skip
    lists = data.lists
    positions = lists.positions if with_positions else None
    made = lightgbm.Dataset(data.features, lists.labels, group=lists.sizes, position=positions, params=settings)
    return lightgbm.train(settings, made, 100).predict


def xgboost_model(data: rs.Dataset, l2: float) -> Predict:
    """XGBoost's unbiased λ-MART; it takes the order of a list as the positions, which is how the pages are ordered."""
    settings = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "eta": 0.1, "max_leaves": 10, "max_depth": 0,
        "grow_policy": "lossguide", "lambda": l2, "tree_method": "hist", "nthread": 1, "verbosity": 0,
    }  # fmt: skip
    made = xgboost.DMatrix(data.features, data.labels, group=data.lists.sizes)
    booster = xgboost.train(settings, made, 100)
    return lambda features: booster.predict(xgboost.DMatrix(features))


def ours(data: rs.Dataset, **options: Any) -> Predict:
    return rs.train(data, **{**OURS, **options}).predict


def true_gains_of_shown(run: Run, log: rs.clicks.ClickLog) -> rs.Dataset:
    """The true labels of the documents that the log shows."""
    rows = np.unique(_rows_of(run.train, log.query_ids[log.pairs.queries], log.doc_ids[log.pairs.documents]))
    return run.train.take_rows(rows)


def many_clicks(run: Run, l2: float) -> Predict:
    """What clicks can tell at most: a hundred times as many pages, and the true propensities."""
    log, true = run.log_of(MANY_PAGES), rs.clicks.Propensities.power(run.eta, 10)
    judged = rs.clicks.judge(rs.clicks.fit(log, "pbm", propensities=true), shrinkage="auto")
    return ours(rs.clicks.judged_lists(judged, run.train), l2=l2, min_docs=LIST_DOCS)


def fixed_biases(run: Run, l2: float) -> Predict:
    options = {"min_docs": PAGE_DOCS, "position_biases": run.propensities.biases, "position_rate": 0.0}
    return ours(run.pages, l2=l2, **options)


SYSTEMS: dict[str, Callable[..., Predict]] = {
    "logging": lambda run: lambda features: run.weak.predict(features),
    "naive": lambda run, l2: ours(run.pages, l2=l2, min_docs=PAGE_DOCS, position_rate=0.0),
    "lightgbm": lambda run, l2: lightgbm_model(run.pages, l2, with_positions=False),
    "lightgbm position": lambda run, l2: lightgbm_model(run.pages, l2, with_positions=True),
    "xgboost unbiased": lambda run, l2: xgboost_model(run.pages, l2),
    "learned bias": lambda run, l2: ours(run.pages, l2=l2, min_docs=PAGE_DOCS),
    "propensities": fixed_biases,
    "clicks.train": lambda run: rs.clicks.train(run.log, run.train, threads=1).predict,
    "many clicks": many_clicks,
    "true labels, shown": lambda run, l2: ours(true_gains_of_shown(run, run.log), l2=l2, min_docs=LIST_DOCS),
    "true labels": lambda run, l2: ours(run.train, l2=l2, min_docs=LIST_DOCS),
}
