"""Pseudo-relevance feedback: how much a candidate is like the best candidates of the first stage."""

import numpy as np
from numba import njit, prange

SIZES = (3, 5, 10)  # best candidates that a centroid is of
MODELS = (5, 10)  # best candidates that a relevance model is of
N_TERMS = 30  # terms of a relevance model
N_FEEDBACK = 5
K1, B = 1.2, 0.75


@njit(cache=True, nogil=True)
def spread(scores, n, weights):
    """Weights of the n best candidates that add up to one: by score, or equal where scores are not above 0."""
    total = 0.0
    for i in range(n):
        total += scores[i]
    for i in range(n):
        weights[i] = scores[i] / total if scores[n - 1] > 0.0 else 1.0 / n


@njit(cache=True, nogil=True)
def add_centroid(forward, docs, weights, idf, norms, column, sums):
    """Add the tf·idf vectors of documents, each of length one, weighted."""
    starts, terms, tfs = forward
    for i in range(len(docs)):
        scale = weights[i] / max(norms[docs[i]], 1e-12)
        for k in range(starts[docs[i]], starts[docs[i] + 1]):
            sums[terms[k], column] += scale * (1.0 + np.log(tfs[k])) * idf[terms[k]]


@njit(cache=True, nogil=True)
def add_model(forward, docs, weights, idf, lengths, column, sums):
    """Add the terms that say most about documents: the largest of p(term) · idf, with p scaled to add up to one."""
    starts, terms, tfs = forward
    n = 0
    for doc in docs:
        n += starts[doc + 1] - starts[doc]
    seen, values = np.empty(n, np.int32), np.empty(n)
    n = 0
    for i in range(len(docs)):
        for k in range(starts[docs[i]], starts[docs[i] + 1]):
            if sums[terms[k], column] == 0.0:
                seen[n] = terms[k]
                n += 1
            sums[terms[k], column] += weights[i] * tfs[k] / lengths[docs[i]]
    for i in range(n):
        values[i] = -sums[seen[i], column] * idf[seen[i]]
    best = np.argsort(values[:n], kind="mergesort")
    total = 0.0
    for i in range(n):
        if i < N_TERMS:
            total += sums[seen[best[i]], column]
        else:
            sums[seen[best[i]], column] = 0.0
    for i in range(min(n, N_TERMS)):
        sums[seen[best[i]], column] /= total


@njit(cache=True, nogil=True)
def describe_candidate(forward, doc, idf, norm, saturation, sums, row):
    """Likeness of one document to every centroid and model."""
    starts, terms, tfs = forward
    row[:] = 0.0
    for k in range(starts[doc], starts[doc + 1]):
        t, tf = terms[k], tfs[k]
        some = sums[t]
        if some[2] != 0.0:  # the largest centroid has every term that counts
            weight = (1.0 + np.log(tf)) * idf[t]
            for c in range(3):
                row[c] += weight * some[c]
            gain = idf[t] * (K1 + 1.0) * tf / (tf + saturation)
            row[3] += gain * some[3]
            row[4] += gain * some[4]
    for c in range(3):
        row[c] /= max(norm, 1e-12)


@njit(cache=True, nogil=True, parallel=True)
def describe_feedback(forward, idf, norms, lengths, mean_length, candidate_starts, candidates, scores, n_threads, out):
    """Feedback features of every candidate: cosines with centroids of `SIZES`, BM25 of relevance models of `MODELS`.

    A candidate that is among the best itself is compared with the centroid of the others.
    """
    for thread in prange(n_threads):
        sums, weights = np.zeros((len(idf), N_FEEDBACK)), np.empty(max(SIZES))
        row = np.empty(N_FEEDBACK)
        for q in range(thread, len(candidate_starts) - 1, n_threads):
            first, stop = candidate_starts[q], candidate_starts[q + 1]
            docs = candidates[first:stop]
            own = np.zeros((3, max(SIZES)))
            for c in range(3):
                n = min(SIZES[c], len(docs))
                spread(scores[first:stop], n, weights)
                own[c, :n] = weights[:n]
                add_centroid(forward, docs[:n], weights, idf, norms, c, sums)
            for c in range(2):
                n = min(MODELS[c], len(docs))
                spread(scores[first:stop], n, weights)
                add_model(forward, docs[:n], weights, idf, lengths, 3 + c, sums)
            for i in range(len(docs)):
                saturation = K1 * (1.0 - B + B * lengths[docs[i]] / mean_length)
                describe_candidate(forward, docs[i], idf, norms[docs[i]], saturation, sums, row)
                if i < max(SIZES):
                    for c in range(3):
                        rest = 1.0 - own[c, i]
                        row[c] = (row[c] - own[c, i]) / rest if rest > 1e-9 else 0.0
                out[first + i] = row
            for i in range(min(max(SIZES), len(docs))):
                for k in range(forward[0][docs[i]], forward[0][docs[i] + 1]):
                    sums[forward[1][k]] = 0.0
