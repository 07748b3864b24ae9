"""`combine`: the mean of any number of models, or the exact best weighted sum of two (Wu et al. 2010, §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from ranksieve.boosting.line_search import ROUNDING, Curve, LineSearch, best_step
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.errors import DataError, ParameterError, check_choice, param
from ranksieve.evaluation.evaluate import list_scores
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.score_file import read_for_models
from ranksieve.models.blend import Blend, blend
from ranksieve.pruning.coordinate_ascent import checked_range

RANGES = {"convex": (0.0, 1.0), "additive": (0.1, 5.0)}
ALONE = {"convex": (0.0, 1.0), "additive": (0.0,)}  # α at which one of the two rankers has no weight


@dataclass(frozen=True)
class Combination:
    """The best weighted sum of two rankers, as `combine` returns it: α, the metric at it, and at every other α.

    Attributes
    ----------
    alpha
        0 (or 1) where one ranker alone is as good as any sum; else the middle of the interval with the highest mean,
        the widest one where several are equally high.
    value
        The mean of the metric at `alpha`, equal scores by the mean over their orders.
    curve
        The mean at every α of the range: `curve.values[i]` from `curve.borders[i]` to `curve.borders[i + 1]`.
    form
        `"convex"`, (1 - α) a + α b, or `"additive"`, a + α b.
    metric
        The metric.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(20), rs.synth.cubic(20, start=20)
    >>> a, b = rs.train(train, trees=5, leaves=4), rs.train(train, algo="ranksvm")
    >>> found = rs.combine(a, b, valid)
    >>> found.value >= rs.evaluate(a, valid).mean()
    True
    >>> model = found.model(a, b)
    """

    alpha: float
    value: float
    curve: Curve
    form: str
    metric: Metric

    def __str__(self) -> str:
        first, second = self.weights
        return f"{self.metric} {self.value:.4f} at α = {self.alpha:.6g}: {first:.6g} a + {second:.6g} b"

    @property
    def weights(self) -> tuple[float, float]:
        """The factors of the first and of the second ranker."""
        return (1.0 - self.alpha if self.form == "convex" else 1.0), self.alpha

    def scores(self, scores_a: Any, scores_b: Any) -> np.ndarray:
        """The combined scores of any documents."""
        first, second = self.weights
        return first * np.asarray(scores_a, dtype=np.float64) + second * np.asarray(scores_b, dtype=np.float64)

    def model(self, model_a: Any, model_b: Any, *, missing: str | None = None) -> Forest | Blend:
        """The two rankers as one model. It is one forest if both are forests, or one ranker if its weight is all.

        `missing` is how it reads absent features, by default as in training; give it where the rankers differ.
        """
        made = {"form": self.form, "alpha": self.alpha, "metric": str(self.metric), "value": self.value}
        return blend((model_a, model_b), self.weights, {"combination": made}, missing=missing)


@overload
def combine(
    a: Sequence[Any], *, weights: Sequence[float] | None = None, missing: str | None = None
) -> Forest | Blend: ...


@overload
def combine(
    a: Any,
    b: Any,
    data: Dataset | Lists,
    metric: str | Metric = "ndcg@10",
    *,
    form: str = "convex",
    range: tuple[float, float] | None = None,
) -> Combination: ...


def combine(a: Any, b: Any = None, data: Any = None, metric: str | Metric = "ndcg@10", **options: Any) -> Any:
    """Combine models: the mean of any number, or the best weighted sum of two on some data.

    `combine([a, b, c])` returns the mean of the models, or their sum with the given `weights`, as one model: a forest
    where all are forests.

    `combine(a, b, data)` finds the α at which (1 - α) a + α b, or a + α b, ranks best on the data. The result is exact:
    the mean of the metric changes only where the scores of two documents of one query cross, and every crossing that
    can change the k best of a query is visited.

    Parameters
    ----------
    a, b
        A list of models as `a`, without `b` and `data`. Otherwise two rankers: one score per document in the row order
        of the data, or a model with `predict`.
    data
        The labelled lists.
    metric
        ndcg, dcg, map, mrr, err, p or recall, with or without a cut-off. Without one, every crossing is visited: up to
        n²/2 in a list of n.
    form
        `"convex"`: (1 - α) a + α b. `"additive"`: a + α b.
    range
        The smallest and the largest α; by default 0 to 1, and 0.1 to 5 for the additive form.
    weights
        One weight per model of a list; by default 1 / n each.
    missing
        How the mean of a list reads absent features, `"zero"` or `"nan"`; by default as the models were trained.

    Examples
    --------
    >>> import ranksieve as rs
    >>> models = [rs.train(rs.synth.cubic(20), trees=5, leaves=8, seed=seed) for seed in (1, 2, 3)]
    >>> combine(models)
    Forest(15 trees of up to 8 leaves, 50 features)

    >>> data = rs.Dataset.from_arrays(np.zeros((3, 1)), [0, 2, 0], group=[3])
    >>> found = combine([3.0, 2.0, 0.0], [0.0, 2.0, 3.0], data, "mrr")
    >>> print(found)
    mrr 1.0000 at α = 0.5: 0.5 a + 0.5 b
    >>> found.curve.borders.round(2).tolist(), found.curve.values.tolist()
    ([0.0, 0.33, 0.67, 1.0], [0.5, 1.0, 0.5])
    """
    if b is None and data is None:
        return mean_model(a, **options)
    return _best_combination((a, b), data, metric, **options)


def mean_model(
    models: Sequence[Any], *, weights: Sequence[float] | None = None, missing: str | None = None
) -> Forest | Blend:
    """The mean of models, or their weighted sum, as one model."""
    models = [getattr(model, "model_", model) for model in (models if isinstance(models, Sequence) else [models])]
    unfit = next((model for model in models if not hasattr(model, "predict")), None)
    if unfit is not None or len(models) < 2:
        raise ParameterError(
            f"got {'one model' if unfit is None else type(unfit).__name__} to combine; expected a list of two or more "
            "models, or two rankers and the data on which their weights are found"
        )
    shares = np.full(len(models), 1.0 / len(models)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (len(models),) or not np.isfinite(shares).all() or not shares.any():
        raise ParameterError(
            param("weights"), f" is {weights!r}; expected {len(models)} finite numbers, one per model, not all 0"
        )
    return blend(models, shares, {"combination": {"weights": shares.tolist()}}, missing=missing)


def _best_combination(
    rankers: tuple[Any, Any],
    data: Dataset | Lists,
    metric: str | Metric,
    *,
    form: str = "convex",
    range: tuple[float, float] | None = None,
) -> Combination:
    check_choice("form", form, RANGES)
    low, high = checked_range(RANGES[form] if range is None else range)
    data = read_for_models(data, rankers)
    lists = data if isinstance(data, Lists) else data.lists
    a, b = (_finite(name, list_scores(name, given, data, lists)) for name, given in zip("ab", rankers, strict=True))
    search = LineSearch(lists, parse_metric(metric))
    direction = b - a if form == "convex" else b
    alpha, value, curve = best_step(search, a, direction, low, high)
    for place in ALONE[form]:
        measured = search.measure(b if place else a) if low <= place <= high else -np.inf
        if measured > value or (measured >= value - ROUNDING and alpha not in ALONE[form]):
            alpha, value = place, measured
    return Combination(alpha, value, curve, form, search.metric)


def _finite(name: str, scores: np.ndarray) -> np.ndarray:
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"the score of document {row} by {name!r} is {scores[row]}; every document needs a number")
    return scores
