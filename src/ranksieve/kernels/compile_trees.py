"""Trees turned into what the scoring kernels run: tests numbered across trees, and per tree a list of bit operations.

A document is tested by `column[document] > cut`, true: right. Equal tests of different nodes and trees are made once.
A test of a set of categories is a row of a table of 256 bits: which bytes of the column go right, see `set_tests`.

Leaves are numbered from left to right. Let `beyond[j]` say whether a document's leaf is number j or a later one:
`beyond[0]` is always true, `beyond[n_leaves]` never. A split over the leaves low..high - 1 whose right child begins
at leaf `middle` decides one of them:

    beyond[middle] = beyond[high] or (beyond[low] and test)

(a document that passed further right is beyond; one that came here is beyond if it goes right; any other is not).
So a tree is one such line per split, parents first, without a branch, for 512 documents per instruction.
"""

from typing import Any, NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.set_tests import NO_SETS, SetTests, set_tests

WORDS_PER_ROW = 8  # 512 documents as bits: one AVX-512 register
TOGETHER = 4  # trees evaluated at a time


class Compiled(NamedTuple):
    """Trees ready to score; positions are in 64-bit words, `WORDS_PER_ROW` to a row of bits."""

    columns: np.ndarray  # int32: the columns that are compared with limits, ascending
    test_starts: np.ndarray  # int64: tests of column u, missing going right: 2u; missing going left: 2u + 1
    limits: np.ndarray  # uint8 per test: true if the (shifted) column is larger
    lines: np.ndarray  # int32, four per line: positions of the test, low, high, middle
    line_starts: np.ndarray  # int64: lines of each `TOGETHER` trees
    levels: np.ndarray  # int32, (n_trees, 17): levels of an oblivious tree, else 0; then its tests, last first
    values: np.ndarray  # float64 per leaf, from left to right
    leaves: np.ndarray  # int32 per leaf, from left to right: its number in the forest
    leaf_starts: np.ndarray  # int64, n_trees + 1
    set_columns: np.ndarray  # the fields of `set_tests.SetTests`; parallel loops take no tuple in a tuple
    set_starts: np.ndarray
    set_words: np.ndarray
    set_word_starts: np.ndarray


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


@njit(cache=True, nogil=True)
def order_splits(left, right, order, size):
    """Splits of one tree from the root down, level by level, and the leaves below each; returns the depth."""
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
    values[0], leaves[0] = given[0], 0  # a tree of one leaf has no split to say so
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
    """Fill the arrays from `lines` on; see the module's text."""
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
        # a line waits for its parent's; lines of other trees in between hide the wait
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
    """Rows of bits kept for a tree: a multiple of eight and one more, for every leaf and the end."""
    return ((most_leaves(leaf_offsets) + 7) & ~7) + 1


def compile_binned(
    feature: Any,
    split_bin: Any,
    left: Any,
    right: Any,
    default_left: Any,
    leaf_values: Any,
    split_offsets: Any,
    leaf_offsets: Any,
    goes_left: Any = None,
) -> Compiled:
    """Trees on binned columns, ready for `add_trees_binned`.

    Parameters
    ----------
    feature, split_bin : integer arrays, one value per split
        A document goes left when `bins[feature] <= split_bin`; bin 255 means missing.
    left, right : integer arrays
        Children as in `Forest`: a split of the same tree, or `~leaf`.
    default_left : bool array
        Where missing goes.
    leaf_values : float64 array
        With tree weights multiplied in.
    split_offsets, leaf_offsets : integer arrays, n_trees + 1
    goes_left : bool array (n_sets, 256), optional
        For splits by sets: which bins go left. A split whose `split_bin` is negative uses set `~split_bin`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksieve.kernels.scoring import add_trees_binned
    >>> one = lambda value: np.array([value])
    >>> trees = compile_binned(one(0), one(7), one(-1), one(-2), one(True), np.array([0.25, 4.0]), [0, 1], [0, 2])
    >>> bins, scores = np.array([[7], [8], [255]], np.uint8), np.zeros(3)
    >>> add_trees_binned(bins, trees, scores)
    >>> scores.tolist()
    [0.25, 4.0, 0.25]
    """
    split_offsets, leaf_offsets = (np.ascontiguousarray(o, dtype=np.int64) for o in (split_offsets, leaf_offsets))
    column, cut, left, right = (np.ascontiguousarray(a, dtype=np.int32) for a in (feature, split_bin, left, right))
    leaf_values = np.ascontiguousarray(leaf_values, dtype=np.float64)
    n_splits, n_trees = len(column), len(split_offsets) - 1
    test, lines = np.empty(n_splits, np.int32), np.empty((n_splits, 4), np.int32)
    line_starts = np.zeros(-(-n_trees // TOGETHER) + 1, np.int64)
    levels = np.zeros((n_trees, 17), np.int32)
    values, leaves = np.empty(len(leaf_values)), np.empty(len(leaf_values), np.int32)
    default_left, by_set = np.ascontiguousarray(default_left, dtype=np.bool_), cut < 0
    sets = NO_SETS
    if by_set.any():
        numeric = np.empty(n_splits - by_set.sum(), np.int32)
        columns, test_starts, limits = number_tests(column[~by_set], cut[~by_set], default_left[~by_set], numeric)
        sets, numbers = set_tests(column[by_set], np.asarray(goes_left)[~cut[by_set]])
        test[~by_set], test[by_set] = numeric, len(limits) + numbers
    else:
        columns, test_starts, limits = number_tests(column, cut, default_left, test)
    compile_trees(
        left, right, test, leaf_values, split_offsets, leaf_offsets, lines, line_starts, levels, values, leaves
    )
    return Compiled(
        columns, test_starts, limits, lines.ravel(), line_starts, levels, values, leaves, leaf_offsets, *sets
    )
