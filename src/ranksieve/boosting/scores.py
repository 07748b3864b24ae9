"""`Scores`: scores of every document in training, updated lazily."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranksieve.boosting.grower import KnownLeaves, Leaves
from ranksieve.boosting.tree import NO_SETS, Tree
from ranksieve.data.binned import Binned
from ranksieve.data.blocks import give_back_memory
from ranksieve.data.lists import starts_of
from ranksieve.data.negatives import marks_of
from ranksieve.dtypes import GRADE, ROW, SCORE
from ranksieve.forest.compile_trees import compile_binned
from ranksieve.kernels.compile_trees import CompiledTrees
from ranksieve.kernels.lazy_scores import EligibleRows, best_per_query, copy_scores, fill_upper_bounds
from ranksieve.kernels.leaf_values import add_next_leaf_values
from ranksieve.kernels.scoring import NO_DOCS, add_trees_binned
from ranksieve.kernels.traverse_binned import BinnedTrees, RowBins, pack_tree, score_rows

# All documents are scored together once this share of them, counted per tree, has been scored singly since the last
# time. Measured on 0.8 M documents: shares from 0.05 to 0.2 differ by 3% in the CPU time of a tree.
TRAVERSED_SHARE = 0.1
NO_ROWS = np.empty(0, ROW)
NO_MARKS = np.empty(0, GRADE)
COUNT = np.uint16  # type of the number of trees of a score


@dataclass(frozen=True)
class Choice:
    """Some documents of each query: rows `places[starts[q]:starts[q] + sizes[q]]`, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> def best_twenty(view):
    ...     most = np.full(view.lists.n_queries, 20)
    ...     return view.scores.choose(most, most).rows
    >>> rs.train(rs.synth.cubic(20), selection=best_twenty, trees=3).n_trees
    3
    """

    places: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def fresh(cls, room: np.ndarray) -> Choice:
        """Nothing chosen yet, with room for `room[q]` documents of each query."""
        starts = starts_of(room)
        return cls(np.empty(starts[-1], ROW), starts, np.zeros(len(room), np.int64))

    @property
    def rows(self) -> np.ndarray:
        """The chosen rows, ascending."""
        if self.sizes.sum() == len(self.places):
            return self.places
        query = np.repeat(np.arange(len(self.sizes)), np.diff(self.starts))
        return np.asarray(self.places[np.arange(len(self.places)) - self.starts[query] < self.sizes[query]])

    def with_room(self, room: np.ndarray) -> Choice:
        """A copy with room for `room[q]` documents of each query; what does not fit is left out."""
        if np.array_equal(room, np.diff(self.starts)):
            return Choice(self.places.copy(), self.starts, self.sizes.copy())
        new = Choice.fresh(room)
        new.sizes[:] = np.minimum(self.sizes, room)
        inside = np.arange(new.sizes.sum()) - np.repeat(starts_of(new.sizes)[:-1], new.sizes)
        old_place, new_place = (np.repeat(starts[:-1], new.sizes) + inside for starts in (self.starts, new.starts))
        new.places[new_place] = self.places[old_place]
        return new


class ChoiceRequest(NamedTuple):
    """Which documents to choose: arguments of `best_per_query`."""

    candidates: EligibleRows
    lists: tuple[np.ndarray, ...]
    lowest: bool  # whether the lowest scores are the best


class Scores:
    """Scores of binned documents under trees added one by one.

    Scores are updated lazily: a document is scored when its score is needed, and the result is always the score of the
    whole forest. Single documents traverse the trees that are missing from their scores. All documents together are
    scored in one vectorised pass, which is several times cheaper per document. `kernels.lazy_scores` explains how the
    best documents of a query are found without scoring all of them.
    """

    has_own_values = True  # whether single documents are scored apart from the scores of all

    def __init__(self, data: Binned, *, start: float | np.ndarray = 0.0) -> None:
        n_docs, self._offsets = data.lists.n_docs, data.lists.offsets
        self._bins = RowBins(data.bins, np.empty(0, np.int32))
        self._all_scores = np.full(n_docs, start, SCORE)  # every document's score under the first `_n_scored` trees
        self._n_scored = 0
        self._values = np.empty(0, SCORE)  # document d's score under its first `_done[d]` trees
        self._done = np.empty(0, COUNT)
        self._upper_bounds: dict[bool, np.ndarray] = {}  # for False of scores, for True of negated scores
        self._n_copied = -1  # `_values` began as the scores under so many trees
        self._n_traversed = 0  # traversals since all documents were scored together
        self._n_trees = 0
        self._splits = np.empty((1024, 5), np.int32)
        self._leaf_values = np.empty(1024, SCORE)
        self._split_offsets = np.zeros(64, np.int64)
        self._leaf_offsets = np.zeros(64, np.int64)
        self._sets = NO_SETS  # sets of all trees
        self._node_sets = np.empty(0, np.int32)  # the set of each node; empty where no tree has sets
        self._tests = np.empty(2048, np.uint64)  # the same splits and leaves, packed for traversal
        self._children = np.empty(4096, np.int32)
        self._depths = np.zeros(64, np.int64)
        self._ceilings = np.zeros(64, SCORE)  # what the first t trees can add to a score at most
        self._negated_ceilings = np.zeros(64, SCORE)  # the same for negated scores

    @property
    def n_docs(self) -> int:
        return len(self._all_scores)

    @property
    def n_trees(self) -> int:
        return self._n_trees

    def add(self, tree: Tree, leaves: KnownLeaves | None = None) -> None:
        """Add a tree. Rows whose leaves are known are scored at once: they need not traverse the tree."""
        self._make_room(tree)
        self._store(tree)
        if leaves is not None:
            self._score_known(tree, leaves)

    def _make_room(self, tree: Tree) -> None:
        """Make the arrays of trees long enough for one more."""
        t = self._n_trees
        if t + 2 > len(self._ceilings):
            self._split_offsets = _longer(self._split_offsets)
            self._leaf_offsets = _longer(self._leaf_offsets)
            self._depths = _longer(self._depths)
            self._ceilings = _longer(self._ceilings)
            self._negated_ceilings = _longer(self._negated_ceilings)
        while self._split_offsets[t] + len(tree.splits) > len(self._splits):
            self._splits = _longer(self._splits)
        while self._leaf_offsets[t] + len(tree.leaf_values) > len(self._leaf_values):
            self._leaf_values = _longer(self._leaf_values)
            self._tests, self._children = _longer(self._tests), _longer(self._children)
        if t + 1 > np.iinfo(self._done.dtype).max:
            self._done = self._done.astype(np.int32)

    def _store(self, tree: Tree) -> None:
        """Append a tree to those so far."""
        t = self._n_trees
        first_split, first_leaf = self._split_offsets[t], self._leaf_offsets[t]
        node = first_split + first_leaf
        splits = self._splits[first_split : first_split + len(tree.splits)]
        splits[:] = tree.splits
        if len(tree.sets) or len(self._node_sets):
            self._add_sets(tree.sets, splits[:, 1], node)
        self._leaf_values[first_leaf : first_leaf + len(tree.leaf_values)] = tree.leaf_values
        self._depths[t] = pack_tree(splits, len(tree.leaf_values), self._tests[node:], self._children[2 * node :])
        self._split_offsets[t + 1] = first_split + len(tree.splits)
        self._leaf_offsets[t + 1] = first_leaf + len(tree.leaf_values)
        self._ceilings[t + 1] = self._ceilings[t] + tree.leaf_values.max()
        self._negated_ceilings[t + 1] = self._negated_ceilings[t] - tree.leaf_values.min()
        self._n_trees += 1

    def _score_known(self, tree: Tree, leaves: KnownLeaves) -> None:
        """Add the last tree to the scores of rows whose leaves are known, where these have the trees before it."""
        t = self._n_trees - 1
        if isinstance(leaves, Leaves) and len(leaves.rows) < len(self._all_scores):
            if self._n_copied == self._n_scored:
                add_next_leaf_values(leaves.rows, leaves.bounds, tree.leaf_values, t, self._values, self._done)
        elif self._n_scored == t:
            leaves.add_to(self._all_scores, tree.leaf_values)
            self._n_scored = self._n_trees

    def _add_sets(self, sets: np.ndarray, bins: np.ndarray, node: int) -> None:
        """Number a tree's sets after those of the trees before it; `bins` are those of its splits, from `node` on."""
        by_set = bins < 0
        bins[by_set] -= len(self._sets)
        self._sets = np.concatenate([self._sets, sets])
        if len(self._node_sets) < len(self._tests):
            more = np.full(len(self._tests) - len(self._node_sets), -1, np.int32)
            self._node_sets = np.concatenate([self._node_sets, more])
        self._node_sets[node : node + len(bins)] = np.where(by_set, ~bins, -1)

    def all(self) -> np.ndarray:
        """The scores of every document."""
        if self._n_scored < self._n_trees:
            add_trees_binned(self._bins.bins, self._compiled(self._n_scored), 0, NO_DOCS, self._all_scores)
            self._n_scored, self._n_traversed = self._n_trees, 0
        return self._all_scores

    def last_scored(self) -> tuple[int, np.ndarray]:
        """The number of trees under which all documents were last scored together, and these scores."""
        return self._n_scored, self._all_scores

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        if self._n_scored == self._n_trees:
            return np.asarray(self._all_scores[rows])
        return self._single_scores(rows)

    def _single_scores(self, rows: np.ndarray) -> np.ndarray:
        """The scores of documents whose bins are in memory."""
        self._copy_all()
        scores = np.empty(len(rows), SCORE)
        score_rows(self._bins, rows, self._binned_trees(), self._n_trees, self._values, self._done, scores)
        return scores

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
        """The best-scored documents of each query, see `ReadOnlyScores.choose`."""
        new = Choice.fresh(highs) if last is None else last.with_room(highs)
        if not new.sizes.any():
            self.all()
        thresholds = np.full(len(lows), np.inf) if thresholds is None else thresholds
        marks = (NO_MARKS if labels is None else marks_of(labels)).view()
        marks.flags.writeable = False  # kernels are compiled once for the user's labels and for copies
        lists = (self._offsets, thresholds, lows, highs, new.starts)
        self._update(new, ChoiceRequest(EligibleRows(NO_ROWS, marks), lists, lowest))
        return new

    def _update(self, choice: Choice, request: ChoiceRequest) -> None:
        """Make the last choice the new one."""
        if self._n_traversed > TRAVERSED_SHARE * len(self._all_scores):
            self.all()
        self._n_traversed += self._improve(choice, request, all_waiting(len(choice.sizes)))

    def _improve(self, choice: Choice, request: ChoiceRequest, waiting: tuple[np.ndarray, np.ndarray]) -> int:
        """Make the last choice of queries that wait the new one, as far as rows are in memory; see `best_per_query`."""
        self._copy_all()
        n_traversed: int = best_per_query(
            self._bins, self._binned_trees(), self._n_trees, self._signed_ceilings(request.lowest), request.candidates,
            request.lists, choice.places, choice.sizes, self._values, self._done,
            self._upper_bounds_of(request.lowest), waiting,
        )  # fmt: skip
        return n_traversed

    def _upper_bounds_of(self, lowest: bool) -> np.ndarray:
        """The upper bounds of all documents, see `kernels.lazy_scores`."""
        if lowest not in self._upper_bounds:
            self._upper_bounds[lowest] = np.empty(len(self._values), np.float32)
            fill_upper_bounds(self._values, self._done, *self._signed_ceilings(lowest), self._upper_bounds[lowest])
        return self._upper_bounds[lowest]

    def _signed_ceilings(self, lowest: bool) -> tuple[float, np.ndarray]:
        """The sign of scores, and what trees can add to them at most."""
        return (-1.0, self._negated_ceilings) if lowest else (1.0, self._ceilings)

    def _copy_all(self) -> None:
        """Let the single scores begin where all documents are."""
        if self._n_copied == self._n_scored:
            return
        if self._n_copied < 0:
            give_back_memory()  # memory of the first trees, which are trained on all rows
            self._values = np.empty_like(self._all_scores) if self.has_own_values else self._all_scores
            self._done = np.empty(len(self._all_scores), self._done.dtype)
        if self.has_own_values:
            copy_scores(self._all_scores, self._n_scored, self._values, self._done)
        else:
            self._done.fill(self._n_scored)
        self._upper_bounds.clear()
        self._n_copied, self._n_traversed = self._n_scored, 0

    def _binned_trees(self) -> BinnedTrees:
        return BinnedTrees(
            self._tests, self._children, self._depths, self._leaf_values, self._leaf_offsets, self._node_sets,
            self._sets.reshape(-1),
        )  # fmt: skip

    def _compiled(self, first: int) -> CompiledTrees:
        """The trees from number `first` on, for the vectorised pass."""
        split = slice(self._split_offsets[first], self._split_offsets[self._n_trees])
        leaf = slice(self._leaf_offsets[first], self._leaf_offsets[self._n_trees])
        return compile_binned(
            self._splits[split],
            self._leaf_values[leaf],
            self._split_offsets[first : self._n_trees + 1] - split.start,
            self._leaf_offsets[first : self._n_trees + 1] - leaf.start,
            self._sets,
        )


def all_waiting(n_queries: int) -> tuple[np.ndarray, np.ndarray]:
    """For `best_per_query`: the choice of no query has been made."""
    return np.ones(n_queries, np.int64), np.full(n_queries, np.inf)


def _longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])
