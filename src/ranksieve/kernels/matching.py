"""Which terms of a query occur in which of its candidates: entries of the postings, gathered per candidate."""

import numpy as np

from ranksieve.kernels.jit import njit

RARE = 32  # a list this many times longer than the candidates is searched, not scanned


@njit(cache=True, nogil=True)
def first_entry(docs, doc):
    """The place of the first entry of a document in a term's list, or where it would be inserted."""
    low, high = 0, len(docs)
    while low < high:
        middle = (low + high) >> 1
        if docs[middle] < doc:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def most_matches(entry_starts, terms, n_candidates, n_fields):
    """The most matches that a query can have."""
    most = 0
    for t in range(len(terms)):
        most += min(entry_starts[terms[t] + 1] - entry_starts[terms[t]], n_candidates * n_fields)
    return most


@njit(cache=True, nogil=True)
def find_matches(postings, terms, candidates, numbers, owners, slots, entries):
    """Every entry of the query's terms in its candidates, term by term; returns how many.

    `numbers[document]` is the candidate's number, -1 for other documents. A match is its owner (the candidate), its
    slot (the term's number in the query) and its entry.
    """
    n = 0
    for t in range(len(terms)):
        start = postings.entry_starts[terms[t]]
        docs = postings.docs[start : postings.entry_starts[terms[t] + 1]]
        if len(docs) <= RARE * len(candidates):
            for k in range(len(docs)):
                if numbers[docs[k]] >= 0:
                    owners[n], slots[n], entries[n] = numbers[docs[k]], t, start + k
                    n += 1
        else:
            for c in range(len(candidates)):
                k = first_entry(docs, candidates[c])
                while k < len(docs) and docs[k] == candidates[c]:
                    owners[n], slots[n], entries[n] = c, t, start + k
                    n += 1
                    k += 1
    return n


@njit(cache=True, nogil=True)
def gather(postings, terms, owners, slots, entries, starts, matches):
    """Matches sorted by candidate, terms and fields in order within each: a stable counting sort.

    A match becomes a row of `matches`: slot, field, term frequency, and where its positions start. What is read here
    term by term lies together in memory, and need not be looked for again candidate by candidate.
    """
    starts[:] = 0
    for i in range(len(owners)):
        starts[owners[i] + 1] += 1
    for c in range(len(starts) - 1):
        starts[c + 1] += starts[c]
    cursors = starts[:-1].copy()
    for i in range(len(owners)):
        k = cursors[owners[i]]
        cursors[owners[i]] += 1
        e = entries[i]
        matches[k, 0], matches[k, 1], matches[k, 2] = slots[i], postings.fields[e], postings.tfs[e]
        matches[k, 3] = postings.byte_starts[terms[slots[i]]] + np.int64(postings.position_starts[e])
