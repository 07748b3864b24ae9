"""Numbers that reports of experiments show, one cell or one size at a time."""

from __future__ import annotations

import itertools

import numpy as np

import ranksieve as rs


def heat_map(chosen, sizes, shape, most):
    """Mean counts of the cells of a heat map, and the longest list of each row.

    `chosen` are (query, rank from 1 on, count). Queries by size are divided into rows, and ranks into columns.
    """
    n_rows, n_columns = shape
    order = sorted(range(len(sizes)), key=lambda q: (sizes[q], q))
    known = {(q, rank): min(count, most) for q, rank, count in chosen}
    heat = np.full(shape, np.nan)
    queries = [[q for place, q in enumerate(order) if place * n_rows // len(order) == row] for row in range(n_rows)]
    for row, column in itertools.product(range(n_rows), range(n_columns)):
        ranks = [(q, rank) for q in queries[row] for rank in range(1, sizes[q] + 1)]
        counts = [known.get((q, rank), 0) for q, rank in ranks if (rank - 1) * n_columns // max(sizes) == column]
        if counts:
            heat[row, column] = sum(counts) / len(counts)
    return heat, [max(sizes[q] for q in mine) for mine in queries]


def smallest_size(values, full):
    """The smallest size that is not significantly worse than the full forest; None where all are.

    `values` are the metric's values per query of each size, and `full` those of the full forest.
    """
    for size in sorted(values):
        test = rs.significance.randomization_test(values[size], full)
        if test.difference >= 0 or test.p_value > 0.05:
            return size
    return None
