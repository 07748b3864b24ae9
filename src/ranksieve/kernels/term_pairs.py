"""Features of query–document pairs: a query's matches are gathered per candidate, then described one by one."""

import numpy as np

from ranksieve.kernels.feedback import sublinear_tfs
from ranksieve.kernels.jit import njit
from ranksieve.kernels.lexical import IDF, N_DOC, N_LEXICAL, N_TERM, WEIGHT, lexical_features
from ranksieve.kernels.matching import find_matches, gather, most_matches
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.proximity import N_PROXIMITY, collect, mark_positions, proximity_features


@njit(cache=True, nogil=True)
def candidate_positions(positions, matches, field, term_stats, bits, marks, bit_numbers, places, slots):
    """Positions of the query's terms in one field of a candidate; returns how many, and of how many terms."""
    last, n_terms = -1, 0
    for k in range(len(matches)):
        slot = matches[k, 0]
        if matches[k, 1] == field and term_stats[slot, field, WEIGHT] > 0.0:
            last = max(last, mark_positions(positions, matches[k, 3], matches[k, 2], slot, bits, marks))
            n_terms += 1
    if last < 0:
        return 0, 0
    return collect(bits, marks, last, bit_numbers, places, slots), n_terms


@njit(cache=True, nogil=True)
def terms_by_place(place_starts, query_places, span):
    """The query's term at each of its places, under each analyzer; -1 where it is unknown."""
    query_slots = np.full((len(place_starts), span), -1, np.int32)
    for g in range(len(place_starts)):
        for t in range(place_starts.shape[1] - 1):
            for j in range(place_starts[g, t], place_starts[g, t + 1]):
                query_slots[g, query_places[j]] = t
    return query_slots


@njit(cache=True, nogil=True)
def describe_some_pairs(first_thread, last_thread, postings, documents, queries, fields, lists, longest, bit_numbers,
                        n_threads, out):  # fmt: skip
    """`describe_pairs` by threads first_thread:last_thread; thread t takes the queries t, t + n_threads, …"""
    analyzers, positional = fields
    candidate_starts, candidates = lists
    query_starts, terms, term_stats, query_stats, place_starts, query_places, spans = queries
    lengths, mean_lengths, distinct, norms = documents
    n_docs, n_columns = lengths.shape[1], query_stats.shape[1]
    n_fields = len(analyzers)
    for thread in range(first_thread, last_thread):
        numbers = np.full(n_docs, -1, np.int32)
        doc_stats, term_row, logs = np.empty((n_columns, N_DOC)), np.empty(N_TERM), sublinear_tfs()
        bits, marks = np.zeros((longest >> 6) + 1, np.uint64), np.empty(longest + 1, np.int32)
        places, place_slots = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32)
        for q in range(thread, len(query_starts) - 1, n_threads):
            a, b = query_starts[q], query_starts[q + 1]
            some, stats = terms[a:b], term_stats[a:b]
            first = candidate_starts[q]
            docs = candidates[first : candidate_starts[q + 1]]
            for c in range(len(docs)):
                numbers[docs[c]] = c
            room = most_matches(postings.entry_starts, some, len(docs), n_fields)
            owners, slots, entries = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
            n = find_matches(postings, some, docs, numbers, owners, slots, entries)
            starts = np.empty(len(docs) + 1, np.int64)
            matches = np.empty((n, 4), np.int64)
            gather(postings, some, owners[:n], slots[:n], entries[:n], starts, matches)
            longest_span = spans[:, q].max()
            query_slots = terms_by_place(place_starts[:, a : b + 1], query_places, longest_span)
            counts = np.zeros(b - a, np.int32)
            runs, paired = np.empty(longest_span, np.int64), np.empty(longest_span, np.bool_)
            for c in range(len(docs)):
                numbers[docs[c]] = -1
                mine = matches[starts[c] : starts[c + 1]]
                row = out[first + c]
                lexical_features(mine, docs[c], stats, query_stats[q], lengths, mean_lengths, distinct, norms,
                                 logs, doc_stats, term_row, row)  # fmt: skip
                for p in range(len(positional)):
                    f = positional[p]
                    g = analyzers[f]
                    m, n_terms = candidate_positions(postings.positions, mine, f, stats, bits, marks, bit_numbers,
                                                     places, place_slots)  # fmt: skip
                    base = n_columns * N_LEXICAL + p * N_PROXIMITY
                    proximity_features(places[:m], place_slots[:m], n_terms, place_starts[g, a : b + 1], query_places,
                                       spans[g, q], query_slots[g], stats[:, f, IDF], counts, runs, paired,
                                       row[base : base + N_PROXIMITY])  # fmt: skip


@njit(cache=True, nogil=True)
def describe_pairs(postings, documents, queries, analyzers, positional, candidate_starts, candidates, longest,
                   bit_numbers, n_threads, out):  # fmt: skip
    """Features of every candidate of every query: lexical ones of each field and of all, then those of positions.

    `documents` is (lengths, mean lengths, distinct terms, norms), each by field and document; `positional` lists the
    fields whose positions count, `analyzers` the analyzer of each field. `queries` is the terms of the queries, their
    statistics, and the places of the terms in the queries, see `retrieval.feature_extractor`. `out` is zero before.
    """
    fields, lists = (analyzers, positional), (candidate_starts, candidates)
    given = postings, documents, queries, fields, lists, longest, bit_numbers, n_threads, out
    run_parts(describe_some_pairs, n_threads, given)
