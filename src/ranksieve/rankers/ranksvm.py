"""RankSVM: a linear ranker with a squared hinge on every pair of different grades within a query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from ranksieve.boosting.callbacks import Record
from ranksieve.boosting.job import TrainingJob, model_info, sizes_of
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.data.dataset import Dataset
from ranksieve.dtypes import SCORE
from ranksieve.kernels.hinge import PARTS, block_curvature, block_hinge, grade_numbers
from ranksieve.models.linear import Linear, Standard
from ranksieve.rankers.inputs import measured, training_set, validation_sets

MAX_ITERATIONS = 100
TOLERANCE = 1e-10  # the search ends when a full step would lower the objective by less than this share of it
SUFFICIENT = 1e-4  # least share of the decrease that the slope predicts; a step with less is halved
MOST_HALVINGS = 40
PRODUCT_ROWS = 16_384  # rows in float64 whose products are added up at once


class PairLoss:
    """`½|w|² + c · Σ max(0, 1 - w·(x_i - x_j))²` over the pairs i ≻ j of each query, of standardised features.

    A document's weight counts in each of its pairs: a pair has the product of the two.
    """

    def __init__(self, data: Dataset, standard: Standard, c: float) -> None:
        lists = data.lists
        self._data, self._standard, self._c = data, standard, c
        self._weights = np.ones(lists.n_docs) if lists.weights is None else lists.weights
        self._grades = np.empty(lists.n_docs, np.int32)
        grade_numbers(lists.labels, lists.offsets, self._grades)

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Features, offsets, grades and weights of some lists at a time."""
        offsets = self._data.offsets
        for first, last in self._data.lists.query_blocks():
            start, stop = offsets[first], offsets[last]
            rows = self._data.rows(start, stop).view()
            rows.flags.writeable = False  # compiled once for both the user's array and a copy
            yield rows, offsets[first : last + 1] - start, self._grades[start:stop], self._weights[start:stop]

    def pairs(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum over pairs and its derivative; at zero weights the sum is the number of pairs."""
        means, factors = self._standard.means, self._standard.factors
        loss, gradient = 0.0, np.zeros(len(weights))
        for block in self._blocks():
            losses, gradients = np.zeros(PARTS), np.zeros((PARTS, len(weights)))
            block_hinge(*block, means, weights * factors, losses, gradients)
            loss += float(losses.sum())
            gradient += gradients.sum(axis=0)
        return loss, gradient * factors

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its derivative."""
        loss, gradient = self.pairs(weights)
        return 0.5 * float(weights @ weights) + self._c * loss, weights + self._c * gradient

    def curvature(self, weights: np.ndarray) -> np.ndarray:
        """The second derivative of the objective.

        A pair within the margin adds (x_i - x_j)(x_i - x_j)ᵀ. Over all of them that is Σ count x xᵀ over documents,
        less Σ x_i S_iᵀ and its transpose over those that should beat others, S_i being the sum of the others.
        """
        means, factors = self._standard.means, self._standard.factors
        total = np.zeros((len(weights), len(weights)))
        for rows, offsets, grades, document_weights in self._blocks():
            higher = np.flatnonzero(grades > 1)
            slots = np.full(len(grades), -1)
            slots[higher] = np.arange(len(higher))
            counts, sums = np.zeros(len(grades)), np.zeros((len(higher), len(weights)))
            block_curvature(
                rows, offsets, grades, document_weights, means, weights * factors, slots, counts, sums
            )  # fmt: skip
            active = np.flatnonzero(counts > 0)
            for part in _parts(active):
                scaled = self._standard.apply(rows[part]) * np.sqrt(counts[part])[:, None]
                total += scaled.T @ scaled
            sums *= factors
            for part in _parts(higher[counts[higher] > 0]):
                beaten = self._standard.apply(rows[part]) * document_weights[part][:, None]
                cross = beaten.T @ sums[slots[part]]
                total -= cross + cross.T
        return np.eye(len(weights)) + 2.0 * self._c * total


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    return (rows[start : start + PRODUCT_ROWS] for start in range(0, len(rows), PRODUCT_ROWS))


@dataclass(frozen=True)
class Solution:
    """The result of Newton's method."""

    weights: np.ndarray
    value: float
    iterations: int
    converged: bool


def newton(objective: PairLoss, n_features: int, after_iteration: Callable[[float], None]) -> Solution:
    """Minimise the objective from zero weights; `after_iteration` gets its value.

    The objective is convex and piecewise quadratic, so the steps end exactly in the minimum once its piece is reached.
    L-BFGS needs hundreds of passes where this needs ten.
    """
    weights = np.zeros(n_features, SCORE)
    value, slope = objective(weights)
    for iteration in range(MAX_ITERATIONS):
        step = _solved(objective.curvature(weights), -slope)
        promised = -float(slope @ step)
        if 0.5 * promised <= TOLERANCE * value:
            return Solution(weights, value, iteration, True)
        factor = 1.0
        for _ in range(MOST_HALVINGS):
            tried, new_slope = objective(weights + factor * step)
            if tried <= value - SUFFICIENT * factor * promised:
                break
            factor /= 2
        else:  # no further decrease can be measured
            return Solution(weights, value, iteration, False)
        weights, value, slope = weights + factor * step, tried, new_slope
        after_iteration(value)
    return Solution(weights, value, MAX_ITERATIONS, False)


def _solved(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The step to the minimum of the quadratic.

    Where features are copies of one another, the only curvature is that of ½|w|², and rounding of sums over billions of
    pairs can cancel it: the diagonal is increased by as much as rounding can subtract.
    """
    diagonal = np.diag_indices_from(curvature)
    curvature[diagonal] *= 1.0 + 1e-12
    curvature[diagonal] += 1e-13 * curvature[diagonal].max()
    return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(curvature, lower=True), slope))


def train_ranksvm(job: TrainingJob, c: float) -> Linear:
    """Find the weights with Newton's method: each step makes two passes over the data in blocks, without a copy."""
    data = training_set(job)
    QueryLabels.of(data.lists).check_grades(data.source, pairs=True)
    valid_sets = validation_sets(job, data)
    standard = Standard.of(data)
    objective = PairLoss(data, standard, c)
    n_pairs, _ = objective.pairs(np.zeros(data.n_features, SCORE))
    seconds: list[float] = []
    clock = time.perf_counter()

    def after_iteration(value: float) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds.append(now - clock)
        clock = now
        values = {"train": {"objective": value / (c * n_pairs)}}  # 1 at zero weights
        record = Record(len(seconds), MAX_ITERATIONS, values, seconds[-1], "objective", None, None, "iteration")
        for callback in job.callbacks:
            callback(record)

    with threadpool_limits(1, user_api="blas"):  # products of matrices on several threads could change bits
        found = newton(objective, data.n_features, after_iteration)
    model = Linear(found.weights, standard, data.feature_names)
    info = {
        **model_info(job.params, data.info, data=sizes_of(data.lists)),
        **measured(job.params, model, valid_sets),
        "objective": found.value,
        "pairs": float(n_pairs),
        "iterations": found.iterations,
        "converged": found.converged,
        "seconds": seconds,
        "round": "iteration",
    }
    return replace(model, info=info)
