"""ranksieve: learning to rank that sieves.

Names are imported when they are first used, so that `import ranksieve` costs nothing and compiles nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ranksieve import cluster, errors, plots
    from ranksieve.boosting.callbacks import Tally
    from ranksieve.boosting.refit import refit
    from ranksieve.boosting.registry import register_selection
    from ranksieve.data.data_file import DataFile
    from ranksieve.data.dataset import Dataset
    from ranksieve.data.generators import cubic, two_stage
    from ranksieve.data.letor import write_letor
    from ranksieve.data.read import read
    from ranksieve.data.sampling import by_model, truncate, undersample
    from ranksieve.data.splits import split
    from ranksieve.data.tables import write_parquet
    from ranksieve.estimator import Ranker
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.evaluation.explanations import explain
    from ranksieve.evaluation.functions import (
        average_precision,
        dcg,
        err,
        ndcg,
        precision,
        rbp,
        recall,
        reciprocal_rank,
    )
    from ranksieve.evaluation.importance import importance
    from ranksieve.evaluation.known_metrics import register_metric
    from ranksieve.evaluation.metrics import Metric, parse_metric
    from ranksieve.evaluation.significance import paired_t_test, randomization_test
    from ranksieve.forest.forest import Forest
    from ranksieve.forest.formats.objects import from_model
    from ranksieve.params import Params
    from ranksieve.pruning.prune import prune, reweight
    from ranksieve.rankers.combination import combine
    from ranksieve.rankers.interpolation import interpolate
    from ranksieve.rankers.load import load
    from ranksieve.rankers.train import train
    from ranksieve.retrieval.analysis import Analyzer
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.measuring import evaluate_run
    from ranksieve.retrieval.models import FirstStage
    from ranksieve.retrieval.pipeline import Pipeline
    from ranksieve.retrieval.queries import read_queries
    from ranksieve.retrieval.runs import read_judgements, read_run, write_run

_MODULES = ("cluster", "errors", "plots")
_HOMES = {
    "Analyzer": "retrieval.analysis",
    "DataFile": "data.data_file",
    "Dataset": "data.dataset",
    "FirstStage": "retrieval.models",
    "Forest": "forest.forest",
    "Index": "retrieval.index",
    "Metric": "evaluation.metrics",
    "Params": "params",
    "Pipeline": "retrieval.pipeline",
    "Ranker": "estimator",
    "Tally": "boosting.callbacks",
    "average_precision": "evaluation.functions",
    "by_model": "data.sampling",
    "combine": "rankers.combination",
    "cubic": "data.generators",
    "dcg": "evaluation.functions",
    "err": "evaluation.functions",
    "evaluate": "evaluation.evaluate",
    "evaluate_run": "retrieval.measuring",
    "explain": "evaluation.explanations",
    "from_model": "forest.formats.objects",
    "importance": "evaluation.importance",
    "interpolate": "rankers.interpolation",
    "load": "rankers.load",
    "ndcg": "evaluation.functions",
    "paired_t_test": "evaluation.significance",
    "parse_metric": "evaluation.metrics",
    "precision": "evaluation.functions",
    "prune": "pruning.prune",
    "randomization_test": "evaluation.significance",
    "rbp": "evaluation.functions",
    "read": "data.read",
    "read_judgements": "retrieval.runs",
    "read_queries": "retrieval.queries",
    "read_run": "retrieval.runs",
    "recall": "evaluation.functions",
    "reciprocal_rank": "evaluation.functions",
    "refit": "boosting.refit",
    "register_metric": "evaluation.known_metrics",
    "register_selection": "boosting.registry",
    "reweight": "pruning.prune",
    "split": "data.splits",
    "train": "rankers.train",
    "truncate": "data.sampling",
    "two_stage": "data.generators",
    "undersample": "data.sampling",
    "write_letor": "data.letor",
    "write_parquet": "data.tables",
    "write_run": "retrieval.runs",
}

__all__ = [
    "Analyzer",
    "DataFile",
    "Dataset",
    "FirstStage",
    "Forest",
    "Index",
    "Metric",
    "Params",
    "Pipeline",
    "Ranker",
    "Tally",
    "__version__",
    "average_precision",
    "by_model",
    "cluster",
    "combine",
    "cubic",
    "dcg",
    "err",
    "errors",
    "evaluate",
    "evaluate_run",
    "explain",
    "from_model",
    "importance",
    "interpolate",
    "load",
    "ndcg",
    "paired_t_test",
    "parse_metric",
    "plots",
    "precision",
    "prune",
    "randomization_test",
    "rbp",
    "read",
    "read_judgements",
    "read_queries",
    "read_run",
    "recall",
    "reciprocal_rank",
    "refit",
    "register_metric",
    "register_selection",
    "reweight",
    "split",
    "train",
    "truncate",
    "two_stage",
    "undersample",
    "write_letor",
    "write_parquet",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"ranksieve.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ranksieve' has no attribute {name!r}")
    home, _, there = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(f"ranksieve.{home}"), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
