"""Scores by traversal from root to leaf: the lowest latency for a few documents, and any number of leaves.

A document traverses eight trees side by side, because each step waits for memory. Both children of a leaf are the leaf
itself, so the loop needs no test for the end of a path. In `traverse_binned` eight documents traverse one tree instead.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit
from ranksieve.kernels.quantize import ZERO_THRESHOLD

SIDE_BY_SIDE = 8
MISSING_LEFT, ZERO_MISSING = 1, 2  # bits of the number of the copy that a node reads, see `prepare`


class RawTrees(NamedTuple):
    """Trees on feature values, whose nodes are splits and leaves; padded to whole groups of `SIDE_BY_SIDE` trees."""

    places: np.ndarray  # int32 per node: the place of its value in what `prepare` writes
    thresholds: np.ndarray  # float64 per node
    children: np.ndarray  # int32, two per node: left, right
    values: np.ndarray  # float64 per node, 0 for splits
    leaves: np.ndarray  # int32 per node: the leaf's number in its tree
    roots: np.ndarray  # int32 per tree
    depths: np.ndarray  # int64: the deepest of each `SIDE_BY_SIDE` trees
    copies: np.ndarray  # bool, 4: whether a node reads this copy of the features


@njit(cache=True, nogil=True)
def pack_nodes(feature, left, right, default_left, zero_missing, n_features, split_offsets, leaf_offsets, trees):
    """Fill `trees`, whose thresholds and values are set. The splits of a tree come first, then its leaves."""
    order = np.empty(max(1, len(feature)), np.int64)
    for t in range(len(split_offsets) - 1):
        a, n_splits, root = split_offsets[t], split_offsets[t + 1] - split_offsets[t], trees.roots[t]
        for k in range(leaf_offsets[t + 1] - leaf_offsets[t]):
            leaf = root + n_splits + k
            trees.children[2 * leaf], trees.children[2 * leaf + 1], trees.leaves[leaf] = leaf, leaf, k
        for k in range(n_splits):
            copy = MISSING_LEFT * default_left[a + k] + ZERO_MISSING * zero_missing[a + k]
            trees.copies[copy] = True
            trees.places[root + k] = copy * n_features + feature[a + k]
            for side in range(2):
                child = left[a + k] if side == 0 else right[a + k]
                trees.children[2 * (root + k) + side] = root + (child if child >= 0 else n_splits + ~child)
        order[0], n, end, depth = 0, min(1, n_splits), 0, 0
        k = 0
        while k < n:
            if k == end:
                end, depth = n, depth + 1
            for child in (left[a + order[k]], right[a + order[k]]):
                if child >= 0:
                    order[n] = child
                    n += 1
            k += 1
        group = t // SIDE_BY_SIDE
        trees.depths[group] = max(trees.depths[group], depth)


@njit(cache=True, nogil=True)
def prepare(X, start, column_step, n_features, copies, document):
    """Write copies of a document's features, in which `value <= threshold` is correct for missing values, too.

    In copy MISSING_LEFT, missing values are -infinity, otherwise NaN. In copy ZERO_MISSING, 0 is missing, too. Only the
    copies that nodes read are written.
    """
    for copy in range(4):
        if not copies[copy]:
            continue
        missing = -np.inf if copy & MISSING_LEFT else np.nan
        for f in range(n_features):
            x = np.float64(X[start + f * column_step])
            is_missing = x != x or (copy & ZERO_MISSING and abs(x) <= ZERO_THRESHOLD)
            document[copy * n_features + f] = missing if is_missing else x


@njit(cache=True, nogil=True)
def step(node, places, thresholds, children, document):
    """The child of a node that a document goes to."""
    right = not document[places[node]] <= thresholds[node]
    return np.uint64(children[np.uint64(2) * node + np.uint64(right)])


@njit(cache=True, nogil=True)
def traverse(document, group, places, thresholds, children, roots, depth, out):
    """The leaf that a document reaches in each of eight trees."""
    t = SIDE_BY_SIDE * group
    a, b, c, d = np.uint64(roots[t]), np.uint64(roots[t + 1]), np.uint64(roots[t + 2]), np.uint64(roots[t + 3])
    e, f, g, h = np.uint64(roots[t + 4]), np.uint64(roots[t + 5]), np.uint64(roots[t + 6]), np.uint64(roots[t + 7])
    for _ in range(depth):
        a = step(a, places, thresholds, children, document)
        b = step(b, places, thresholds, children, document)
        c = step(c, places, thresholds, children, document)
        d = step(d, places, thresholds, children, document)
        e = step(e, places, thresholds, children, document)
        f = step(f, places, thresholds, children, document)
        g = step(g, places, thresholds, children, document)
        h = step(h, places, thresholds, children, document)
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@njit(cache=True, nogil=True)
def add_scores(X, row_step, column_step, n_features, n_docs, n_trees, trees, scores):
    """Add the values of the first `n_trees` trees, in order, to the scores."""
    places, thresholds, children, values, roots = (
        trees.places, trees.thresholds, trees.children, trees.values, trees.roots,
    )  # fmt: skip
    document, reached = np.zeros(4 * n_features), np.empty(SIDE_BY_SIDE, np.uint64)
    for i in range(n_docs):
        prepare(X, i * row_step, column_step, n_features, trees.copies, document)
        score = scores[i]
        for group in range((n_trees + SIDE_BY_SIDE - 1) // SIDE_BY_SIDE):
            traverse(document, group, places, thresholds, children, roots, trees.depths[group], reached)
            for k in range(min(SIDE_BY_SIDE, n_trees - group * SIDE_BY_SIDE)):
                score += values[reached[k]]
        scores[i] = score


@njit(cache=True, nogil=True)
def leaves_of_raw(X, row_step, column_step, n_features, n_docs, n_trees, trees, out):
    """The leaf of every tree, by its number in the forest."""
    document, reached = np.zeros(4 * n_features), np.empty(SIDE_BY_SIDE, np.uint64)
    for i in range(n_docs):
        prepare(X, i * row_step, column_step, n_features, trees.copies, document)
        for group in range((n_trees + SIDE_BY_SIDE - 1) // SIDE_BY_SIDE):
            traverse(document, group, trees.places, trees.thresholds, trees.children, trees.roots, trees.depths[group],
                     reached)  # fmt: skip
            for k in range(min(SIDE_BY_SIDE, n_trees - group * SIDE_BY_SIDE)):
                out[i, group * SIDE_BY_SIDE + k] = trees.leaves[reached[k]]


@njit(cache=True, nogil=True, parallel=True)
def add_scores_parallel(X, row_step, column_step, n_features, n_docs, n_trees, trees, share, scores):
    """`add_scores` on all threads, `share` documents at a time."""
    for part in prange((n_docs + share - 1) // share):
        first = part * share
        n = min(share, n_docs - first)
        add_scores(X[first * row_step :], row_step, column_step, n_features, n, n_trees, trees, scores[first:])
