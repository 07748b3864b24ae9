"""`TreeOutputs`: the output of every tree for every document, as leaf numbers and leaf values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numba
import numpy as np

from ranksieve.data.lists import Lists, starts_of
from ranksieve.dtypes import ROW, SCORE
from ranksieve.evaluation.metrics import Metric
from ranksieve.forest.forest import Forest
from ranksieve.kernels import pruning as kernels
from ranksieve.pruning.incremental_metric import IncrementalMetric, incremental_metric
from ranksieve.pruning.leaves import LeafTable

SCORE_BITS = 60  # bits of a score and its place; differences of two scores must fit 64 bits
VALUE_BITS = 52  # bits of a score without its place; float64 holds so many exactly


class TreeOutputs:
    """The outputs of a forest's trees on lists, and a metric to evaluate sets of trees with.

    A pruning strategy is called with it.

    A score is a sum of outputs, each rounded to whole units of one power of two, on top of an optional base score per
    document. Integer sums have no order, so the score without a tree is the score less that tree's output, exactly,
    and all results equal those of scoring each smaller forest again. Equal scores are ranked by `Metric.ties`.

    Parameters
    ----------
    forest : Forest
        Whose trees and weights are judged.
    leaves : LeafTable
        The leaf numbers of the documents in those trees, and their base scores, if any.
    metric : Metric

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> def smallest_alone(outputs, n, rng):
    ...     alone = [outputs.total([tree]) for tree in range(outputs.n_trees)]
    ...     return np.argsort(alone, kind="stable")[:n]
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=8, leaves=4)
    >>> rs.prune(model, data, judge_on="train", rate=0.5, strategy=smallest_alone).n_trees
    4
    """

    def __init__(self, forest: Forest, leaves: LeafTable, metric: Metric) -> None:
        self.forest = forest
        self.lists: Lists = leaves.lists
        self.metric = metric
        self.leaves = leaves.numbers
        self.starts = forest.leaf_offsets
        self.incremental: IncrementalMetric = incremental_metric(metric, leaves.lists, leaves.source)
        self._base = np.zeros(self.lists.n_docs) if leaves.base is None else leaves.base
        self._tie_bits = int(self.lists.sizes.max() - 1).bit_length()

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.forest.n_trees

    @property
    def weights(self) -> np.ndarray:
        """The weight of each tree."""
        return self.forest.weights

    @cached_property
    def extent(self) -> np.ndarray:
        """The largest absolute leaf value of each tree."""
        return np.maximum.reduceat(np.abs(self.forest.leaf_values), self.starts[:-1])

    def unit(self, weights: np.ndarray) -> int:
        """The power of two that outputs are multiplied by so that sums under weights up to these cannot overflow."""
        largest = float(np.abs(self._base).max() + np.abs(weights) @ self.extent)
        bits = min(SCORE_BITS - self._tie_bits, VALUE_BITS)
        return bits - 1 - int(np.ceil(np.log2(largest))) if largest > 0 else 0

    def table(self, weights: np.ndarray, unit: int) -> np.ndarray:
        """The weighted output of every leaf in units."""
        values = self.forest.leaf_values * np.repeat(weights, self.forest.n_leaves)
        return np.asarray(np.rint(np.ldexp(values, unit)).astype(np.int64) << self._tie_bits)

    def base(self, unit: int) -> np.ndarray:
        """The base scores in units, and every document's place below them."""
        return np.asarray((np.rint(np.ldexp(self._base, unit)).astype(np.int64) << self._tie_bits) | self._places)

    @cached_property
    def _places(self) -> np.ndarray:
        """Larger for documents that are ranked first where scores are equal."""
        lists = self.lists
        before = lists.labels if self.metric.ties == "worst" else np.zeros(lists.n_docs)
        query = np.repeat(np.arange(lists.n_queries), lists.sizes)
        place = np.empty(lists.n_docs, np.int64)
        place[np.lexsort((before, query))] = np.arange(lists.n_docs)
        return np.repeat(lists.offsets[1:], lists.sizes) - 1 - place

    def reaches(self, table: np.ndarray) -> np.ndarray:
        """How far each tree can move two documents against each other: largest less smallest output."""
        first = self.starts[:-1]
        return np.maximum.reduceat(table, first, axis=0) - np.minimum.reduceat(table, first, axis=0)

    def scores(self, table: np.ndarray, trees: Sequence[int] | np.ndarray, base: np.ndarray) -> np.ndarray:
        """Base scores plus the outputs of some trees."""
        out = np.empty(self.lists.n_docs, np.int64)
        kernels.sum_outputs(self.leaves, np.asarray(trees, np.int64), table, self.starts, base, out)
        return out

    def rounding(self) -> int:
        """More than the rounding of all outputs together can change a score."""
        return (self.n_trees + 1) << self._tie_bits

    def measure(self, scores: np.ndarray) -> int:
        """The metric of scores in units, summed over lists, in steps."""
        return self.incremental.total(scores, self._tie_bits)

    def total(self, kept: Sequence[int] | np.ndarray | None = None, weights: np.ndarray | None = None) -> int:
        """The metric of some trees (all without `kept`) under weights (the forest's), summed over lists, in steps."""
        weights = self.weights if weights is None else weights
        unit = self.unit(weights)
        trees = np.arange(self.n_trees) if kept is None else kept
        return self.measure(self.scores(self.table(weights, unit), trees, self.base(unit)))

    def mean(self, total: int) -> float:
        """The metric as a mean over the lists that count."""
        return self.incremental.mean(total)

    @property
    def total_weight(self) -> float:
        """The weights of the lists that count; 1 each where lists have none."""
        counted = self.incremental.weights > 0
        weights = self.lists.query_weights
        return float(counted.sum() if weights is None else weights[counted].sum())

    def shares(self) -> np.ndarray:
        """Mean over documents of each tree's share w·s/S of the score S; documents that score 0 have no shares."""
        unit = self.unit(self.weights)
        table = self.table(self.weights, unit)
        places = np.zeros(self.lists.n_docs, np.int64)
        scores = self.scores(table, np.arange(self.n_trees), places).astype(SCORE)
        scores += np.ldexp(self._base, unit + self._tie_bits)
        inverse = np.divide(1.0, scores, out=np.zeros_like(scores), where=scores != 0)
        out = np.empty(self.n_trees)
        n_counted = max(1, np.count_nonzero(scores))
        kernels.mean_shares(self.leaves, table.astype(SCORE), self.starts, inverse, n_counted, out)
        return out


def pools_of(outputs: TreeOutputs, low: np.ndarray, high: np.ndarray, margin: int) -> kernels.Pools:
    """The documents that matter if scores lie between `low` and `high`, and two may still move apart by `margin`."""
    offsets, k = outputs.lists.offsets, outputs.incremental.terms.width - 1
    floors, counts = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.int64)
    kernels.find_floors(low, high, offsets, k, min(int(margin), int(kernels.FAR)), floors, counts)
    starts = starts_of(counts)
    pools = kernels.Pools(starts, np.empty(starts[-1], ROW), np.empty(starts[-1], np.int64))
    kernels.fill_pools(low, high, offsets, floors, pools)
    return pools


def n_parts() -> int:
    """The number of parts that lists are divided into: several per thread, as lists differ in length."""
    return 4 * numba.get_num_threads()
