"""Sums of tree outputs, the metric of lists, and the documents of a list that can matter.

Scores are whole numbers whose lowest bits hold a document's place in its list, so no two documents of a list tie and
every order is the one a fresh scoring gives. `terms[row * width + rank]` is what a document adds to the metric at a
rank (0 from rank k = width - 1 on). Its row is its grade, or, where `among` is set, the number of gaining documents
above it. Grade -1 gains nothing. Values of the metric are whole numbers, too: multiples of a small step.
"""

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metrics import sort_rows, top_k
from ranksieve.kernels.parallel import run_parts

FAR = np.int64(1) << 61  # further apart than any two scores


@njit(cache=True, nogil=True)
def sum_some_outputs(first, last, leaves, trees, table, starts, base, out):
    """`sum_outputs` of the documents first:last."""
    width, flat = leaves.shape[1], leaves.reshape(leaves.size)
    for d in range(first, last):
        total, row = base[d], uintp(d) * uintp(width)
        for i in range(len(trees)):
            t = trees[i]
            total += table[uintp(starts[t]) + uintp(flat[row + uintp(t)])]
        out[d] = total


@njit(cache=True, nogil=True)
def sum_outputs(leaves, trees, table, starts, base, out):
    """`out = base` plus the outputs of some trees; `table[starts[t] + leaf]` is an output of tree t."""
    run_parts(sum_some_outputs, len(leaves), (leaves, trees, table, starts, base, out))


@njit(cache=True, nogil=True)
def some_mean_shares(first, last, leaves, table, starts, inverse, n_counted, out):
    """`mean_shares` of the trees first:last."""
    for t in range(first, last):
        total = 0.0
        for d in range(len(leaves)):
            total += table[starts[t] + leaves[d, t]] * inverse[d]
        out[t] = total / n_counted


@njit(cache=True, nogil=True)
def mean_shares(leaves, table, starts, inverse, n_counted, out):
    """`out[t]`: the sum of tree t's output times `inverse` over all documents, by `n_counted`; added in their order."""
    run_parts(some_mean_shares, leaves.shape[1], (leaves, table, starts, inverse, n_counted, out))


@njit(cache=True, nogil=True)
def value_of(total, scale):
    """A list's sum of terms as a value of the metric, rounded to whole steps."""
    return np.int64(np.rint(np.float64(total) * scale))


@njit(cache=True, nogil=True)
def some_list_values(first, last, scores, offsets, grades, terms, width, among, scales, out):
    """`list_values` of the lists first:last."""
    k = width - 1
    for q in range(first, last):
        rows = np.empty(min(k, offsets[q + 1] - offsets[q]), np.int64)
        top_k(scores, offsets[q], offsets[q + 1], k, rows)
        total, gaining = np.int64(0), 0
        for rank in range(len(rows)):
            grade = grades[rows[rank]]
            if grade >= 0:
                total += terms[(gaining if among else grade) * width + rank]
                gaining += 1
        out[q] = value_of(total, scales[q])


@njit(cache=True, nogil=True)
def list_values(scores, offsets, grades, terms, width, among, scales, out):
    """The metric of every list in whole steps."""
    run_parts(some_list_values, len(offsets) - 1, (scores, offsets, grades, terms, width, among, scales, out))


@njit(cache=True, nogil=True)
def find_some_floors(first, last, low, high, offsets, k, margin, floors, counts):
    """`find_floors` of the lists first:last."""
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        counts[q], floors[q] = n, -FAR
        if n > k:
            rows = np.empty(k, np.int64)
            top_k(low, offsets[q], offsets[q + 1], k, rows)
            floors[q] = low[rows[k - 1]] - min(margin, FAR)
            count = 0
            for d in range(offsets[q], offsets[q + 1]):
                count += high[d] >= floors[q]
            counts[q] = count


@njit(cache=True, nogil=True)
def find_floors(low, high, offsets, k, margin, floors, counts):
    """Per list the score below which no document can enter the first k, and how many documents reach it.

    `low` and `high` bound every document's score; margin is what a score may still rise against another.
    """
    run_parts(find_some_floors, len(offsets) - 1, (low, high, offsets, k, margin, floors, counts))


@njit(cache=True, nogil=True)
def fill_some_pools(first, last, scores, high, offsets, floors, pool_offsets, pool_rows, pool_scores):
    """`fill_pools` of the lists first:last."""
    for q in range(first, last):
        start = n = pool_offsets[q]
        for d in range(offsets[q], offsets[q + 1]):
            if high[d] >= floors[q]:
                pool_rows[n] = d
                n += 1
        sort_rows(scores, pool_rows[start:n], np.empty(n - start, pool_rows.dtype))
        for i in range(start, n):
            pool_scores[i] = scores[pool_rows[i]]


@njit(cache=True, nogil=True)
def fill_pools(scores, high, offsets, floors, pool_offsets, pool_rows, pool_scores):
    """The documents that reach their list's floor, best first."""
    given = scores, high, offsets, floors, pool_offsets, pool_rows, pool_scores
    run_parts(fill_some_pools, len(offsets) - 1, given)
