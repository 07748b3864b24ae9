"""The rows that a tree is trained on, and their gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.boosting.position_bias import sums_by_position
from ranksieve.boosting.scores import Scores
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives, draw_places, share_of
from ranksieve.dtypes import LABEL, ROW, SCORE
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params
from ranksieve.rules import OBJECTIVES, Selected, fields_of

NO_ROWS = "the selection returned no rows; expected at least one row number, or None for all"

Gradients = tuple[np.ndarray, np.ndarray]  # first and second derivatives, one of each per row
Selection = Callable[["View"], "np.ndarray | Selected | None"]
Objective = Callable[..., Gradients]  # a rule takes an ObjectiveView, a function (labels, scores, offsets)


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
        rows = _checked_rows(selected.rows if isinstance(selected, Selected) else selected, lists.n_docs)
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


def _checked_rows(rows: np.ndarray, n_docs: int, did: str = "returned") -> np.ndarray:
    """What a selection returned, or asked for, as ascending distinct rows."""
    given = np.asarray(rows)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise ParameterError(
            f"the selection {did} {given.dtype} of shape {given.shape}; expected row numbers, or None for all"
        )
    if len(given) and (given.min() < 0 or given.max() >= n_docs):
        wrong = given.max() if given.max() >= n_docs else given.min()
        raise ParameterError(f"the selection {did} row {wrong}; rows run from 0 to {n_docs - 1}")
    given = given.astype(ROW)
    return given if (np.diff(given) > 0).all() else np.unique(given)


class ReadOnlyScores:
    """Scores as a selection sees them: what it writes to does not change training."""

    def __init__(self, scores: Scores) -> None:
        self.source = scores
        self.choose = scores.choose

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        given = np.asarray(rows)
        if given.ndim != 1 or (np.diff(given) > 0).all():
            return self.source.at(_checked_rows(given, self.source.n_docs, "asked for the scores of"))
        distinct, places = np.unique(given, return_inverse=True)
        return self.at(distinct)[places]

    def all(self) -> np.ndarray:
        """The scores of every document, read only."""
        return _read_only(self.source.all())


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class View:
    """The input of a selection.

    `lists` are the training lists, `scores` the current scores (`scores.all()`, `scores.at(rows)`), `step` the number
    of trees so far, `rng` a generator that depends on the seed and the step alone, and `last` the rows selected before
    (None: all). On a cluster the lists are those of one worker.
    """

    training: TrainingLists
    scores: ReadOnlyScores
    step: int
    rng: np.random.Generator
    last: np.ndarray | None = None

    @property
    def lists(self) -> Lists:
        return self.training.lists

    @property
    def negatives(self) -> Negatives:
        """The positive and negative rows of each query."""
        return self.training.negatives

    @property
    def cache(self) -> dict[Any, Any]:
        """A dict that lives as long as the run. A rule keeps here what depends on the lists, or what saves time."""
        return self.training.cache

    @property
    def gradients(self) -> Gradients:
        """Gradients and second derivatives of every document, of the full lists under the current scores; read only."""
        grad, hess = self.training.full_gradients(self.scores.source, self.step)
        return _read_only(grad), _read_only(hess)


@dataclass(frozen=True)
class ObjectiveView:
    """The input of an objective: lists of documents with their labels and current scores.

    Query q owns `offsets[q]:offsets[q + 1]`. `rows` are the documents' numbers in the whole training set and `step`
    the number of trees so far, for random numbers that depend on (seed, step, row) alone. `cache` lives as long as the
    lists stay the same.
    """

    labels: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    selected: np.ndarray | None  # rows of these training lists (None: all)
    step: int
    seed: int
    metric: Metric
    highest_grade: float
    cache: dict[Any, Any]
    first_row: int = 0  # of these training lists in the whole training set
    weights: np.ndarray | None = None  # of the documents; gradients are multiplied by them afterwards

    @property
    def rows(self) -> np.ndarray:
        """The documents' numbers in the whole training set."""
        rows = np.arange(len(self.labels)) if self.selected is None else self.selected
        return rows + self.first_row


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
        if not self.selects_at(step):
            return last
        if step == self.first_selection:
            self.all_rows.cache.clear()  # of the trees before, which were trained on all rows
        selected = self.params.selection_rule(View(self, ReadOnlyScores(scores), step, rng, last.rows))
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

    def full_gradients(self, scores: Scores, step: int) -> Gradients:
        """Gradients of the full lists; a selection and the tree that follows share them."""
        if self._full is None or self._full[0] != step:
            self._full = step, self._derivatives(self.all_rows, scores.all(), step)
        return self._full[1]

    def _derivatives(self, rows: TrainingRows, scores: np.ndarray, step: int) -> Gradients:
        """What the objective returns, checked, as float64."""
        objective: Objective = self.params.objective_rule
        n_docs = len(rows.stored_labels)
        if self.biases is not None:
            scores = scores + self.biases[self._positions(rows.rows)]
        if dataclasses.is_dataclass(type(objective)):
            # our own take labels as they are stored, and write to no array
            is_own = OBJECTIVES.is_own(objective)
            given = (rows.stored_labels, scores) if is_own else (rows.labels, scores.copy())
            returned = objective(
                ObjectiveView(
                    *given, rows.offsets, rows.rows, step, self.params.seed, self.metric, self.highest_grade,
                    rows.cache, self.portion.first_row, rows.weights,
                )
            )  # fmt: skip
        else:
            returned = objective(rows.labels, scores.copy(), rows.offsets)
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
            raise ParameterError(
                "the objective returned NaN, infinite or negative second derivatives; did scores diverge?"
            )
        return grad, hess
