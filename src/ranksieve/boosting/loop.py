"""The boosting loop. There is one; an algorithm is a choice of its slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ranksieve.boosting.grower import Grower
from ranksieve.boosting.objectives import Objective
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import Selected, Selection, View
from ranksieve.boosting.steps import Step
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.data.dataset import Lists
from ranksieve.dtypes import ROW, SCORE
from ranksieve.errors import ParameterError


@dataclass(frozen=True)
class Sample:
    """The lists that teach: rows of the training set (None: all) with their labels, weights and query borders.

    With `full_lists` the gradients are taken from the full lists and the rows are a sample of them.
    """

    rows: np.ndarray | None
    labels: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray | None
    chosen: Selected | None = None  # what the selection said, where it is more than rows

    @property
    def full_lists(self) -> bool:
        return self.rows is None or (self.chosen is not None and self.chosen.full_lists)

    @classmethod
    def of(cls, lists: Lists, selected: np.ndarray | Selected | None) -> Sample:
        if selected is None:
            return cls(None, lists.labels, lists.offsets, lists.weights)
        chosen = selected if isinstance(selected, Selected) else None
        rows = _checked_rows(selected.rows if isinstance(selected, Selected) else selected, lists.n_docs)
        offsets = np.searchsorted(rows, lists.offsets).astype(np.int64)
        weights = None if lists.weights is None else lists.weights[rows]
        if chosen is not None and chosen.weights is not None:
            own = _checked_weights(chosen.weights, chosen.rows, rows)
            weights = own if weights is None else weights * own
        return cls(rows, lists.labels[rows], offsets, weights, chosen)


def _checked_weights(weights: np.ndarray, given: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The weights a selection gave its rows; those must be ascending and distinct, or weights would go astray."""
    weights = np.asarray(weights, dtype=SCORE)
    if len(given) != len(rows) or weights.shape != rows.shape or not (np.asarray(given) == rows).all():
        raise ParameterError(
            f"the selection returned {len(given)} rows with weights of shape {weights.shape}; expected ascending "
            "distinct rows and one weight for each"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0):
        raise ParameterError("the selection returned weights that are negative or not finite; give numbers from 0")
    return weights


def _checked_rows(rows: np.ndarray, n_docs: int) -> np.ndarray:
    """What a selection returned, as ascending distinct rows."""
    given = np.asarray(rows)
    if given.dtype.kind not in "iu" or given.ndim != 1 or not len(given):
        raise ParameterError(
            f"the selection returned {given.dtype} of shape {given.shape}; expected row numbers, or None for all"
        )
    if given.min() < 0 or given.max() >= n_docs:
        raise ParameterError(f"the selection returned row {given.max()}; rows run from 0 to {n_docs - 1}")
    given = given.astype(ROW)
    return given if (np.diff(given) > 0).all() else np.unique(given)


def _gradients(sample: Sample, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of the rows that teach: of the lists they form, or of the full lists."""
    if sample.full_lists:
        grad, hess = _checked_gradients(*view.gradients, view.lists.n_docs)
        return (grad, hess) if sample.rows is None else (grad[sample.rows], hess[sample.rows])
    assert sample.rows is not None
    found = view.objective(sample.labels, view.scores.at(sample.rows), sample.offsets)
    return _checked_gradients(*found, len(sample.rows))


def _checked_gradients(grad: np.ndarray, hess: np.ndarray, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
    """What an objective returned, as float64."""
    grad, hess = np.asarray(grad, dtype=SCORE), np.asarray(hess, dtype=SCORE)
    if grad.shape != (n_docs,) or hess.shape != (n_docs,):
        raise ParameterError(
            f"the objective returned arrays of shape {grad.shape} and {hess.shape}; expected one value for each of "
            f"{n_docs} documents"
        )
    if not (np.isfinite(grad).all() and np.isfinite(hess).all() and hess.min(initial=0.0) >= 0.0):
        raise ParameterError("the objective returned NaN, infinite or negative second derivatives; did scores diverge?")
    return grad, hess


@dataclass
class State:
    """What the loop has made so far; a checkpoint is this."""

    trees: list[Tree]
    scores: Scores
    sample: Sample
    stopped: bool = False
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Slots:
    """The choices that make an algorithm."""

    select: Selection
    first_selection: int  # the trees before see everything
    every: int
    objective: Objective
    first_objective: Objective
    grower: Grower
    step: Step


def boost(
    data: Binned, slots: Slots, state: State, *, n_trees: int, seed: int, after_tree: Sequence[Callable[[State], None]]
) -> State:
    """Grow trees until there are `n_trees` or a callback sets `state.stopped`.

    The trees go on from where `state.scores` stands: zero, or the scores of a base. Randomness depends on (seed, step)
    alone, so a resumed run goes on as if it had never stopped.
    """
    scores = state.scores
    for step in range(len(state.trees), 0 if state.stopped else n_trees):
        rng = np.random.default_rng([seed, step])
        objective = slots.first_objective if step == 0 else slots.objective
        view = View(data.lists, scores, step, rng, objective, state.sample.rows)
        if step >= slots.first_selection and step % slots.every == 0:
            state.sample = Sample.of(data.lists, slots.select(view))
        sample = state.sample
        grad, hess = _gradients(sample, view)
        if sample.weights is not None:
            grad, hess = grad * sample.weights, hess * sample.weights
        tree, leaves = slots.grower.grow(sample.rows, grad, hess, rng)
        tree.leaf_values[:] *= slots.step(tree, leaves, scores)
        state.trees.append(tree)
        scores.add(tree, leaves)
        for callback in after_tree:
            callback(state)
        if state.stopped:
            break
    return state
