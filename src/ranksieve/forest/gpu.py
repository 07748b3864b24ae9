"""`GpuScorer`: scores documents with a forest on a GPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.cuda.device import download, synchronize, upload
from ranksieve.cuda.dlpack import on_device
from ranksieve.cuda.forest import DeviceForest
from ranksieve.cuda.ranked_forest import RankedForest, pack_trees
from ranksieve.dtypes import SCORE
from ranksieve.errors import ModelError
from ranksieve.forest.float32 import floor_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import matrices
from ranksieve.forest.scorer import checked_trees, in_user_order, make_columns


class GpuScorer:
    """Created on first use and cached by the forest."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._shorter: dict[int, GpuScorer] = {}

    @cached_property
    def _on_gpu(self) -> RankedForest | DeviceForest:
        """The forest on the GPU; one with very many columns or leaves is compared by values, which is slower."""
        forest = self._forest
        values, offsets = forest.scaled_leaf_values(), (forest.split_offsets, forest.leaf_offsets)
        columns, _, column, cut = make_columns(forest)
        if RankedForest.fits(len(columns.feature), int(forest.n_leaves.max(initial=1))):
            edges = {
                np.dtype(np.float32): floor_single(columns.thresholds).astype(np.float32),
                np.dtype(np.float64): columns.thresholds,
            }
            trees = pack_trees((column, cut, forest.left, forest.right, forest.default_left), values, *offsets)
            return RankedForest(columns.feature, columns.zero_missing, edges, columns.starts, trees)
        splits = (
            forest.feature, forest.threshold, forest.left, forest.right, forest.default_left, forest.zero_missing,
        )  # fmt: skip
        return DeviceForest(splits, values, *offsets)

    def predict(self, X: Any, *, trees: int | None = None, dtype: Any = SCORE) -> Any:
        """See `Forest.predict`."""
        n_trees = checked_trees(trees, self._forest.n_trees)
        if n_trees < self._forest.n_trees:
            if n_trees not in self._shorter:
                self._shorter = {n_trees: GpuScorer(self._forest.first(n_trees))}
            return self._shorter[n_trees].predict(X, dtype=dtype)
        documents = on_device(X)
        if documents is not None:
            scores = self._on_gpu.score(self._checked(documents))
            synchronize()
            return scores
        n_docs, parts = matrices(X, self._forest)
        scores, start = np.zeros(n_docs, SCORE), 0
        for part in parts:
            if part.n_docs:
                scores[start : start + part.n_docs] = download(self._on_gpu.score(upload(part.rows)))
            start += part.n_docs
        return in_user_order(X, scores).astype(dtype, copy=False)

    def _checked(self, rows: Any) -> Any:
        """Documents that are on the GPU."""
        if rows.ndim != 2 or rows.shape[1] != self._forest.n_features or rows.dtype not in (np.float32, np.float64):
            raise ModelError(
                f"got {rows.dtype} of shape {rows.shape} on the GPU; give float32 or float64, one row per document, "
                f"with {self._forest.n_features} features"
            )
        return rows
