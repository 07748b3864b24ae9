# The public names of the package, one list for users, type checkers and the lazy imports in `__init__.py`.
from . import callbacks as callbacks
from . import clicks as clicks
from . import cluster as cluster
from . import errors as errors
from . import io as io
from . import metrics as metrics
from . import params as params
from . import plots as plots
from . import pruning as pruning
from . import pyterrier as pyterrier
from . import retrieval as retrieval
from . import sampling as sampling
from . import significance as significance
from . import synth as synth
from .data.data_file import DataFile as DataFile
from .data.dataset import Dataset as Dataset
from .data.read import read as read
from .estimator import Ranker as Ranker
from .evaluation.evaluate import evaluate as evaluate
from .evaluation.explanations import explain as explain
from .evaluation.importance import importance as importance
from .forest.forest import Forest as Forest
from .models.load import load as load
from .pruning.prune import prune as prune
from .rankers.combination import combine as combine
from .rankers.cross_validation import cv as cv
from .rankers.interpolation import interpolate as interpolate
from .rankers.train import train as train
from .rankers.tune import tune as tune
from .retrieval.index import Index as Index
from .retrieval.pipeline import Pipeline as Pipeline

__version__: str
