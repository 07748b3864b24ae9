"""Features of query–document pairs: a query's matches are gathered per candidate, then described one by one."""

import numpy as np
from numba import njit, prange

from ranksieve.kernels.lexical import IDF, N_DOC, N_LEXICAL, N_TERM, WEIGHT, lexical_features
from ranksieve.kernels.matching import find_matches, gather, most_matches
from ranksieve.kernels.proximity import N_PROXIMITY, collect, mark_positions, proximity_features


@njit(cache=True, nogil=True)
def candidate_positions(
    postings, terms, slots, entries, field, term_stats, bits, marks, bit_numbers, places, place_slots
):
    """Positions of the query's terms in one field of a candidate; returns how many, and of how many terms."""
    last, n_terms = -1, 0
    for k in range(len(slots)):
        e = entries[k]
        if postings.fields[e] == field and term_stats[slots[k], field, WEIGHT] > 0.0:
            start = postings.byte_starts[terms[slots[k]]] + np.int64(postings.position_starts[e])
            last = max(last, mark_positions(postings.positions, start, postings.tfs[e], slots[k], bits, marks))
            n_terms += 1
    if last < 0:
        return 0, 0
    return collect(bits, marks, last, bit_numbers, places, place_slots), n_terms


@njit(cache=True, nogil=True, parallel=True)
def describe_pairs(postings, documents, query_starts, terms, term_stats, query_stats, place_starts, query_places,
                   spans, analyzers, positional, candidate_starts, candidates, longest, bit_numbers,
                   n_threads, out):  # fmt: skip
    """Features of every candidate of every query: lexical ones of each field and of all, then those of positions.

    `documents` is (lengths, mean lengths, distinct terms, norms), each by field and document; `positional` lists the
    fields whose positions count, `analyzers` the analyzer of each field. `out` is zero before.
    """
    lengths, mean_lengths, distinct, norms = documents
    n_docs, n_columns = lengths.shape[1], query_stats.shape[1]
    n_fields = len(analyzers)
    for thread in prange(n_threads):
        numbers = np.full(n_docs, -1, np.int32)
        doc_stats, term_row = np.empty((n_columns, N_DOC)), np.empty(N_TERM)
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
            by_slot, by_entry = np.empty(n, np.int32), np.empty(n, np.int64)
            gather(owners[:n], slots[:n], entries[:n], starts, by_slot, by_entry)
            longest_span = spans[:, q].max()
            counts = np.zeros(b - a, np.int32)
            last_place, last_run = np.empty(longest_span, np.int64), np.empty(longest_span, np.int64)
            paired = np.empty(longest_span, np.bool_)
            for c in range(len(docs)):
                numbers[docs[c]] = -1
                mine = by_slot[starts[c] : starts[c + 1]]
                found = by_entry[starts[c] : starts[c + 1]]
                row = out[first + c]
                lexical_features(mine, found, docs[c], postings.fields, postings.tfs, stats, query_stats[q],
                                 lengths, mean_lengths, distinct, norms, doc_stats, term_row, row)  # fmt: skip
                for p in range(len(positional)):
                    f = positional[p]
                    g = analyzers[f]
                    m, n_terms = candidate_positions(postings, some, mine, found, f, stats, bits, marks, bit_numbers,
                                                     places, place_slots)  # fmt: skip
                    base = n_columns * N_LEXICAL + p * N_PROXIMITY
                    proximity_features(places[:m], place_slots[:m], n_terms, place_starts[g, a : b + 1], query_places,
                                       spans[g, q], stats[:, f, IDF], counts,
                                       last_place, last_run, paired, row[base : base + N_PROXIMITY])  # fmt: skip
