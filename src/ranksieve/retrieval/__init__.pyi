from .analysis import Analyzer
from .encoders import SvdEncoder
from .feature_sets import feature_set
from .first_stage import FirstStage
from .fusion import fuse
from .index import Index
from .labelling import extract_features
from .pipeline import Pipeline
from .run_evaluation import evaluate_run
from .searching import Retriever, retrieve, search
from .tuning import tune

__all__ = [
    "Analyzer",
    "FirstStage",
    "Index",
    "Pipeline",
    "Retriever",
    "SvdEncoder",
    "evaluate_run",
    "extract_features",
    "feature_set",
    "fuse",
    "retrieve",
    "search",
    "tune",
]
