"""Expanded queries on a small forward index, against sums over dicts."""

import numpy as np
import pytest

from naive_retrieval import expansion_values, small_index
from ranksieve.kernels import expansion, feedback, neighbours


@pytest.mark.parametrize("scores", [[5.0, 3.0, 2.5, 0.5, 0.25, 0.2, 0.1], [3.0, 1.0, 0.5, 0.0, 0.0, -1.0, -2.0]])
def test_expanded_queries(interpreted, monkeypatch, scores):
    module = interpreted(expansion, neighbours, feedback)
    monkeypatch.setattr(module, "N_TERMS", 6)
    documents, forward, lengths, idf = small_index(1)
    firsts = np.random.default_rng(2).integers(0, module.N_FIRSTS, len(forward[1]))
    pieces = np.split(firsts, forward[0][1:-1])
    first_of = [dict(zip(one, piece, strict=True)) for one, piece in zip(documents, pieces, strict=True)]
    docs = [9, 2, 7, 0, 4, 5, 11]
    queries = np.array([0, 1, 3]), np.array([8, 3, 4], np.int32), np.array([1.0, 0.25, 0.75])
    offsets = np.array([0, 0, len(docs)])  # the first query has no candidates
    out, mean = np.empty((len(docs), module.N_EXPANSION)), float(lengths.mean())
    candidates = offsets, np.array(docs, np.int32), np.array(scores)
    module.describe_expansion(forward, firsts, idf, lengths, mean, queries, candidates, 2, out)
    for i in range(len(docs)):
        expected = expansion_values(documents, first_of, idf, mean, {3: 0.25, 4: 0.75}, docs, scores, i, n_terms=6)
        np.testing.assert_allclose(out[i], [*expected.values()], rtol=1e-5)
