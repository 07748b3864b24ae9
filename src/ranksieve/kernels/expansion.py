"""Expanded queries: half of the weight is the query's, and half that of the top terms of the best candidates."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.neighbours import largest
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.parallel import run_parts

SIZES = (3, 5, 10)  # numbers of best candidates to expand a query with
N_TERMS = 50  # terms added to a query
N_EXPANSION = 7  # scores: by the query and the expanded queries with openings; by the expanded queries without
K1, B = 1.2, 0.6
REACH = 8.0  # positions within which the weight of an opening falls to 1 / e
N_FIRSTS = 256  # larger first positions count as the last one


@njit(cache=True, nogil=True)
def opening():
    """Additional weight of a term's first occurrence, by its position."""
    return np.exp(-np.arange(N_FIRSTS) / REACH)


@njit(cache=True, nogil=True)
def saturation(length, mean_length):
    """BM25's k1 · (1 - b + b · length / mean length): the frequency at which tf / (tf + this) is one half."""
    return K1 * (1.0 - B + B * length / mean_length)


@njit(cache=True, nogil=True)
def add_document(forward, firsts, doc, weight, idf, half, openings, sums, seen, n):
    """Add the BM25 weights of a document's terms, with openings counted and without; returns the length of `seen`."""
    starts, terms, tfs = forward
    for k in range(starts[doc], starts[doc + 1]):
        term = terms[k]
        if sums[term, 1] == 0.0:
            seen[n] = term
            n += 1
        tf, scale = tfs[k], weight * idf[term]
        full = tf + openings[firsts[k]]
        sums[term, 0] += scale * full / (full + half)
        sums[term, 1] += scale * tf / (tf + half)
    return n


@njit(cache=True, nogil=True)
def slot_of(term, slots, slot_terms, table, n_slots):
    """The row of a term in the table, and the number of rows; a new row is filled with zeros."""
    if slots[term] == 0:
        n_slots += 1
        slots[term] = n_slots
        slot_terms[n_slots] = term
        table[n_slots] = 0.0
    return slots[term], n_slots


@njit(cache=True, nogil=True)
def put_query(query_terms, query_weights, idf, slots, slot_terms, table):
    """Put the query into the table: full weights in the first column, half weights in those of expanded queries."""
    n_slots = 0
    for k in range(len(query_terms)):
        slot, n_slots = slot_of(query_terms[k], slots, slot_terms, table, n_slots)
        weight = query_weights[k] * idf[query_terms[k]] * (K1 + 1.0)
        table[slot, 0] += weight
        for column in range(1, N_EXPANSION):
            table[slot, column] += 0.5 * weight
    return n_slots


@njit(cache=True, nogil=True)
def put_expansion(sums, seen, kind, column, idf, values, best, numbers, slots, slot_terms, table, n_slots):
    """Put the terms with the largest weights so far into a column; their weights add up to 0.5."""
    for i in range(len(seen)):
        values[i] = sums[seen[i], kind]
    n = largest(values[: len(seen)], best, numbers)
    total = 0.0
    for i in range(n):
        total += best[i]
    for i in range(n):
        term = seen[numbers[i]]
        slot, n_slots = slot_of(term, slots, slot_terms, table, n_slots)
        table[slot, column] += 0.5 * best[i] / total * idf[term] * (K1 + 1.0)
    return n_slots


@njit(cache=True, nogil=True)
def clear_sums(seen, sums):
    """Set the weights of terms to zero."""
    for k in range(len(seen)):
        sums[seen[k]] = 0.0


@njit(cache=True, nogil=True)
def expand(forward, firsts, docs, scores, idf, lengths, mean_length, openings, sums, rows, n_slots):
    """Put the expanded queries into the table; returns how many rows it has. `sums` is left as it was, zero.

    `rows` is the row of each term, the term of each row, and the table.
    """
    slots, slot_terms, table = rows
    most, size = min(max(SIZES), len(docs)), 0
    for i in range(most):
        size += forward[0][docs[i] + 1] - forward[0][docs[i]]
    seen, values = np.empty(size, np.int32), np.empty(size, np.float32)
    best, numbers = np.empty(N_TERMS, np.float32), np.empty(N_TERMS, np.int32)
    n, i, equal = 0, 0, False
    for c in range(len(SIZES)):
        stop = min(SIZES[c], most)
        if stop > 0 and scores[stop - 1] <= 0.0 and not equal:  # equal weights, as in `feedback.candidate_weights`
            clear_sums(seen[:n], sums)
            n, i, equal = 0, 0, True
        while i < stop:
            half = saturation(lengths[docs[i]], mean_length)
            weight = 1.0 if equal else scores[i]
            n = add_document(forward, firsts, docs[i], weight, idf, half, openings, sums, seen, n)
            i += 1
        for kind in range(2):
            column = 1 + kind * len(SIZES) + c
            n_slots = put_expansion(
                sums, seen[:n], kind, column, idf, values, best, numbers, slots, slot_terms, table, n_slots
            )
    clear_sums(seen[:n], sums)
    return n_slots


@njit(cache=True, nogil=True)
def describe_document(forward, firsts, doc, half, openings, slots, table, row):
    """Scores of one document by every query of the table."""
    starts, terms, tfs = forward
    a = b = c = d = e = f = g = 0.0
    for k in range(starts[doc], starts[doc + 1]):
        slot = slots[np.uint32(terms[k])]  # unsigned: no check for negative indices
        if slot != 0:
            weights, tf = table[np.uint32(slot)], tfs[k]
            full = tf + openings[firsts[k]]
            share = full / (full + half)
            a += share * weights[0]
            b += share * weights[1]
            c += share * weights[2]
            d += share * weights[3]
            share = tf / (tf + half)
            e += share * weights[4]
            f += share * weights[5]
            g += share * weights[6]
    row[0], row[1], row[2], row[3], row[4], row[5], row[6] = a, b, c, d, e, f, g


@njit(cache=True, nogil=True)
def describe_some_expansions(first_thread, last_thread, forward, firsts, idf, lengths, mean_length, queries, candidates,
                             n_threads, out):  # fmt: skip
    """`describe_expansion` by threads first_thread:last_thread; thread t takes the queries t, t + n_threads, …"""
    query_starts, query_terms, query_weights = queries
    starts, all_docs, scores = candidates
    room = 1 + longest_piece(query_starts) + (N_EXPANSION - 1) * N_TERMS
    for thread in range(first_thread, last_thread):
        sums, slots = np.zeros((len(idf), 2)), np.zeros(len(idf), np.int32)
        slot_terms, table = np.empty(room, np.int32), np.empty((room, N_EXPANSION))
        openings = opening()
        for q in range(thread, len(starts) - 1, n_threads):
            first, stop = starts[q], starts[q + 1]
            docs = all_docs[first:stop]
            terms = query_terms[query_starts[q] : query_starts[q + 1]]
            weights = query_weights[query_starts[q] : query_starts[q + 1]]
            n_slots = put_query(terms, weights, idf, slots, slot_terms, table)
            n_slots = expand(
                forward, firsts, docs, scores[first:stop], idf, lengths, mean_length, openings, sums,
                (slots, slot_terms, table), n_slots,
            )  # fmt: skip
            for i in range(len(docs)):
                half = saturation(lengths[docs[i]], mean_length)
                describe_document(forward, firsts, docs[i], half, openings, slots, table, out[first + i])
            for k in range(n_slots):
                slots[slot_terms[k + 1]] = 0


@njit(cache=True, nogil=True)
def describe_expansion(forward, firsts, idf, lengths, mean_length, queries, candidates, n_threads, out):
    """Scores of every candidate by the query and by the expanded ones; a query's weights add up to one.

    `firsts` are the positions where terms of `forward` occur first, at most N_FIRSTS - 1.
    `queries` is (starts, terms, weights), `candidates` is (starts, documents, scores).
    """
    given = forward, firsts, idf, lengths, mean_length, queries, candidates, n_threads, out
    run_parts(describe_some_expansions, n_threads, given)
