"""Pruning strategies: which trees are removed.

A strategy is a function `(outputs, n, rng)` of the `TreeOutputs`, the number of trees to remove and a random generator.
It returns the numbers of those trees. Or it yields a `Proposal` for every improvement, the last being the best: then
progress is shown, and an interrupted run keeps what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ranksieve.kernels import leave_one_out as kernels
from ranksieve.pruning.tree_outputs import Pools, TreeOutputs, n_parts

STEPS = 8  # removals after which the pools are rebuilt; they hold every document that so many removals can bring up
DRAWS = 100  # random sets tried


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
            self._settle()
            margin = sum(map(int, self._reaches[self._alive[: STEPS + 1]]))
            self._pools = Pools(self._outputs, self._scores, self._scores, margin)
        changes = np.zeros((n_parts(), len(self._alive)), np.int64)
        kernels.changes_without(
            self._outputs.leaves, self._alive, self._reaches[self._alive], self._table, self._outputs.starts,
            self._last, *self._pools.arrays, *self._outputs.incremental.arrays, changes,
        )  # fmt: skip
        self._last = -1
        return self.total + changes.sum(axis=0)

    def remove(self, tree: int, total: int) -> None:
        """Remove a tree; `total` is its entry in `totals`."""
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


class Proposal(NamedTuple):
    """Trees to remove; the metric without them, if known (`TreeOutputs.total`); the share of the work that is done."""

    trees: np.ndarray
    total: int | None = None
    done: float = 1.0


Strategy = Callable[[TreeOutputs, int, np.random.Generator], "np.ndarray | Iterator[Proposal]"]


def last(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """LAST: the newest trees."""
    return np.arange(outputs.n_trees - n, outputs.n_trees)


def random(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
    """RANDOM: the best of 100 random sets by the metric."""
    best, best_total = np.empty(0, np.int64), -1
    for draw in range(DRAWS):
        trees = np.sort(rng.choice(outputs.n_trees, n, replace=False))
        total = outputs.total(np.setdiff1d(np.arange(outputs.n_trees), trees))
        best, best_total = (trees, total) if total > best_total else (best, best_total)
        yield Proposal(best, best_total, (draw + 1) / DRAWS)


def skip(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """SKIP: evenly spread, at the positions ceil(i / p), i = 1 … n, of the share p = n / trees."""
    return -(-np.arange(1, n + 1) * outputs.n_trees // n) - 1


def low_weights(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """LOW-WEIGHTS: the smallest weights; `prune` re-weights first where all are equal. Of equal ones the newest go."""
    newest_first = np.arange(outputs.n_trees)[::-1]
    return newest_first[np.argsort(outputs.weights[::-1], kind="stable")[:n]]


def quality_loss(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
    """QUALITY-LOSS: one at a time the tree whose removal costs the metric least; of equal ones the newest goes."""
    removals = Removals(outputs)
    for step in range(n):
        totals = removals.totals()
        best = totals.max()
        removals.remove(int(removals.alive[totals == best].max()), int(best))
        yield Proposal(np.array(removals.removed), removals.total, (step + 1) / n)


def quality_loss_once(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """QUALITY-LOSS as CLEaVER had it: the impact of every tree is measured once, on the whole forest."""
    removals = Removals(outputs)
    order = np.lexsort((-removals.alive, -removals.totals()))
    return removals.alive[order[:n]]


def score_loss(outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """SCORE-LOSS: the smallest mean share w·s/S of the score; of equal ones the newest go."""
    newest_first = np.arange(outputs.n_trees)[::-1]
    return newest_first[np.argsort(outputs.shares()[::-1], kind="stable")[:n]]


STRATEGIES: dict[str, Strategy] = {
    "last": last,
    "random": random,
    "skip": skip,
    "low-weights": low_weights,
    "quality-loss": quality_loss,
    "quality-loss-once": quality_loss_once,
    "score-loss": score_loss,
}
