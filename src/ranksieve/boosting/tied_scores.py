"""Whether a validation metric owes its value to the order in which documents with equal scores were given."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksieve.boosting.callbacks import ForestValidation, Monitor
from ranksieve.boosting.loop import Rounds
from ranksieve.boosting.tree import Tree
from ranksieve.errors import ClusterError, DataError, TiedScoresWarning, caller_level, param
from ranksieve.evaluation.metric_names import known_metric, with_ties
from ranksieve.evaluation.metrics import Metric, mean

TOLERATED = 0.05  # share of the metric by which the worst order of equal scores may be worse than the input order
CHANCE = 3.0  # standard deviations
ROUNDING = 1e-12  # means over orders are rounded


def depends_on_input_order(metric: Metric) -> bool:
    """Whether equal scores keep the input order, and the mean over their orders is known; not of a user's metric."""
    return metric.ties == "order" and known_metric(metric.name).mean_ties


@dataclass(frozen=True)
class BestScores:
    """Keeps the scores of a validation set after each tree that makes it better: mostly no second pass is needed."""

    valid: ForestValidation
    monitor: Monitor

    def __call__(self, state: Rounds) -> None:
        if self.monitor.best_step == state.step:
            self.valid.keep_scores()


def warn_of_ties(valid: ForestValidation, trees: Sequence[Tree], metric: Metric) -> None:
    """Warn if the metric of a forest is high because the input order of equal scores is a good one.

    Lists that are sorted by label then look perfect where a forest cannot tell their documents apart, and early
    stopping keeps such a forest.
    """
    orders = [metric, replace(metric, ties="mean"), replace(metric, ties="worst")]
    try:
        values = valid.measure_again(trees, orders)
    except (ClusterError, DataError, MemoryError):
        return  # the model is finished: lost workers or memory must not take it away
    ordered, average, worst = (mean(one, valid.weights) for one in values)
    if ordered - worst > TOLERATED * ordered and _is_significant(values[0], values[1]):
        _warn(f"{valid.name}: {metric}", ordered, average, worst, with_ties(str(metric), "mean"))


def _is_significant(ordered: np.ndarray, average: np.ndarray) -> bool:
    """Whether the input order is better than the mean over orders in more queries than a random order would be.

    A random order is better than the mean in about half of the queries at most. Any order is far better than the worst.
    """
    better, worse = (int((sign * (ordered - average) > ROUNDING).sum()) for sign in (1, -1))
    return better - worse > CHANCE * math.sqrt(better + worse)


def _warn(name: str, ordered: float, average: float, worst: float, remedy: str) -> None:
    warnings.warn(
        TiedScoresWarning(
            f"{name} is {ordered:.4f} with equal scores in input order, {average:.4f} in the mean over their orders, "
            f"{worst:.4f} in the worst; if the documents are sorted by label, shuffle those of each query, or use ",
            param("metric", remedy),
        ),
        stacklevel=caller_level(),
    )
