"""`Contributions`: the contribution of each feature to a document's score (exact path-dependent TreeSHAP)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.dtypes import SCORE
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import Matrix, matrices
from ranksieve.forest.scorer import in_user_order
from ranksieve.forest.structure import children_of, levels, of_children
from ranksieve.kernels import contributions as kernels
from ranksieve.threads import using_threads

ROWS = 4096  # documents that are made float64 at a time
CELLS = 1 << 23  # most values of them


class Contributions:
    """Shapley values of documents; created on first use and cached by the forest.

    Unknown features are averaged over the training documents that passed each split (`leaf_count`). Models without
    counts (XGBoost's) are averaged by their sums of second derivatives. Where `groups` has a number for each feature,
    features with the same one are known or unknown together, and the contributions are those of the groups.
    """

    def __init__(self, forest: Forest, groups: np.ndarray | None = None):
        self._forest = forest
        self._feature = forest.feature if groups is None else groups[forest.feature]
        self._n_groups = forest.n_features if groups is None else int(groups.max(initial=-1)) + 1
        values = forest.scaled_leaf_values()
        leaf_covers, split_covers = covers(forest)
        self._expected = _expected(forest, values, leaf_covers)
        self._paths = _paths(forest, self._feature, values, leaf_covers, split_covers)
        most = int(self._paths.n_points.max(initial=1))
        points, weights = np.zeros((most + 1, most)), np.zeros((most + 1, most))
        for m in range(1, most + 1):
            x, w = np.polynomial.legendre.leggauss(m)
            points[m, :m], weights[m, :m] = (x + 1.0) / 2.0, w / 2.0
        sizes = np.diff(self._paths.starts) * self._paths.n_points * kernels.CASES
        self._table = np.zeros(int(sizes.sum()))
        kernels.fill_table(self._paths, points, weights, self._table)

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Contributions of every feature, or group of features, then the expected score; rows add up to scores."""
        forest = self._forest
        n_docs, parts = matrices(X, forest)
        out = np.zeros((n_docs, self._n_groups + 1), SCORE)
        out[:, -1] = self._expected
        tests = forest.as_numerical
        splits = (self._feature, tests.feature, tests.threshold, tests.default_left, tests.zero_missing)
        start, step = 0, max(1, min(ROWS, CELLS // max(1, tests.n_features)))
        with using_threads(threads):
            for part in parts:
                for first in range(0, part.n_docs, step):
                    rows = _rows(part, first, min(first + step, part.n_docs))
                    rows = rows if tests is forest else forest.category_tests.expand(rows)
                    kernels.all_contributions(rows, self._paths, splits, self._table, out[start : start + len(rows)])
                    start += len(rows)
        return in_user_order(X, out)


def covers(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    """The number of training documents, or the sum of their second derivatives, of each leaf and each split."""
    leaf = forest.leaf_count.astype(np.float64)
    if not leaf.any():
        leaf = forest.leaf_weight
    tree = np.repeat(np.arange(forest.n_trees), forest.n_leaves)
    empty = np.bincount(tree, weights=leaf, minlength=forest.n_trees) <= 0
    empty &= forest.n_leaves > 1
    if empty.any():
        raise ModelError(
            f"tree {int(np.argmax(empty))} does not store how many training documents its leaves have, and "
            "contributions are averages over them; use a model whose file has leaf_count, such as LightGBM's"
        )
    split = np.zeros(len(forest.feature))
    sides = children_of(forest)
    for splits in reversed(levels(forest.left, forest.right, forest.split_offsets)):
        for side in sides:
            split[splits] += of_children(side[splits], split, leaf)
    return leaf, split


def _expected(forest: Forest, values: np.ndarray, leaf_covers: np.ndarray) -> float:
    """The mean score of the training documents, tree by tree."""
    total = 0.0
    for start, stop in zip(forest.leaf_offsets[:-1], forest.leaf_offsets[1:], strict=True):
        lone = stop - start == 1
        total += values[start] if lone else np.average(values[start:stop], weights=leaf_covers[start:stop])
    return float(total)


def _paths(
    forest: Forest, feature: np.ndarray, values: np.ndarray, leaf_covers: np.ndarray, split_covers: np.ndarray
) -> kernels.Paths:
    starts = starts_of(2 * forest.n_leaves - 1)
    n_nodes, n_trees = int(starts[-1]), forest.n_trees
    split, parent, right, above = (np.zeros(n_nodes, np.int32) for _ in range(4))
    paths = kernels.Paths(
        split, parent, right, above, np.zeros(n_nodes), np.zeros(n_nodes), starts,
        np.zeros(n_trees, np.int64), np.zeros(n_trees, np.int64),
    )  # fmt: skip
    kernels.collect_paths(
        feature, forest.left, forest.right, forest.split_offsets, forest.leaf_offsets, values, leaf_covers,
        split_covers, paths,
    )  # fmt: skip
    sizes = np.diff(starts) * paths.n_points * kernels.CASES
    paths.table_starts[:] = np.cumsum(sizes) - sizes
    return paths


def _rows(matrix: Matrix, start: int, stop: int) -> np.ndarray:
    """Some documents as a C-ordered float64 array."""
    return np.array(matrix.rows[start:stop], dtype=np.float64, order="C")
