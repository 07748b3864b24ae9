"""`GpuScorer`: scores documents with a forest on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from ranksieve.cuda.device import SIMULATED, download, upload
from ranksieve.cuda.forest import DeviceForest
from ranksieve.dtypes import SCORE
from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import matrices
from ranksieve.forest.scorer import checked_trees, in_user_order


class GpuScorer:
    """Created on first use and cached by the forest."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        splits = (
            forest.feature, forest.threshold, forest.left, forest.right, forest.default_left, forest.zero_missing,
        )  # fmt: skip
        self._there = DeviceForest(splits, forest.scaled_leaf_values(), forest.split_offsets, forest.leaf_offsets)

    def predict(self, X: Any, *, trees: int | None = None, dtype: Any = SCORE) -> Any:
        """See `Forest.predict`."""
        n_trees = checked_trees(trees, self._forest.n_trees)
        if hasattr(X, "__cuda_array_interface__"):
            return self._there.score(self._checked(X), n_trees)
        n_docs, parts = matrices(X, self._forest)
        scores, start = np.zeros(n_docs, SCORE), 0
        for part in parts:
            if part.n_docs:
                shape = (part.n_docs, part.n_features) if part.column_step == 1 else (part.n_features, part.n_docs)
                rows = part.values.reshape(shape)
                rows = rows if part.column_step == 1 else rows.T
                scores[start : start + part.n_docs] = download(self._there.score(upload(rows), n_trees))
            start += part.n_docs
        return in_user_order(X, scores).astype(dtype, copy=False)

    def _checked(self, X: Any) -> Any:
        """Documents that are on the GPU."""
        there = X if SIMULATED else cuda.as_cuda_array(X)
        if there.ndim != 2 or there.shape[1] != self._forest.n_features or there.dtype not in (np.float32, np.float64):
            raise ModelError(
                f"got {there.dtype} of shape {there.shape} on the GPU; give float32 or float64, one row per document, "
                f"with {self._forest.n_features} features"
            )
        return there
