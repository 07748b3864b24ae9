"""`Removals`: the metric of a forest from which trees are removed one by one."""

from __future__ import annotations

import numpy as np

from ranksieve.kernels import leave_one_out as kernels
from ranksieve.kernels.pruning import Pools
from ranksieve.pruning.tree_outputs import TreeOutputs, n_parts, pools_of

STEPS = 8  # removals after which the pools are rebuilt; they hold every document that these removals can bring up


class Removals:
    """A forest from which trees are removed one by one; `total` is the metric of the remaining ones.

    Examples
    --------
    The tree whose removal costs the metric least:

    >>> def cheapest(outputs):
    ...     removals = Removals(outputs)
    ...     return removals.alive[removals.totals().argmax()]
    """

    def __init__(self, outputs: TreeOutputs) -> None:
        unit = outputs.unit(outputs.weights)
        self._outputs = outputs
        self._table = outputs.table(outputs.weights, unit)
        self._scores = outputs.scores(self._table, np.arange(outputs.n_trees), outputs.base(unit))
        self._reaches = outputs.reaches(self._table)
        self._alive = np.lexsort((np.arange(outputs.n_trees), -self._reaches))  # reaches fall along them
        self._pools: Pools | None = None
        self._pending: list[int] = []  # removed, but still in `_scores`
        self._last = -1  # removed, but still in the pools
        self.removed: list[int] = []
        self.total = outputs.measure(self._scores)

    @property
    def alive(self) -> np.ndarray:
        """The remaining trees, in the order of `totals`."""
        return self._alive

    def totals(self) -> np.ndarray:
        """The metric without each of the `alive` trees, summed over lists, in steps."""
        if not self._outputs.incremental.is_fast:
            return np.array([self._outputs.measure(self._without(tree)) for tree in self._alive])
        if self._pools is None or len(self._pending) >= STEPS:
            self._apply_removals()
            margin = sum(map(int, self._reaches[self._alive[: STEPS + 1]]))
            self._pools = pools_of(self._outputs, self._scores, self._scores, margin)
        changes = np.zeros((n_parts(), len(self._alive)), np.int64)
        kernels.changes_without(
            self._outputs.leaves, self._alive, self._reaches[self._alive], self._table, self._outputs.starts,
            self._last, self._pools, self._outputs.incremental.terms, changes,
        )  # fmt: skip
        self._last = -1
        return np.asarray(self.total + changes.sum(axis=0))

    def remove(self, tree: int, total: int) -> None:
        """Remove a tree; `total` is its entry in `totals`."""
        self._alive = self._alive[self._alive != tree]
        self._pending.append(tree)
        self.removed.append(tree)
        self._last, self.total = tree, total

    def _apply_removals(self) -> None:
        outputs = self._outputs
        self._scores = outputs.scores(-self._table, self._pending, self._scores)
        self._pending, self._last = [], -1

    def _without(self, tree: int) -> np.ndarray:
        self._apply_removals()
        return self._outputs.scores(-self._table, [tree], self._scores)
