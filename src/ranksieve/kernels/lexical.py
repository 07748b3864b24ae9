"""Features of a candidate that need only term frequencies; `data/index_features.py` says what each is."""

import numpy as np

from ranksieve.kernels.feedback import sublinear_tf
from ranksieve.kernels.jit import njit

# What is known of a query term in a field.
WEIGHT, IDF, DIRICHLET, JELINEK_MERCER, ABSOLUTE, INVERSE, MEAN_TF, LOG_MEAN_TF, COSINE = range(9)
N_TERM = 9
# What is known of a query in a field.
TERMS, TOTAL, IDF_SUM, NORM = range(4)
N_QUERY = 4
# What is known of a candidate's field: BM25's k1 · (1 - b + b · relative length) for three (k1, b); 1 / length; the
# factor of DFR's normalisation 2, and its log.
SATURATION, FLAT, STEEP, INVERSE_LENGTH, SCALE, LOG_SCALE = range(6)
N_DOC = 6
# The features.
BM25, BM25_FLAT, BM25_STEEP, TFIDF_COSINE, LM_DIRICHLET, LM_JELINEK, LM_ABSOLUTE, DFR_INL2, DFR_PL2 = range(9)
TF, TF_SHARE, TFIDF = 9, 14, 19  # sum, min, max, mean, variance of each
MATCHED, MATCHED_SHARE, COVERAGE, LENGTH = range(24, 28)
N_LEXICAL = 28

MU, DISCOUNT = 1000.0, 0.7
LOG2_E = 1.4426950408889634
LOG2_2PI = 2.651496129472319


@njit(cache=True, nogil=True)
def describe(length, mean_length, doc):
    """What the formulas need of a candidate's field."""
    relative = length / mean_length
    # BM25 with (k1, b) = (1.2, 0.75), (0.9, 0.4) and (2.0, 0.9); `finish` multiplies by k1 + 1
    doc[SATURATION] = 1.2 * (0.25 + 0.75 * relative)
    doc[FLAT] = 0.9 * (0.6 + 0.4 * relative)
    doc[STEEP] = 2.0 * (0.1 + 0.9 * relative)
    doc[INVERSE_LENGTH] = 1.0 / length
    doc[SCALE] = np.log2(1.0 + 1.0 / relative)
    doc[LOG_SCALE] = np.log2(doc[SCALE])


@njit(cache=True, nogil=True)
def add_statistics(x, first, row, base):
    """Sum, smallest, largest and sum of squares of the values of matched terms."""
    row[base] += x
    row[base + 1] = x if first else min(row[base + 1], x)
    row[base + 2] = max(row[base + 2], x)
    row[base + 4] += x * x


@njit(cache=True, nogil=True)
def add_match(tf, sublinear, term, doc, row):
    """Add one term, which occurs tf times, to a candidate's features in one field; `sublinear` is 1 + log tf."""
    weight, idf = term[WEIGHT], term[IDF]
    gain = weight * idf * tf
    row[BM25] += gain / (tf + doc[SATURATION])
    row[BM25_FLAT] += gain / (tf + doc[FLAT])
    row[BM25_STEEP] += gain / (tf + doc[STEEP])
    row[TFIDF_COSINE] += sublinear * idf * term[COSINE]
    row[LM_DIRICHLET] += weight * np.log(1.0 + tf * term[DIRICHLET])
    row[LM_JELINEK] += weight * np.log(1.0 + tf * doc[INVERSE_LENGTH] * term[JELINEK_MERCER])
    row[LM_ABSOLUTE] += weight * np.log(1.0 + (tf - DISCOUNT) * term[ABSOLUTE])
    tfn = tf * doc[SCALE]
    row[DFR_INL2] += weight * tfn / (tfn + 1.0) * term[INVERSE]
    log_tfn = LOG2_E * (sublinear - 1.0) + doc[LOG_SCALE]
    poisson = tfn * (log_tfn - term[LOG_MEAN_TF]) + (term[MEAN_TF] - tfn) * LOG2_E + 0.5 * (LOG2_2PI + log_tfn)
    row[DFR_PL2] += weight * poisson / (tfn + 1.0)
    first = row[MATCHED] == 0.0
    add_statistics(tf, first, row, TF)
    add_statistics(tf * doc[INVERSE_LENGTH], first, row, TF_SHARE)
    add_statistics(tf * idf, first, row, TFIDF)
    row[MATCHED] += 1.0
    row[COVERAGE] += idf


@njit(cache=True, nogil=True)
def finish(query, length, distinct, norm, row):
    """Turn the sums of one field into features."""
    n_terms = query[TERMS]
    row[LENGTH] = length
    if n_terms == 0.0 or length == 0:
        return
    row[BM25] *= 2.2
    row[BM25_FLAT] *= 1.9
    row[BM25_STEEP] *= 3.0
    if row[TFIDF_COSINE] > 0.0:
        row[TFIDF_COSINE] /= norm * query[NORM]
    row[LM_DIRICHLET] += query[TOTAL] * np.log(MU / (length + MU))
    row[LM_ABSOLUTE] += query[TOTAL] * np.log(DISCOUNT * distinct / length)
    for base in (TF, TF_SHARE, TFIDF):
        if row[MATCHED] < n_terms:
            row[base + 1] = 0.0
        mean = row[base] / n_terms
        row[base + 3] = mean
        row[base + 4] = max(row[base + 4] / n_terms - mean * mean, 0.0)
    row[MATCHED_SHARE] = row[MATCHED] / n_terms
    row[COVERAGE] /= max(query[IDF_SUM], 1e-12)


@njit(cache=True, nogil=True)
def lexical_features(matches, doc, term_stats, query_stats, lengths, mean_lengths,
                     distinct, norms, logs, doc_stats, term_row, row):  # fmt: skip
    """Features of one candidate in every field and over all, `N_LEXICAL` each, one field after the other.

    Its matches, as `gather` makes them, are in the order of (term, field). `logs` is what `sublinear_tf` looks up,
    `doc_stats` and `term_row`, a term's statistics, are scratch.
    """
    n_columns = query_stats.shape[0]
    n_fields = n_columns - 1 if n_columns > 1 else 1
    for c in range(n_columns):
        if lengths[c, doc] > 0:
            describe(lengths[c, doc], mean_lengths[c], doc_stats[c])
    k = 0
    while k < len(matches):
        slot, whole = matches[k, 0], 0
        while k < len(matches) and matches[k, 0] == slot:
            f, tf = matches[k, 1], matches[k, 2]
            if term_stats[slot, f, WEIGHT] > 0.0:
                whole += tf
                term_row[:] = term_stats[slot, f]
                term_row[ABSOLUTE] /= distinct[f, doc]
                add_match(float(tf), sublinear_tf(tf, logs), term_row, doc_stats[f],
                          row[f * N_LEXICAL : (f + 1) * N_LEXICAL])  # fmt: skip
            k += 1
        if whole > 0 and n_columns > 1:
            term_row[:] = term_stats[slot, n_fields]
            term_row[ABSOLUTE] /= distinct[n_fields, doc]
            add_match(float(whole), sublinear_tf(whole, logs), term_row, doc_stats[n_fields],
                      row[n_fields * N_LEXICAL : n_columns * N_LEXICAL])  # fmt: skip
    for c in range(n_columns):
        finish(
            query_stats[c], lengths[c, doc], distinct[c, doc], norms[c, doc], row[c * N_LEXICAL : (c + 1) * N_LEXICAL]
        )
