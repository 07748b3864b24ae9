"""The boosting loop. There is one: an algorithm is a choice of its parts (Lucchese et al. 2018, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.tree import Tree

GROWING = 1  # separates the random numbers of growing a tree from those of its selection

Rows = TypeVar("Rows")  # the selected rows: `TrainingRows`, or those on workers
Target = TypeVar("Target")  # what a tree is fitted to: `TreeTarget`, or sums on workers
Computed = TypeVar("Computed", covariant=True)
Fitted = TypeVar("Fitted", contravariant=True)


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
class State(Rounds, Generic[Rows]):
    """What the loop has made so far; a checkpoint is this."""

    trees: list[Tree]
    scores: BoostedScores
    rows: Rows
    steps: list[float] = field(default_factory=list)  # the step size of each tree
    biases: list[np.ndarray] = field(default_factory=list)  # of positions: at the start, and after each tree
    previous_rows: Rows | None = None  # of the tree before the last, for runs that end while the last is measured

    @property
    def step(self) -> int:
        """Trees so far."""
        return len(self.trees)


class RowSource(Protocol[Rows, Computed]):
    """Selects training rows and computes their gradients; `TrainingLists` on this machine."""

    def select_rows(self, last: Rows, scores: Any, step: int, rng: np.random.Generator) -> Rows: ...

    def gradients(self, rows: Rows, scores: Any, step: int, rng: np.random.Generator) -> Computed: ...


class TreeGrower(Protocol[Fitted]):
    """Fits a tree to a target; also returns the leaf of each training row, if known."""

    def grow(self, target: Fitted, rng: np.random.Generator) -> tuple[Tree, Leaves | None]: ...


StepSize = Callable[[Tree, "Leaves | None", State], float]
LearnBiases = Callable[[State[Any], Any], None]  # from the target of the last tree


@dataclass(frozen=True)
class Parts(Generic[Rows, Target]):
    """The parts of the loop that make an algorithm."""

    lists: RowSource[Rows, Target]
    grower: TreeGrower[Target]
    step_size: StepSize
    learn_biases: LearnBiases | None = None  # of positions, where labels are clicks


def boost(
    parts: Parts[Rows, Target],
    state: State[Rows],
    *,
    n_trees: int,
    seed: int,
    callbacks: Sequence[Callable[[State[Rows]], None]] = (),
) -> State[Rows]:
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
        if parts.learn_biases is not None:
            parts.learn_biases(state, target)
        del target, leaves  # large where the tree was trained on all rows
        for callback in callbacks:
            callback(state)
        if state.stopped:
            break
    return state
