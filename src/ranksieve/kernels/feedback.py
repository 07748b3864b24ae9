"""Pseudo-relevance feedback: the similarity of a candidate to the best candidates of the first stage."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts

SIZES = (3, 5, 10)  # numbers of best candidates, one centroid each
MODELS = (5, 10)  # numbers of best candidates, one relevance model each
N_TERMS = 30  # terms of a relevance model
N_FEEDBACK = 5
K1, B = 1.2, 0.75
N_LOGS = 256  # frequencies below this have their logarithm in a table


@njit(cache=True, nogil=True)
def sublinear_tfs():
    """1 + log tf for frequencies below N_LOGS, 0 for 0: the table that `sublinear_tf` reads."""
    logs = np.zeros(N_LOGS)
    logs[1:] = 1.0 + np.log(np.arange(1, N_LOGS))
    return logs


@njit(cache=True, nogil=True)
def sublinear_tf(tf, logs):
    """1 + log tf, as scikit-learn's `sublinear_tf`; `logs` is the result of `sublinear_tfs`."""
    return logs[tf] if tf < N_LOGS else 1.0 + np.log(tf)


@njit(cache=True, nogil=True)
def candidate_weights(scores, n, weights):
    """Weights of the n best candidates that add up to one: by score, or equal where scores are not above 0."""
    total = 0.0
    for i in range(n):
        total += scores[i]
    for i in range(n):
        weights[i] = scores[i] / total if scores[n - 1] > 0.0 else 1.0 / n


@njit(cache=True, nogil=True)
def add_centroid(forward, docs, weights, idf, norms, logs, column, sums):
    """Add the weighted tf·idf vectors of documents, each of length one, times idf: a cosine has the idf twice."""
    starts, terms, tfs = forward
    for i in range(len(docs)):
        scale = weights[i] / max(norms[docs[i]], 1e-12)
        for k in range(starts[docs[i]], starts[docs[i] + 1]):
            sums[terms[k], column] += scale * sublinear_tf(tfs[k], logs) * idf[terms[k]] ** 2


@njit(cache=True, nogil=True)
def add_model(forward, docs, weights, idf, lengths, column, sums):
    """Add the N_TERMS terms with the largest p(term) · idf in documents: p adds up to one, times (k1 + 1) · idf."""
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
        sums[seen[best[i]], column] *= (K1 + 1.0) * idf[seen[best[i]]] / total


@njit(cache=True, nogil=True)
def describe_candidate(forward, doc, norm, saturation, logs, sums, row):
    """The cosine of one document with every centroid, and its BM25 score by every relevance model.

    Terms that none of these has add 0. To skip them would take longer: the branch is often mispredicted.
    """
    starts, terms, tfs = forward
    a = b = c = d = e = 0.0
    for k in range(starts[doc], starts[doc + 1]):
        some = sums[np.uint32(terms[k])]  # unsigned: no check for negative indices
        weight = sublinear_tf(tfs[k], logs)
        share = tfs[k] / (tfs[k] + saturation)
        a += weight * some[0]
        b += weight * some[1]
        c += weight * some[2]
        d += share * some[3]
        e += share * some[4]
    norm = max(norm, 1e-12)
    row[0], row[1], row[2], row[3], row[4] = a / norm, b / norm, c / norm, d, e


@njit(cache=True, nogil=True)
def describe_some_feedback(first_thread, last_thread, forward, idf, norms, lengths, mean_length, candidates, n_threads,
                           out):  # fmt: skip
    """`describe_feedback` by threads first_thread:last_thread; thread t takes the queries t, t + n_threads, …"""
    starts, all_docs, scores = candidates
    for thread in range(first_thread, last_thread):
        sums, weights = np.zeros((len(idf), N_FEEDBACK)), np.empty(max(SIZES))
        row, logs = np.empty(N_FEEDBACK), sublinear_tfs()
        for q in range(thread, len(starts) - 1, n_threads):
            first, stop = starts[q], starts[q + 1]
            docs = all_docs[first:stop]
            own = np.zeros((3, max(SIZES)))
            for c in range(3):
                n = min(SIZES[c], len(docs))
                candidate_weights(scores[first:stop], n, weights)
                own[c, :n] = weights[:n]
                add_centroid(forward, docs[:n], weights, idf, norms, logs, c, sums)
            for c in range(2):
                n = min(MODELS[c], len(docs))
                candidate_weights(scores[first:stop], n, weights)
                add_model(forward, docs[:n], weights, idf, lengths, 3 + c, sums)
            for i in range(len(docs)):
                saturation = K1 * (1.0 - B + B * lengths[docs[i]] / mean_length)
                describe_candidate(forward, docs[i], norms[docs[i]], saturation, logs, sums, row)
                if i < max(SIZES):
                    for c in range(3):
                        rest = 1.0 - own[c, i]
                        row[c] = (row[c] - own[c, i]) / rest if rest > 1e-9 else 0.0
                out[first + i] = row
            for i in range(min(max(SIZES), len(docs))):
                for k in range(forward[0][docs[i]], forward[0][docs[i] + 1]):
                    sums[forward[1][k]] = 0.0


@njit(cache=True, nogil=True)
def describe_feedback(forward, idf, norms, lengths, mean_length, candidates, n_threads, out):
    """Feedback features of every candidate: cosines with centroids of `SIZES`, BM25 of relevance models of `MODELS`.

    A candidate that is among the best itself is compared with the centroid of the others. `candidates` is (starts,
    documents, scores).
    """
    given = forward, idf, norms, lengths, mean_length, candidates, n_threads, out
    run_parts(describe_some_feedback, n_threads, given)
