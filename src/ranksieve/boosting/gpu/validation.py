"""`GpuValidationSet`: a data set that is measured after each tree, scored and ranked on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import defined_mean
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.gpu.selections import LIST_THREADS
from ranksieve.boosting.loop import State
from ranksieve.boosting.tree import Tree
from ranksieve.cuda import ranking
from ranksieve.cuda.device import CudaGraph, download, empty, upload
from ranksieve.data.binned import Binned
from ranksieve.evaluation.metrics import Metric
from ranksieve.evaluation.ranked_metric import RankedMetric


@dataclass
class GpuValidationSet:
    """A validation set; a metric at a cut-off k needs only the k best documents of each query on the host."""

    name: str
    data: Binned
    scores: GpuScores
    start: float | np.ndarray = 0.0  # the scores before the first tree
    _ranked: dict[Metric, tuple[RankedMetric, Any]] = field(default_factory=dict)

    def measure(self, state: State, metric: Metric) -> float:
        for tree in state.trees[self.scores.n_trees :]:
            self.scores.add(tree)
        return defined_mean(self._per_query(metric), self.weights, metric, self.name)

    @property
    def weights(self) -> np.ndarray | None:
        """Of the queries."""
        return self.data.lists.query_weights

    def measure_again(self, trees: Sequence[Tree], metrics: Sequence[Metric]) -> list[np.ndarray]:
        """See `ValidationSet.measure_again`."""
        lists, again = self.data.lists, self.scores.restarted(self.start)
        for tree in trees:
            again.add(tree)
        return [metric.per_query(lists.labels, again.all(), lists.offsets) for metric in metrics]

    def _per_query(self, metric: Metric) -> np.ndarray:
        lists = self.data.lists
        if not RankedMetric.can_measure(metric):
            return metric.per_query(lists.labels, self.scores.all(), lists.offsets)
        if metric not in self._ranked:
            ranked = RankedMetric(metric, lists.labels, lists.offsets)
            n = int(ranked.starts[-1])
            first = np.repeat(lists.offsets[:-1], np.diff(ranked.starts))
            starts, places, order = upload(ranked.starts), empty(n, np.int32), empty(n, np.int32)
            rank = CudaGraph(partial(self._rank, starts, places, order))
            self._ranked[metric] = ranked, (rank, order, first)
        ranked, (rank, order, first) = self._ranked[metric]
        rank.run()
        return ranked.per_query(download(order) + first)

    def _rank(self, starts: Any, places: Any, order: Any) -> None:
        """The best documents of each query, best first."""
        ranking.best_of_lists[self.data.lists.n_queries, LIST_THREADS](
            self.scores.values, self._offsets, starts, places, order
        )

    @cached_property
    def _offsets(self) -> Any:
        return upload(self.data.lists.offsets)
