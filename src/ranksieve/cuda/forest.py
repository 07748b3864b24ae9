"""Scoring with a forest on a GPU by feature values, for forests that are too large for `ranked_forest`.

Scores are those of the CPU, bit for bit: documents reach the same leaves, and trees are added in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float64, int32, int64

from ranksieve.cuda.device import SIMULATED, empty, kernel, upload
from ranksieve.kernels.quantize import ZERO_THRESHOLD

SIDE_BY_SIDE = 2  # documents of a thread, which wait for memory together
MOST_SPLITS = 1024  # splits of a tree that fit into shared memory; further ones are read from global memory
MOST_CHILDREN = 2 * MOST_SPLITS
LEFT_IF_MISSING, ZERO_IS_MISSING = 1, 2  # flags of a split
TILE = 32  # documents and features that a block transposes
WIDTH = TILE + 1  # of a row in shared memory: with TILE, all rows would begin in the same bank
BLOCK = 32 if SIMULATED else 256
AT_A_TIME = 1 << 20  # documents that are scored at a time


class Trees(NamedTuple):
    """The splits and leaves of all trees, and where those of each tree begin."""

    features: Any  # int32: feature << 2 | flags
    thresholds: Any
    children: Any  # int32, two for each split: left, right; below 0: leaf ~child
    values: Any  # values of leaves times the weights of their trees
    split_offsets: Any
    leaf_offsets: Any


@kernel
def transpose(rows, n_docs, n_features, columns):
    """Write row-major documents by columns, so that neighbouring threads read neighbouring values."""
    tile = cuda.shared.array((TILE, WIDTH), float64)
    first, feature = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for i in range(cuda.threadIdx.x, TILE * TILE, cuda.blockDim.x):
        doc, column = i // TILE, i % TILE
        if first + doc < n_docs and feature + column < n_features:
            tile[doc, column] = rows[first + doc, feature + column]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, TILE * TILE, cuda.blockDim.x):
        doc, column = i % TILE, i // TILE
        if first + doc < n_docs and feature + column < n_features:
            columns[(feature + column) * n_docs + first + doc] = tile[doc, column]


@cuda.jit(device=True)
def goes_left(value, threshold, flags):
    """Whether a value goes left; NaN, and zero where it counts as missing, go where missing values go."""
    if value != value or ((flags & ZERO_IS_MISSING) != 0 and abs(value) <= ZERO_THRESHOLD):
        return (flags & LEFT_IF_MISSING) != 0
    return value <= threshold


@kernel
def add_forest(columns, n_docs, trees, n_trees, scores):
    """Add trees, one after the other, to the scores of documents by columns; each tree is copied to shared memory."""
    features = cuda.shared.array(MOST_SPLITS, int32)
    thresholds = cuda.shared.array(MOST_SPLITS, float64)
    children = cuda.shared.array(MOST_CHILDREN, int32)
    nodes, totals = cuda.local.array(SIDE_BY_SIDE, int32), cuda.local.array(SIDE_BY_SIDE, float64)
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    base = cuda.blockIdx.x * step * SIDE_BY_SIDE + t
    for k in range(SIDE_BY_SIDE):
        totals[k] = scores[base + k * step] if base + k * step < n_docs else 0.0
    for tree in range(n_trees):
        first, n_splits = trees.split_offsets[tree], trees.split_offsets[tree + 1] - trees.split_offsets[tree]
        cuda.syncthreads()
        for i in range(t, min(n_splits, MOST_SPLITS), step):
            features[i], thresholds[i] = trees.features[first + i], trees.thresholds[first + i]
            children[2 * i], children[2 * i + 1] = trees.children[2 * (first + i)], trees.children[2 * (first + i) + 1]
        cuda.syncthreads()
        for k in range(SIDE_BY_SIDE):
            nodes[k] = 0 if n_splits > 0 and base + k * step < n_docs else -1
        going = n_splits > 0
        while going:
            going = False
            for k in range(SIDE_BY_SIDE):
                node = nodes[k]
                if node >= 0:
                    is_near = node < MOST_SPLITS
                    feature = features[node] if is_near else trees.features[first + node]
                    threshold = thresholds[node] if is_near else trees.thresholds[first + node]
                    value = float64(columns[int64(feature >> 2) * n_docs + base + k * step])
                    side = 0 if goes_left(value, threshold, feature & 3) else 1
                    nodes[k] = children[2 * node + side] if is_near else trees.children[2 * (first + node) + side]
                    going |= nodes[k] >= 0
        for k in range(SIDE_BY_SIDE):
            totals[k] += trees.values[trees.leaf_offsets[tree] + ~nodes[k]]
    for k in range(SIDE_BY_SIDE):
        if base + k * step < n_docs:
            scores[base + k * step] = totals[k]


class DeviceForest:
    """A forest on the GPU."""

    def __init__(
        self,
        splits: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        values: np.ndarray,
        split_offsets: np.ndarray,
        leaf_offsets: np.ndarray,
    ) -> None:
        """`splits` are feature, threshold, left, right, default_left and zero_missing, as in `Forest`."""
        feature, threshold, left, right, default_left, zero_missing = splits
        flags = LEFT_IF_MISSING * default_left.astype(np.int32) + ZERO_IS_MISSING * zero_missing.astype(np.int32)
        self._n_trees = len(split_offsets) - 1
        self._trees = Trees(
            upload((feature.astype(np.int32) << 2) | flags), upload(threshold.astype(np.float64)),
            upload(np.stack([left, right], axis=1).reshape(-1).astype(np.int32)), upload(values),
            upload(split_offsets), upload(leaf_offsets),
        )  # fmt: skip

    def score(self, rows: Any) -> Any:
        """Scores of documents on the device, float32 or float64."""
        n_docs, n_features = rows.shape
        scores = upload(np.zeros(n_docs))
        for start in range(0, n_docs, AT_A_TIME):
            n = min(AT_A_TIME, n_docs - start)
            columns = empty(n * n_features, rows.dtype)
            transpose[(-(-n // TILE), -(-n_features // TILE)), BLOCK](rows[start : start + n], n, n_features, columns)
            blocks = -(-n // (BLOCK * SIDE_BY_SIDE))
            add_forest[blocks, BLOCK](columns, n, self._trees, self._n_trees, scores[start : start + n])
        return scores
