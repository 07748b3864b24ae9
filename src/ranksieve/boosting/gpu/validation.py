"""`GpuValidationSet`: a data set that is measured after each tree, scored and ranked on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import ValidationSet, measure_in_blocks
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.gpu.selections import LIST_THREADS
from ranksieve.boosting.tree import Tree
from ranksieve.cuda import ranking
from ranksieve.cuda.device import CudaGraph, copy_values, download, empty, upload
from ranksieve.dtypes import SCORE
from ranksieve.evaluation.metrics import Metric, RankedMetric


@dataclass
class GpuValidationSet(ValidationSet):
    """A validation set; a metric at a cut-off k needs only the k best documents of each query on the host."""

    scores: GpuScores  # type: ignore[assignment]
    _kept: tuple[int, Any] | None = None  # a number of trees, and the scores under these trees, on the device
    _ranked: dict[Metric, tuple[RankedMetric, Any]] = field(default_factory=dict)

    def keep_scores(self) -> None:
        """See `ValidationSet.keep_scores`."""
        copy = empty(len(self.scores.values), SCORE) if self._kept is None else self._kept[1]
        copy_values(copy, self.scores.values)
        self._kept = self.scores.n_trees, copy

    def measure_again(self, trees: Sequence[Tree], metrics: Sequence[Metric]) -> list[np.ndarray]:
        """See `ValidationSet.measure_again`."""
        return measure_in_blocks(metrics, self.data.lists, self._scores_under(trees))

    def _scores_under(self, trees: Sequence[Tree]) -> np.ndarray:
        if self._kept is not None and self._kept[0] == len(trees) != self.scores.n_trees:
            return download(self._kept[1])
        scores = self.scores
        if scores.n_trees != len(trees):
            scores = scores.restarted(self.start)  # a resumed run whose best tree is an earlier one
            for tree in trees:
                scores.add(tree)
        return scores.all()

    def per_query(self, trees: Sequence[Tree], metric: Metric) -> np.ndarray:
        for tree in trees[self.scores.n_trees :]:
            self.scores.add(tree)
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
