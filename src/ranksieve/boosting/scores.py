"""`Scores`: what the growing forest says of every document, kept up to date only where somebody asks."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.dtypes import ROW, SCORE
from ranksieve.kernels import growing
from ranksieve.kernels import updating as kernels


class Scores:
    """Scores of binned documents under trees added one by one.

    Whoever asks sees exactly the scores of the whole forest; documents nobody asks for are not scored. See
    `kernels.updating` for why the best-scored documents of a query can be found without scoring all.
    """

    def __init__(self, data: Binned, *, start: float = 0.0) -> None:
        n_docs = data.lists.n_docs
        self._bins = data.bins
        self._values = np.full(n_docs, start, SCORE)
        self._done = np.zeros(n_docs, np.int32)
        self._all_done = 0  # every row has at least this many trees
        self._n_trees = 0
        self._splits = np.empty((1024, 5), np.int32)
        self._leaf_values = np.empty(1024, SCORE)
        self._split_offsets = np.zeros(64, np.int64)
        self._leaf_offsets = np.zeros(64, np.int64)
        self._ceilings = np.zeros(64, SCORE)

    @property
    def n_trees(self) -> int:
        return self._n_trees

    def add(self, tree: Tree, leaves: Leaves | None = None) -> None:
        """Add a tree; with `leaves` of all rows the scores follow at once, without walking the tree."""
        t = self._n_trees
        if t + 2 > len(self._ceilings):
            self._split_offsets = _longer(self._split_offsets)
            self._leaf_offsets = _longer(self._leaf_offsets)
            self._ceilings = _longer(self._ceilings)
        split, leaf = self._split_offsets[t], self._leaf_offsets[t]
        while split + len(tree.splits) > len(self._splits):
            self._splits = _longer(self._splits)
        while leaf + len(tree.leaf_values) > len(self._leaf_values):
            self._leaf_values = _longer(self._leaf_values)
        self._splits[split : split + len(tree.splits)] = tree.splits
        self._leaf_values[leaf : leaf + len(tree.leaf_values)] = tree.leaf_values
        self._split_offsets[t + 1] = split + len(tree.splits)
        self._leaf_offsets[t + 1] = leaf + len(tree.leaf_values)
        self._ceilings[t + 1] = self._ceilings[t] + tree.leaf_values.max()
        self._n_trees += 1
        if leaves is not None and self._all_done == t:
            growing.add_leaf_values(leaves.rows, leaves.bounds, tree.leaf_values, self._values)
            self._mark_all()

    def all(self) -> np.ndarray:
        """The scores of every document."""
        if self._all_done < self._n_trees:
            kernels.catch_up_all(self._bins, *self._forest(), self._values, self._done)
            self._mark_all()
        return self._values

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        if self._all_done < self._n_trees:
            kernels.catch_up_rows(self._bins, rows, *self._forest(), self._values, self._done)
        return self._values[rows]

    def top(
        self, candidates: np.ndarray, offsets: np.ndarray, counts: np.ndarray, last: np.ndarray | None
    ) -> np.ndarray:
        """The `counts[q]` best-scored of each query's candidates, rows ascending.

        Query q has the candidate rows `candidates[offsets[q]:offsets[q + 1]]`. `last` is what the last call with the
        same candidates and counts returned; it makes this one fast and does not change it.
        """
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        chosen = np.full(starts[-1], -1, ROW) if last is None else last.copy()
        kernels.top_per_query(
            self._bins, *self._forest(), self._ceilings, candidates, offsets, counts, starts, chosen, self._values,
            self._done,
        )  # fmt: skip
        return chosen

    def _forest(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
        return self._splits, self._split_offsets, self._leaf_values, self._leaf_offsets, self._n_trees

    def _mark_all(self) -> None:
        self._done.fill(self._n_trees)
        self._all_done = self._n_trees


def _longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])
