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
from finished_cells import path_of_cell
from quality import folds
from ranksieve.clicks import posterior
from ranksieve.clicks.simulation import document_ids
from ranksieve.clicks.training import ALL, BALANCE, BY_PAGE, BY_QUERY, FORESTS, PAGE_SHARE, STOPPED
from ranksieve.data.sampling import fold_queries
from ranksieve.files import atomic_path

COLLECTIONS = ("MQ2008", "OHSUMED", "movies", "generated")
DEVELOPMENT = ("MQ2008 validation", "generated, other seeds", "OHSUMED validation", "movies, other queries")
PAGES = 10_000
ETAS = (0.0, 1.0, 2.0)
RUNS = 5
TEMPERATURE = 0.3
OTHER_SEEDS = 100
MOVIE_QUERIES = 600
TREES: dict[str, Any] = {"trees": 100, "leaves": 10, "learning_rate": 0.1, "threads": 1, "early_stopping": 0}
OURS = {**TREES, "algo": "lambdamart", "gain": "newton"}
GRID = (posterior.RELATIVE_WIDTH, posterior.MOST_CELLS, posterior.LOWEST)
PAGE_DOCS = 50  # least documents in a leaf where lists are pages, and documents repeat
LIST_DOCS = 5  # and where lists are queries with true labels
JUDGED: dict[str, Any] = {"min_docs": 20, "l2": 20.0}

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

    @cached_property
    def log(self) -> rs.clicks.ClickLog:
        policy, users = rs.clicks.LoggingPolicy(self.weak, TEMPERATURE), rs.clicks.Users(eta=self.eta)
        return rs.clicks.simulate(self.train, policy, users, pages=PAGES, seed=self.number)

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
    elif name.startswith("movies"):
        others = name in DEVELOPMENT
        n_queries, place = (2 * MOVIE_QUERIES, features / "others") if others else (MOVIE_QUERIES, features)
        lists = lists_of("movies", argparse.Namespace(collections=folder / "ir", features=place, queries=n_queries))
        lists = lists.take_queries(np.arange(n_queries - MOVIE_QUERIES, lists.n_queries))
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


def shown_only(run: Run, l2: float) -> Predict:
    """True labels of the documents that the log shows: what is lost because the others were never shown."""
    pairs = run.log.pairs
    shown = set(zip(run.log.query_ids[pairs.queries], run.log.doc_ids[pairs.documents], strict=True))
    ids = zip(np.repeat(run.train.query_ids.astype(str), run.train.lists.sizes), document_ids(run.train), strict=True)
    rows = np.flatnonzero([pair in shown for pair in ids])
    return ours(run.train.take_rows(rows), l2=l2, min_docs=LIST_DOCS)


def fixed_biases(run: Run, l2: float, balance: float | None = None) -> Predict:
    pages = run.pages if balance is None else rs.clicks.page_lists(run.log, run.train, balance=balance)
    options = {"min_docs": PAGE_DOCS, "position_biases": run.propensities.biases, "position_rate": 0.0}
    return ours(pages, l2=l2, **options)


def judged(run: Run, shrinkage: float | str, **options: Any) -> Predict:
    model = rs.clicks.fit(run.log, "pbm", propensities=run.propensities)
    lists = rs.clicks.judged_lists(rs.clicks.judge(model, shrinkage=shrinkage), run.train, **options)
    return ours(lists, **JUDGED)


def rated(run: Run, **options: Any) -> Predict:
    lists = rs.clicks.rated_lists(run.log, run.train, run.propensities)
    return ours(lists, **{**BY_QUERY, "objective": rs.clicks.RateLambdas(), **options})


SYSTEMS: dict[str, Callable[..., Predict]] = {
    "logging": lambda run: run.weak.predict,
    "naive": lambda run, l2: ours(run.pages, l2=l2, min_docs=PAGE_DOCS, position_rate=0.0),
    "lightgbm": lambda run, l2: lightgbm_model(run.pages, l2, with_positions=False),
    "lightgbm position": lambda run, l2: lightgbm_model(run.pages, l2, with_positions=True),
    "xgboost unbiased": lambda run, l2: xgboost_model(run.pages, l2),
    "learned bias": lambda run, l2: ours(run.pages, l2=l2, min_docs=PAGE_DOCS),
    "fixed bias": fixed_biases,
    "judged lists": judged,
    "rated lists": rated,
    "clicks.train": lambda run: rs.clicks.train(run.log, run.train, threads=1).predict,
    "true labels, shown": shown_only,
    "true labels": lambda run, l2: ours(run.train, l2=l2, min_docs=LIST_DOCS),
}
TRUE_L2 = 20.0
SETTINGS: dict[str, Setting] = {
    "logging": {},
    "naive": {"l2": 400.0},
    "learned bias": {"l2": 400.0},
    "clicks.train": {},
    "true labels, shown": {"l2": TRUE_L2},
    "true labels": {"l2": TRUE_L2},
}
WITHOUT_CLICKS = ("logging", "true labels, shown", "true labels")  # the same for every η
PEERS: dict[str, tuple[float, ...]] = {  # L2 in the table: of two, the one that is better on the test lists counts
    "lightgbm": (400.0,),
    "lightgbm position": (100.0, 400.0),
    "xgboost unbiased": (20.0, 100.0),
}
MINE = ("learned bias", "clicks.train")
CHOICES: dict[str, list[Setting]] = {
    "lightgbm": [{"l2": 100.0}, {"l2": 400.0}],
    "lightgbm position": [{"l2": 100.0}, {"l2": 400.0}],
    "xgboost unbiased": [{"l2": 20.0}, {"l2": 100.0}],
    "fixed bias": [{"l2": 100.0, "balance": BALANCE}],
    "judged lists": [{"shrinkage": "auto"}, {"shrinkage": "auto", "others": True}],
    "rated lists": [{}, {"row_fraction": 1.0, "feature_fraction": 1.0}, {"trees": 200}],
    "clicks.train": [{}],
}


@dataclass(frozen=True)
class Trials:
    """Runs systems on collections, and keeps each value in a folder."""

    folder: Path
    work: Path

    def values(self, collection: str, eta: float, settings: Mapping[str, Setting], runs: int = RUNS) -> dict[str, list]:
        """NDCG@10 on the true labels of the test lists: of each system, one value for each run."""
        files = [
            {name: self._file(collection, eta, number, name, settings[name]) for name in settings}
            for number in range(runs)
        ]  # fmt: skip
        if not all(file.exists() for own in files for file in own.values()):
            lists = parts(collection, self.folder, self.work)
            for number, own in enumerate(files):
                self._finish(Run(collection, eta, number, *next(lists)), own, settings)
        return {name: [json.loads(own[name].read_text())["ndcg"] for own in files] for name in settings}

    def _finish(self, run: Run, files: Mapping[str, Path], settings: Mapping[str, Setting]) -> None:
        for name, file in files.items():
            if not file.exists():
                start = time.process_time()
                scores = SYSTEMS[name](run, **settings[name])(run.test.features)
                facts = {"ndcg": ndcg(scores, run.test), "cpu s": round(time.process_time() - start, 2)}
                with atomic_path(file) as temporary:
                    temporary.write_text(json.dumps(facts))

    def _file(self, collection: str, eta: float, number: int, name: str, setting: Setting) -> Path:
        eta = 1.0 if name in WITHOUT_CLICKS else eta
        facts = [
            PAGES,
            TEMPERATURE,
            OURS,
            setting,
            *((ALL, BALANCE, BY_PAGE, BY_QUERY, FORESTS, PAGE_SHARE, STOPPED) if name == "clicks.train" else ()),
            *(GRID if setting.get("shrinkage") == "auto" else ()),
            *((BY_QUERY,) if name == "rated lists" else ()),
        ]
        self.work.mkdir(parents=True, exist_ok=True)
        return path_of_cell(self.work, f"{collection}-{eta:g}-{number}-{name}", facts)


def ndcg(scores: np.ndarray, test: rs.Dataset) -> float:
    return float(np.nanmean(rs.metrics.ndcg(test.labels, scores, test.offsets)))


def measured(trials: Trials, collection: str, eta: float) -> dict:
    """A row of the table: means over the runs, and ours against the best peer with its best setting."""
    found = trials.values(collection, eta, SETTINGS)
    row: dict = {"part": "training", "collection": collection, "eta": eta, "runs": RUNS}
    for peer, values in PEERS.items():
        tried = {l2: trials.values(collection, eta, {peer: {"l2": l2}})[peer] for l2 in values}
        best = max(tried, key=lambda l2: np.mean(tried[l2]))
        found[peer] = tried[best]
        row |= {f"{peer}, L2 {l2:g}": round(float(np.mean(tried[l2])), 4) for l2 in tried}
    means = {name: round(float(np.mean(values)), 4) for name, values in found.items()}
    ours_best, peer = (max(names, key=means.__getitem__) for names in (MINE, PEERS))
    differences = np.array(found[ours_best]) - np.array(found[peer])
    gap = means["true labels"] - means["naive"]
    return row | {
        **means,
        "ours": ours_best,
        "best peer": peer,
        "ours - best peer": round(float(differences.mean()), 4),
        "standard error": round(float(differences.std(ddof=1) / np.sqrt(len(differences))), 4),
        "share of the gap": round((means["clicks.train"] - means["naive"]) / gap, 3),
    }


def training(folder: Path, work: Path) -> list[dict]:
    """NDCG@10 on true labels: one row per collection and η."""
    rows = []
    for collection in COLLECTIONS:
        for eta in ETAS:
            rows.append(measured(Trials(folder, work), collection, eta))
            print(json.dumps(rows[-1]), flush=True)
    return rows


def choice(folder: Path, work: Path) -> list[dict]:
    """The settings that were compared on the development lists, two runs each."""
    rows = []
    for name, settings in CHOICES.items():
        for setting in settings:
            row = {"part": "choice", "system": name, **setting}
            for collection in DEVELOPMENT:
                values = [Trials(folder, work).values(collection, eta, {name: setting}, 2)[name] for eta in (0.0, 1.0)]
                row[collection] = round(float(np.mean(values)), 4)
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows
