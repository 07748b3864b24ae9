"""Trees compiled for the scoring kernels: the tests of all trees, and for each tree a list of bit operations.

A document goes right where the test `column[document] > limit` is true. Equal tests of different nodes and trees are
made once. A test of a set of categories is a row of a table of 256 bits: they say which bytes of the column go right,
see `set_tests`.

The leaves of a tree are numbered from left to right. `beyond[j]` says whether a document's leaf is number j or a later
one: `beyond[0]` is always true, and `beyond[n_leaves]` is never true. Take a split whose subtree has the leaves
low..high - 1, and whose right child begins at leaf `middle`. It decides one of them:

    beyond[middle] = beyond[high] or (beyond[low] and test)

A document whose leaf is right of the subtree is beyond. One whose leaf is in the subtree is beyond if it goes right.
Others are not. So a tree is a list of such lines, one for each split, parents first. A line has no branch, and one
instruction runs it for 512 documents.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.set_tests import SetTests

WORDS_PER_ROW = 8  # 512 documents as bits: one AVX-512 register
TOGETHER = 4  # trees that are evaluated side by side


class CompiledTrees(NamedTuple):
    """Trees that `scoring` evaluates; positions count 64-bit words, and a row of bits has `WORDS_PER_ROW` of them."""

    columns: np.ndarray  # int32: the columns that are compared with limits, ascending
    test_starts: np.ndarray  # int64: tests of column u, at 2u those with missing right, at 2u + 1 with missing left
    limits: np.ndarray  # uint8 per test: true if the column is larger; with missing left, 1 is added to the column
    lines: np.ndarray  # int32, four per line: positions of the test, low, high, middle
    line_starts: np.ndarray  # int64: where the lines of each group of TOGETHER trees begin
    levels: np.ndarray  # int32, (n_trees, 17): how many levels an oblivious tree has, else 0; its tests, last first
    values: np.ndarray  # float64 per leaf, from left to right
    leaves: np.ndarray  # int32 per leaf, from left to right: its number in the forest
    leaf_starts: np.ndarray  # int64, n_trees + 1: where the leaves of each tree begin
    set_columns: np.ndarray  # from here on the fields of `set_tests.SetTests`; parallel loops take no nested tuples
    set_starts: np.ndarray
    set_words: np.ndarray
    set_word_starts: np.ndarray


@njit(cache=True, nogil=True)
def order_splits(left, right, order, size):
    """Write the splits of a tree in order, level by level, and the number of leaves below each; returns the depth."""
    n, depth, level_end = 0, 0, 0
    if len(left):
        order[0] = 0
        n = 1
    k = 0
    while k < n:
        if k == level_end:
            depth += 1
            level_end = n
        for child in (left[order[k]], right[order[k]]):
            if child >= 0:
                order[n] = child
                n += 1
        k += 1
    for k in range(n - 1, -1, -1):
        node = order[k]
        size[node] = 0
        for child in (left[node], right[node]):
            size[node] += size[child] if child >= 0 else 1
    return depth


@njit(cache=True, nogil=True)
def is_oblivious(order, depth, test):
    """Whether a tree is full and has one test per level."""
    if len(order) == 0 or len(order) != (1 << depth) - 1:
        return False
    for level in range(depth):
        first = (1 << level) - 1
        for k in range(first, 2 * first + 1):
            if test[order[k]] != test[order[first]]:
                return False
    return True


@njit(cache=True, nogil=True)
def write_tree(left, right, test, order, size, values, given, leaves, base, lines):
    """The lines of one tree, parents first, and its leaf values from left to right."""
    first = np.zeros(len(order), np.int64)
    values[0], leaves[0] = given[0], 0  # for a tree of one leaf, which has no split
    for k in range(len(order)):
        node = order[k]
        start = first[node]
        middle = start + (size[left[node]] if left[node] >= 0 else 1)
        for side in range(2):
            child, position = (left[node], start) if side == 0 else (right[node], middle)
            if child >= 0:
                first[child] = position
            else:
                values[position], leaves[position] = given[~child], ~child
        lines[k, 0] = WORDS_PER_ROW * test[node]
        lines[k, 1] = WORDS_PER_ROW * (base + start)
        lines[k, 2] = WORDS_PER_ROW * (base + start + size[node])
        lines[k, 3] = WORDS_PER_ROW * (base + middle)


@njit(cache=True, nogil=True)
def compile_trees(left, right, test, leaf_values, split_offsets, leaf_offsets, lines, line_starts, levels, values,
                  leaves):  # fmt: skip
    """Write the arrays from `lines` on, which are fields of `CompiledTrees`."""
    n, n_trees = 0, len(levels)
    room = rows_per_tree(leaf_offsets)
    tree_lines = np.empty((TOGETHER, room, 4), np.int32)
    for first_tree in range(0, n_trees, TOGETHER):
        longest, counts = 0, np.zeros(TOGETHER, np.int64)
        for t in range(first_tree, min(first_tree + TOGETHER, n_trees)):
            a, b, c, d = split_offsets[t], split_offsets[t + 1], leaf_offsets[t], leaf_offsets[t + 1]
            order, size = np.empty(b - a, np.int32), np.empty(b - a, np.int32)
            depth = order_splits(left[a:b], right[a:b], order, size)
            here = t - first_tree
            write_tree(left[a:b], right[a:b], test[a:b], order, size, values[c:d], leaf_values[c:d], leaves[c:d],
                       here * room, tree_lines[here])  # fmt: skip
            if is_oblivious(order, depth, test[a:b]) and depth < levels.shape[1]:
                for level in range(depth):  # the root decides the highest bit of the leaf's number
                    levels[t, 1 + level] = tree_lines[here, (1 << (depth - 1 - level)) - 1, 0]
                levels[t, 0] = depth
            else:
                counts[here] = b - a
            longest = max(longest, counts[here])
        # a line waits for the result of its parent; lines of other trees are between them, so that no time is lost
        for k in range(longest):
            for here in range(TOGETHER):
                if k < counts[here]:
                    for i in range(4):
                        lines[n, i] = tree_lines[here, k, i]
                    n += 1
        line_starts[first_tree // TOGETHER + 1] = n


@njit(cache=True, nogil=True)
def sets_of(trees):
    """The tests of sets of categories."""
    return SetTests(trees.set_columns, trees.set_starts, trees.set_words, trees.set_word_starts)


@njit(cache=True, nogil=True)
def most_leaves(leaf_offsets):
    """Leaves of the largest tree."""
    return max(1, longest_piece(leaf_offsets))


@njit(cache=True, nogil=True)
def rows_per_tree(leaf_offsets):
    """Rows of bits of a tree: one for each leaf, in a multiple of eight, and one for the end."""
    return ((most_leaves(leaf_offsets) + 7) & ~7) + 1
