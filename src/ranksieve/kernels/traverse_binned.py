"""Traversal of the trees that the scores of binned documents lack.

Eight documents traverse a tree side by side: each step waits for memory, and eight documents wait together. A node's
test is one word, so that a step has no branch to mispredict. Let m be 1 where missing values go left, else 0. Then
`(bin + m) % 256 <= cut + m` is true for the missing bin, 255, exactly where it goes left. Both children of a leaf are
the leaf itself.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import prefetch
from ranksieve.kernels.parallel import run_parts

SIDE_BY_SIDE = 8


class RowBins(NamedTuple):
    """Bins of rows: those of row r are at `slots[r]` of `bins`, or at r where there are no slots."""

    bins: np.ndarray
    slots: np.ndarray  # int32 per row; below 0: the row is not in memory


class BinnedTrees(NamedTuple):
    """Trees on bins; tree t has the nodes from `2 * leaf_offsets[t] - t` on, splits first, then leaves."""

    tests: np.ndarray  # uint64 per node: feature << 16 | m << 15 | cut + m
    children: np.ndarray  # int32, two per node: left, right, as numbers within the tree
    depths: np.ndarray  # int64 per tree
    leaf_values: np.ndarray  # float64 per leaf
    leaf_offsets: np.ndarray  # int64: where the leaves of each tree begin
    node_sets: np.ndarray  # int32 per node: its set of bins that go left, or -1; empty where no tree has sets
    sets: np.ndarray  # bool, 256 per set


@njit(cache=True, nogil=True)
def pack_tree(splits, n_leaves, tests, children):
    """Write the nodes of a tree; returns its depth."""
    n_splits = len(splits)
    depths = np.zeros(n_splits, np.int64)
    deepest = 0
    for node in range(n_splits):  # a split stands before its children
        m = np.int64(splits[node, 2] == 1)
        tests[node] = (np.int64(splits[node, 0]) << 16) | (m << 15) | (max(splits[node, 1], 0) + m)
        deepest = max(deepest, depths[node] + 1)
        for side in range(2):
            child = splits[node, 3 + side]
            children[2 * node + side] = child if child >= 0 else n_splits + ~child
            if child >= 0:
                depths[child] = depths[node] + 1
    for node in range(n_splits, n_splits + n_leaves):
        tests[node], children[2 * node], children[2 * node + 1] = 0, node, node
    return deepest


@njit(cache=True, nogil=True, inline="always")
def _step(node, begin, bins, tests, children):
    """The child that a document goes to; its bins begin at `begin`. The text of the module explains the test."""
    test = tests[node]
    value = uint64(bins[begin + (test >> uint64(16))]) + ((test >> uint64(15)) & uint64(1))
    right = (value & uint64(255)) > (test & uint64(0x1FF))
    return uint64(children[(node << uint64(1)) + uint64(right)])


@njit(cache=True, nogil=True)
def find_leaves(begins, bins, forest, t, places):
    """The places in `leaf_values` of the leaves of tree t that eight documents reach; their bins begin at `begins`."""
    n_leaves = forest.leaf_offsets[t + 1] - forest.leaf_offsets[t]
    root = 2 * forest.leaf_offsets[t] - t
    tests, children = forest.tests[root:], forest.children[2 * root :]
    at_a, at_b, at_c, at_d = begins[0], begins[1], begins[2], begins[3]
    at_e, at_f, at_g, at_h = begins[4], begins[5], begins[6], begins[7]
    a = b = c = d = e = f = g = h = uint64(0)
    for _ in range(forest.depths[t]):
        a = _step(a, at_a, bins, tests, children)
        b = _step(b, at_b, bins, tests, children)
        c = _step(c, at_c, bins, tests, children)
        d = _step(d, at_d, bins, tests, children)
        e = _step(e, at_e, bins, tests, children)
        f = _step(f, at_f, bins, tests, children)
        g = _step(g, at_g, bins, tests, children)
        h = _step(h, at_h, bins, tests, children)
    first = uint64(forest.leaf_offsets[t] - (n_leaves - 1))
    places[0], places[1], places[2], places[3] = first + a, first + b, first + c, first + d
    places[4], places[5], places[6], places[7] = first + e, first + f, first + g, first + h


@njit(cache=True, nogil=True)
def find_leaves_by_sets(begins, bins, forest, t, places):
    """`find_leaves` where trees split by sets of categories: one document after the other."""
    first_leaf, n_leaves = forest.leaf_offsets[t], forest.leaf_offsets[t + 1] - forest.leaf_offsets[t]
    root = 2 * first_leaf - t
    tests, children, node_sets = forest.tests[root:], forest.children[2 * root :], forest.node_sets[root:]
    for k in range(SIDE_BY_SIDE):
        node = uint64(0)
        for _ in range(forest.depths[t]):
            if node_sets[node] >= 0:
                value = bins[begins[k] + (tests[node] >> uint64(16))]
                left = forest.sets[np.int64(node_sets[node]) * 256 + np.int64(value)]
                node = uint64(children[(node << uint64(1)) + uint64(not left)])
            else:
                node = _step(node, begins[k], bins, tests, children)
        places[k] = uint64(first_leaf - (n_leaves - 1)) + node


@njit(cache=True, nogil=True)
def catch_up(start, stop, row_bins, rows, forest, n_trees, scores, done):
    """Add the trees that the scores of rows[start:stop] lack, in order; returns the number of traversals.

    `scores[row]` is the score under the first `done[row]` trees. Rows that lack a tree are in memory. The scores are
    those of scoring anew, bit for bit.
    """
    bins, slots = row_bins.bins, row_bins.slots
    flat_bins, width, leaf_values = bins.reshape(bins.size), bins.shape[1], forest.leaf_values
    has_slots, has_sets = len(slots) > 0, len(forest.node_sets) > 0
    begins, places = np.empty(SIDE_BY_SIDE, np.uint64), np.empty(SIDE_BY_SIDE, np.uint64)
    stale, n_stale = np.empty(stop - start, rows.dtype), 0
    for i in range(start, stop):
        stale[n_stale] = rows[i]
        n_stale += done[rows[i]] < n_trees
    n_traversals = 0
    for group in range(0, n_stale, SIDE_BY_SIDE):
        n = min(SIDE_BY_SIDE, n_stale - group)
        for i in range(group + n, min(group + n + SIDE_BY_SIDE, n_stale)):
            place = np.int64(slots[stale[i]] if has_slots else stale[i])
            for line in range(0, width, 64):
                prefetch(flat_bins, place * width + line)
        first = n_trees
        for k in range(SIDE_BY_SIDE):
            row = stale[group + min(k, n - 1)]
            begins[k] = np.int64(slots[row] if has_slots else row) * width
            first = min(first, done[row])
        for t in range(first, n_trees):
            if has_sets:
                find_leaves_by_sets(begins, flat_bins, forest, t, places)
            else:
                find_leaves(begins, flat_bins, forest, t, places)
            for k in range(n):
                row = stale[group + k]
                scores[row] += leaf_values[places[k]] if done[row] <= t else 0.0
        for k in range(n):
            row = stale[group + k]
            n_traversals += n_trees - np.int64(done[row])
            done[row] = n_trees
    return n_traversals


@njit(cache=True, nogil=True)
def score_some_rows(start, stop, row_bins, rows, forest, n_trees, scores, done, out):
    """`score_rows` of rows[start:stop]."""
    catch_up(start, stop, row_bins, rows, forest, n_trees, scores, done)
    for i in range(start, stop):
        out[i] = scores[rows[i]]


@njit(cache=True, nogil=True)
def score_rows(row_bins, rows, forest, n_trees, scores, done, out):
    """The scores of some rows under all trees; trees that they lack are added first."""
    run_parts(score_some_rows, len(rows), (row_bins, rows, forest, n_trees, scores, done, out))
