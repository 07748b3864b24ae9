"""The boosting loop. There is one: an algorithm is a choice of its parts (Lucchese et al. 2018, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from ranksieve.boosting.grower import KnownLeaves
from ranksieve.boosting.tree import Tree

if TYPE_CHECKING:
    from ranksieve.boosting.position_bias import PositionBiases
    from ranksieve.evaluation.metrics import Metric

GROWING = 1  # separates the random numbers of growing a tree from those of its selection


class ListedRows(Protocol):
    """The rows that a tree is trained on, of each list."""

    @property
    def rows(self) -> np.ndarray | None: ...

    @property
    def offsets(self) -> np.ndarray: ...


class BoostedScores(Protocol):
    """Scores of the training set under the trees so far."""

    def add(self, tree: Tree, leaves: KnownLeaves | None = None) -> None: ...


# The loop passes these on. On this machine they are `TrainingRows`, `Scores` and `TreeTarget`; a bag, workers and a GPU
# have others.
Rows = TypeVar("Rows", bound=ListedRows)
TrainScores = TypeVar("TrainScores", bound=BoostedScores)
ScoresIn = TypeVar("ScoresIn", bound=BoostedScores, contravariant=True)
Target = TypeVar("Target")  # what a tree is fitted to
TargetIn = TypeVar("TargetIn", contravariant=True)
TargetOut = TypeVar("TargetOut", covariant=True)


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
class State(Rounds, Generic[Rows, TrainScores]):
    """What the loop has made so far; a checkpoint is this. `rows` are those of the last tree."""

    trees: list[Tree]
    scores: TrainScores
    rows: Rows
    steps: list[float] = field(default_factory=list)  # the step size of each tree
    biases: list[np.ndarray] = field(default_factory=list)  # biases of positions: at the start, and after each tree
    previous_rows: Rows | None = None  # of the tree before the last, for runs that end while the last is measured

    @property
    def step(self) -> int:
        """Trees so far."""
        return len(self.trees)


class RowSource(Protocol[Rows, ScoresIn, TargetOut]):
    """Selects training rows and computes what a tree is fitted to; `TrainingLists` on this machine."""

    def select_rows(self, last: Rows, scores: ScoresIn, step: int, rng: np.random.Generator) -> Rows: ...

    def gradients(self, rows: Rows, scores: ScoresIn, step: int, rng: np.random.Generator) -> TargetOut: ...


class TrainedLists(RowSource[Rows, ScoresIn, TargetOut], Protocol[Rows, ScoresIn, TargetOut]):
    """The lists of a training set, or of a worker's part of it, with the metric that training maximises."""

    @property
    def metric(self) -> Metric: ...

    @property
    def all_rows(self) -> Rows: ...

    def selects_at(self, step: int) -> bool: ...

    def set_biases(self, biases: np.ndarray) -> None: ...


class TreeGrower(Protocol[TargetIn]):
    """Fits a tree to gradients; also returns the leaf of each training row, if known."""

    def grow(self, target: TargetIn, rng: np.random.Generator) -> tuple[Tree, KnownLeaves | None]: ...


StepSize = Callable[[Tree, "KnownLeaves | None", State[Any, Any]], float]


@dataclass(frozen=True)
class BoostingParts(Generic[Rows, TrainScores, Target]):
    """The parts of the boosting loop that an algorithm consists of."""

    lists: RowSource[Rows, TrainScores, Target]
    grower: TreeGrower[Target]
    step_size: StepSize
    biases: PositionBiases | None = None  # where labels are clicks


def boost(
    parts: BoostingParts[Rows, TrainScores, Target],
    state: State[Rows, TrainScores],
    *,
    n_trees: int,
    seed: int,
    callbacks: Sequence[Callable[[State[Rows, TrainScores]], None]] = (),
) -> State[Rows, TrainScores]:
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
