"""Objectives: (labels, scores, offsets) → gradients (which way scores should move) and second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksieve.evaluation.measures import graded_gains
from ranksieve.evaluation.metrics import metric_of
from ranksieve.kernels.lambdas import all_lambdas
from ranksieve.params import Params

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def sparse_gains(labels: np.ndarray, gain: str | tuple[float, ...]) -> np.ndarray:
    """`graded_gains` of the positives; the many negatives have none."""
    gains = np.zeros(len(labels))
    positive = np.flatnonzero(labels)
    gains[positive] = graded_gains(labels[positive], gain)
    return gains


def lambda_ndcg(*, truncation: int = 10, normalize: bool = False, gain: str | tuple[float, ...] = "exp") -> Objective:
    """λ-gradients of NDCG truncated at a rank.

    Examples
    --------
    >>> grad, hess = lambda_ndcg()(np.array([0, 1], np.float32), np.zeros(2), np.array([0, 2]))
    >>> grad.round(4).tolist()
    [-0.1845, 0.1845]
    """

    def objective(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = np.empty(len(labels)), np.empty(len(labels))
        all_lambdas(sparse_gains(labels, gain), scores, offsets, truncation, normalize, grad, hess)
        return grad, hess

    return objective


def squared_error(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residuals: regression on the labels."""
    return labels - scores, np.ones(len(labels))


def fit_labels(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels themselves as pseudo-responses of the first tree (Lucchese et al. 2018, §4)."""
    return labels.astype(np.float64), np.ones(len(labels))


def _lambda(params: Params) -> Objective:
    metric = metric_of(params)
    truncation = params.truncation or metric.k or -1
    return lambda_ndcg(
        truncation=np.iinfo(np.int64).max if truncation < 0 else truncation,
        normalize=params.normalize,
        gain=metric.gain,
    )


OBJECTIVES: dict[str, Callable[[Params], Objective]] = {"lambda": _lambda, "squared": lambda params: squared_error}
