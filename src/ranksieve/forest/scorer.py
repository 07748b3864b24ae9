"""`Scorer`: a forest compiled for scoring, and the choice of the fastest kernel.

Few documents traverse the trees one by one (`kernels.traverse_raw`); many are quantized and scored in blocks of 512
(`kernels.quantize`, `kernels.scoring`). Both add the leaf values of a document in the order of the trees, in float64,
so both, and any number of threads, give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.data.binning import heaps_of
from ranksieve.data.lists import starts_of
from ranksieve.dtypes import SCORE
from ranksieve.errors import ParameterError, param
from ranksieve.forest.compile_trees import compile_binned
from ranksieve.forest.float32 import floor_single, to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import Matrix, flat, matrices
from ranksieve.forest.structure import node_places
from ranksieve.kernels import quantize, scoring, traverse_raw
from ranksieve.kernels.compile_trees import CompiledTrees
from ranksieve.kernels.leaf_numbers import leaves_of_ranked
from ranksieve.kernels.numba_cache import report_first_compile
from ranksieve.threads import using_threads

FEW = 12  # documents; up to here, traversing tree by tree is faster than filling a block
DOCS_AT_ONCE = 256  # that a thread traverses
CELLS_AT_ONCE = 1 << 23  # values of documents, with columns for tests of categories, held at a time
MOST_THRESHOLDS = 254  # in a column: ranks 0..254, and 255 for missing


class Scorer:
    """Scores documents with a forest; created on first use and cached by the forest."""

    def __init__(self, forest: Forest):
        report_first_compile("scoring")
        self._forest = forest
        self._always_traverses = bool(forest.n_trees and forest.n_leaves.max() > scoring.MAX_LEAVES)
        self._shorter: dict[int, Scorer] = {}

    @cached_property
    def _columns(self) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        return make_columns(self._forest)

    @cached_property
    def _raw_trees(self) -> Any:
        return make_raw_trees(self._forest.as_numerical)

    @cached_property
    def _compiled(self) -> CompiledTrees:
        return self._compile(0, self._forest.n_trees)

    def _compile(self, first: int, last: int) -> CompiledTrees:
        forest, (_, _, column, cut) = self._forest, self._columns
        a, b = forest.split_offsets[[first, last]]
        c, d = forest.leaf_offsets[[first, last]]
        splits = [part[a:b] for part in (column, cut, forest.default_left, forest.left, forest.right)]
        return compile_binned(
            np.stack(splits, axis=1),
            forest.scaled_leaf_values()[c:d],
            forest.split_offsets[first : last + 1] - a,
            forest.leaf_offsets[first : last + 1] - c,
            forest.category_tests.goes_left if forest.has_categories else None,
        )

    def predict(
        self, X: Any, *, trees: int | None = None, threads: int | None = None, dtype: Any = SCORE
    ) -> np.ndarray:
        """See `Forest.predict`."""
        n_trees = checked_trees(trees, self._forest.n_trees)
        n_docs, parts = matrices(X, self._forest)
        scores = np.zeros(n_docs, SCORE)
        start = 0
        for part in parts:
            self._add(part, n_trees, threads, scores[start : start + part.n_docs])
            start += part.n_docs
        return in_user_order(X, scores).astype(dtype, copy=False)

    def _add(self, matrix: Matrix, n_trees: int, threads: int | None, scores: np.ndarray) -> None:
        if n_trees == 0 or matrix.n_docs == 0:
            return
        if matrix.n_docs <= FEW:
            traverse_raw.add_scores(*self._for_traversal(matrix), n_trees, self._raw_trees, scores)
        elif self._always_traverses:
            with using_threads(threads):
                for start, part in self._parts_for_traversal(matrix):
                    traverse_raw.add_scores_parallel(*part, n_trees, self._raw_trees, DOCS_AT_ONCE, scores[start:])
        elif n_trees < self._forest.n_trees:
            self._first(n_trees)._add(matrix, n_trees, threads, scores)
        else:
            columns, exact = self._columns_for(matrix)
            with using_threads(threads):
                quantize.add_raw(*matrix[:4], columns, exact, self._compiled, matrix.n_docs, scores)

    def _for_traversal(self, matrix: Matrix) -> Matrix:
        """Documents for `traverse_raw`: with a column for each test of a set of categories, where there are any."""
        forest = self._forest
        return flat(forest.category_tests.expand(matrix.rows)) if forest.has_categories else matrix

    def _parts_for_traversal(self, matrix: Matrix) -> Iterator[tuple[int, Matrix]]:
        """Where a part begins, and its documents; one part where no columns are added."""
        if not self._forest.has_categories:
            yield 0, matrix
            return
        size = max(1, CELLS_AT_ONCE // self._forest.as_numerical.n_features)
        for start in range(0, matrix.n_docs, size):
            yield start, self._for_traversal(flat(matrix.rows[start : start + size]))

    def _columns_for(self, matrix: Matrix) -> tuple[Any, bool]:
        single, double, _, _ = self._columns
        return (single, True) if matrix.values.dtype == np.float32 else (double, False)

    def _first(self, n_trees: int) -> Scorer:
        """The scorer of the first trees; the last one is cached."""
        if n_trees not in self._shorter:
            self._shorter = {n_trees: Scorer(self._forest.first(n_trees))}
        return self._shorter[n_trees]

    def _ranked(self, matrix: Matrix) -> np.ndarray:
        """The documents as columns of ranks, in blocks."""
        columns, exact = self._columns_for(matrix)
        n_blocks = -(-matrix.n_docs // scoring.BLOCK)
        n_columns = len(columns.feature) + len(columns.categories.feature)
        ranked = np.empty((n_blocks, max(1, n_columns) * scoring.STRIDE), np.uint8)
        quantize.rank_all(*matrix[:4], columns, exact, matrix.n_docs, ranked)
        return ranked

    def staged_predict(self, X: Any, *, every: int = 1, threads: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """See `Forest.staged_predict`."""
        if every < 1:
            raise ParameterError(param("every"), f" is {every}; expected an integer from 1")
        n_docs, parts = matrices(X, self._forest)
        return self._stages(X, n_docs, list(parts), every, threads)

    def _stages(
        self, X: Any, n_docs: int, parts: list[Matrix], every: int, threads: int | None
    ) -> Iterator[tuple[int, np.ndarray]]:
        scores = np.zeros(n_docs, SCORE)
        bounds = np.cumsum([0, *(part.n_docs for part in parts)])
        with using_threads(threads):
            ranked = [] if self._always_traverses else [self._ranked(part) for part in parts]
        for first in range(0, self._forest.n_trees, every):
            last = min(first + every, self._forest.n_trees)
            if self._always_traverses:
                later = Scorer(self._forest.take(np.arange(first, last)))
                for part, start in zip(parts, bounds, strict=False):
                    later._add(part, last - first, threads, scores[start : start + part.n_docs])
            else:
                trees = self._compile(first, last)
                with using_threads(threads):
                    for part, start, ranks in zip(parts, bounds, ranked, strict=False):
                        scoring.add_ranked(ranks, part.n_docs, trees, scores[start : start + part.n_docs])
            yield last, in_user_order(X, scores).copy()

    def predict_leaves(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """See `Forest.predict_leaves`."""
        forest = self._forest
        n_docs, parts = matrices(X, forest)
        leaves = empty_leaf_numbers(n_docs, forest)
        start = 0
        with using_threads(threads):
            for part in parts:
                out = leaves[start : start + part.n_docs]
                if part.n_docs <= FEW or self._always_traverses:
                    for first, some in self._parts_for_traversal(part):
                        traverse_raw.leaves_of_raw(*some, forest.n_trees, self._raw_trees, out[first:])
                elif forest.n_trees:
                    leaves_of_ranked(self._ranked(part), part.n_docs, self._compiled, out)
                start += part.n_docs
        return in_user_order(X, leaves)


def empty_leaf_numbers(n_docs: int, forest: Forest) -> np.ndarray:
    """An array for the leaf of each document in each tree, of the smallest type that holds these numbers."""
    most = int(forest.n_leaves.max(initial=1))
    return np.empty((n_docs, forest.n_trees), np.uint8 if most <= 256 else np.uint16 if most <= 65536 else np.int32)


def make_columns(forest: Forest) -> tuple[quantize.ByteColumns, quantize.ByteColumns, np.ndarray, np.ndarray]:
    """Columns for float32 documents and for float64 ones, and of every split the column and its threshold's rank there.

    A feature with more than 254 thresholds gets several columns, and so does one that treats zeros as missing in some
    splits and not in others. The columns of categories come last; their splits have, in place of a rank, `~` the
    number of the split among the categorical ones.
    """
    numerical = np.flatnonzero(~forest.categorical)
    feature, threshold, zero = forest.feature[numerical], forest.threshold[numerical], forest.zero_missing[numerical]
    order = np.lexsort((threshold, zero, feature))
    feature, threshold, zero = feature[order], threshold[order], zero[order]
    new_group = _changes(feature) | _changes(zero)
    new_value = new_group | _changes(threshold)
    number = np.cumsum(new_value) - 1
    first_of_group = np.maximum.accumulate(np.where(new_group, number, 0)) if len(number) else number
    number -= first_of_group
    new_column = new_group | (new_value & (number % MOST_THRESHOLDS == 0))
    column, cut = np.empty(len(forest.feature), np.int32), np.empty(len(forest.feature), np.int32)
    column[numerical[order]] = np.cumsum(new_column) - 1
    cut[numerical[order]] = number % MOST_THRESHOLDS
    categories = quantize.NO_CATEGORIES
    if len(numerical) < len(forest.feature):
        tests = forest.category_tests
        column[forest.categorical] = int(new_column.sum()) + tests.column
        cut[forest.categorical] = ~np.arange(len(tests.column))
        categories = tests.categories
    values = threshold[new_value]
    starts = np.append(np.flatnonzero(new_column[new_value]), len(values)).astype(np.int64)
    shared = (feature[new_column], zero[new_column], values, starts)
    return (
        quantize.ByteColumns(*shared, *heaps_of(floor_single(values), starts), categories=categories),
        quantize.ByteColumns(*shared, *heaps_of(to_single(values), starts), categories=categories),
        column,
        cut,
    )


def _changes(values: np.ndarray) -> np.ndarray:
    changes = np.ones(len(values), dtype=bool)
    changes[1:] = values[1:] != values[:-1]
    return changes


def make_raw_trees(forest: Forest) -> traverse_raw.RawTrees:
    """The forest's nodes in the order that traversal from root to leaf needs."""
    n_padding = -forest.n_trees % traverse_raw.SIDE_BY_SIDE
    sizes = np.diff(forest.split_offsets) + np.diff(forest.leaf_offsets)
    roots = starts_of(sizes).astype(np.int32)
    padding = roots[-1]  # one more leaf, the root of the trees that fill up the last group
    n_nodes = int(padding) + 1
    trees = traverse_raw.RawTrees(
        places=np.zeros(n_nodes, np.int32),
        thresholds=np.full(n_nodes, np.inf),
        children=np.full(2 * n_nodes, padding, np.int32),
        values=np.zeros(n_nodes),
        leaves=np.zeros(n_nodes, np.int32),
        roots=np.concatenate([roots[:-1], np.full(n_padding, padding, np.int32)]),
        depths=np.zeros((forest.n_trees + n_padding) // traverse_raw.SIDE_BY_SIDE, np.int64),
        copies=np.zeros(4, np.bool_),
    )
    splits, leaves = node_places(forest)
    trees.thresholds[splits], trees.values[leaves] = forest.threshold, forest.scaled_leaf_values()
    traverse_raw.pack_nodes(
        forest.feature, forest.left, forest.right, forest.default_left, forest.zero_missing, forest.n_features,
        forest.split_offsets, forest.leaf_offsets, trees,
    )  # fmt: skip
    return trees


def in_user_order(X: Any, values: np.ndarray) -> np.ndarray:
    """Values of a data set's documents in the order the user gave them; those of other documents as they are."""
    return X.lists.to_user_order(values) if hasattr(X, "lists") else values


def checked_trees(trees: int | None, n_trees: int) -> int:
    if trees is None:
        return n_trees
    if trees < 0:
        raise ParameterError(param("trees"), f" is {trees}; expected an integer from 0")
    return min(trees, n_trees)
