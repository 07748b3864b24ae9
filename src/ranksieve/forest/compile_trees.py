"""Trees on binned columns, made ready for scoring; `kernels.compile_trees` says what they become."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.forest.category_tests import set_tests
from ranksieve.kernels.compile_trees import TOGETHER, CompiledTrees, compile_trees
from ranksieve.kernels.set_tests import NO_SETS


def compile_binned(
    splits: Any, leaf_values: Any, split_offsets: Any, leaf_offsets: Any, sets: Any = None
) -> CompiledTrees:
    """Trees on binned columns, ready for `add_trees_binned`.

    Parameters
    ----------
    splits : integer array (n_splits, 5)
        Rows (column, bin, missing left, left child, right child). A document goes left when `bins[column] <= bin`; bin
        255 means missing. A child is a split of the same tree, or `~leaf`.
    leaf_values : float64 array
        With tree weights multiplied in.
    split_offsets, leaf_offsets : integer arrays, n_trees + 1
    sets : bool array (n_sets, 256), optional
        For splits by sets: which bins go left. A split whose bin is negative uses set `~bin`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksieve.kernels.scoring import NO_DOCS, add_trees_binned
    >>> trees = compile_binned([[0, 7, True, ~0, ~1]], [0.25, 4.0], [0, 1], [0, 2])
    >>> bins, scores = np.array([[7], [8], [255]], np.uint8), np.zeros(3)
    >>> add_trees_binned(bins, trees, 0, NO_DOCS, scores)
    >>> scores.tolist()
    [0.25, 4.0, 0.25]
    """
    split_offsets, leaf_offsets = (np.ascontiguousarray(o, dtype=np.int64) for o in (split_offsets, leaf_offsets))
    column, cut, missing_left, left, right = np.ascontiguousarray(np.transpose(splits), dtype=np.int32)
    leaf_values = np.ascontiguousarray(leaf_values, dtype=np.float64)
    n_splits, n_trees = len(column), len(split_offsets) - 1
    test, lines = np.empty(n_splits, np.int32), np.empty((n_splits, 4), np.int32)
    line_starts = np.zeros(-(-n_trees // TOGETHER) + 1, np.int64)
    levels = np.zeros((n_trees, 17), np.int32)
    values, leaves = np.empty(len(leaf_values)), np.empty(len(leaf_values), np.int32)
    default_left, by_set = missing_left == 1, cut < 0
    tests_of_sets = NO_SETS
    if by_set.any():
        numeric = np.empty(n_splits - by_set.sum(), np.int32)
        columns, test_starts, limits = number_tests(column[~by_set], cut[~by_set], default_left[~by_set], numeric)
        tests_of_sets, numbers = set_tests(column[by_set], np.asarray(sets)[~cut[by_set]])
        test[~by_set], test[by_set] = numeric, len(limits) + numbers
    else:
        columns, test_starts, limits = number_tests(column, cut, default_left, test)
    compile_trees(
        left, right, test, leaf_values, split_offsets, leaf_offsets, lines, line_starts, levels, values, leaves
    )
    return CompiledTrees(
        columns, test_starts, limits, lines.ravel(), line_starts, levels, values, leaves, leaf_offsets, *tests_of_sets
    )


def number_tests(
    column: np.ndarray, cut: np.ndarray, default_left: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the distinct (column, default_left, cut) in ascending order; `test` gets each split's number."""
    keys = 512 * column.astype(np.int64) + 256 * default_left + cut
    seen = np.zeros(keys.max(initial=-1) + 1, np.bool_)
    seen[keys] = True
    distinct = np.flatnonzero(seen)
    numbers = np.empty(len(seen), np.int32)
    numbers[distinct] = np.arange(len(distinct))
    test[:] = numbers[keys]
    columns = np.unique(distinct >> 9).astype(np.int32)
    starts = np.searchsorted(distinct >> 8, (2 * columns[:, None] + [0, 1]).ravel())
    # where missing (255) goes left, columns are compared shifted by one, so that it becomes 0
    limits = ((distinct & 255) + (distinct >> 8 & 1)).astype(np.uint8)
    return columns, np.append(starts, len(distinct)), limits
