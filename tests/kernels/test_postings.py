"""Tokens sorted by term: as a stable sort, with positions that count terms."""

import numpy as np

from naive_retrieval import terms_of_texts
from ranksieve.kernels import postings

RAW = np.array([2, 0, 1, 0, 3, 2], np.int32)  # words of all texts
TEXT_ENDS, ANALYZERS = np.array([3, 3, 6]), np.array([0, 0, 1])
# the terms of each word under two analyzers: word 1 is dropped by the first, word 3 is two terms
PIECE_STARTS = np.array([[0, 1, 1, 2, 4], [4, 5, 6, 7, 9]])
PIECES = np.array([1, 0, 2, 1, 1, 2, 0, 2, 0], np.int32)


def test_tokens_are_counted_and_sorted_by_term(interpreted):
    module = interpreted(postings)
    texts = terms_of_texts(RAW, TEXT_ENDS, ANALYZERS, PIECE_STARTS, PIECES)
    lengths, counts = np.zeros(3, np.int64), np.zeros(3, np.int64)
    module.count_tokens(RAW, TEXT_ENDS, ANALYZERS, PIECE_STARTS, PIECES, lengths, counts)
    assert lengths.tolist() == [len(terms) for terms in texts]
    assert counts.tolist() == np.bincount([term for terms in texts for term in terms]).tolist()
    cursors = np.cumsum(counts) - counts
    found, places = np.zeros(counts.sum(), np.int32), np.zeros(counts.sum(), np.int32)
    module.sort_tokens(RAW, TEXT_ENDS, ANALYZERS, PIECE_STARTS, PIECES, cursors, found, places)
    expected = sorted((term, text, place) for text, terms in enumerate(texts) for place, term in enumerate(terms))
    assert list(zip(found.tolist(), places.tolist(), strict=True)) == [(text, place) for _, text, place in expected]
    assert cursors.tolist() == np.cumsum(counts).tolist()
