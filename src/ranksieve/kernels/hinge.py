"""The squared hinge loss of a linear model over all pairs of different grades within a query, without a list of pairs.

For a pair i ≻ j with weight a_i·a_j the loss is max(0, 1 - (s_i - s_j))². Documents i are visited by falling score, so
documents j with s_j > s_i - 1 are only added, never removed. The loss of i needs the sums of a, a·s and a·s² over those
of lower grades. A Fenwick tree by grade keeps these sums. So a list of n documents in g grades takes
O(n log n + n log g).
"""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit

PARTS = 16  # parts of a block of queries; fixed, so that sums do not depend on the number of threads


@njit(cache=True, nogil=True, parallel=True)
def grade_numbers(labels, offsets, grades):
    """Each document's grade counted from 1 within its query; equal labels share a number."""
    for q in prange(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        order = np.argsort(labels[start:stop])
        grade = 0
        for i in range(stop - start):
            if i == 0 or labels[start + order[i]] != labels[start + order[i - 1]]:
                grade += 1
            grades[start + order[i]] = grade


@njit(cache=True, nogil=True)
def _insert(sums, grade, weight, score):
    """Add a document to the Fenwick tree: its weight, weight times score and weight times squared score."""
    while grade < len(sums):
        sums[grade, 0] += weight
        sums[grade, 1] += weight * score
        sums[grade, 2] += weight * score * score
        grade += grade & -grade


@njit(cache=True, nogil=True)
def _below(sums, grade):
    """Sums over the grades 1..grade of what was inserted."""
    count = first = second = 0.0
    while grade > 0:
        count += sums[grade, 0]
        first += sums[grade, 1]
        second += sums[grade, 2]
        grade -= grade & -grade
    return count, first, second


@njit(cache=True, nogil=True)
def query_hinge(scores, grades, weights, slopes):
    """The loss of one list; the derivative by each score goes to `slopes`."""
    n, n_grades = len(scores), grades.max()
    slopes[:] = 0.0
    if n_grades < 2:
        return 0.0
    scores = scores - scores.mean()  # only differences count, and small numbers keep more digits in the sums
    order = np.argsort(scores)
    loss = 0.0
    lower, at = np.zeros((n_grades + 1, 3)), n - 1
    for place in range(n - 1, -1, -1):
        i = order[place]
        while at >= 0 and scores[order[at]] > scores[i] - 1.0:
            _insert(lower, grades[order[at]], weights[order[at]], scores[order[at]])
            at -= 1
        if grades[i] > 1:
            count, first, second = _below(lower, grades[i] - 1)
            margin = 1.0 - scores[i]
            loss += weights[i] * (margin * margin * count + 2.0 * margin * first + second)
            slopes[i] -= 2.0 * weights[i] * (margin * count + first)
    higher, at = np.zeros((n_grades + 1, 3)), 0
    for place in range(n):
        j = order[place]
        while at < n and scores[order[at]] < scores[j] + 1.0:
            _insert(higher, n_grades + 1 - grades[order[at]], weights[order[at]], scores[order[at]])
            at += 1
        if grades[j] < n_grades:
            count, first, _ = _below(higher, n_grades - grades[j])
            slopes[j] += 2.0 * weights[j] * ((1.0 + scores[j]) * count - first)
    return loss


@njit(cache=True, nogil=True)
def _scores_of(X, start, means, coefficients, scores):
    """Scores of a list; NaN counts as the mean. Features are added to four sums, which do not wait for each other."""
    n_features = X.shape[1]
    whole = n_features - n_features % 4
    for i in range(len(scores)):
        row = X[start + i]
        a = b = c = d = 0.0
        for f in range(0, whole, 4):
            x0, x1 = row[f] - means[f], row[f + 1] - means[f + 1]
            x2, x3 = row[f + 2] - means[f + 2], row[f + 3] - means[f + 3]
            a += coefficients[f] * x0 if x0 == x0 else 0.0
            b += coefficients[f + 1] * x1 if x1 == x1 else 0.0
            c += coefficients[f + 2] * x2 if x2 == x2 else 0.0
            d += coefficients[f + 3] * x3 if x3 == x3 else 0.0
        for f in range(whole, n_features):
            x0 = row[f] - means[f]
            a += coefficients[f] * x0 if x0 == x0 else 0.0
        scores[i] = (a + b) + (c + d)


@njit(cache=True, nogil=True, parallel=True)
def block_hinge(X, offsets, grades, weights, means, coefficients, losses, gradients):
    """Loss of the lists of a block and its derivative by the coefficients, for each of `PARTS` parts of the lists.

    A list's features are read twice while they are in the cache: for the scores and for the gradient.
    """
    n_queries, n_features = len(offsets) - 1, X.shape[1]
    for part in prange(PARTS):
        gradient = gradients[part]
        for q in range(n_queries * part // PARTS, n_queries * (part + 1) // PARTS):
            start, stop = offsets[q], offsets[q + 1]
            scores, slopes = np.empty(stop - start), np.empty(stop - start)
            _scores_of(X, start, means, coefficients, scores)
            losses[part] += query_hinge(scores, grades[start:stop], weights[start:stop], slopes)
            for i in range(stop - start):
                slope, row = slopes[i], X[start + i]
                if slope != 0.0:
                    for f in range(n_features):
                        x = row[f] - means[f]
                        gradient[f] += slope * x if x == x else 0.0


@njit(cache=True, nogil=True)
def query_curvature(X, start, scores, grades, weights, means, slots, counts, sums):
    """Sums over the pairs of one list within the margin of 1, for the second derivative of the loss.

    The weight of each document's pairs is added to `counts`. For document i, the weighted rows of the documents of
    lower grade in its pairs, less the means, are added to `sums[slots[i]]`.
    """
    n, n_grades, n_features = len(scores), grades.max(), X.shape[1]
    if n_grades < 2:
        return
    scores = scores - scores.mean()  # as in `query_hinge`, so that both see the same pairs
    order = np.argsort(scores)
    lower, at = np.zeros((n_grades + 1, 3)), n - 1
    rows = np.zeros((n_grades + 1, n_features))
    for place in range(n - 1, -1, -1):
        i = order[place]
        if grades[i] == 1:
            continue
        while at >= 0 and scores[order[at]] > scores[i] - 1.0:
            j = order[at]
            _insert(lower, grades[j], weights[j], scores[j])
            _insert_row(rows, grades[j], weights[j], X[start + j], means)
            at -= 1
        counts[i] += weights[i] * _below(lower, grades[i] - 1)[0]
        grade = grades[i] - 1
        while grade > 0:
            sums[slots[i]] += rows[grade]
            grade -= grade & -grade
    higher, at = np.zeros((n_grades + 1, 3)), 0
    for place in range(n):
        j = order[place]
        while at < n and scores[order[at]] - 1.0 < scores[j]:  # the test above, so that both count the same pairs
            _insert(higher, n_grades + 1 - grades[order[at]], weights[order[at]], scores[order[at]])
            at += 1
        if grades[j] < n_grades:
            counts[j] += weights[j] * _below(higher, n_grades - grades[j])[0]


@njit(cache=True, nogil=True)
def _insert_row(rows, grade, weight, row, means):
    """Add a document's weighted row, less the means, to a Fenwick tree of rows; NaN counts as the mean."""
    while grade < len(rows):
        for f in range(len(row)):
            x = row[f] - means[f]
            rows[grade, f] += weight * x if x == x else 0.0
        grade += grade & -grade


@njit(cache=True, nogil=True, parallel=True)
def block_curvature(X, offsets, grades, weights, means, coefficients, slots, counts, sums):
    """`query_curvature` of every list of a block."""
    for q in prange(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        scores = np.empty(stop - start)
        _scores_of(X, start, means, coefficients, scores)
        own = slice(start, stop)
        query_curvature(X, start, scores, grades[own], weights[own], means, slots[own], counts[own], sums)
