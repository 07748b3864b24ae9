"""Compiled loops of the metrics: rank the documents of each query, then read a number off the ranked gains.

A ranking is flat: the documents of query q, best first, are `rows[bounds[q]:bounds[q + 1]]`. `ends[i]` is one past the
last rank of the tied group of rank i; both are counted from 0 within the query. Where ties keep the input order, every
group has one document, and the expectations below are the plain metrics.

Only `rank_queries` is parallel: nearly all time is spent in it.
"""

from __future__ import annotations

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metric_kinds import PRECISION, RECIPROCAL
from ranksieve.kernels.parallel import run_parts

SHORT = 16  # so many rows are sorted by insertion


@njit(cache=True)
def comes_before(scores, a, b):
    """Whether row a is ranked above row b: by score descending, then by row ascending."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


@njit(cache=True)
def _sift_down(scores, heap, root, size):
    """Restore the heap below `root`; the row that is ranked last is its top."""
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and comes_before(scores, heap[child], heap[child + 1]):
            child += 1
        if not comes_before(scores, heap[root], heap[child]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child
        child = 2 * root + 1


@njit(cache=True, nogil=True)
def sort_rows(scores, rows, scratch):
    """Sort rows, best first: runs of `SHORT` rows by insertion, then merged in pairs.

    Same as `rows[np.argsort(-scores[rows], kind="mergesort")]` for ascending rows, which takes longer to compile.
    """
    n = len(rows)
    for start in range(0, n, SHORT):
        for i in range(start + 1, min(start + SHORT, n)):
            row, place = rows[i], i
            while place > start and comes_before(scores, row, rows[place - 1]):
                rows[place] = rows[place - 1]
                place -= 1
            rows[place] = row
    width = SHORT
    while width < n:
        for start in range(0, n - width, 2 * width):
            merge_rows(scores, rows, scratch, start, start + width, min(start + 2 * width, n))
        width *= 2


@njit(cache=True, nogil=True)
def merge_rows(scores, rows, scratch, start, middle, stop):
    """Merge the sorted rows start:middle and middle:stop."""
    for i in range(start, middle):
        scratch[i] = rows[i]
    left, right, place = start, middle, start
    while left < middle and right < stop:
        if comes_before(scores, rows[right], scratch[left]):
            rows[place] = rows[right]
            right += 1
        else:
            rows[place] = scratch[left]
            left += 1
        place += 1
    for i in range(left, middle):
        rows[place + i - left] = scratch[i]


@njit(cache=True)
def top_k(scores, start, stop, k, out_rows):
    """Rows of the k best of `scores[start:stop]`, best first, into `out_rows`; returns how many.

    Same as the first k of a stable descending argsort, in O(n + m log k) for the m rows that ever enter the k best.
    """
    count = min(k, stop - start)
    if count == 0:
        return 0
    if 4 * count > stop - start:
        # A heap of so many takes longer than sorting all: 400 against 100 µs for 5,000 of 5,000 documents.
        order = np.empty(stop - start, np.int32)
        for i in range(len(order)):
            order[i] = start + i
        sort_rows(scores, order, np.empty_like(order))
        for i in range(count):
            out_rows[i] = order[i]
        return count
    for i in range(count):
        out_rows[i] = start + i
    for root in range(count // 2 - 1, -1, -1):
        _sift_down(scores, out_rows, root, count)
    for row in range(start + count, stop):
        # A later row loses every tie, so the score alone decides.
        if scores[row] > scores[out_rows[0]]:
            out_rows[0] = row
            _sift_down(scores, out_rows, 0, count)
    for last in range(count - 1, 0, -1):
        out_rows[0], out_rows[last] = out_rows[last], out_rows[0]
        _sift_down(scores, out_rows, 0, last)
    return count


@njit(cache=True, nogil=True)
def rank_some_queries(first, last, scores, offsets, bounds, out_rows):
    """`rank_queries` of the queries first:last."""
    for q in range(first, last):
        top_k(scores, offsets[q], offsets[q + 1], bounds[q + 1] - bounds[q], out_rows[bounds[q] : bounds[q + 1]])


@njit(cache=True, nogil=True)
def rank_queries(scores, offsets, bounds, out_rows):
    """The best documents of every query; query q fills `out_rows[bounds[q]:bounds[q + 1]]`."""
    run_parts(rank_some_queries, len(offsets) - 1, (scores, offsets, bounds, out_rows))


@njit(cache=True)
def reaches_of_ties(scores, offsets, rows, bounds, out):
    """For each query, how many documents score at least as high as the last ranked one."""
    for q in range(len(offsets) - 1):
        reach = 0
        if bounds[q] < bounds[q + 1]:
            lowest = scores[rows[bounds[q + 1] - 1]]
            for row in range(offsets[q], offsets[q + 1]):
                reach += scores[row] >= lowest
        out[q] = reach


@njit(cache=True)
def tie_ends(scores, rows, bounds, out_ends):
    """For every rank, one past the last rank of its group of equal scores."""
    for q in range(len(bounds) - 1):
        start, stop = bounds[q], bounds[q + 1]
        end = stop
        for i in range(stop - 1, start - 1, -1):
            if i + 1 < stop and scores[rows[i]] != scores[rows[i + 1]]:
                end = i + 1
            out_ends[i] = end - start


@njit(cache=True)
def average_ties(gains, ends, bounds):
    """Replace each gain by the mean of its tied group, in place: the expected gain at that rank."""
    for q in range(len(bounds) - 1):
        start, stop = bounds[q], bounds[q + 1]
        i = start
        while i < stop:
            end = start + ends[i]
            if end - i > 1:
                gains[i:end] = gains[i:end].mean()
            i = end


@njit(cache=True)
def label_facts(labels, offsets, out_positives, out_one_label):
    """Per query the number of positives, and whether all its labels are equal."""
    for q in range(len(offsets) - 1):
        positives, one_label = 0, True
        for row in range(offsets[q], offsets[q + 1]):
            positives += labels[row] > 0
            one_label &= labels[row] == labels[offsets[q]]
        out_positives[q] = positives
        out_one_label[q] = one_label


@njit(cache=True)
def weighted_gains(gains, bounds, weights, out):
    """Per query the sum of gain times the weight of its rank; ranks beyond the weights count nothing."""
    for q in range(len(bounds) - 1):
        total = 0.0
        for i in range(min(len(weights), bounds[q + 1] - bounds[q])):
            total += gains[bounds[q] + i] * weights[i]
        out[q] = total


@njit(cache=True)
def average_ndcg(gains, ideal, discounts, k):
    """Mean of NDCG over the cut-offs 1 to k of one query; `ideal` holds its largest gains in descending order."""
    dcg = ideal_dcg = total = 0.0
    depth = min(k, len(ideal))
    if depth == 0 or ideal[0] <= 0:
        return np.nan
    for i in range(depth):
        dcg += gains[i] * discounts[i]
        ideal_dcg += ideal[i] * discounts[i]
        total += dcg / ideal_dcg
    # Cut-offs beyond the end of the list see the whole list.
    return (total + (k - depth) * dcg / ideal_dcg) / k


@njit(cache=True)
def average_ndcgs(gains, bounds, ideal, ideal_bounds, discounts, k, out):
    """`average_ndcg` of every query."""
    for q in range(len(out)):
        out[q] = average_ndcg(
            gains[bounds[q] : bounds[q + 1]], ideal[ideal_bounds[q] : ideal_bounds[q + 1]], discounts, k
        )


@njit(cache=True)
def precision_sum(gains, ends, k):
    """Expected sum of the precisions at the positives of one query up to rank k; AP is this sum / number of positives.

    In a tied group of m documents with r positives, a rank holds a positive with probability r / m, and each rank above
    it in the group then holds one of the other r - 1 with probability (r - 1) / (m - 1) (McSherry and Najork 2008).
    """
    total = above = 0.0
    depth = min(k, len(gains))
    i = 0
    while i < depth:
        end = ends[i]
        size = end - i
        positives = gains[i:end].sum()
        if positives > 0:
            others = (positives - 1) / (size - 1) if size > 1 else 0.0
            for j in range(i, min(end, depth)):
                total += positives / size * (above + 1 + (j - i) * others) / (j + 1)
        above += positives
        i = end
    return total


@njit(cache=True)
def reciprocal_rank(gains, ends, k):
    """Expected 1 / (rank of the first positive) of one query, 0 if no positive is in the first k ranks."""
    depth = min(k, len(gains))
    i = 0
    while i < depth:
        end = ends[i]
        positives = gains[i:end].sum()
        if positives > 0:
            total, none_yet = 0.0, 1.0
            for j in range(i, min(end, depth)):
                here = min(1.0, positives / (end - j))
                total += none_yet * here / (j + 1)
                none_yet *= 1.0 - here
            return total
        i = end
    return 0.0


@njit(cache=True)
def mean_products(stops, depth, out):
    """`out[m]`: the product of 1 - stop over m documents, averaged over all choices of m from a tied group, m ≤ depth.

    Documents join the group one by one; with the n-th, a choice of m holds it with probability m / n.
    """
    out[0] = 1.0
    out[1 : depth + 1] = 0.0
    for n in range(1, len(stops) + 1):
        passing = 1.0 - stops[n - 1]
        for m in range(min(n, depth), 0, -1):
            out[m] = ((n - m) * out[m] + m * passing * out[m - 1]) / n


@njit(cache=True)
def expected_reciprocal_rank(stops, ends, k):
    """ERR of one query: the mean of 1 / rank at which a user stops, who stops at each document with its probability.

    With random order in a tied group, the user stops at its j-th rank with the difference of two `mean_products`.
    """
    total, reading = 0.0, 1.0
    depth = min(k, len(stops))
    i = 0
    while i < depth:
        end = ends[i]
        if end - i == 1:
            total += reading * stops[i] / (i + 1)
        else:
            tied = min(end, depth) - i
            products = np.empty(tied + 1)
            mean_products(stops[i:end], tied, products)
            for j in range(tied):
                total += reading * (products[j] - products[j + 1]) / (i + j + 1)
        for j in range(i, end):
            reading *= 1.0 - stops[j]
        i = end
    return total


@njit(cache=True)
def expected_sum(kind, gains, ends, k):
    """The sum over ranks of one query, of a metric that is not `WEIGHTED`."""
    if kind == PRECISION:
        return precision_sum(gains, ends, k)
    if kind == RECIPROCAL:
        return reciprocal_rank(gains, ends, k)
    return expected_reciprocal_rank(gains, ends, k)


@njit(cache=True)
def expected_sums(kind, gains, ends, bounds, k, out):
    """`expected_sum` of every query."""
    for q in range(len(out)):
        start, stop = bounds[q], bounds[q + 1]
        out[q] = expected_sum(kind, gains[start:stop], ends[start:stop], k)
