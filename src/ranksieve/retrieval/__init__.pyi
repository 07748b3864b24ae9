from .analysis import Analyzer
from .index import Index
from .measuring import evaluate_run
from .models import FirstStage
from .pipeline import Pipeline

__all__ = ["Analyzer", "FirstStage", "Index", "Pipeline", "evaluate_run"]
