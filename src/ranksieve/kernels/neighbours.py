"""Scores of a candidate's neighbours: the other candidates whose key terms are most similar to its own."""

import numpy as np

from ranksieve.kernels.feedback import sublinear_tf, sublinear_tfs
from ranksieve.kernels.jit import njit
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.parallel import run_parts

N_TERMS = 32  # terms of a document that are compared: those with the largest tf·idf
NEAREST = (5, 20)  # numbers of neighbours, one per feature
N_NEIGHBOURS = 2
STRIDE = 16  # values that are compared at a time
LEVELS = 128  # histogram bins of similarities
SCATTER = 2654435769  # 2³² divided by the golden ratio: multiples of it spread evenly (Knuth)


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
def largest(values, best, numbers):
    """The largest values above 0, at most `len(best)`, largest first, equal ones in order; returns how many."""
    n, least = 0, np.float32(0.0)
    for start in range(0, len(values), STRIDE):
        some = values[start : start + STRIDE]
        above = 0
        for k in range(len(some)):  # no branches, so that the loop is vectorised
            above += some[k] > least
        if above:
            for k in range(len(some)):
                if some[k] > least:
                    n = keep_largest(some[k], np.int32(start + k), n, best, numbers)
                    if n == len(best):
                        least = best[n - 1]
    return n


@njit(cache=True, nogil=True)
def level(similarity):
    """The histogram bin of a similarity between 0 and 1."""
    return min(np.int32(similarity * np.float32(LEVELS)), LEVELS - 1)


@njit(cache=True, nogil=True)
def nearest(similarities, kept, counts, best, numbers):
    """The same as `largest`, and twice as fast for values up to 1 if many are above 0.

    A histogram gives the lowest level that the largest values can have. Only values from that level on are inserted.
    """
    n = 0
    for k in range(len(similarities)):
        kept[np.uint32(n)] = k  # unsigned: no check for negative indices
        n += similarities[k] > np.float32(0.0)
    counts[:] = 0
    for i in range(n):
        counts[np.uint32(level(similarities[np.uint32(kept[i])]))] += 1
    lowest, enough = LEVELS, 0
    while lowest > 0 and enough < len(best):
        lowest -= 1
        enough += counts[lowest]
    n_high = 0
    for i in range(n):
        k = kept[i]
        kept[np.uint32(n_high)] = k
        n_high += level(similarities[np.uint32(k)]) >= lowest
    n = 0
    for i in range(n_high):
        n = keep_largest(similarities[np.uint32(kept[i])], kept[i], n, best, numbers)
    return n


@njit(cache=True, nogil=True)
def key_terms(forward, doc, idf, logs, all_weights, weights, terms):
    """The terms of a document with the largest tf·idf, as a vector of length one; returns how many."""
    starts, all_terms, tfs = forward
    first, size = starts[doc], starts[doc + 1] - starts[doc]
    for k in range(size):
        all_weights[k] = sublinear_tf(tfs[first + k], logs) * idf[np.uint32(all_terms[first + k])]
    n = largest(all_weights[:size], weights, terms)
    squares = 0.0
    for k in range(n):
        terms[k] = all_terms[first + terms[k]]
        squares += weights[k] * weights[k]
    norm = np.sqrt(squares)
    for k in range(n):
        weights[k] /= norm
    return n


@njit(cache=True, nogil=True)
def some_key_terms(first_thread, last_thread, forward, docs, idf, n_threads, sizes, terms, weights):
    """`all_key_terms` by threads first_thread:last_thread; thread t takes the documents t, t + n_threads, …"""
    longest = 0
    for doc in docs:
        longest = max(longest, forward[0][doc + 1] - forward[0][doc])
    for thread in range(first_thread, last_thread):
        all_weights, logs = np.empty(longest, np.float32), sublinear_tfs()
        for i in range(thread, len(docs), n_threads):
            sizes[i] = key_terms(forward, docs[i], idf, logs, all_weights, weights[i], terms[i])


@njit(cache=True, nogil=True)
def all_key_terms(forward, docs, idf, n_threads, sizes, terms, weights):
    """The key terms of documents: those of `docs[i]` are `terms[i, : sizes[i]]`."""
    given = forward, docs, idf, n_threads, sizes, terms, weights
    run_parts(some_key_terms, n_threads, given)


@njit(cache=True, nogil=True)
def renumber(all_terms, all_sizes, rows, met, numbers, terms, sizes):
    """The terms of candidates, numbered from 0 in the order they are met; returns how many.

    `met` and `numbers` are a table by hash, so that its size goes with the list and not with the index; it is a power
    of two, and there are fewer terms.
    """
    n, last = 0, len(met) - 1
    met[:] = -1
    for c in range(len(rows)):
        sizes[c] = all_sizes[rows[c]]
        for k in range(sizes[c]):
            term = all_terms[rows[c], k]
            place = np.int64(term) * SCATTER >> 16 & last
            while met[place] != term:
                if met[place] < 0:
                    met[place], numbers[place] = term, n
                    n += 1
                    break
                place = place + 1 & last
            terms[c, k] = numbers[place]
    return n


@njit(cache=True, nogil=True)
def invert(terms, weights, sizes, rows, starts, owners, values):
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
            owners[place], values[place] = c, weights[rows[c], k]


@njit(cache=True, nogil=True)
def compare(terms, weights, starts, owners, values, similarities):
    """The cosines of all candidates with one that has these terms."""
    similarities[:] = 0.0
    for k in range(len(terms)):
        weight = weights[k]
        for i in range(starts[terms[k]], starts[terms[k] + 1]):
            similarities[np.uint32(owners[i])] += weight * values[i]


@njit(cache=True, nogil=True)
def mean_scores(best, numbers, n, scores, row):
    """Mean score of the nearest candidates, weighted by similarity; NaN where there is none."""
    total, found, k = 0.0, 0.0, 0
    for place in range(N_NEIGHBOURS):
        while k < min(n, NEAREST[place]):
            total += best[k]
            found += best[k] * scores[numbers[k]]
            k += 1
        row[place] = found / total if k > 0 else np.nan


@njit(cache=True, nogil=True)
def describe_some_neighbours(first_thread, last_thread, found, n_terms, candidate_starts, all_rows, scores, n_threads,
                             out):  # fmt: skip
    """`describe_neighbours` by threads first_thread:last_thread; thread t takes the queries t, t + n_threads, …"""
    all_sizes, all_terms, weights = found
    most = longest_piece(candidate_starts)
    room = 2
    while room < 2 * min(most * N_TERMS, n_terms):
        room *= 2
    for thread in range(first_thread, last_thread):
        met, places = np.empty(room, np.int32), np.empty(room, np.int32)
        terms, sizes = np.empty((most, N_TERMS), np.int32), np.empty(most, np.int64)
        owners, values = np.empty(most * N_TERMS, np.int32), np.empty(most * N_TERMS, np.float32)
        starts, similarities = np.empty(most * N_TERMS + 1, np.int64), np.empty(most, np.float32)
        best, numbers = np.empty(max(NEAREST), np.float32), np.empty(max(NEAREST), np.int32)
        kept, counts = np.empty(most + 1, np.int32), np.empty(LEVELS, np.int32)
        for q in range(thread, len(candidate_starts) - 1, n_threads):
            first, stop = candidate_starts[q], candidate_starts[q + 1]
            rows, mine = all_rows[first:stop], similarities[: stop - first]
            n_met = renumber(all_terms, all_sizes, rows, met, places, terms, sizes)
            invert(terms, weights, sizes[: len(rows)], rows, starts[: n_met + 1], owners, values)
            for c in range(len(rows)):
                compare(terms[c, : sizes[c]], weights[rows[c]], starts, owners, values, mine)
                mine[c] = 0.0
                n = nearest(mine, kept, counts, best, numbers)
                mean_scores(best, numbers, n, scores[first:stop], out[first + c])


@njit(cache=True, nogil=True)
def describe_neighbours(found, n_terms, candidate_starts, all_rows, scores, n_threads, out):
    """Scores of every candidate's nearest neighbours in its list; `scores` are between 0 and 1 in every list.

    `found` is the result of `all_key_terms`; `all_rows` are the candidates' rows in it.
    """
    given = found, n_terms, candidate_starts, all_rows, scores, n_threads, out
    run_parts(describe_some_neighbours, n_threads, given)
