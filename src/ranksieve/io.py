"""Import and export: models of other libraries, data, TREC runs and judgements, queries, model cards, rank profiles.

MLflow loads models with it: `mlflow.pyfunc.save_model(path, loader_module="ranksieve.io", data_path="model.txt")`.
"""

from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.evaluation.model_card import model_card
from ranksieve.forest.formats.from_model import from_model
from ranksieve.forest.formats.vespa import rank_profile
from ranksieve.models.load import load
from ranksieve.retrieval.feature_logs import read_feature_log
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import read_judgements, read_run, write_run

_load_pyfunc = load  # what MLflow calls with the path of the file

__all__ = [
    "from_model",
    "model_card",
    "rank_profile",
    "read_feature_log",
    "read_judgements",
    "read_queries",
    "read_run",
    "write_letor",
    "write_parquet",
    "write_run",
]
