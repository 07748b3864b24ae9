"""Ranking metrics: one value per query."""

from ranksieve.evaluation.functions import average_precision, dcg, err, ndcg, precision, rbp, recall, reciprocal_rank
from ranksieve.evaluation.metrics import Metric, parse_metric

__all__ = [
    "Metric",
    "average_precision",
    "dcg",
    "err",
    "ndcg",
    "parse_metric",
    "precision",
    "rbp",
    "recall",
    "reciprocal_rank",
]
