"""`interpolate`: weights for any number of rankers, found by Powell's method on validation data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.errors import ParameterError, param
from ranksieve.evaluation.evaluate import list_scores
from ranksieve.evaluation.metrics import Metric, mean, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.score_file import read_for_models
from ranksieve.models.blend import Blend, blend

WIDEST = 10.0  # weights, in units of the scores' spreads, run from 0 to this
PRECISION = 1e-3


@dataclass(frozen=True)
class Interpolation:
    """Weights of rankers, as `interpolate` returns them.

    Attributes
    ----------
    weights
        One per ranker, from 0.
    value
        The metric of the weighted sum on the data that weights were optimized on.
    alone
        The metric of each ranker alone on that data.
    metric
        The metric.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(20, start=20)
    >>> rankers = [rs.train(train, trees=5, leaves=4), rs.train(train, algo="ranksvm")]
    >>> found = rs.interpolate(rankers, valid)
    >>> found.weights.shape, bool(found.value >= found.alone.max())
    ((2,), True)
    >>> model = found.model(rankers)
    """

    weights: np.ndarray
    value: float
    alone: np.ndarray
    metric: Metric

    def __str__(self) -> str:
        weights = " ".join(f"{weight:.4g}" for weight in self.weights)
        return f"{self.metric} {self.value:.4f} with weights {weights}; the best alone {self.alone.max():.4f}"

    def scores(self, scores: Sequence[Any]) -> np.ndarray:
        """The interpolated scores of any documents."""
        return np.asarray(self.weights @ np.asarray(scores, dtype=np.float64))

    def model(self, models: Sequence[Any], *, missing: str | None = None) -> Forest | Blend:
        """The rankers as one model; one forest if all are forests.

        `missing` is how it reads absent features, by default as in training; give it where the rankers differ.
        """
        made = {"weights": self.weights.tolist(), "metric": str(self.metric), "value": self.value}
        return blend(models, self.weights, {"interpolation": made}, missing=missing)


def interpolate(
    rankers: Sequence[Any] | Mapping[str, Any],
    data: Dataset | Lists,
    metric: str | Metric = "ndcg@10",
    *,
    start: Sequence[float] | None = None,
) -> Interpolation:
    """Find non-negative weights with which the sum of rankers' scores ranks best on validation data.

    Powell's method optimizes one direction after the other without derivatives. Scores are divided by their standard
    deviation first; the weights returned are for the original scores. On the data they are never worse than the start
    or the best ranker alone. For two rankers `combine` is exact.

    Parameters
    ----------
    rankers
        Scores, one array per ranker in the row order of the data, or models with `predict`.
    data
        The labelled lists on which the weights are optimized; evaluate them on others.
    metric
        Any metric.
    start
        Initial weights, one per ranker; by default equal weights of the scaled scores.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.Dataset.from_arrays(np.zeros((3, 1)), [0, 2, 1], group=[3])
    >>> found = interpolate([[3.0, 2.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]], data)
    >>> found.value, found.weights.round(2).tolist()
    (1.0, [0.0, 1.22, 0.0])
    """
    named = rankers if isinstance(rankers, Mapping) else {f"ranker {i}": one for i, one in enumerate(rankers, start=1)}
    if not named:
        raise ParameterError("got no rankers to interpolate; give at least one")
    data = read_for_models(data, named.values())
    lists = data if isinstance(data, Lists) else data.lists
    measured = parse_metric(metric)
    scores = np.stack([list_scores(name, one, data, lists) for name, one in named.items()])
    spreads = scores.std(axis=1)
    spreads[spreads == 0.0] = 1.0
    scaled = scores / spreads[:, None]

    def value_of(weights: np.ndarray) -> float:
        return mean(measured.per_query(lists.labels, weights @ scaled, lists.offsets), lists.query_weights)

    first = np.ones(len(scaled)) if start is None else _checked_start(start, len(scaled)) * spreads
    singles = np.eye(len(scaled))
    bounds = [(0.0, max(WIDEST, float(first.max())))] * len(first)
    options = {"xtol": PRECISION, "ftol": 1e-6}
    found = scipy.optimize.minimize(
        lambda weights: -value_of(weights), first, method="Powell", bounds=bounds, options=options
    )
    candidates = [*singles, first, np.clip(found.x, 0.0, None)]
    values = [value_of(weights) for weights in candidates]
    best = int(np.argmax(values))
    return Interpolation(
        weights=candidates[best] / spreads, value=values[best], alone=np.array(values[: len(singles)]), metric=measured
    )


def _checked_start(start: Sequence[float], n_rankers: int) -> np.ndarray:
    weights = np.asarray(start, dtype=np.float64)
    if weights.shape != (n_rankers,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ParameterError(
            param("start"), f" is {start!r}; expected {n_rankers} weights, one per ranker, not negative and not all 0"
        )
    return weights
