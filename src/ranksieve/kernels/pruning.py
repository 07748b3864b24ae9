"""Sums of tree outputs, the metric of lists, and the documents of a list that can be ranked high enough to matter.

Scores are integers. Their lowest bits hold a document's place in its list, so that no two documents of a list tie, and
their order is that of scoring anew. Values of the metric are integers, too: multiples of a small step.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metrics import sort_rows, top_k
from ranksieve.kernels.parallel import run_parts

FAR = np.int64(1) << 61  # larger than the difference of any two scores


class Terms(NamedTuple):
    """A metric as a sum over documents: `values[row * width + rank]` is what a document at a rank adds to it.

    It is 0 from rank k = width - 1 on. The row of a document is its grade or, with `among`, the number of documents
    above it whose grade is not -1. Documents of grade -1 add nothing.
    """

    grades: np.ndarray
    values: np.ndarray
    width: int
    among: bool
    scales: np.ndarray  # of each list: steps of the metric for one unit of a sum


class Pools(NamedTuple):
    """The documents of each list that can enter the first k ranks, best first, and their scores."""

    offsets: np.ndarray
    rows: np.ndarray
    scores: np.ndarray


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
def sum_of_terms(grades, terms):
    """The sum of terms of a list; these are the grades of its documents, best first."""
    values, total, gaining = terms.values, np.int64(0), 0
    for rank in range(min(len(grades), terms.width - 1)):
        if grades[rank] >= 0:
            total += values[(gaining if terms.among else grades[rank]) * terms.width + rank]
            gaining += 1
    return total


@njit(cache=True, nogil=True)
def some_list_values(first, last, scores, offsets, terms, out):
    """`list_values` of the lists first:last."""
    k = terms.width - 1
    for q in range(first, last):
        rows = np.empty(min(k, offsets[q + 1] - offsets[q]), np.int64)
        top_k(scores, offsets[q], offsets[q + 1], k, rows)
        out[q] = value_of(sum_of_terms(terms.grades[rows], terms), terms.scales[q])


@njit(cache=True, nogil=True)
def list_values(scores, offsets, terms, out):
    """The metric of every list in whole steps."""
    run_parts(some_list_values, len(offsets) - 1, (scores, offsets, terms, out))


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

    `low` and `high` bound each document's score; `margin` is how much the difference of two scores may still change.
    """
    run_parts(find_some_floors, len(offsets) - 1, (low, high, offsets, k, margin, floors, counts))


@njit(cache=True, nogil=True)
def fill_some_pools(first, last, scores, high, offsets, floors, pools):
    """`fill_pools` of the lists first:last."""
    for q in range(first, last):
        start = n = pools.offsets[q]
        for d in range(offsets[q], offsets[q + 1]):
            if high[d] >= floors[q]:
                pools.rows[n] = d
                n += 1
        sort_rows(scores, pools.rows[start:n], np.empty(n - start, pools.rows.dtype))
        for i in range(start, n):
            pools.scores[i] = scores[pools.rows[i]]


@njit(cache=True, nogil=True)
def fill_pools(scores, high, offsets, floors, pools):
    """The documents that reach their list's floor, best first."""
    run_parts(fill_some_pools, len(offsets) - 1, (scores, high, offsets, floors, pools))
