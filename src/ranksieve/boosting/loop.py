"""The boosting loop. There is one; an algorithm is a choice of its slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranksieve.boosting.grower import Grower
from ranksieve.boosting.lessons import Sample
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.steps import Step
from ranksieve.boosting.tree import Tree

GROWING = 1  # tells a tree's random numbers from those of its selection


@dataclass
class State:
    """What the loop has made so far; a checkpoint is this."""

    trees: list[Tree]
    scores: Scores
    sample: Sample
    stopped: bool = False
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)  # how far was gone with each tree

    @property
    def step(self) -> int:
        """Trees so far."""
        return len(self.trees)


class LessonMaker(Protocol):
    """Says who teaches a tree, and what the ranking wants of them; `Lessons` where the lists are on this machine."""

    def lesson(self, sample: Sample, scores: Any, step: int) -> Any: ...


@dataclass(frozen=True)
class Slots:
    """The choices that make an algorithm: who teaches and what, how a tree grows, how far to go with it."""

    lessons: LessonMaker
    grower: Grower
    step: Step


def boost(
    slots: Slots, state: State, *, n_trees: int, seed: int, after_tree: Sequence[Callable[[State], None]]
) -> State:
    """Grow trees until there are `n_trees` or a callback sets `state.stopped`.

    The trees go on from where `state.scores` stands: zero, or the scores of a base. Randomness depends on (seed, step)
    alone, so a resumed run goes on as if it had never stopped.
    """
    scores = state.scores
    for step in range(len(state.trees), 0 if state.stopped else n_trees):
        lesson = slots.lessons.lesson(state.sample, scores, step)  # who teaches, and what the ranking wants of them
        state.sample = lesson.sample
        rng = np.random.default_rng([seed, step, GROWING])
        tree, leaves = slots.grower.grow(lesson.rows, lesson.grad, lesson.hess, rng)
        state.steps.append(slots.step(tree, leaves, state))
        tree.leaf_values[:] *= state.steps[-1]
        state.trees.append(tree)
        scores.add(tree, leaves)
        for callback in after_tree:
            callback(state)
        if state.stopped:
            break
    return state
