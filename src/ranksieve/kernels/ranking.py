"""Feature values turned into bytes: how many of a column's sorted thresholds lie below a value; 255 for NaN.

A column is one feature with up to 254 of its thresholds. They are kept as a heap (the middle one first, then those of
the two halves, …), 16 to a register, so that a level of the search is one look-up within registers for 16 documents.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.lanes import (
    choose,
    descend,
    load_floats,
    look_up,
    number_or_missing,
    splat_numbers,
    store,
    transpose_tile,
)
from ranksieve.kernels.scoring import BLOCK, STRIDE, TILE, add_block, aligned, scratch

CHUNK = 128  # documents whose raw values are held as columns: 16 features of them are 8 KB
ZERO = np.float64(np.float32(1e-35))  # LightGBM: nothing larger counts as zero


class Columns(NamedTuple):
    """What turns raw features into columns of bytes; columns are sorted by feature."""

    feature: np.ndarray  # int32 per column
    zero_missing: np.ndarray  # bool per column
    thresholds: np.ndarray  # float64, ascending within a column
    starts: np.ndarray  # int64, n_columns + 1: thresholds of each column
    heaps: np.ndarray  # float32: thresholds rounded, as heaps padded to 2^levels with infinity
    heap_starts: np.ndarray  # int64, n_columns
    levels: np.ndarray  # int64 per column: 4 to 8


@njit(cache=True, nogil=True)
def make_heap(ascending, levels, heap):
    """Thresholds in the order of a binary search; element 0 is not used."""
    for level in range(levels):
        for k in range(1 << level):
            place = ((2 * k + 1) << (levels - 1 - level)) - 1
            heap[(1 << level) + k] = ascending[place] if place < len(ascending) else np.inf


@njit(cache=True, nogil=True)
def rank(values, start, heap, levels, out, place):
    """Ranks of 16 float32 values, to `out[place:]`: same as a search in the sorted thresholds, 255 for NaN."""
    x, node = load_floats(values, start), splat_numbers(np.int32(1))
    top = load_floats(heap, 0)
    node = descend(node, x, look_up(top, node))
    node = descend(node, x, look_up(top, node))
    node = descend(node, x, look_up(top, node))
    node = descend(node, x, look_up(top, node))
    if levels > 4:
        node = descend(node, x, look_up(load_floats(heap, 16), node))
    if levels > 5:
        node = descend(node, x, look_up_32(heap, 32, node))
    if levels > 6:
        found = choose(node, np.int32(32), look_up_32(heap, 64, node), look_up_32(heap, 96, node))
        node = descend(node, x, found)
    if levels > 7:
        low = choose(node, np.int32(32), look_up_32(heap, 128, node), look_up_32(heap, 160, node))
        high = choose(node, np.int32(32), look_up_32(heap, 192, node), look_up_32(heap, 224, node))
        node = descend(node, x, choose(node, np.int32(64), low, high))
    store(out, place, number_or_missing(x, node, np.int32(1 << levels)))


@njit(cache=True, nogil=True)
def look_up_32(heap, start, node):
    """`heap[start + node % 32]`."""
    low, high = look_up(load_floats(heap, start), node), look_up(load_floats(heap, start + 16), node)
    return choose(node, np.int32(16), low, high)


@njit(cache=True, nogil=True)
def take_features(X, row_step, column_step, positions, n_features, feature, n_docs, values):
    """Features feature..feature + 15 of a chunk of documents as float32 columns of `CHUNK` values; returns the first.

    `X` is flat; a value stands at `row * row_step + feature * column_step`. NaN and infinities pass.
    """
    if column_step == 1 and n_features >= TILE:
        feature = min(feature, n_features - TILE)
        for i in range(0, n_docs, TILE):
            transpose_tile(X[feature:], positions, i, values, i, CHUNK)
        return feature
    for j in range(min(TILE, n_features - feature)):
        start = (feature + j) * column_step
        for i in range(n_docs):
            values[j * CHUNK + i] = X[start + positions[i]]
    return feature


@njit(cache=True, nogil=True)
def zeros_to_missing(values):
    """Zeros as NaN."""
    for i in range(len(values)):
        if abs(values[i]) <= ZERO:
            values[i] = np.nan


@njit(cache=True, nogil=True)
def correct_ranks(X, start, positions, n_docs, thresholds, zero_missing, ranks):
    """Raise ranks found among thresholds rounded to float32 to those among the thresholds themselves.

    Rounding keeps order, so rounded thresholds below a rounded value are below the value: ranks are never too high.
    """
    n = len(thresholds)
    for i in range(n_docs):
        number = np.int64(ranks[i])
        if number < n:
            x = X[start + positions[i]]
            if zero_missing and abs(x) <= ZERO:
                continue
            while number < n and thresholds[number] < x:
                number += 1
            ranks[i] = number


@njit(cache=True, nogil=True)
def rank_chunk(X, row_step, column_step, n_features, positions, n_docs, columns, exact, values, at, out):
    """Ranks of up to `CHUNK` documents in every column, column c to `out[c * STRIDE + at:]`."""
    tile, first = -1, 0
    one = np.empty(CHUNK, np.float32)
    for c in range(len(columns.feature)):
        feature = columns.feature[c]
        if feature // TILE != tile:
            tile = feature // TILE
            first = take_features(X, row_step, column_step, positions, n_features, TILE * tile, n_docs, values)
        column = values[(feature - first) * CHUNK : (feature - first + 1) * CHUNK]
        if columns.zero_missing[c]:
            one[:] = column
            zeros_to_missing(one)
            column = one
        heap, levels = columns.heaps[columns.heap_starts[c] :], columns.levels[c]
        for i in range(0, n_docs, TILE):
            rank(column, i, heap, levels, out, c * STRIDE + at + i)
        if not exact:
            thresholds = columns.thresholds[columns.starts[c] : columns.starts[c + 1]]
            correct_ranks(X, feature * column_step, positions, n_docs, thresholds, columns.zero_missing[c],
                          out[c * STRIDE + at :])  # fmt: skip
