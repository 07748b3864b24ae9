"""Similarity to the best candidates on a small forward index, against sums over dicts."""

import math

import numpy as np
import pytest

from naive_retrieval import feedback_shares, small_index
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

    def cosine(a, b):
        return sum(weight * vectors[b].get(term, 0) for term, weight in vectors[a].items()) / norms[a] / norms[b]

    for column, size in enumerate(module.SIZES):
        n = min(size, len(docs))
        own = feedback_shares(scores, n)
        for i, doc in enumerate(docs):
            others = [(share, d) for k, (share, d) in enumerate(zip(own, docs, strict=False)) if k != i]
            total = sum(share for share, _ in others)
            expected = sum(share * cosine(doc, d) for share, d in others) / total if total > 1e-9 else 0.0
            assert out[before + i, column] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    for column, size in enumerate(module.MODELS, start=len(module.SIZES)):
        n = min(size, len(docs))
        chances: dict[int, float] = {}
        for doc, share in zip(docs[:n], feedback_shares(scores, n), strict=True):
            for term, tf in documents[doc].items():
                chances[term] = chances.get(term, 0.0) + share * tf / lengths[doc]
        best = sorted(chances, key=lambda term: -chances[term] * idf[term])[: module.N_TERMS]
        total = sum(chances[term] for term in best)
        for i, doc in enumerate(docs):
            saturation = module.K1 * (1 - module.B + module.B * lengths[doc] / mean)
            expected = sum(
                chances[term] / total * idf[term] * (module.K1 + 1) * tf / (tf + saturation)
                for term, tf in documents[doc].items() if term in best
            )  # fmt: skip
            assert out[before + i, column] == pytest.approx(expected, rel=1e-6)
