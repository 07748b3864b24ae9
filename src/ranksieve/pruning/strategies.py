"""Pruning strategies: which trees go.

A strategy is a function `(outputs, n, rng)` of an `Outputs`, the number of trees to remove and a random generator. It
returns the numbers of those trees; or it yields an `Answer` whenever it has a better one, the last being the best: then
progress is shown, and an interrupted run keeps what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ranksieve.pruning.outputs import Outputs
from ranksieve.pruning.removals import Removals

DRAWS = 100  # random sets tried


class Answer(NamedTuple):
    """Trees to remove, the metric without them where it is known (`Outputs.total`), and the share of the work done."""

    trees: np.ndarray
    total: int | None = None
    done: float = 1.0


Strategy = Callable[[Outputs, int, np.random.Generator], "np.ndarray | Iterator[Answer]"]


def last(outputs: Outputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """LAST: the newest trees."""
    return np.arange(outputs.n_trees - n, outputs.n_trees)


def random(outputs: Outputs, n: int, rng: np.random.Generator) -> Iterator[Answer]:
    """RANDOM: the best of 100 random sets by the metric."""
    best, best_total = np.empty(0, np.int64), -1
    for draw in range(DRAWS):
        trees = np.sort(rng.choice(outputs.n_trees, n, replace=False))
        total = outputs.total(np.setdiff1d(np.arange(outputs.n_trees), trees))
        best, best_total = (trees, total) if total > best_total else (best, best_total)
        yield Answer(best, best_total, (draw + 1) / DRAWS)


def skip(outputs: Outputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """SKIP: evenly spread, at the positions ceil(i / p), i = 1 … n, of the share p = n / trees."""
    return -(-np.arange(1, n + 1) * outputs.n_trees // n) - 1


def low_weights(outputs: Outputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """LOW-WEIGHTS: the smallest weights; `prune` re-weights first where all are equal. Of equal ones the newest go."""
    newest_first = np.arange(outputs.n_trees)[::-1]
    return newest_first[np.argsort(outputs.weights[::-1], kind="stable")[:n]]


def quality_loss(outputs: Outputs, n: int, rng: np.random.Generator) -> Iterator[Answer]:
    """QUALITY-LOSS: one at a time the tree whose removal costs the metric least; of equal ones the newest goes."""
    removals = Removals(outputs)
    for step in range(n):
        totals = removals.totals()
        best = totals.max()
        removals.remove(int(removals.alive[totals == best].max()), int(best))
        yield Answer(np.array(removals.removed), removals.total, (step + 1) / n)


def quality_loss_once(outputs: Outputs, n: int, rng: np.random.Generator) -> np.ndarray:
    """QUALITY-LOSS as CLEaVER had it: the impact of every tree is measured once, on the whole forest."""
    removals = Removals(outputs)
    order = np.lexsort((-removals.alive, -removals.totals()))
    return removals.alive[order[:n]]


def score_loss(outputs: Outputs, n: int, rng: np.random.Generator) -> np.ndarray:
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
