"""The rows of a grown tree's leaves: their exact sums, and the leaves' values added to scores.

Rows `members[bounds[l, 0]:bounds[l, 1]]` are those of leaf l. Leaves differ in size, so threads share the rows.
"""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts

PARTS = 16  # parts of the rows


@njit(cache=True, nogil=True)
def rows_in_part(bounds, leaf, part, n_rows):
    """The rows of a leaf that are in a part of all rows: where they begin and end."""
    start, stop = n_rows * part // PARTS, n_rows * (part + 1) // PARTS
    return max(bounds[leaf, 0], start), min(bounds[leaf, 1], stop)


@njit(cache=True, nogil=True)
def sum_leaves_of_parts(first, last, members, bounds, grad, hess, factors, out):
    """`sum_leaves` of the parts first:last of the rows, without adding the parts."""
    (a, b), (c, d) = factors
    for part in range(first, last):
        for leaf in range(len(bounds)):
            low, high = rows_in_part(bounds, leaf, part, len(members))
            total, hess_total = np.int64(0), np.int64(0)
            for i in range(low, high):
                total += np.int64(np.rint(grad[members[i]] * a * b))
                hess_total += np.int64(np.rint(hess[members[i]] * c * d))
            out[part, 0, leaf], out[part, 1, leaf] = total, hess_total


@njit(cache=True, nogil=True)
def sum_leaves(members, bounds, grad, hess, factors):
    """Fixed-point sums of gradients and of second derivatives over the rows of each leaf.

    `factors` has a pair for each of them; the product of a pair is the inverse of the unit.
    """
    sums = np.empty((PARTS, 2, len(bounds)), np.int64)
    run_parts(sum_leaves_of_parts, PARTS, (members, bounds, grad, hess, factors, sums))
    for part in range(1, PARTS):  # the methods of arrays take longer to compile
        for leaf in range(len(bounds)):
            sums[0, 0, leaf] += sums[part, 0, leaf]
            sums[0, 1, leaf] += sums[part, 1, leaf]
    return sums[0]


@njit(cache=True, nogil=True)
def add_to_some_parts(first, last, members, bounds, leaf_values, scores):
    """`add_leaf_values` of the parts first:last of the rows."""
    for part in range(first, last):
        for leaf in range(len(bounds)):
            low, high = rows_in_part(bounds, leaf, part, len(members))
            for i in range(low, high):
                scores[members[i]] += leaf_values[leaf]


@njit(cache=True, nogil=True)
def add_leaf_values(members, bounds, leaf_values, scores):
    """Add each leaf's value to the scores of its rows."""
    run_parts(add_to_some_parts, PARTS, (members, bounds, leaf_values, scores))


@njit(cache=True, nogil=True)
def add_next_to_some_parts(first, last, members, bounds, leaf_values, n_trees, scores, done):
    """`add_next_leaf_values` of the parts first:last of the rows."""
    for part in range(first, last):
        for leaf in range(len(bounds)):
            low, high = rows_in_part(bounds, leaf, part, len(members))
            for i in range(low, high):
                row = members[i]
                if done[row] == n_trees:
                    scores[row] += leaf_values[leaf]
                    done[row] = n_trees + 1


@njit(cache=True, nogil=True)
def add_next_leaf_values(members, bounds, leaf_values, n_trees, scores, done):
    """Add tree number `n_trees` to the scores of its rows that have all trees before it, `done[row] == n_trees`."""
    run_parts(add_next_to_some_parts, PARTS, (members, bounds, leaf_values, n_trees, scores, done))
