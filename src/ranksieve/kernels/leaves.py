"""Leaf numbers of binned documents."""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.scoring import BLOCK, STRIDE, aligned, leaves_of_block, scratch, take_columns


@njit(cache=True, nogil=True, parallel=True)
def leaves_of_binned(bins, trees, out):
    """The leaf of every tree, counted within the tree, for documents as rows of bins."""
    width = bins.shape[1]
    for part in prange((len(bins) + BLOCK - 1) // BLOCK):
        start, n_docs = part * BLOCK, min(BLOCK, len(bins) - part * BLOCK)
        columns, rows = aligned(width * STRIDE // 8).view(np.uint8), aligned(64 * width // 8).view(np.uint8)
        take_columns(bins, start, n_docs, trees.columns, width * np.arange(64), rows, columns)
        leaves_of_block(columns, n_docs, trees, scratch(trees), out[start:])
