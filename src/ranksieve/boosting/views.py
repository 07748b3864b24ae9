"""What rules see of training: the input of selections and of objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksieve.boosting.scores import Choice
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives
from ranksieve.dtypes import ROW
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric
from ranksieve.rules import Selected

if TYPE_CHECKING:
    from ranksieve.boosting.training_rows import TrainingLists

Gradients = tuple[np.ndarray, np.ndarray]  # first and second derivatives, one of each per row
Selection = Callable[["View"], "np.ndarray | Selected | None"]
Objective = Callable[..., Gradients]  # a rule takes an ObjectiveView, a function (labels, scores, offsets)


class DocumentScores(Protocol):
    """What selections can ask of scores, wherever these are."""

    @property
    def n_docs(self) -> int: ...

    def at(self, rows: np.ndarray) -> np.ndarray: ...

    def all(self) -> np.ndarray: ...

    def choose(
        self, lows: np.ndarray, highs: np.ndarray, thresholds: np.ndarray | None = None, last: Choice | None = None, *,
        labels: np.ndarray | None = None, lowest: bool = False,
    ) -> Choice: ...  # fmt: skip


class ReadOnlyScores:
    """Scores as a selection sees them: what it writes to does not change training.

    Examples
    --------
    >>> import ranksieve as rs
    >>> def above_zero(view):
    ...     return (view.scores.all() > 0).nonzero()[0]
    >>> rs.train(rs.synth.cubic(20), selection=above_zero, trees=3).n_trees
    3
    """

    def __init__(self, scores: DocumentScores) -> None:
        self.source = scores

    def choose(
        self,
        lows: np.ndarray,
        highs: np.ndarray,
        thresholds: np.ndarray | None = None,
        last: Choice | None = None,
        *,
        labels: np.ndarray | None = None,
        lowest: bool = False,
    ) -> Choice:
        """The best-scored documents of each query, at least `lows[q]` and at most `highs[q]` of them.

        Between the two, those that score at least `thresholds[q]`; without thresholds, `lows[q]`. With `labels`, only
        documents whose label is 0 count; `view.negatives.marks` in their place save time. With `lowest`, the documents
        with the lowest scores are chosen. `last` is the last choice among the same documents; it makes this one fast
        and does not change it.
        """
        return self.source.choose(lows, highs, thresholds, last, labels=labels, lowest=lowest)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        given = np.asarray(rows)
        if given.ndim != 1 or _ascend(given):
            did, expected = "asked for the scores of", "row numbers"
            return self.source.at(checked_rows(given, self.source.n_docs, did, expected))
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
    """What a selection is called with. On a cluster the lists are those of one worker.

    Attributes
    ----------
    scores
        The current scores: `scores.all()`, `scores.at(rows)`, and `scores.choose`.
    step
        Number of trees so far.
    rng
        A random generator that depends on the seed and the step alone.
    last
        The rows that were selected before; None: all.

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> def positives_and_ten(view):
    ...     drawn = view.negatives.draw(view.negatives.counts(0.0, 10), view.rng)
    ...     return np.union1d(view.negatives.positives, drawn)
    >>> rs.train(rs.synth.cubic(20), selection=positives_and_ten, trees=3).n_trees
    3
    """

    training: TrainingLists
    scores: ReadOnlyScores
    step: int
    rng: np.random.Generator
    last: np.ndarray | None = None

    @property
    def lists(self) -> Lists:
        """The training lists: labels, queries and weights of the documents."""
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
    """What an objective that is a dataclass is called with: lists of documents, their labels and current scores.

    Random numbers should depend on (`seed`, `step`, `rows`) alone.

    Attributes
    ----------
    labels, scores
        Label and current score of each document.
    offsets
        Query q owns the documents `offsets[q]:offsets[q + 1]`.
    step
        Number of trees so far.
    seed
        The seed of the run.
    metric
        The metric of the run.
    highest_grade
        The highest label of the whole training set.
    cache
        A dict that lives as long as the lists stay the same.
    weights
        Weights of the documents. Gradients are multiplied by them afterwards.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> @dataclass(frozen=True)
    ... class Residuals:
    ...     scale: float = 1.0
    ...     def __call__(self, view):
    ...         return self.scale * (view.labels - view.scores), np.ones(len(view.labels))
    >>> rs.train(rs.synth.cubic(20), objective=Residuals(0.5), trees=3).n_trees
    3
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


def checked_rows(
    rows: np.ndarray, n_docs: int, did: str = "returned", expected: str = "row numbers, or None for all"
) -> np.ndarray:
    """What a selection returned, or asked for, as ascending distinct rows."""
    given = np.asarray(rows)
    given = given if given.size else given.astype(ROW)  # an empty list has no type
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise ParameterError(f"the selection {did} {given.dtype} of shape {given.shape}; expected {expected}")
    if len(given) and (given.min() < 0 or given.max() >= n_docs):
        wrong = given.max() if given.max() >= n_docs else given.min()
        raise ParameterError(f"the selection {did} row {wrong}; rows run from 0 to {n_docs - 1}")
    given = given.astype(ROW)
    return given if _ascend(given) else np.unique(given)


def _ascend(rows: np.ndarray) -> bool:
    """Whether each number is above the one before it; differences of unsigned numbers would not show it."""
    return bool((rows[1:] > rows[:-1]).all())
