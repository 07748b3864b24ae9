"""`LeafTable`: which leaf of each tree every document reaches, one byte a cell up to 256 leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.blocks import ListsBuilder, Source, check_narrow
from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.features import Described, check_feature_names
from ranksieve.data.lists import Lists
from ranksieve.forest.compile_trees import compile_binned
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import encoded
from ranksieve.forest.score_file import fitted, open_for
from ranksieve.forest.scorer import empty_leaf_numbers
from ranksieve.kernels.leaf_numbers import leaves_of_binned


@dataclass(frozen=True)
class LeafTable:
    """`numbers[d, t]`: the leaf of tree t that document d reaches; rows are contiguous in memory."""

    numbers: np.ndarray
    lists: Lists
    source: str
    base: np.ndarray | None = None  # scores that the outputs of the trees are added to

    def take_queries(self, queries: np.ndarray) -> LeafTable:
        """A copy of the numbers of some queries."""
        lists, rows = self.lists.take_queries(queries)
        return LeafTable(self.numbers[rows], lists, self.source, None if self.base is None else self.base[rows])

    def keep(self, trees: np.ndarray) -> LeafTable:
        """The numbers in some trees only, ascending; they move together in place, and these numbers are gone.

        Rows move towards the front, so nothing is overwritten that is still needed.
        """
        flat, n_kept = self.numbers.reshape(-1), len(trees)
        for start in range(0, len(self.numbers), BLOCK_ROWS):
            part = self.numbers[start : start + BLOCK_ROWS, trees]
            flat[start * n_kept : start * n_kept + part.size] = part.reshape(-1)
        numbers = flat[: len(self.numbers) * n_kept].reshape(len(self.numbers), n_kept)
        return replace(self, numbers=numbers)


def find_leaves(forest: Forest, data: Any, *, missing: str | None = None) -> LeafTable:
    """The leaf numbers of a data set, of bins, or of a file, which is streamed.

    Parameters
    ----------
    forest : Forest
    data : Dataset, Binned or file name
    missing : "zero" or "nan", optional
        The value of a feature that is absent from a LETOR line; by default as in training.
    """
    if not isinstance(data, Described):
        data = open_for(data, {"the model": forest}, missing)
    if isinstance(data, Binned):
        check_feature_names(data.feature_names, forest.feature_names, data.source)
        return LeafTable(_of_bins(forest, data), data.lists, data.source)
    if isinstance(data, Dataset):
        check_feature_names(data.feature_names, forest.feature_names, data.source)
        data = data.in_order(forest.feature_names, forest.categories)
        numbers = empty_leaf_numbers(data.n_docs, forest)
        start = 0
        for block in data.blocks():
            numbers[start : start + len(block)] = forest.predict_leaves(encoded(block, forest))
            start += len(block)
        return LeafTable(numbers, data.lists, data.source)
    return _of_source(forest, data)


def _of_source(forest: Forest, source: Source) -> LeafTable:
    """A file is read twice: for its lists, and for the leaf numbers, which are written in the order of the lists."""
    if source.feature_names is not None:
        check_feature_names(source.feature_names, forest.feature_names, source.path)
    growing, width = ListsBuilder(source.path), 0
    for block in source.blocks():
        growing.append(block)
        width = max(width, block.features.shape[1])
    lists = growing.finish()
    check_narrow(source, width, forest.n_features)
    place = np.arange(lists.n_docs) if lists.order is None else np.argsort(lists.order)
    numbers = empty_leaf_numbers(lists.n_docs, forest)
    start = 0
    for block in source.blocks():
        rows = place[start : start + block.n_docs]
        numbers[rows] = forest.predict_leaves(fitted(block.features, "the model", forest, source))
        start += block.n_docs
    return LeafTable(numbers, lists, source.path)


def _of_bins(forest: Forest, data: Binned) -> np.ndarray:
    numbers = empty_leaf_numbers(data.lists.n_docs, forest)
    if forest.n_trees == 0:
        return numbers
    trees = to_trees(forest, data.binning)
    splits = np.concatenate([tree.splits for tree in trees])
    first_set = np.cumsum([0, *(len(tree.sets) for tree in trees)])[:-1]
    splits[:, 1] -= np.where(splits[:, 1] < 0, np.repeat(first_set, np.diff(forest.split_offsets)), 0)
    sets = np.concatenate([tree.sets for tree in trees])
    compiled = compile_binned(splits, forest.leaf_values, forest.split_offsets, forest.leaf_offsets, sets)
    leaves_of_binned(data.bins, compiled, numbers)
    return numbers
