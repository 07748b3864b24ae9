"""Before a tree: who teaches it, and what the ranking wants of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.boosting.objectives import Objective
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import WHOLE, Portion, Selected, Selection, View
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import draw_places, share_of
from ranksieve.dtypes import ROW, SCORE
from ranksieve.errors import ParameterError

NOBODY = "the selection returned no rows; expected at least one row number, or None for all"


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
    if not (np.isfinite(weights).all() and weights.min(initial=0.0) >= 0):
        raise ParameterError("the selection returned weights that are negative or not finite; give numbers from 0")
    return weights


def _checked_rows(rows: np.ndarray, n_docs: int) -> np.ndarray:
    """What a selection returned, as ascending distinct rows."""
    given = np.asarray(rows)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise ParameterError(
            f"the selection returned {given.dtype} of shape {given.shape}; expected row numbers, or None for all"
        )
    if len(given) and (given.min() < 0 or given.max() >= n_docs):
        raise ParameterError(f"the selection returned row {given.max()}; rows run from 0 to {n_docs - 1}")
    given = given.astype(ROW)
    return given if (np.diff(given) > 0).all() else np.unique(given)


@dataclass(frozen=True)
class Rules:
    """The choices that say who teaches a tree and what."""

    select: Selection
    first_selection: int  # the trees before see everything
    every: int
    objective: Objective
    first_objective: Objective
    row_fraction: float = 1.0  # of the rows that teach, those the tree is grown on

    def selects_at(self, step: int) -> bool:
        return step >= self.first_selection and step % self.every == 0


@dataclass(frozen=True)
class Lesson:
    """The rows a tree is fitted to (None: all), and the gradients and second derivatives it is fitted on.

    The rows are those of the sample, or some of them with the gradients they have in the sample's lists.
    """

    sample: Sample
    rows: np.ndarray | None
    grad: np.ndarray
    hess: np.ndarray


@dataclass(frozen=True)
class Lessons:
    """Makes the lessons of training lists that lie on this machine, all of them or a portion."""

    lists: Lists
    rules: Rules
    seed: int
    portion: Portion = WHOLE

    def lesson(self, sample: Sample, scores: Scores, step: int) -> Lesson:
        """The lesson of one step; `sample` is that of the step before. Randomness depends on (seed, step) alone."""
        rules = self.rules
        objective = rules.first_objective if step == 0 else rules.objective
        rng = np.random.default_rng([self.seed, step])
        view = View(self.lists, scores, step, rng, objective, sample.rows, self.portion)
        if rules.selects_at(step):
            sample = Sample.of(self.lists, rules.select(view))
            if sample.rows is not None and not len(sample.rows) and self.portion is WHOLE:
                raise ParameterError(NOBODY)
        grad, hess = _gradients(sample, view)
        if sample.weights is not None:
            grad, hess = grad * sample.weights, hess * sample.weights
        if rules.row_fraction == 1.0:
            return Lesson(sample, sample.rows, grad, hess)
        kept = random_share(sample.offsets, rules.row_fraction, view)
        return Lesson(sample, kept.astype(ROW) if sample.rows is None else sample.rows[kept], grad[kept], hess[kept])


def random_share(offsets: np.ndarray, share: float, view: View) -> np.ndarray:
    """Places of a random share of every query's documents, ascending."""
    sizes = np.diff(offsets)
    counts = share_of(sizes, share)
    return draw_places(sizes, counts, view.rng, first_query=view.portion.first_query) + np.repeat(offsets[:-1], counts)


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
