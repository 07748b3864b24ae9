"""Similarity to the best candidates on a small forward index, against sums over dicts."""

import math

import numpy as np
import pytest

from naive_retrieval import feedback_values, small_index
from ranksieve.kernels import feedback


@pytest.mark.parametrize("scores", [[5.0, 3.0, 2.5, 0.5, 0.25, 0.2], [3.0, 1.0, 0.5, 0.0, 0.0, -1.0]])
def test_similarity_to_the_best_candidates(interpreted, monkeypatch, scores):
    module = interpreted(feedback)
    monkeypatch.setattr(module, "N_TERMS", 6)
    documents, forward, lengths, idf = small_index(3)
    vectors = [{term: (1 + math.log(tf)) * idf[term] for term, tf in one.items()} for one in documents]
    norms = np.array([math.sqrt(sum(weight**2 for weight in vector.values())) for vector in vectors])
    docs, before = [3, 1, 13, 6, 8, 2], 2  # the second of two lists
    offsets, mean = np.array([0, before, before + len(docs)]), float(lengths.mean())
    candidates = offsets, np.array([0, 5, *docs], np.int32), np.array([2.0, 1.0, *scores])
    out = np.empty((before + len(docs), module.N_FEEDBACK))
    module.describe_feedback(forward, idf, norms, lengths, mean, candidates, 1, out)
    for i in range(len(docs)):
        cosines, bm25 = np.split([*feedback_values(documents, idf, mean, docs, scores, i, n_terms=6).values()], [3])
        assert out[before + i, :3] == pytest.approx(cosines, rel=1e-6, abs=1e-9)
        assert out[before + i, 3:] == pytest.approx(bm25, rel=1e-6)
