"""RankSVM: a linear ranker with a squared hinge on every pair of different grades within a query."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ranksieve.boosting.callbacks import Record
from ranksieve.boosting.train import check_grades
from ranksieve.data.dataset import Dataset
from ranksieve.dtypes import SCORE
from ranksieve.kernels.hinge import PARTS, block_hinge, grade_numbers
from ranksieve.rankers.inputs import Standard, Task, query_blocks
from ranksieve.rankers.linear import Linear

MAX_ITERATIONS = 500
# The objective is a mean over pairs, 1 at zero weights. It is quadratic near its least value, so slopes of 1e-6 are
# within 1e-10 of it; a decrease of less than 1e-10 in an iteration ends the search too.
SLOPE_TOLERANCE = 1e-6
DECREASE_TOLERANCE = 1e-10


class PairLoss:
    """`½|w|² + c · Σ max(0, 1 - w·(x_i - x_j))²` over the pairs i ≻ j of each query, of standardised features.

    A document's weight counts in each of its pairs: a pair has the product of the two.
    """

    def __init__(self, data: Dataset, standard: Standard, c: float) -> None:
        lists = data.lists
        self._data, self._means, self._factors, self._c = data, standard.means, standard.factors, c
        self._weights = np.ones(lists.n_docs) if lists.weights is None else lists.weights
        self._grades = np.empty(lists.n_docs, np.int32)
        grade_numbers(lists.labels, lists.offsets, self._grades)
        self._blocks = list(query_blocks(lists))

    def pairs(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum over pairs and its derivative; at zero weights the sum is the number of pairs."""
        offsets, loss, gradient = self._data.offsets, 0.0, np.zeros(len(weights))
        for first, last in self._blocks:
            start, stop = offsets[first], offsets[last]
            rows = self._data.rows(start, stop).view()
            rows.flags.writeable = False  # compiled once, for features that are the user's or a copy alike
            losses, gradients = np.zeros(PARTS), np.zeros((PARTS, len(weights)))
            block_hinge(
                rows, offsets[first : last + 1] - start, self._grades[start:stop], self._weights[start:stop],
                self._means, weights * self._factors, losses, gradients,
            )  # fmt: skip
            loss += losses.sum()
            gradient += gradients.sum(axis=0)
        return loss, gradient * self._factors

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its derivative."""
        loss, gradient = self.pairs(weights)
        return 0.5 * float(weights @ weights) + self._c * loss, weights + self._c * gradient


def train_ranksvm(task: Task) -> Linear:
    """Learn the weights with L-BFGS; every step is one pass over the data in blocks, without a copy of it."""
    data, params = task.dataset(), task.params
    check_grades(data.lists, data.source, pairs=True)
    valid_sets = task.valid_sets(data)
    standard = Standard.of(data)
    objective = PairLoss(data, standard, params.c)
    n_pairs, _ = objective.pairs(np.zeros(data.n_features, SCORE))
    unit = params.c * n_pairs  # the search works on a mean, so that its tolerances mean the same for all data
    seconds: list[float] = []
    clock = time.perf_counter()

    def scaled(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(weights)
        return value / unit, gradient / unit

    def after_iteration(intermediate_result: Any) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds.append(now - clock)
        clock = now
        values = {"train": {"objective": float(intermediate_result.fun)}}
        record = Record(len(seconds), MAX_ITERATIONS, values, seconds[-1], "objective", None, None, "iteration")
        for callback in task.callbacks:
            callback(record)

    found = minimize(
        scaled, np.zeros(data.n_features), jac=True, method="L-BFGS-B", callback=after_iteration,
        options={"maxiter": MAX_ITERATIONS, "maxcor": 20, "gtol": SLOPE_TOLERANCE, "ftol": DECREASE_TOLERANCE},
    )  # fmt: skip
    model = Linear(found.x, standard, data.feature_names)
    info = {
        **task.info(data),
        **task.measured(model, valid_sets),
        "objective": float(found.fun * unit),
        "pairs": float(n_pairs),
        "iterations": int(found.nit),
        "converged": bool(found.success),
        "seconds": seconds,
        "round": "iteration",
    }
    return replace(model, info=info)
