"""How alike a forest finds documents: the leaves they share (Lucchese et al. 2015, Fig. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import DataError
from ranksieve.kernels.similarity import count_pairs

QUERIES = 256  # lists counted at a time: a row of counts for each


def shared_leaves(leaves: Any, offsets: Any) -> np.ndarray:
    """The number of pairs of documents, both of one list, by the number of trees in which they end in the same leaf.

    Parameters
    ----------
    leaves : array, documents × trees
        Leaf numbers, as `Forest.predict_leaves` returns them.
    offsets : array
        Query q owns the documents `offsets[q]:offsets[q + 1]`.

    Returns
    -------
    numpy.ndarray
        int64, one more than there are trees: entry s counts the pairs that share s leaves. Exact: every pair counts.

    Examples
    --------
    >>> shared_leaves([[0, 1], [0, 1], [0, 2], [5, 5], [6, 5]], [0, 3, 5]).tolist()
    [0, 3, 1]
    """
    leaves, offsets = np.asarray(leaves), np.asarray(offsets, dtype=np.int64)
    if leaves.ndim != 2 or leaves.dtype.kind not in "iu":
        raise DataError(f"got leaves of shape {leaves.shape} and type {leaves.dtype}; expected documents × trees")
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(leaves) or (np.diff(offsets) < 0).any():
        raise DataError(f"the offsets do not cut {len(leaves)} documents into lists; expected 0, …, {len(leaves)}")
    small = leaves.max(initial=0) < 256
    by_tree = np.ascontiguousarray(leaves.T, dtype=np.uint8 if small else np.int32)
    total = np.zeros(leaves.shape[1] + 1, np.int64)
    for start in range(0, len(offsets) - 1, QUERIES):
        part = offsets[start : start + QUERIES + 1]
        counts = np.zeros((len(part) - 1, len(total)), np.int64)
        count_pairs(by_tree, part, counts)
        total += counts.sum(axis=0)
    return total
