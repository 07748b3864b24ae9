"""Reading and writing files: data sets, TREC runs and judgements, queries."""

from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import read
from ranksieve.retrieval.feature_logs import read_feature_log
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import read_judgements, read_run, write_run

__all__ = [
    "read",
    "read_feature_log",
    "read_judgements",
    "read_queries",
    "read_run",
    "write_letor",
    "write_parquet",
    "write_run",
]
