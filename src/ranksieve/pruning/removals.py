"""`Removals`: the metric of a forest from which trees are removed one by one."""

from __future__ import annotations

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.kernels import leave_one_out as kernels
from ranksieve.kernels.pruning import Pools
from ranksieve.pruning.tree_outputs import TreeOutputs, n_parts, pools_of

MOST_REMOVED = 8  # removals after which pools are rebuilt; they hold every document that these can bring up


class Removals:
    """A forest from which trees are removed one by one.

    Totals are sums of the metric over lists, in steps: integers, so that equal metrics are equal numbers. A step is a
    power of two; `outputs.mean(total)` is the metric itself.

    Examples
    --------
    A strategy that removes the tree whose removal costs the metric least, again and again:

    >>> import ranksieve as rs
    >>> def cheapest(outputs, n, rng):
    ...     removals = rs.pruning.Removals(outputs)
    ...     for _ in range(n):
    ...         removals.remove(removals.alive[removals.totals().argmax()])
    ...     return removals.removed
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=8, leaves=4)
    >>> rs.prune(model, data, judge_on="train", rate=0.5, strategy=cheapest).n_trees
    4
    """

    def __init__(self, outputs: TreeOutputs) -> None:
        unit = outputs.unit(outputs.weights)
        self._outputs = outputs
        self._table = outputs.table(outputs.weights, unit)
        self._scores = outputs.scores(self._table, np.arange(outputs.n_trees), outputs.base(unit))
        self._reaches = outputs.reaches(self._table)
        self._alive = np.lexsort((np.arange(outputs.n_trees), -self._reaches))  # reaches fall along them
        self._pending: list[int] = []  # removed, but still in `_scores`
        self._pools: Pools | None = None
        self._room = 0  # how many more removals the pools allow
        self._in_pools: list[int] = []  # removed, but still in the scores of the pools
        self._totals: np.ndarray | None = None  # without each of `_alive`
        self._total: int | None = outputs.measure(self._scores)
        self.removed: list[int] = []

    @property
    def alive(self) -> np.ndarray:
        """The remaining trees, in the order of `totals`."""
        return self._alive

    @property
    def total(self) -> int:
        """The metric of the remaining trees, summed over lists, in steps."""
        if self._total is None:
            self._apply_removals()
            self._total = self._outputs.measure(self._scores)
        return self._total

    def totals(self) -> np.ndarray:
        """The metric without each of the `alive` trees, summed over lists, in steps."""
        if self._totals is None:
            is_fast = self._outputs.incremental.is_fast
            self._totals = self.total + self._changes() if is_fast else self._measured_anew()
        return self._totals.copy()

    def remove(self, tree: int) -> None:
        """Remove one of the `alive` trees."""
        places = np.flatnonzero(self._alive == tree)
        if not len(places):
            raise ParameterError(f"tree {tree} is not in the forest, or removed already; remove one of `alive`")
        self._total = None if self._totals is None else int(self._totals[places[0]])
        self._totals = None
        self._alive = self._alive[self._alive != tree]
        for trees in (self._pending, self._in_pools, self.removed):
            trees.append(int(tree))
        self._room -= 1

    def _changes(self) -> np.ndarray:
        """What the metric gains by removing each of the `alive` trees."""
        if self._pools is None or self._room <= 0:
            self._apply_removals()
            margin = sum(map(int, self._reaches[self._alive[: MOST_REMOVED + 1]]))
            self._pools, self._room = pools_of(self._outputs, self._scores, self._scores, margin), MOST_REMOVED
            self._in_pools = []
        changes = np.zeros((n_parts(), len(self._alive)), np.int64)
        kernels.changes_without(
            self._outputs.leaves, self._alive, self._reaches[self._alive], self._table, self._outputs.starts,
            np.array(self._in_pools, np.int64), self._pools, self._outputs.incremental.terms, changes,
        )  # fmt: skip
        self._in_pools = []
        return np.asarray(changes.sum(axis=0))

    def _measured_anew(self) -> np.ndarray:
        """`totals` of a metric that is not a sum of terms."""
        self._apply_removals()
        without = (self._outputs.scores(-self._table, [tree], self._scores) for tree in self._alive)
        return np.array([self._outputs.measure(scores) for scores in without], np.int64)

    def _apply_removals(self) -> None:
        if self._pending:
            self._scores = self._outputs.scores(-self._table, self._pending, self._scores)
            self._pending = []
