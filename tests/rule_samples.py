"""Rules called as the boosting loop calls them, and random trees to call them with."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.objectives.lambdas import LambdaErr, LambdaMap, LambdaMrr, LambdaNdcg
from ranksieve.boosting.training_rows import TrainingLists
from ranksieve.boosting.tree import Tree
from ranksieve.boosting.views import ObjectiveView, ReadOnlyScores, View
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.evaluation.metrics import Metric, metric_of, parse_metric
from ranksieve.params import Params

PLAIN = {"truncation": 10, "normalize": False}  # λ as in the papers
OBJECTIVES = {"ndcg": LambdaNdcg, "map": LambdaMap, "mrr": LambdaMrr, "err": LambdaErr}


def gradients(
    rule, labels, scores, offsets, *, metric: str | Metric = "ndcg@10", highest=None, step=1, seed=0, rows=None
):
    """What an objective returns for lists."""
    labels = np.asarray(labels, np.float32)
    highest = highest_grade(labels) if highest is None else highest
    rows = np.arange(len(labels)) if rows is None else rows
    return rule(ObjectiveView(labels, scores, offsets, rows, step, seed, parse_metric(metric), highest, {}))


def lambda_gradients(labels, scores, offsets, *, objective="ndcg", gain=None, highest=None, **fields):
    """λ and w of lists, by default as in the papers."""
    metric = parse_metric("ndcg@10") if gain is None else parse_metric("ndcg@10", gain=gain)
    return gradients(OBJECTIVES[objective](**PLAIN | fields), labels, scores, offsets, metric=metric, highest=highest)


def training_lists(lists, **params) -> TrainingLists:
    params = Params(**{**PLAIN, "algo": "lambdamart", **params})
    return TrainingLists(lists, params, metric_of(params))


def view_of(training: TrainingLists, scores, step, rng, last=None) -> View:
    return View(training, ReadOnlyScores(scores), step, rng, last)


def random_tree(rng: np.random.Generator, n_features: int, n_leaves: int = 5) -> Tree:
    """A chain of random splits; some hang on the left, some on the right."""
    splits = np.zeros((n_leaves - 1, 5), np.int32)
    for i in range(n_leaves - 1):
        following = i + 1 if i + 1 < n_leaves - 1 else ~(n_leaves - 1)
        children = (following, ~i) if rng.random() < 0.5 else (~i, following)
        splits[i] = (rng.integers(n_features), rng.integers(25), rng.integers(2), *children)
    values = rng.standard_normal(n_leaves) * 0.1
    ones = np.ones(n_leaves)
    return Tree(splits, np.zeros(n_leaves - 1), np.zeros(n_leaves - 1, np.int64), values, ones.astype(np.int64), ones)
