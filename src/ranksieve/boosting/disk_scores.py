"""`DiskScores`: scores of documents whose bins are in a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import get_num_threads

from ranksieve.boosting.scores import NO_ROWS, Choice, ChoiceRequest, Scores, all_waiting
from ranksieve.data.binned import Binned
from ranksieve.data.disk_rows import CHOSEN_SHARE
from ranksieve.kernels.compile_trees import CompiledTrees
from ranksieve.kernels.lazy_scores import margins
from ranksieve.kernels.scoring import BLOCK, NO_DOCS, add_blocks_binned

NO_UPPER_BOUNDS = np.empty(0, np.float32)

Priority = Callable[[int, int], np.ndarray]


def new_scores(data: Binned, *, start: float | np.ndarray = 0.0) -> Scores:
    """Scores of a data set, wherever its bins are."""
    return Scores(data, start=start) if data.disk is None else DiskScores(data, start=start)


class DiskScores(Scores):
    """The same scores as `Scores`, bit for bit, for bins in a file, which is read as rarely as possible.

    A selection needs the rows that may be among the best of their query. Whenever the file is read, all documents are
    scored, and memory is filled with the rows nearest to being selected. Selections then work in memory until a row is
    needed that is not there, which is mostly several trees later, since a tree changes scores by little.

    To save memory, scores of single documents are written to the array of all scores, and upper bounds are not kept.
    """

    has_own_values = False

    def __init__(self, data: Binned, *, start: float | np.ndarray = 0.0) -> None:
        assert data.disk is not None
        super().__init__(data, start=start)
        self._rows = data.disk

    def all(self) -> np.ndarray:
        """The scores of every document."""
        if self._n_scored < self._n_trees:
            score = partial(self._score_block, self._compiled(self._n_scored))
            for _ in self._rows.file.visit(score, get_num_threads()):
                pass
            self._n_scored = self._n_trees
        return self._all_scores

    def _score_block(self, trees: CompiledTrees, first: int, bins: np.ndarray) -> None:
        """Add trees to the scores of the rows from `first` on; in one of several threads."""
        part = slice(first, first + len(bins))
        done = self._done[part] if self._n_copied == self._n_scored else NO_DOCS  # else none was scored singly since
        add_blocks_binned(0, -(-len(bins) // BLOCK), bins, trees, self._n_scored, done, self._all_scores[part])

    def _upper_bounds_of(self, lowest: bool) -> np.ndarray:
        return NO_UPPER_BOUNDS

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        if self._n_scored == self._n_trees:
            return self._all_scores[rows]
        self._copy_all()
        stale = np.sort(rows[self._done[rows] < self._n_trees])
        if not self._rows.load(stale):
            self._score_all(rows if self._rows.fits(len(rows)) else rows[:0])
            return self._all_scores[rows]
        self._bins = self._rows.bins
        return self._single_scores(rows)

    def _update(self, choice: Choice, request: ChoiceRequest) -> None:
        self._bins = self._rows.bins
        n_requested, lowest_bounds = waiting = all_waiting(len(choice.sizes))
        self._improve(choice, request, waiting)
        while n_requested.any():
            if not self._rows.load_requested(int(n_requested.sum())):
                self._score_all(NO_ROWS, self._priority(request, lowest_bounds))
            self._improve(choice, request, waiting)
        chosen = choice.rows
        if self._rows.fits(len(chosen)) and not self._rows.load(chosen, CHOSEN_SHARE):
            self._score_all(chosen, self._priority(request, self._floors(choice, request.lowest)))

    def _floors(self, choice: Choice, lowest: bool) -> np.ndarray:
        """The lowest upper bound of each query's chosen documents."""
        sign, ceilings = self._signed_ceilings(lowest)
        floors = np.full(len(choice.sizes), np.inf)
        some = choice.sizes > 0
        if some.any():
            scores = sign * self.at(choice.rows)
            floors[some] = np.minimum.reduceat(scores, (np.cumsum(choice.sizes) - choice.sizes)[some])
        return floors - ceilings[self._n_trees]

    def _score_all(self, rows: np.ndarray, priority: Priority | None = None) -> None:
        """Score all documents while the file is read, and have rows, and those near a selection, in memory."""
        score = None
        if self._n_scored < self._n_trees:
            score = partial(self._score_block, self._compiled(self._n_scored))
        self._rows.refill(rows, score, priority)
        self._n_scored = self._n_trees

    def _priority(self, request: ChoiceRequest, lowest_bounds: np.ndarray) -> Priority:
        """How near documents first:last, all of them scored, are to being among the best of their query."""
        sign, ceilings = self._signed_ceilings(request.lowest)
        floors = np.where(lowest_bounds < np.inf, lowest_bounds, -np.inf) + ceilings[self._n_trees]

        def priority(first: int, last: int) -> np.ndarray:
            found = np.empty(last - first)
            margins(first, last, request.candidates, request.lists, floors, sign, self._all_scores, found)
            return found

        return priority
