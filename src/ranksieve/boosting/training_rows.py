"""The rows that a tree is trained on, and their gradients."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.boosting.position_bias import sums_by_position
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.views import (
    DocumentScores,
    Gradients,
    Objective,
    ObjectiveView,
    ReadOnlyScores,
    View,
    checked_rows,
)
from ranksieve.data.lists import Lists, share_of
from ranksieve.data.negatives import Negatives, draw_places
from ranksieve.dtypes import LABEL, ROW, SCORE
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params
from ranksieve.rules import OBJECTIVES, Selected, fields_of

NO_ROWS = "the selection returned no rows; expected at least one row number, or None for all"


@dataclass(frozen=True)
class Portion:
    """Which part of the training set some lists are."""

    first_query: int = 0
    first_row: int = 0
    n_docs: int | None = None  # of the whole set; None: these lists are the whole set


WHOLE = Portion()


@dataclass(frozen=True)
class TrainingRows:
    """The rows of the training set that trees are trained on (None: all), as lists.

    With `full_lists` the gradients are those of the full lists and the rows are a sample of them.
    """

    rows: np.ndarray | None
    stored_labels: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray | None
    selected: Selected | None = None  # what the selection returned, where it is more than rows
    cache: dict[Any, Any] = field(default_factory=dict)  # for what an objective derives from labels and offsets

    @property
    def labels(self) -> np.ndarray:
        """The labels as numbers to compute with; see `Lists`."""
        return self.stored_labels.astype(LABEL, copy=False)

    @property
    def full_lists(self) -> bool:
        return self.rows is None or (self.selected is not None and self.selected.full_lists)

    @classmethod
    def of(cls, lists: Lists, selected: np.ndarray | Selected | None) -> TrainingRows:
        """The rows that a selection returned, checked."""
        if selected is None:
            return cls(None, lists.stored_labels, lists.offsets, lists.weights)
        more = selected if isinstance(selected, Selected) else None
        rows = checked_rows(selected.rows if isinstance(selected, Selected) else selected, lists.n_docs)
        offsets = np.searchsorted(rows, lists.offsets).astype(np.int64)
        weights = None if lists.weights is None else lists.weights[rows]
        if more is not None and more.weights is not None:
            own = _checked_weights(more.weights, more.rows, rows)
            weights = own if weights is None else weights * own
        return cls(rows, lists.stored_labels[rows], offsets, weights, more)


def _checked_weights(weights: np.ndarray, given: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The weights of a selection's rows. The rows must be ascending and distinct, as the weights are in their order."""
    weights = np.asarray(weights, dtype=SCORE)
    if len(given) != len(rows) or weights.shape != rows.shape or not (np.asarray(given) == rows).all():
        raise ParameterError(
            f"the selection returned {len(given)} rows with weights of shape {weights.shape}; expected ascending "
            "distinct rows and one weight for each"
        )
    if not (np.isfinite(weights).all() and weights.min(initial=0.0) >= 0):
        raise ParameterError("the selection returned weights that are negative or not finite; give numbers from 0")
    return weights


@dataclass(frozen=True)
class TreeTarget:
    """What a tree is fitted to: rows of the training set (None: all) with gradients and second derivatives."""

    rows: np.ndarray | None
    grad: np.ndarray
    hess: np.ndarray
    first_row: int = 0  # of this portion in the whole training set
    position_sums: np.ndarray | None = None  # of the gradients, where positions have biases


@dataclass
class TrainingLists:
    """Training lists on this machine, all of them or a portion: which rows a tree is trained on, and their gradients.

    `first_selection` is the step of the first selection: earlier trees are trained on all rows. `highest_grade` is that
    of the whole training set.
    """

    lists: Lists
    params: Params
    metric: Metric
    first_selection: int = 1
    portion: Portion = WHOLE
    highest_grade: float = np.nan
    cache: dict[Any, Any] = field(default_factory=dict)
    biases: np.ndarray | None = None  # of positions
    _full: tuple[int, Gradients] | None = None  # the full gradients of a step, from its selection on

    def __post_init__(self) -> None:
        if np.isnan(self.highest_grade):
            self.highest_grade = highest_grade(self.lists.stored_labels)

    @cached_property
    def negatives(self) -> Negatives:
        return Negatives(self.lists)

    @cached_property
    def all_rows(self) -> TrainingRows:
        return TrainingRows.of(self.lists, None)

    def set_biases(self, biases: np.ndarray) -> None:
        """Biases of positions for the gradients of the next tree."""
        self.biases = biases

    def selects_at(self, step: int) -> bool:
        """Whether a selection is due at this step."""
        every = fields_of(self.params.selection_rule).get("every", self.params.every)
        return step >= self.first_selection and step % every == 0

    def select_rows(self, last: TrainingRows, scores: Scores, step: int, rng: np.random.Generator) -> TrainingRows:
        """The rows for the tree of this step: a new selection where one is due, else those of the tree before."""
        return self.new_rows(last.rows, scores, step, rng) if self.selects_at(step) else last

    def new_rows(
        self, last: np.ndarray | None, scores: DocumentScores, step: int, rng: np.random.Generator
    ) -> TrainingRows:
        """What the selection rule returns; `last` are the rows selected before (None: all)."""
        if step == self.first_selection:
            self.all_rows.cache.clear()  # values for the first trees, which were trained on all rows
        selected = self.params.selection_rule(View(self, ReadOnlyScores(scores), step, rng, last))
        if selected is None:
            return self.all_rows
        rows = TrainingRows.of(self.lists, selected)
        if rows.rows is not None and not len(rows.rows) and self.portion is WHOLE:
            raise ParameterError(NO_ROWS)
        return rows

    def gradients(self, rows: TrainingRows, scores: Scores, step: int, rng: np.random.Generator) -> TreeTarget:
        """What the tree of this step is fitted to: the gradients of the rows, or of a random share of them."""
        if rows.full_lists:
            grad, hess = self.full_gradients(scores, step)
            if rows.rows is not None:
                grad, hess = grad[rows.rows], hess[rows.rows]
        else:
            assert rows.rows is not None
            grad, hess = self._derivatives(rows, scores.at(rows.rows), step)
        self._full = None  # the next tree has others
        if rows.weights is not None:
            grad, hess = grad * rows.weights, hess * rows.weights
        sums = None
        if self.biases is not None:
            sums = sums_by_position(grad, hess, self._positions(rows.rows), len(self.biases))
        if self.params.row_fraction == 1.0:
            return TreeTarget(rows.rows, grad, hess, self.portion.first_row, sums)
        sizes = np.diff(rows.offsets)
        counts = share_of(sizes, self.params.row_fraction)
        places = draw_places(sizes, counts, rng, first_query=self.portion.first_query)
        kept = places + np.repeat(rows.offsets[:-1], counts)
        kept_rows = kept.astype(ROW) if rows.rows is None else rows.rows[kept]
        return TreeTarget(kept_rows, grad[kept], hess[kept], self.portion.first_row, sums)

    def _positions(self, rows: np.ndarray | None) -> np.ndarray:
        """The positions of rows (None: all)."""
        positions = self.lists.positions
        assert positions is not None
        return positions if rows is None else positions[rows]

    def full_gradients(self, scores: DocumentScores, step: int) -> Gradients:
        """Gradients of the full lists; a selection and the tree that follows share them."""
        if self._full is None or self._full[0] != step:
            self._full = step, self._derivatives(self.all_rows, scores.all(), step)
        return self._full[1]

    def _derivatives(self, rows: TrainingRows, scores: np.ndarray, step: int) -> Gradients:
        """The gradients and second derivatives that the objective returns."""
        objective: Objective = self.params.objective_rule
        if self.biases is not None:
            scores = scores + self.biases[self._positions(rows.rows)]
        if dataclasses.is_dataclass(type(objective)):
            # our own take labels as they are stored, and write to no array
            is_own = OBJECTIVES.is_own(objective)
            given = (rows.stored_labels, scores) if is_own else (rows.labels, scores.copy())
            view = ObjectiveView(
                *given, rows.offsets, selected=rows.rows, step=step, seed=self.params.seed, metric=self.metric,
                highest_grade=self.highest_grade, cache=rows.cache, first_row=self.portion.first_row,
                weights=rows.weights,
            )  # fmt: skip
            returned = objective(view)
        else:
            returned = objective(rows.labels, scores.copy(), rows.offsets)
        return _checked_gradients(returned, len(rows.stored_labels))


def _checked_gradients(returned: Any, n_docs: int) -> Gradients:
    """What an objective returned, as float64."""
    try:
        grad, hess = returned
    except (TypeError, ValueError):
        got = f"an array of shape {np.shape(returned)}" if hasattr(returned, "shape") else type(returned).__name__
        raise ParameterError(
            f"the objective returned {got}; expected gradients and second derivatives, as in `return grad, hess`"
        ) from None
    grad, hess = np.asarray(grad, dtype=SCORE), np.asarray(hess, dtype=SCORE)
    if grad.shape != (n_docs,) or hess.shape != (n_docs,):
        raise ParameterError(
            f"the objective returned arrays of shape {grad.shape} and {hess.shape}; expected one value for each of "
            f"{n_docs} documents"
        )
    if not (np.isfinite(grad).all() and np.isfinite(hess).all() and hess.min(initial=0.0) >= 0.0):
        raise ParameterError("the objective returned NaN, infinite or negative second derivatives; did scores diverge?")
    return grad, hess
