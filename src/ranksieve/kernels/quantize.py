"""Feature values turned into bytes: how many of a column's thresholds are below a value; 255 for NaN.

A column is one feature with up to 254 of its thresholds. They are kept as a heap (the middle one first, then those of
the two halves, …), 16 to a register, so that a level of the search is one look-up within registers for 16 documents.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import (
    choose,
    descend,
    load_floats,
    look_up,
    number_or_missing,
    splat_numbers,
    store,
)
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.scoring import BLOCK, STRIDE, TILE, add_block, aligned, scratch
from ranksieve.kernels.set_tests import take_classes
from ranksieve.kernels.transpose import transpose_tile

CHUNK = 128  # documents whose raw values are copied to columns at a time; 16 features of them take 8 KB
ZERO_THRESHOLD = np.float64(np.float32(1e-35))  # as in LightGBM: no larger value counts as zero


class Categories(NamedTuple):
    """What turns raw categories into bytes, see `set_tests.class_of`; their columns follow those of thresholds."""

    feature: np.ndarray  # int32 per column
    starts: np.ndarray  # int64, n_columns + 1: classes of each column
    classes: np.ndarray  # uint8 per category: categories that are in the same sets share one; 0: in no set


NO_CATEGORIES = Categories(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint8))


class ByteColumns(NamedTuple):
    """What turns raw features into columns of bytes; columns are sorted by feature."""

    feature: np.ndarray  # int32 per column
    zero_missing: np.ndarray  # bool per column
    thresholds: np.ndarray  # float64, ascending within a column
    starts: np.ndarray  # int64, n_columns + 1: thresholds of each column
    heaps: np.ndarray  # float32: thresholds rounded, as heaps padded to 2^levels with infinity
    heap_starts: np.ndarray  # int64, n_columns
    levels: np.ndarray  # int64 per column: 4 to 8
    categories: Categories


@njit(cache=True, nogil=True)
def make_heaps(thresholds, starts, levels, heap_starts, heaps):
    """Every column's ascending thresholds in the order of a binary search; element 0 of a heap is not used."""
    for c in range(len(levels)):
        for level in range(levels[c]):
            for k in range(1 << level):
                place = starts[c] + ((2 * k + 1) << (levels[c] - 1 - level)) - 1
                above = thresholds[place] if place < starts[c + 1] else np.float32(np.inf)
                heaps[heap_starts[c] + (1 << level) + k] = above


@njit(cache=True, nogil=True)
def rank_column(values, start, n_docs, heaps, heap, levels, out, place):
    """Write the ranks of a column of float32 values to `out[place:]`: the number of thresholds below; 255 for NaN."""
    top, base = load_floats(heaps, heap), np.int32(1 << levels)
    for i in range(0, n_docs, TILE):
        x, node = load_floats(values, start + i), splat_numbers(np.int32(1))
        for _ in range(4):
            node = descend(node, x, look_up(top, node))
        if levels > 4:
            node = descend(node, x, look_up(load_floats(heaps, heap + 16), node))
        if levels > 5:
            node = descend(node, x, look_up_32(heaps, heap + 32, node))
        if levels > 6:
            node = descend(node, x, look_up_64(heaps, heap + 64, node))
        if levels > 7:
            low, high = look_up_64(heaps, heap + 128, node), look_up_64(heaps, heap + 192, node)
            node = descend(node, x, choose(node, np.int32(64), low, high))
        store(out, place + i, number_or_missing(x, node, base))


@njit(cache=True, nogil=True)
def look_up_32(heaps, start, node):
    """`heaps[start + node % 32]`."""
    low, high = look_up(load_floats(heaps, start), node), look_up(load_floats(heaps, start + 16), node)
    return choose(node, np.int32(16), low, high)


@njit(cache=True, nogil=True)
def look_up_64(heaps, start, node):
    """`heaps[start + node % 64]`."""
    return choose(node, np.int32(32), look_up_32(heaps, start, node), look_up_32(heaps, start + 32, node))


@njit(cache=True, nogil=True)
def take_features(X, column_step, positions, n_features, feature, n_docs, values):
    """Features feature..feature + 15 of a chunk of documents as float32 columns of `CHUNK` values; returns the first.

    `X` is flat; document i has feature f at `positions[i] + f * column_step`.
    """
    if column_step == 1 and n_features >= TILE:
        feature = min(feature, n_features - TILE)  # the last tile overlaps the one before
        for i in range(0, n_docs, TILE):
            transpose_tile(X, positions, i, feature, values, i, CHUNK)
        return feature
    for j in range(min(TILE, n_features - feature)):
        start = (feature + j) * column_step
        for i in range(n_docs):
            values[j * CHUNK + i] = X[start + positions[i]]
    return feature


@njit(cache=True, nogil=True)
def correct_ranks(X, start, positions, n_docs, thresholds, first, last, zero_missing, ranks, place):
    """Correct ranks that were found with values and thresholds rounded to float32.

    Rounding keeps order: if a rounded threshold is below a rounded value, the threshold is below the value. So ranks
    may be too low, and are never too high.
    """
    for i in range(n_docs):
        number = first + ranks[place + i]
        if number < last and thresholds[number] < X[start + positions[i]]:
            if zero_missing and abs(X[start + positions[i]]) <= ZERO_THRESHOLD:
                continue
            while number < last and thresholds[number] < X[start + positions[i]]:
                number += 1
            ranks[place + i] = number - first


@njit(cache=True, nogil=True)
def rank_chunk(X, column_step, n_features, positions, n_docs, columns, exact, values, at, out):
    """Ranks of up to `CHUNK` documents in every column, column c to `out[c * STRIDE + at:]`."""
    features, zero_missing, thresholds, starts, heaps, heap_starts, levels, _ = columns
    tile, first, spare = -1, 0, TILE * CHUNK
    for c in range(len(features)):
        feature, place = int(features[c]), c * STRIDE + at
        if feature // TILE != tile:
            tile = feature // TILE
            first = take_features(X, column_step, positions, n_features, TILE * tile, n_docs, values)
        column = (feature - first) * CHUNK
        if zero_missing[c]:
            for i in range(n_docs):
                x = values[column + i]
                values[spare + i] = np.float32(np.nan) if abs(x) <= ZERO_THRESHOLD else x
            column = spare
        rank_column(values, column, n_docs, heaps, heap_starts[c], levels[c], out, place)
        if not exact:
            correct_ranks(X, feature * column_step, positions, n_docs, thresholds, starts[c], starts[c + 1],
                          zero_missing[c], out, place)  # fmt: skip


@njit(cache=True, nogil=True)
def rank_block(X, row_step, column_step, n_features, start, n_docs, columns, exact, positions, values, out):
    """Ranks of the documents start..start + n_docs - 1, at most `BLOCK`, in every column."""
    for at in range(0, n_docs, CHUNK):
        n = min(CHUNK, n_docs - at)
        for i in range((n + TILE - 1) // TILE * TILE):  # tiles are whole: the last document is repeated
            positions[i] = row_step * (start + at + min(i, n - 1))
        rank_chunk(X, column_step, n_features, positions, n, columns, exact, values, at, out)
    if len(columns.categories.feature):
        n_columns = len(columns.feature)
        take_classes(X, row_step, column_step, start, n_docs, columns.categories, STRIDE, n_columns, out)


@njit(cache=True, nogil=True)
def ranking_scratch(columns):
    """What ranking a block needs to write to: (positions of rows, raw columns, ranked columns)."""
    n_columns = len(columns.feature) + len(columns.categories.feature)
    ranked = aligned(n_columns * STRIDE // 8).view(np.uint8)
    return np.empty(CHUNK, np.int64), np.empty((TILE + 1) * CHUNK, np.float32), ranked


@njit(cache=True, nogil=True)
def add_blocks(first, last, X, row_step, column_step, n_features, columns, exact, trees, n_docs, scores):
    """Add the values of all trees to the scores of the documents in blocks first..last - 1."""
    positions, values, ranked = ranking_scratch(columns)
    space, done = scratch(trees), np.empty(0, np.uint16)
    for start in range(BLOCK * first, min(BLOCK * last, n_docs), BLOCK):
        n = min(BLOCK, n_docs - start)
        rank_block(X, row_step, column_step, n_features, start, n, columns, exact, positions, values, ranked)
        add_block(ranked, n, trees, space, 0, done, scores[start:])


@njit(cache=True, nogil=True)
def add_raw(X, row_step, column_step, n_features, columns, exact, trees, n_docs, scores):
    """Add the values of all trees to the scores of all documents."""
    given = X, row_step, column_step, n_features, columns, exact, trees, n_docs, scores
    run_parts(add_blocks, -(-n_docs // BLOCK), given)


@njit(cache=True, nogil=True)
def rank_blocks(first, last, X, row_step, column_step, n_features, columns, exact, n_docs, ranked):
    """`rank_all` of the blocks first:last."""
    positions, values, _ = ranking_scratch(columns)
    for block in range(first, last):
        n = min(BLOCK, n_docs - block * BLOCK)
        rank_block(X, row_step, column_step, n_features, block * BLOCK, n, columns, exact, positions, values,
                   ranked[block])  # fmt: skip


@njit(cache=True, nogil=True)
def rank_all(X, row_step, column_step, n_features, columns, exact, n_docs, ranked):
    """Ranks of all documents, block b to `ranked[b]`."""
    run_parts(rank_blocks, len(ranked), (X, row_step, column_step, n_features, columns, exact, n_docs, ranked))
