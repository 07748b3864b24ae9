"""Objectives: (labels, scores, offsets) → gradients (which way scores should move) and second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.kernels.lambdas import all_lambdas
from ranksieve.params import Params

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def exponential_gains(labels: np.ndarray) -> np.ndarray:
    """2^label - 1; only positives are computed, most documents have none."""
    if labels.max(initial=0) > 1000:
        raise ParameterError(
            f"label {labels.max():g} has a gain 2^label - 1 beyond all numbers; map the labels to smaller grades"
        )
    gains = np.zeros(len(labels))
    positive = np.flatnonzero(labels)
    gains[positive] = np.exp2(labels[positive].astype(np.float64)) - 1.0
    return gains


def lambda_ndcg(*, truncation: int = 10, normalize: bool = False) -> Objective:
    """λ-gradients of NDCG truncated at a rank.

    Examples
    --------
    >>> grad, hess = lambda_ndcg()(np.array([0, 1], np.float32), np.zeros(2), np.array([0, 2]))
    >>> grad.round(4).tolist()
    [-0.1845, 0.1845]
    """

    def objective(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = np.empty(len(labels)), np.empty(len(labels))
        all_lambdas(exponential_gains(labels), scores, offsets, truncation, normalize, grad, hess)
        return grad, hess

    return objective


def squared_error(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residuals: regression on the labels."""
    return labels - scores, np.ones(len(labels))


def fit_labels(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels themselves as pseudo-responses of the first tree (Lucchese et al. 2018, §4)."""
    return labels.astype(np.float64), np.ones(len(labels))


def _lambda(params: Params) -> Objective:
    cutoff = parse_metric(params.metric).k
    truncation = params.truncation or cutoff or -1
    return lambda_ndcg(truncation=np.iinfo(np.int64).max if truncation < 0 else truncation, normalize=params.normalize)


OBJECTIVES: dict[str, Callable[[Params], Objective]] = {"lambda": _lambda, "squared": lambda params: squared_error}
