"""Pruning strategies: which trees are removed.

A strategy is a function `(outputs, n, rng)` of the `TreeOutputs`, the number of trees to remove and a random generator,
or a frozen dataclass with such a `__call__`, whose fields are its parameters. It returns the numbers of those trees. Or
it yields a `Proposal` for every improvement, the last being the best: then progress is shown, and an interrupted run
keeps what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksieve.registration import register
from ranksieve.rules import STRATEGIES, integer

if TYPE_CHECKING:
    from ranksieve.pruning.tree_outputs import TreeOutputs


class Proposal(NamedTuple):
    """Trees to remove; the metric without them, if known (`TreeOutputs.total`); the share of the work that is done."""

    trees: np.ndarray
    total: int | None = None
    done: float = 1.0


Strategy = Callable[["TreeOutputs", int, np.random.Generator], "np.ndarray | Iterator[Proposal]"]


@STRATEGIES.register("last")
@dataclass(frozen=True)
class Last:
    """The newest trees."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.arange(outputs.n_trees - n, outputs.n_trees)


@STRATEGIES.register("random")
@dataclass(frozen=True)
class Random:
    """The best of `draws` random sets of trees by the metric."""

    draws: int = integer(100, "Number of random sets of trees to try", low=1)

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        best, best_total = np.empty(0, np.int64), 0
        for draw in range(self.draws):
            trees = np.sort(rng.choice(outputs.n_trees, n, replace=False))
            total = outputs.total(np.setdiff1d(np.arange(outputs.n_trees), trees))
            if draw == 0 or total > best_total:  # metrics of users may be negative
                best, best_total = trees, total
            yield Proposal(best, best_total, (draw + 1) / self.draws)


@STRATEGIES.register("skip")
@dataclass(frozen=True)
class Skip:
    """Trees evenly spread, at the positions ceil(i / p), i = 1 … n, of the share p = n / trees."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
        return -(-np.arange(1, n + 1) * outputs.n_trees // n) - 1


@STRATEGIES.register("low-weights")
@dataclass(frozen=True)
class LowWeights:
    """The trees with the smallest weights, ties go to the newest; after re-weighting if all are equal."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
        return _lowest(outputs.weights, n)


@STRATEGIES.register("quality-loss")
@dataclass(frozen=True)
class QualityLoss:
    """One at a time the tree whose removal costs the metric least, measured again after every removal."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        from ranksieve.pruning.removals import Removals

        removals = Removals(outputs)
        for step in range(n):
            totals = removals.totals()
            best = totals.max()
            removals.remove(removals.alive[totals == best].max())
            yield Proposal(np.array(removals.removed), removals.total, (step + 1) / n)


@STRATEGIES.register("quality-loss-once")
@dataclass(frozen=True)
class QualityLossOnce:
    """The trees whose removal from the whole forest costs the metric least, each measured once, as in CLEaVER."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
        from ranksieve.pruning.removals import Removals

        removals = Removals(outputs)
        order = np.lexsort((-removals.alive, -removals.totals()))
        return removals.alive[order[:n]]


@STRATEGIES.register("score-loss")
@dataclass(frozen=True)
class ScoreLoss:
    """The trees of the smallest mean share w·s/S of the score (documents that score 0 have none)."""

    def __call__(self, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> np.ndarray:
        return _lowest(outputs.shares(), n)


def _lowest(values: np.ndarray, n: int) -> np.ndarray:
    """The n trees of the lowest values, of equal ones the newest."""
    newest_first = np.arange(len(values))[::-1]
    return newest_first[np.argsort(values[::-1], kind="stable")[:n]]


def find_strategy(strategy: str | Strategy, **values: Any) -> Strategy:
    """The strategy of a name (or `file.py:function`), with its parameters from `values`; other values are ignored.

    A function or a finished strategy stays as it is.

    Examples
    --------
    >>> find_strategy("random", draws=20), find_strategy("skip", draws=20)
    (Random(draws=20), Skip())
    """
    rule = STRATEGIES.find(strategy) if isinstance(strategy, str) else STRATEGIES.checked(strategy)
    built: Strategy = STRATEGIES.build(rule, values)
    return built


def register_strategy(name: str, rule: Any, *, replace: bool = False) -> None:
    """Give a name to a strategy: a function `(outputs, n, rng)`, or a frozen dataclass with such a `__call__`.

    A name that is taken is an error without `replace`.

    Examples
    --------
    >>> import numpy as np
    >>> register_strategy("first", lambda outputs, n, rng: np.arange(n))
    """
    register(STRATEGIES, name, rule, replace=replace)
