"""`Removals`: taking trees out of a forest one by one, knowing at every step what each further one would cost."""

from __future__ import annotations

import numpy as np

from ranksieve.kernels import leave_one_out as kernels
from ranksieve.pruning.outputs import Outputs, Pools, gauge_arrays, n_parts

STEPS = 8  # removals until the pools are made anew; they must hold whatever so many removals may bring up


class Removals:
    """A forest from which trees leave; `total` is the metric of those still there.

    Examples
    --------
    The tree whose removal costs the metric least:

    >>> def cheapest(outputs):
    ...     removals = Removals(outputs)
    ...     return removals.alive[removals.totals().argmax()]
    """

    def __init__(self, outputs: Outputs) -> None:
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
        """The trees still there, in the order of `totals`."""
        return self._alive

    def totals(self) -> np.ndarray:
        """The metric without each of the `alive` trees, summed over lists, in steps."""
        if not self._outputs.gauge.is_fast:
            return np.array([self._outputs.measure(self._without(tree)) for tree in self._alive])
        if self._pools is None or len(self._pending) >= STEPS:
            self._settle()
            margin = sum(map(int, self._reaches[self._alive[: STEPS + 1]]))
            self._pools = Pools(self._outputs, self._scores, self._scores, margin)
        changes = np.zeros((n_parts(), len(self._alive)), np.int64)
        kernels.changes_without(
            self._outputs.leaves, self._alive, self._reaches[self._alive], self._table, self._outputs.starts,
            self._last, *self._pools.arrays, *gauge_arrays(self._outputs.gauge), changes,
        )  # fmt: skip
        self._last = -1
        return self.total + changes.sum(axis=0)

    def remove(self, tree: int, total: int) -> None:
        """Take a tree out; `total` is what `totals` said of it."""
        self._alive = self._alive[self._alive != tree]
        self._pending.append(tree)
        self.removed.append(tree)
        self._last, self.total = tree, total

    def _settle(self) -> None:
        outputs = self._outputs
        self._scores = outputs.scores(-self._table, self._pending, self._scores)
        self._pending, self._last = [], -1

    def _without(self, tree: int) -> np.ndarray:
        self._settle()
        return self._outputs.scores(-self._table, [tree], self._scores)
