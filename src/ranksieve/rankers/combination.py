"""`combine`: the best weighted sum of two rankers, exactly (Wu et al. 2010, §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.boosting.line_search import ROUNDING, Curve, LineSearch, best_step
from ranksieve.data.dataset import Dataset, check_is_data
from ranksieve.data.lists import Lists
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.evaluate import list_scores
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.rankers.blend import Blend, blend

RANGES = {"convex": (0.0, 1.0), "additive": (0.1, 5.0)}
ALONE = {"convex": (0.0, 1.0), "additive": (0.0,)}  # α at which one of the two rankers has no say


@dataclass(frozen=True)
class Combination:
    """The best α, what it is worth, and the metric at every other.

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
        What was measured.
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
        """The two rankers as one model; one forest where both are forests, and one of them alone where that is best.

        It reads absent features as the rankers were trained to, or as `missing` says where they disagree.
        """
        made = {"form": self.form, "alpha": self.alpha, "metric": str(self.metric), "value": self.value}
        return blend((model_a, model_b), self.weights, {"combination": made}, missing=missing)


def combine(
    scores_a: Any,
    scores_b: Any,
    data: Dataset | Lists,
    metric: str | Metric = "ndcg@10",
    *,
    form: str = "convex",
    range: tuple[float, float] | None = None,
) -> Combination:
    """Find the α at which (1 - α) a + α b, or a + α b, ranks best on some data.

    The answer is exact: the mean of the metric changes only where the scores of two documents of one query cross, and
    every crossing that can touch the k best of a query is visited.

    Parameters
    ----------
    scores_a, scores_b
        One score per document in the row order the data was given in; or a model with `predict`.
    data
        The labelled lists.
    metric
        ndcg, dcg, map, mrr, err, p or recall, with or without a cut-off. Without one, every crossing counts: up to
        n²/2 in a list of n.
    form
        `"convex"`: (1 - α) a + α b. `"additive"`: a + α b.
    range
        The smallest and the largest α; by default 0 to 1, and 0.1 to 5 for the additive form.

    Examples
    --------
    >>> from ranksieve.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.zeros((3, 1)), [0, 2, 0], group=[3])
    >>> found = combine([3.0, 2.0, 0.0], [0.0, 2.0, 3.0], data, "mrr")
    >>> print(found)
    mrr 1.0000 at α = 0.5: 0.5 a + 0.5 b
    >>> found.curve.borders.round(2).tolist(), found.curve.values.tolist()
    ([0.0, 0.33, 0.67, 1.0], [0.5, 1.0, 0.5])
    """
    if form not in RANGES:
        raise ParameterError(f"--form is {form!r}; expected one of {', '.join(RANGES)}")
    low, high = _checked_range(RANGES[form] if range is None else range)
    check_is_data(data)
    lists = data if isinstance(data, Lists) else data.lists
    a, b = (_finite(name, list_scores(name, given, data, lists)) for name, given in (("a", scores_a), ("b", scores_b)))
    search = LineSearch(lists, parse_metric(metric))
    direction = b - a if form == "convex" else b
    alpha, value, curve = best_step(search, a, direction, low, high)
    for place in ALONE[form]:
        measured = search.measure(b if place else a) if low <= place <= high else -np.inf
        if measured > value or (measured >= value - ROUNDING and alpha not in ALONE[form]):
            alpha, value = place, measured
    return Combination(alpha, value, curve, form, search.metric)


def _checked_range(given: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise ParameterError(f"--range is {given!r}; expected two numbers, the smaller one first") from None
    if not -np.inf < low < high < np.inf:
        raise ParameterError(f"--range is {given!r}; expected two finite numbers, the smaller one first")
    return low, high


def _finite(name: str, scores: np.ndarray) -> np.ndarray:
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"the score of document {row} by {name!r} is {scores[row]}; every document needs a number")
    return scores
