# The public names of the package, one list for users, type checkers and the lazy imports in `__init__.py`.
from . import (
    callbacks,
    clicks,
    cluster,
    errors,
    io,
    metrics,
    params,
    plots,
    pruning,
    pyterrier,
    retrieval,
    sampling,
    significance,
    synth,
)
from .data.data_file import DataFile
from .data.dataset import Dataset
from .data.read import read
from .estimator import Ranker
from .evaluation.evaluate import evaluate
from .evaluation.explanations import explain
from .evaluation.importance import importance
from .forest.forest import Forest
from .models.load import load
from .pruning.prune import prune
from .rankers.combination import combine
from .rankers.cross_validation import cv
from .rankers.interpolation import interpolate
from .rankers.train import train
from .rankers.tune import tune
from .retrieval.index import Index
from .retrieval.pipeline import Pipeline

__version__: str
__all__ = [
    "DataFile",
    "Dataset",
    "Forest",
    "Index",
    "Pipeline",
    "Ranker",
    "callbacks",
    "clicks",
    "cluster",
    "combine",
    "cv",
    "errors",
    "evaluate",
    "explain",
    "importance",
    "interpolate",
    "io",
    "load",
    "metrics",
    "params",
    "plots",
    "prune",
    "pruning",
    "pyterrier",
    "read",
    "retrieval",
    "sampling",
    "significance",
    "synth",
    "train",
    "tune",
]
