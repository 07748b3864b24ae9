"""Scores of a candidate's neighbours: the other candidates whose most telling terms are most like its own."""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.feedback import N_LOGS, damped

N_TERMS = 32  # terms of a document that are compared, those with the largest tf·idf
NEAREST = (5, 20)  # neighbours that a feature is of
N_NEIGHBOURS = 2


@njit(cache=True, nogil=True)
def keep_largest(value, number, n, values, numbers):
    """Insert a value into the n largest so far, largest first, equal ones in the order they come; returns how many."""
    if n == len(values):
        if value <= values[n - 1]:
            return n
        n -= 1
    k = n
    while k > 0 and values[k - 1] < value:
        values[k], numbers[k] = values[k - 1], numbers[k - 1]
        k -= 1
    values[k], numbers[k] = value, number
    return n + 1


@njit(cache=True, nogil=True)
def tell(forward, doc, idf, logs, weights, terms):
    """The terms of a document with the largest tf·idf, as a vector of length one; returns how many."""
    starts, all_terms, tfs = forward
    n = 0
    for k in range(starts[doc], starts[doc + 1]):
        term = np.uint32(all_terms[k])
        n = keep_largest(np.float32(damped(tfs[k], logs) * idf[term]), np.int32(term), n, weights, terms)
    squares = 0.0
    for k in range(n):
        squares += weights[k] * weights[k]
    norm = np.sqrt(squares)
    for k in range(n):
        weights[k] /= norm
    return n


@njit(cache=True, nogil=True)
def renumber(terms, sizes, places):
    """Number the terms of the candidates from 0 in the order they are met; returns how many. `places` is -1 before."""
    n = 0
    for c in range(len(sizes)):
        for k in range(sizes[c]):
            term = terms[c, k]
            if places[term] < 0:
                places[term] = n
                n += 1
            terms[c, k] = places[term]
    return n


@njit(cache=True, nogil=True)
def invert(terms, weights, sizes, starts, owners, values):
    """The candidates that have each term, in order, and its weight in them: those of term t are `starts[t]` and on."""
    starts[:] = 0
    for c in range(len(sizes)):
        for k in range(sizes[c]):
            starts[terms[c, k] + 1] += 1
    for t in range(len(starts) - 1):
        starts[t + 1] += starts[t]
    cursors = starts[:-1].copy()
    for c in range(len(sizes)):
        for k in range(sizes[c]):
            place = cursors[terms[c, k]]
            cursors[terms[c, k]] += 1
            owners[place], values[place] = c, weights[c, k]


@njit(cache=True, nogil=True)
def describe_neighbours(terms, weights, size, starts, owners, values, scores, me, likeness, best, numbers, row):
    """Mean score of the candidates most like candidate `me`, weighted by likeness; 0 where none has a term of it."""
    likeness[:] = 0.0
    for k in range(size):
        weight = weights[k]
        for i in range(starts[terms[k]], starts[terms[k] + 1]):
            likeness[np.uint32(owners[i])] += weight * values[i]
    likeness[me] = 0.0
    n, least = 0, np.float32(0.0)
    for c in range(len(likeness)):
        if likeness[c] > least:
            n = keep_largest(likeness[c], np.int32(c), n, best, numbers)
            if n == len(best):
                least = best[n - 1]
    total = np.float32(0.0)
    found = 0.0
    k = 0
    for place in range(N_NEIGHBOURS):
        while k < min(n, NEAREST[place]):
            total += best[k]
            found += best[k] * scores[numbers[k]]
            k += 1
        row[place] = found / total if total > 0.0 else 0.0


@njit(cache=True, nogil=True, parallel=True)
def describe_all_neighbours(forward, idf, candidate_starts, candidates, scores, n_threads, out):
    """Scores of every candidate's nearest neighbours in its list; `scores` lie between 0 and 1 in every list."""
    most = 0
    for q in range(len(candidate_starts) - 1):
        most = max(most, candidate_starts[q + 1] - candidate_starts[q])
    for thread in prange(n_threads):
        places = np.full(len(idf), -1, np.int32)
        terms, weights = np.empty((most, N_TERMS), np.int32), np.empty((most, N_TERMS), np.float32)
        sizes = np.empty(most, np.int64)
        owners, values = np.empty(most * N_TERMS, np.int32), np.empty(most * N_TERMS, np.float32)
        starts = np.empty(most * N_TERMS + 1, np.int64)
        likeness = np.empty(most, np.float32)
        best, numbers = np.empty(max(NEAREST), np.float32), np.empty(max(NEAREST), np.int32)
        logs = np.zeros(N_LOGS)
        logs[1:] = 1.0 + np.log(np.arange(1, N_LOGS))
        for q in range(thread, len(candidate_starts) - 1, n_threads):
            first, n = candidate_starts[q], candidate_starts[q + 1] - candidate_starts[q]
            for c in range(n):
                sizes[c] = tell(forward, candidates[first + c], idf, logs, weights[c], terms[c])
            originals = terms[:n].copy()
            n_terms = renumber(terms[:n], sizes[:n], places)
            invert(terms[:n], weights[:n], sizes[:n], starts[: n_terms + 1], owners, values)
            for c in range(n):
                describe_neighbours(terms[c], weights[c], sizes[c], starts, owners, values, scores[first : first + n],
                                    c, likeness[:n], best, numbers, out[first + c])  # fmt: skip
                for k in range(sizes[c]):
                    places[originals[c, k]] = -1
