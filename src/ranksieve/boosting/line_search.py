"""The exact best step along a line of scores (Wu et al. 2010, §4): a metric at every t of `scores + t * direction`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numba
import numpy as np

from ranksieve.data.lists import Lists
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation import metric_table
from ranksieve.evaluation.metrics import Metric, mean
from ranksieve.kernels import crossings

SHARES = 4  # pieces of work per thread: queries differ in length
TRIES = 8  # intervals measured at most, where the best of them are too narrow to be hit
ROUNDING = 1e-12  # means of the same values summed in another order differ by less


@dataclass(frozen=True)
class Curve:
    """A mean metric that is constant between neighbouring borders: `values[i]` from `borders[i]` to `borders[i + 1]`.

    The first border is the low end of the range, the last one the high end.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve(np.array([0.0, 0.4, 1.0]), np.array([0.7, 0.9]))
    >>> curve.at(np.array([0.1, 0.5])).tolist()
    [0.7, 0.9]
    """

    borders: np.ndarray
    values: np.ndarray

    def at(self, places: np.ndarray) -> np.ndarray:
        """The values at some places; at a border, the value behind it.

        Examples
        --------
        >>> Curve(np.array([0.0, 0.4, 1.0]), np.array([0.7, 0.9])).at(np.array([0.1, 0.4, 1.0])).tolist()
        [0.7, 0.9, 0.9]
        """
        found = np.searchsorted(self.borders, places, side="right") - 1
        return self.values[np.clip(found, 0, len(self.values) - 1)]

    def best(self) -> Iterator[tuple[float, float]]:
        """The middles of the intervals and the values there, best first, and of equally good ones the widest first.

        Examples
        --------
        >>> next(Curve(np.array([0.0, 0.4, 1.0]), np.array([0.7, 0.9])).best())
        (0.7, 0.9)
        """
        widths = np.diff(self.borders)
        left = self.values.copy()
        while True:
            highest = left.max()
            if highest == -np.inf:
                return
            i = int(np.argmax(np.where(left >= highest - ROUNDING, widths, -1.0)))
            yield float(self.borders[i] + 0.5 * widths[i]), float(self.values[i])
            left[i] = -np.inf


class LineSearch:
    """A metric along lines of scores of the same lists; what does not depend on the scores is computed once.

    Equal scores count by the mean over their orders, for any `ties` of the metric; queries count by their weights.
    `ndcg@10` of lists of thousands costs little more than sorting them; a metric without a cut-off changes at every
    crossing of two documents of a query, up to n²/2 of them.
    """

    def __init__(self, lists: Lists, metric: Metric) -> None:
        definition = metric_table.METRICS[metric.name]
        if not definition.is_sum:
            able = ", ".join(name for name, other in metric_table.METRICS.items() if other.is_sum)
            raise ParameterError(f"the line search does not support {metric}; use one of {able}")
        self.metric = replace(metric, ties="mean")
        self._lists = lists
        labels, offsets = lists.labels, lists.offsets
        zero = self.metric.per_query(labels, np.zeros(len(labels)), offsets)
        weights = np.ones(lists.n_queries) if lists.query_weights is None else lists.query_weights
        self._total_weight = float(weights[~np.isnan(zero)].sum())
        if not self._total_weight:
            raise DataError(f"{metric} is undefined because no query has a positive document; use other data")
        positives = metric_table.count_positives(self.metric, labels, offsets)
        fixed = (positives == 0) | metric_table.label_counts(labels, offsets)[1] | np.isnan(zero)
        norms = metric_table.norms(self.metric, labels, offsets)
        scales = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
        self._scales = np.where(fixed, 0.0, weights * scales)
        self._fixed = float(np.nansum((weights * zero)[fixed]))
        assert definition.gain is not None
        self._kind = definition.kind
        self._gains = np.ascontiguousarray(definition.gain(self.metric, labels)(labels), dtype=SCORE)
        self._rank_weights = metric_table.rank_weights(self.metric, offsets)
        self._k = metric.k or metric_table.WHOLE_LIST

    def curve(self, scores: np.ndarray, direction: np.ndarray, low: float, high: float) -> Curve:
        """The mean metric of `scores + t * direction` at every t from low to high, exactly."""
        if not low < high:
            raise ParameterError(f"the range runs from {low:g} to {high:g}; expected the smaller number first")
        offsets = self._lists.offsets
        first = np.empty(self._lists.n_queries)

        def sweep(part: slice) -> tuple[np.ndarray, np.ndarray]:
            own = offsets[part.start : part.stop + 1]
            rows = slice(own[0], own[-1])
            swept: tuple[np.ndarray, np.ndarray] = crossings.sweep_queries(
                scores[rows], direction[rows], self._gains[rows], own - own[0], self._scales[part],
                float(low), float(high), self._k, self._kind, self._rank_weights, first[part],
            )  # fmt: skip
            return swept

        threads = numba.get_num_threads()
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], SHARES * threads + 1)[1:-1])
        borders = np.unique(np.concatenate([[0], cuts, [self._lists.n_queries]]))
        parts = [slice(int(a), int(b)) for a, b in itertools.pairwise(borders)]
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(sweep, parts))
        return self._joined(first, found, low, high)

    def measure(self, scores: np.ndarray) -> float:
        """The mean metric of some scores."""
        lists = self._lists
        return mean(self.metric.per_query(lists.labels, scores, lists.offsets), lists.query_weights)

    def _joined(self, first: np.ndarray, found: list[tuple[np.ndarray, np.ndarray]], low: float, high: float) -> Curve:
        times = np.concatenate([times for times, _ in found])
        order = np.argsort(times, kind="stable")
        times, deltas = times[order], np.concatenate([deltas for _, deltas in found])[order]
        level = first.sum() + self._fixed
        last = np.append(times[1:] != times[:-1], len(times) > 0)[: len(times)]  # changes at one place are one
        places, values = times[last], level + np.cumsum(deltas)[last]
        if not len(places) or places[0] > low:
            places, values = np.append(low, places), np.append(level, values)
        return Curve(np.append(places, high), values / self._total_weight)


def best_step(
    search: LineSearch, scores: np.ndarray, direction: np.ndarray, low: float, high: float
) -> tuple[float, float, Curve]:
    """The t in a range at which `scores + t * direction` is best, the metric measured there, and the whole curve.

    Intervals may be too narrow for the scores computed inside them to keep their order. Therefore the metric is
    measured at the t that is returned: the next best intervals are tried until none of them has a higher value.
    """
    curve = search.curve(scores, direction, low, high)
    best, value = low, -np.inf
    for place, expected in itertools.islice(curve.best(), TRIES):
        if expected <= value + ROUNDING:
            break
        measured = search.measure(scores + place * direction)
        if measured > value:
            best, value = place, measured
    return best, value, curve
