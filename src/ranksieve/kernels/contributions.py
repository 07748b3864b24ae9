"""Path-dependent Shapley values of trees, `WIDTH` documents at a time.

The path to a leaf of value v tests d different features. z_j is the share of the training documents that the tests of
feature j send towards the leaf. o_j is 1 if every test of j sends the given document towards the leaf, else 0. Shapley
weights are integrals, s!(d-1-s)!/d! = ∫ t^s (1-t)^(d-1-s) dt over [0, 1]. So the leaf contributes to feature i

    v · (o_i - z_i) · ∫ Π_{j≠i} (o_j t + z_j (1-t)) dt,

The integrand is a polynomial of degree d - 1, which Gauss-Legendre quadrature with m ≥ d / 2 points integrates exactly.
At one point t, the factor of a feature is `t + z (1-t)` where the document takes the edge (hot), and `z (1-t)` where it
does not (cold). Products are passed down the tree, and sums of products are passed up again, with 2 m multiplications
per edge. No path is visited twice: this is the idea of Linear TreeSHAP (Yu et al. 2022), with quadrature in place of
polynomial division. Where a feature is tested again further down, its new factor replaces that of the edge `above`. A
table has for each edge and point the quotients of new and old factor, for hot and cold edges. All factors are positive,
so nothing cancels.
"""

from typing import NamedTuple

import numpy as np
from numba import prange, uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.quantize import ZERO_THRESHOLD

WIDTH = 32  # documents side by side; with fewer, LLVM does not make vector instructions of the loops
CASES = 5  # entries of the table per edge and point


class Paths(NamedTuple):
    """Nodes of all trees in preorder, tree t's from `starts[t]` on, numbered from 0 within the tree; 0 is its root."""

    split: np.ndarray  # int32 per node: the forest's split, -1 for leaves
    parent: np.ndarray  # int32 per node
    right: np.ndarray  # int32 per node: the right child; the left one is the next node
    above: np.ndarray  # int32 per node: the last node above whose edge is of the feature that this node tests, else 0
    values: np.ndarray  # float64 per node: a leaf's value, 0 for splits
    shares: np.ndarray  # float64 per node: z of the feature of the edge to the node, over all its tests so far
    starts: np.ndarray  # int64, n_trees + 1
    n_points: np.ndarray  # int64 per tree: quadrature points, half as many as the longest path has features
    table_starts: np.ndarray  # int64 per tree: where its rows of the table begin


@njit(cache=True, nogil=True)
def collect_paths(feature, left, right, split_offsets, leaf_offsets, values, leaf_covers, split_covers, paths):
    """Fill `paths`, whose arrays are allocated."""
    most = max(1, longest_piece(leaf_offsets))
    pending, parents, n_unique = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2 * most, np.int64)
    edge_feature = np.empty(2 * most, np.int64)
    for t in range(len(leaf_offsets) - 1):
        a, b, base = split_offsets[t], leaf_offsets[t], paths.starts[t]
        pending[0], parents[0], n_pending = (0 if split_offsets[t + 1] > a else ~0), -1, 1
        longest, n = 0, 0
        while n_pending > 0:
            n_pending -= 1
            child, parent, node = pending[n_pending], parents[n_pending], base + n
            cover = split_covers[a + child] if child >= 0 else leaf_covers[b + ~child]
            paths.parent[node], paths.shares[node], edge_feature[n], n_unique[n] = max(parent, 0), 1.0, -1, 0
            if parent >= 0:
                if parent + 1 != n:
                    paths.right[base + parent] = n
                s = paths.split[base + parent]
                same = paths.above[base + parent]
                share = cover / split_covers[s] if split_covers[s] > 0 else 0.5
                paths.shares[node] = paths.shares[base + same] * share
                edge_feature[n] = feature[s]
                n_unique[n] = n_unique[parent] + (same == 0)
            longest = max(longest, n_unique[n])
            paths.split[node], paths.values[node], paths.above[node] = -1, 0.0, 0
            if child >= 0:
                paths.split[node] = a + child
                k = n
                while k > 0 and edge_feature[k] != feature[a + child]:
                    k = paths.parent[base + k]
                paths.above[node] = k
                pending[n_pending], parents[n_pending] = right[a + child], n
                pending[n_pending + 1], parents[n_pending + 1] = left[a + child], n
                n_pending += 2
            else:
                paths.values[node] = values[b + ~child]
            n += 1
        paths.n_points[t] = max(1, (longest + 1) // 2)


@njit(cache=True, nogil=True)
def fill_table(paths, points, point_weights, table):
    """Write for each edge and point: new / old factor (hot / hot, cold / hot, cold / cold), weight in φ (hot, cold).

    `points[m]` are the m Gauss-Legendre points of [0, 1].
    """
    for t in range(len(paths.n_points)):
        m, base = paths.n_points[t], paths.starts[t]
        for n in range(1, paths.starts[t + 1] - base):
            share = paths.shares[base + n]
            above = paths.shares[base + paths.above[base + paths.parent[base + n]]]
            for q in range(m):
                time, weight = points[m, q], point_weights[m, q]
                hot, hot_above = time + share * (1.0 - time), time + above * (1.0 - time)
                row = paths.table_starts[t] + (n * m + q) * CASES
                table[row] = hot / hot_above
                table[row + 1] = share * (1.0 - time) / hot_above
                table[row + 2] = share / above if above > 0.0 else 0.0
                table[row + 3] = weight * ((1.0 - share) / hot - (1.0 - above) / hot_above)
                table[row + 4] = -weight * (1.0 / (1.0 - time) + (1.0 - above) / hot_above)


@njit(cache=True, nogil=True)
def send_down(node, child, above, m, table, row, hot, products):
    """Products at a child: those at its parent times the edge's factor."""
    edge, before = uintp(child * WIDTH), uintp(above * WIDTH)
    for q in range(m):
        hot_hot, cold_hot, cold_cold = table[row + CASES * q], table[row + CASES * q + 1], table[row + CASES * q + 2]
        here, there = uintp((node * m + q) * WIDTH), uintp((child * m + q) * WIDTH)
        for k in range(uintp(WIDTH)):
            is_hot, was_hot = hot[edge + k] > 0.0, hot[before + k] > 0.0
            factor = hot_hot if is_hot else (cold_hot if was_hot else cold_cold)
            products[there + k] = products[here + k] * factor


@njit(cache=True, nogil=True)
def go_down(documents, t, paths, forest_splits, table, hot, products):
    """Compute which edges are hot for each document, and the products at each node of a tree."""
    _, tested, thresholds, default_left, zero_missing = forest_splits
    m, base = paths.n_points[t], paths.starts[t]
    hot[:WIDTH] = 1.0
    products[: m * WIDTH] = 1.0
    for n in range(paths.starts[t + 1] - base):
        s = paths.split[base + n]
        if s < 0:
            value = paths.values[base + n]
            for i in range(uintp(n * m * WIDTH), uintp((n + 1) * m * WIDTH)):
                products[i] *= value
            continue
        above, right = paths.above[base + n], paths.right[base + n]
        x, threshold, missing_left, zeros = documents[tested[s]], thresholds[s], default_left[s], zero_missing[s]
        to_left, to_right, before = uintp((n + 1) * WIDTH), uintp(right * WIDTH), uintp(above * WIDTH)
        for k in range(uintp(WIDTH)):
            was_hot = hot[before + k]
            missing = (x[k] != x[k]) | (zeros & (abs(x[k]) <= ZERO_THRESHOLD))
            small = x[k] <= threshold
            goes_left = missing_left if missing else small
            hot[to_left + k] = was_hot if goes_left else 0.0
            hot[to_right + k] = 0.0 if goes_left else was_hot
        row = paths.table_starts[t]
        send_down(n, n + 1, above, m, table, row + (n + 1) * m * CASES, hot, products)
        send_down(n, right, above, m, table, row + right * m * CASES, hot, products)


@njit(cache=True, nogil=True)
def come_up(t, paths, features, table, hot, products, added, phi):
    """Add each edge's share to its feature, from the leaves to the root; `products` turn into sums over the leaves."""
    m, base = paths.n_points[t], paths.starts[t]
    for n in range(paths.starts[t + 1] - base - 1, 0, -1):
        parent = paths.parent[base + n]
        first = parent + 1 != n  # the right child comes first: the parent's product is used up
        edge, before = uintp(n * WIDTH), uintp(paths.above[base + parent] * WIDTH)
        row = paths.table_starts[t] + n * m * CASES
        for k in range(uintp(WIDTH)):
            added[k] = 0.0
        for q in range(m):
            if_hot, if_cold = table[row + CASES * q + 3], table[row + CASES * q + 4]
            here, there = uintp((n * m + q) * WIDTH), uintp((parent * m + q) * WIDTH)
            for k in range(uintp(WIDTH)):
                is_hot, was_hot = hot[edge + k] > 0.0, hot[before + k] > 0.0
                total, others = products[here + k], products[there + k]
                added[k] += total * (if_hot if is_hot else (if_cold if was_hot else 0.0))
                products[there + k] = total if first else others + total
        out = phi[features[paths.split[base + parent]]]
        for k in range(uintp(WIDTH)):
            out[k] += added[k]


@njit(cache=True, nogil=True, parallel=True)
def all_contributions(X, paths, forest_splits, table, out):
    """Add what each feature contributes to the score of each row of `X` (float64) to `out`, (n_docs, n_features + 1).

    `forest_splits` are per split: feature, column of `X` to compare, threshold, default_left and zero_missing.
    """
    (n_docs, n_columns), n_features = X.shape, out.shape[1] - 1
    most = 0
    for t in range(len(paths.n_points)):
        most = max(most, (paths.starts[t + 1] - paths.starts[t]) * (paths.n_points[t] + 1))
    for part in prange((n_docs + WIDTH - 1) // WIDTH):
        start = part * WIDTH
        n = min(WIDTH, n_docs - start)
        documents, phi = np.zeros((n_columns, WIDTH)), np.zeros((n_features, WIDTH))
        hot, products, added = np.empty(most * WIDTH), np.empty(most * WIDTH), np.empty(WIDTH)
        for i in range(n):
            for f in range(n_columns):
                documents[f, i] = X[start + i, f]
        for t in range(len(paths.n_points)):
            go_down(documents, t, paths, forest_splits, table, hot, products)
            come_up(t, paths, forest_splits[0], table, hot, products, added, phi)
        for i in range(n):
            for f in range(n_features):
                out[start + i, f] += phi[f, i]
