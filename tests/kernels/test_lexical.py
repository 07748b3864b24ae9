"""Sums over the matched terms of a candidate's field, against their formulas."""

import numpy as np
import pytest

from ranksieve.kernels import lexical

TFS, IDFS = np.array([3.0, 1.0]), np.array([2.0, 0.5])


def features(tfs, idfs, length=8.0, n_terms=3):
    """The features of a field of some length, twice the mean, of which `n_terms` query terms are looked for."""
    doc, row, term = np.zeros(lexical.N_DOC), np.zeros(lexical.N_LEXICAL), np.ones(lexical.N_TERM)
    lexical.describe(length, length / 2, doc)
    for tf, idf in zip(tfs, idfs, strict=True):
        term[lexical.IDF] = idf
        lexical.add_match(tf, 1 + np.log(tf), term, doc, row)
    query = np.zeros(lexical.N_QUERY)
    query[[lexical.TERMS, lexical.TOTAL, lexical.IDF_SUM, lexical.NORM]] = n_terms, n_terms, 4.0, 2.0
    lexical.finish(query, length, 5, 3.0, row)
    return row


def test_statistics_count_terms_that_do_not_match_as_zero():
    row = features(TFS, IDFS)
    for first, values in ((lexical.TF, TFS), (lexical.TF_SHARE, TFS / 8), (lexical.TFIDF, TFS * IDFS)):
        all_terms = np.append(values, 0)
        expected = [all_terms.sum(), 0, all_terms.max(), all_terms.mean(), all_terms.var()]
        assert row[first : first + 5] == pytest.approx(np.array(expected))
    assert features(TFS, IDFS, n_terms=2)[lexical.TF + 1] == 1  # all terms match
    assert row[[lexical.MATCHED, lexical.LENGTH]].tolist() == [2, 8]
    assert row[[lexical.MATCHED_SHARE, lexical.COVERAGE]] == pytest.approx(np.array([2 / 3, 2.5 / 4]))


def test_bm25_with_three_settings():
    row = features(TFS, IDFS)
    for place, k1, b in ((lexical.BM25, 1.2, 0.75), (lexical.BM25_FLAT, 0.9, 0.4), (lexical.BM25_STEEP, 2.0, 0.9)):
        assert row[place] == pytest.approx((IDFS * TFS * (k1 + 1) / (TFS + k1 * (1 - b + b * 2))).sum())


def test_a_field_without_text_has_only_its_length():
    row, query = np.zeros(lexical.N_LEXICAL), np.ones(lexical.N_QUERY)
    lexical.finish(query, 0.0, 0, 0.0, row)
    assert not row.any()
