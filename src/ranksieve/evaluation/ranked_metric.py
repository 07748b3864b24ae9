"""`RankedMetric`: a metric at a cut-off, of lists that are ranked elsewhere."""

from __future__ import annotations

import numpy as np

from ranksieve.evaluation.metric_table import (
    METRICS,
    Ranking,
    count_positives,
    counts_of,
    divide,
    norms,
    rank_weights,
    sums_of,
)
from ranksieve.evaluation.metrics import Metric


class RankedMetric:
    """The metric of every query, given its best documents; what does not depend on the ranking is computed once.

    Examples
    --------
    >>> from ranksieve.evaluation.metrics import parse_metric
    >>> labels, offsets = np.array([2, 0, 1, 0, 1], np.float32), np.array([0, 3, 5])
    >>> ranked = RankedMetric(parse_metric("ndcg@2"), labels, offsets)
    >>> ranked.per_query(np.array([1, 2, 4, 3])).round(4).tolist()  # two documents of each query, best first
    [0.1738, 1.0]
    """

    @staticmethod
    def can_measure(metric: Metric) -> bool:
        """Whether the metric is a sum over the k best documents, with ties in their order."""
        return metric.k is not None and metric.depends_on_top_k and METRICS[metric.name].is_sum

    def __init__(self, metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> None:
        gain = METRICS[metric.name].gain
        assert gain is not None
        self._metric, self._labels, self._gain = metric, labels, gain(metric, labels)
        self.starts = np.concatenate([[0], np.cumsum(counts_of(metric, offsets))]).astype(np.int64)
        self._ends = np.arange(1, self.starts[-1] + 1) - np.repeat(self.starts[:-1], np.diff(self.starts))
        self._weights, self._norms = rank_weights(metric, offsets), norms(metric, labels, offsets)
        self._norms[count_positives(metric, labels, offsets) == 0] = 0.0
        self._offsets = offsets

    def per_query(self, rows: np.ndarray) -> np.ndarray:
        """One number per query, whose best documents are `rows[starts[q]:starts[q + 1]]`."""
        ranking = Ranking(self._gain(self._labels[rows]), self.starts, self._ends)
        values = divide(sums_of(self._metric, ranking, self._weights), self._norms)
        return self._metric.finished(values, self._labels, self._offsets)
