"""First-stage retrieval: documents scored term by term, and the best k of each query."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts

LOW_32 = np.uint64(0xFFFFFFFF)
SIGN = np.uint32(0x80000000)


@njit(cache=True, nogil=True)
def add_fraction(docs, tfs, factors, steps, scale, scores):
    """Add one term of a single field: the same as `add_term` with a part `scale · x / (x + step)`, and faster."""
    for k in range(len(docs)):
        doc = np.uint32(docs[k])  # unsigned: no check for negative indices
        x = factors[doc] * tfs[k]
        scores[doc] += scale * (x / (x + steps[doc]))


@njit(cache=True, nogil=True)
def add_term(docs, fields, tfs, mask, factors, steps, logarithmic, scale, rate, scores):
    """Add one term's part, which is above 0, to the scores of the documents that have it.

    With x the term's frequency, weighted and normalised per field: `scale · x / (x + step)`, or
    `scale · log(1 + rate · x · step)`, where each document has its own step.
    """
    k = 0
    while k < len(docs):
        doc = np.uint32(docs[k])
        x = np.float32(0.0)
        while k < len(docs) and docs[k] == doc:
            if mask[fields[k]]:
                x += factors[fields[k], doc] * tfs[k]
            k += 1
        if x > 0.0:
            if logarithmic:
                scores[doc] += scale * np.log1p(rate * x * steps[doc])
            else:
                scores[doc] += scale * (x / (x + steps[doc]))


@njit(cache=True, nogil=True)
def reached(postings, terms, scores, touched):
    """Write the documents with a score to `touched`; returns how many. They ascend where the terms are frequent."""
    n = 0
    n_entries = 0
    for term in terms:
        n_entries += postings.entry_starts[term + 1] - postings.entry_starts[term]
    if n_entries >= len(scores) >> 2:
        for doc in range(len(scores)):
            touched[n] = doc
            n += scores[doc] != 0.0
        return n
    for term in terms:
        for k in range(postings.entry_starts[term], postings.entry_starts[term + 1]):
            doc = postings.docs[k]
            if scores[doc] > 0.0:
                scores[doc] = -scores[doc]  # negative: the document is listed
                touched[n] = doc
                n += 1
    for i in range(n):
        scores[touched[i]] = -scores[touched[i]]
    return n


@njit(cache=True, nogil=True)
def best(scores, touched, k, out_docs, out_scores):
    """The k best of some documents, equal scores (as float32) in the order of the documents; returns how many."""
    values = np.empty(len(touched), np.float32)
    for i in range(len(touched)):
        values[i] = scores[touched[i]]
    bits = values.view(np.uint32)
    # the upper half of a key sorts like the float; the lower half is larger for earlier documents
    keys = np.empty(len(touched), np.uint64)
    for i in range(len(touched)):
        ordered = ~bits[i] if bits[i] & SIGN else bits[i] | SIGN
        keys[i] = (np.uint64(ordered) << np.uint64(32)) | (LOW_32 - np.uint64(touched[i]))
    if len(keys) > k:
        keys = np.partition(keys, len(keys) - k)[len(keys) - k :]
    keys.sort()
    n = len(keys)
    for i in range(n):
        doc = np.int32(LOW_32 - (keys[n - 1 - i] & LOW_32))
        out_docs[i] = doc
        out_scores[i] = scores[doc]
    return n


@njit(cache=True, nogil=True)
def retrieve_some(first_thread, last_thread, postings, queries, scoring, k, n_threads, out_docs, out_scores, counts):
    """`retrieve` by threads first_thread:last_thread; thread t takes the queries t, t + n_threads, …"""
    starts, terms, masks, scales, rates, totals = queries
    factors, steps, bases, logarithmic = scoring
    n_docs = len(steps)
    for thread in range(first_thread, last_thread):
        scores = np.zeros(n_docs)
        touched = np.empty(n_docs + 1, np.int32)
        for q in range(thread, len(starts) - 1, n_threads):
            for t in range(starts[q], starts[q + 1]):
                a, b = postings.entry_starts[terms[t]], postings.entry_starts[terms[t] + 1]
                if len(factors) == 1 and not logarithmic and masks[t, 0]:
                    add_fraction(postings.docs[a:b], postings.tfs[a:b], factors[0], steps, scales[t], scores)
                else:
                    add_term(postings.docs[a:b], postings.fields[a:b], postings.tfs[a:b], masks[t], factors, steps,
                             logarithmic, scales[t], rates[t], scores)  # fmt: skip
            n = reached(postings, terms[starts[q] : starts[q + 1]], scores, touched)
            for i in range(n):
                scores[touched[i]] += bases[touched[i]] * totals[q]
            counts[q] = best(scores, touched[:n], k, out_docs[q], out_scores[q])
            for i in range(n):
                scores[touched[i]] = 0.0


@njit(cache=True, nogil=True)
def retrieve(postings, queries, scoring, k, n_threads, out_docs, out_scores, counts):
    """The k best documents of every query.

    `queries` is (starts, terms, masks, scales, rates, totals): query q has the terms `starts[q]:starts[q + 1]`, with a
    mask of fields, a scale and a rate each (see `add_term`). `scoring` is (factors, steps, bases, logarithmic).

    A document's score is the sum of its terms' parts and `bases[document] · totals[query]`. Documents without any of
    the terms are not retrieved.
    """
    given = postings, queries, scoring, k, n_threads, out_docs, out_scores, counts
    run_parts(retrieve_some, n_threads, given)
