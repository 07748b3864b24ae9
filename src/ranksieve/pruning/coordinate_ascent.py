"""Refitting the weights of a forest's trees one at a time, each at its exact optimum (Wu et al. 2010, §4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.boosting.line_search import ROUNDING, LineSearch, best_step
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError, check_whole, param
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.text_formats import is_monotone


def refit(
    forest: Forest,
    data: Dataset,
    metric: str | Metric = "ndcg@10",
    *,
    range: tuple[float, float] = (0.1, 5.0),
    rounds: int = 1,
    callback: Callable[[int, float], None] | None = None,
) -> Forest:
    """The forest with other tree weights: coordinate ascent on a metric, which never falls from one tree to the next.

    Parameters
    ----------
    forest
        Any forest.
    data
        The lists on which the weights are fitted.
    metric
        What is maximised; equal scores count by the mean over their orders.
    range
        The smallest and the largest factor by which the weight a tree has in `forest` may be multiplied; from 0 up for
        a forest that was trained under monotone constraints.
    rounds
        How often to go through all trees; it ends sooner where a round changes nothing.
    callback
        Called after each tree with the number of trees seen and the metric.

    Returns
    -------
    Forest
        Its `info["refit"]` holds the metric before and after every tree.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> forest = rs.train(data, algo="lambdamart", trees=5, leaves=4)
    >>> curve = refit(forest, data).info["refit"]["values"]
    >>> curve == sorted(curve), curve[-1] > curve[0]
    (True, True)
    """
    low, high = checked_range(range)
    if low < 0 and is_monotone(forest.info):
        raise ParameterError(
            param("range"),
            f" begins at {low:g}, and a negative weight would break the constraints that the forest was trained with, ",
            param("monotone", forest.info["params"]["monotone"]),
            "; begin at 0 or above",
        )
    check_whole("rounds", rounds)
    search = LineSearch(data.lists, parse_metric(metric))
    factors, values = _ascend(forest, data, search, (low, high), rounds, callback or (lambda tree, value: None))
    made = {"metric": str(search.metric), "range": [low, high], "values": values}
    return replace(forest.reweighted(forest.weights * factors), info={**forest.info, "refit": made})


def checked_range(given: Any) -> tuple[float, float]:
    """The two ends of a range; an error if they are not finite numbers in ascending order."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not -np.inf < low < high < np.inf:
        raise ParameterError(param("range"), f" is {given!r}; expected two finite numbers, the smaller one first")
    return low, high


def _ascend(
    forest: Forest,
    data: Dataset,
    search: LineSearch,
    bounds: tuple[float, float],
    rounds: int,
    callback: Callable[[int, float], None],
) -> tuple[np.ndarray, list[float]]:
    """Factors of the trees' weights, and the metric before the first change and after every tree."""
    factors = np.ones(forest.n_trees)
    scores = data.lists.ordered(forest.predict(data))
    values = [search.measure(scores)]
    for _ in range(rounds):
        before = values[-1]
        for tree in range(forest.n_trees):
            direction = data.lists.ordered(forest.take([tree]).predict(data))
            without = scores - factors[tree] * direction
            factor, value, _curve = best_step(search, without, direction, *bounds)
            better = value > values[-1] + ROUNDING
            if better:
                factors[tree], scores = factor, without + factor * direction
            values.append(value if better else values[-1])
            callback(len(values) - 1, values[-1])
        if values[-1] <= before:
            break
    return factors, values
