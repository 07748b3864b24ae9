"""The boosting loop. There is one: an algorithm is a choice of its parts (Lucchese et al. 2018, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.tree import Tree

if TYPE_CHECKING:
    from ranksieve.boosting.position_bias import PositionBiases

GROWING = 1  # separates the random numbers of growing a tree from those of its selection


class BoostedScores(Protocol):
    """Scores of the training set under the trees so far."""

    def add(self, tree: Tree, leaves: Leaves | None = None) -> None: ...


@dataclass(kw_only=True)
class Rounds:
    """Training in rounds (trees, epochs): what was measured after each, and whether it was the last."""

    stopped: bool = False
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # set → metric → one value per round
    seconds: list[float] = field(default_factory=list)

    @property
    def step(self) -> int:
        """Rounds so far."""
        return len(self.seconds)

    def drop_unmeasured(self) -> int:
        """Drop the values of a round that was interrupted while it was measured; returns the number of the others."""
        n = len(self.seconds)
        for values in (values for found in self.history.values() for values in found.values()):
            del values[n:]
        return n


@dataclass
class State(Rounds):
    """What the loop has made so far; a checkpoint is this. `rows` are `TrainingRows`, or those on workers or a GPU."""

    trees: list[Tree]
    scores: BoostedScores
    rows: Any
    steps: list[float] = field(default_factory=list)  # the step size of each tree
    biases: list[np.ndarray] = field(default_factory=list)  # of positions: at the start, and after each tree
    previous_rows: Any = None  # of the tree before the last, for runs that end while the last is measured

    @property
    def step(self) -> int:
        """Trees so far."""
        return len(self.trees)


class RowSource(Protocol):
    """Selects training rows and computes what a tree is fitted to; `TrainingLists` on this machine."""

    def select_rows(self, last: Any, scores: Any, step: int, rng: np.random.Generator) -> Any: ...

    def gradients(self, rows: Any, scores: Any, step: int, rng: np.random.Generator) -> Any: ...


class TreeGrower(Protocol):
    """Fits a tree to gradients; also returns the leaf of each training row, if known."""

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, Leaves | None]: ...


StepSize = Callable[[Tree, "Leaves | None", State], float]


@dataclass(frozen=True)
class Parts:
    """The parts of the loop that make an algorithm."""

    lists: RowSource
    grower: TreeGrower
    step_size: StepSize
    biases: PositionBiases | None = None  # where labels are clicks


def boost(
    parts: Parts, state: State, *, n_trees: int, seed: int, callbacks: Sequence[Callable[[State], None]] = ()
) -> State:
    """Grow trees until there are `n_trees` or a callback sets `state.stopped`.

    The scores start at `state.scores`: zero, or those of a base model. Randomness depends on (seed, step) alone, so a
    resumed run continues as if it had never stopped.
    """
    for step in range(len(state.trees), 0 if state.stopped else n_trees):
        rng = np.random.default_rng([seed, step])
        rows = parts.lists.select_rows(state.rows, state.scores, step, rng)
        target = parts.lists.gradients(rows, state.scores, step, rng)
        tree, leaves = parts.grower.grow(target, np.random.default_rng([seed, step, GROWING]))
        step_size = parts.step_size(tree, leaves, state)
        tree.leaf_values[:] *= step_size
        state.previous_rows, state.rows = state.rows, rows
        state.steps.append(step_size)
        state.trees.append(tree)
        state.scores.add(tree, leaves)
        if parts.biases is not None:
            parts.biases(state, target)
        del target, leaves  # large where the tree was trained on all rows
        for callback in callbacks:
            callback(state)
        if state.stopped:
            break
    return state
