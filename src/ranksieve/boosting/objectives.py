"""Objectives: (labels, scores, offsets) → gradients (which way scores should move) and second derivatives.

The λ-gradients keep what follows from labels and offsets alone for as long as the very same two arrays come again. Give
new arrays for other lists; what is written into the old ones between two calls is not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_table import graded_gains, highest_grade, positive_gains, stopping
from ranksieve.evaluation.metrics import metric_of
from ranksieve.kernels import lambdas as kernels
from ranksieve.params import ALGORITHMS, Params

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def sparse_gains(labels: np.ndarray, gain: str | tuple[float, ...]) -> np.ndarray:
    """`graded_gains` of the positives; the many negatives have none."""
    gains = np.zeros(len(labels))
    positive = np.flatnonzero(labels)
    gains[positive] = graded_gains(labels[positive], gain)
    return gains


def lambda_ndcg(*, truncation: int = 10, normalize: bool = False, gain: str | tuple[float, ...] = "exp") -> Objective:
    """λ-gradients of NDCG truncated at a rank. Arrays of labels and offsets are known again by identity: do not change
    them in place between calls.

    Examples
    --------
    >>> grad, hess = lambda_ndcg()(np.array([0, 1], np.float32), np.zeros(2), np.array([0, 2]))
    >>> grad.round(4).tolist()
    [-0.1845, 0.1845]
    """
    return _lambdas(kernels.NDCG, lambda labels: sparse_gains(labels, gain), truncation, normalize)


def lambda_map(*, truncation: int = 10, normalize: bool = False) -> Objective:
    """λ-gradients of MAP: a pair counts by the change of average precision, cut at a rank, if it changes places.

    Examples
    --------
    >>> grad, hess = lambda_map()(np.array([0, 1], np.float32), np.zeros(2), np.array([0, 2]))
    >>> grad.tolist()
    [-0.25, 0.25]
    """
    return _lambdas(kernels.PRECISION, positive_gains, truncation, normalize)


def lambda_mrr(*, truncation: int = 10, normalize: bool = False) -> Objective:
    """λ-gradients of MRR: only pairs that move the first positive count."""
    return _lambdas(kernels.RECIPROCAL, positive_gains, truncation, normalize)


def lambda_err(*, truncation: int = 10, normalize: bool = False, highest: float | None = None) -> Objective:
    """λ-gradients of ERR; `highest` is the best grade there can be, else the best of the labels at hand."""

    def gains(labels: np.ndarray) -> np.ndarray:
        return stopping(labels, highest_grade(labels) if highest is None else highest)

    return _lambdas(kernels.STOPPING, gains, truncation, normalize)


def _lambdas(kind: int, gains_of: Callable[[np.ndarray], np.ndarray], truncation: int, normalize: bool) -> Objective:
    """λ-gradients of a metric; what depends on the lists alone is kept as long as they are the same.

    "The same" is the identity of the two arrays, not their content, which would cost a pass over all labels per tree to
    compare. So the arrays must not be written to between calls; training never does.
    """
    known: list[np.ndarray] = []

    def objective(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not known or known[0] is not labels or known[1] is not offsets:
            gains, ideals = gains_of(labels), np.empty(len(offsets) - 1)
            kernels.all_ideals(kind, gains, offsets, truncation, ideals)
            known[:] = labels, offsets, gains, ideals
        _, _, gains, ideals = known
        grad, hess = np.empty(len(labels)), np.empty(len(labels))
        kernels.all_lambdas(kind, gains, scores, offsets, ideals, truncation, normalize, grad, hess)
        return grad, hess

    return objective


def squared_error(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residuals: regression on the labels."""
    return labels - scores, np.ones(len(labels))


def fit_labels(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels themselves as pseudo-responses of the first tree (Lucchese et al. 2018, §4)."""
    return labels.astype(np.float64), np.ones(len(labels))


def named_objective(params: Params, best_grade: float) -> Objective:
    """The objective that the parameters name, for a training set whose highest label is `best_grade`."""
    if ALGORITHMS[params.algo][1] != "squared":
        return lambda_objective(params, best_grade)
    if params.objective != "ndcg":
        raise ParameterError(f"--objective={params.objective} is for λ-gradients, and {params.algo} fits labels")
    return squared_error


def lambda_objective(params: Params, best_grade: float) -> Objective:
    """λ-gradients of the metric that the parameters name."""
    metric = metric_of(params)
    truncation = params.truncation or metric.k or -1
    options: dict[str, Any] = {
        "truncation": np.iinfo(np.int64).max if truncation < 0 else truncation,
        "normalize": params.normalize,
    }
    if params.objective == "ndcg":
        options["gain"] = metric.gain
    if params.objective == "err":
        options["highest"] = best_grade  # a selection may leave the best document out
    return LAMBDAS[params.objective](**options)


LAMBDAS: dict[str, Callable[..., Objective]] = {
    "ndcg": lambda_ndcg,
    "map": lambda_map,
    "mrr": lambda_mrr,
    "err": lambda_err,
}
