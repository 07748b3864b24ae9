"""Expanded queries on a small forward index, against sums over dicts."""

import math

import numpy as np
import pytest

from naive_retrieval import feedback_shares, small_index
from ranksieve.kernels import expansion, feedback, neighbours


@pytest.mark.parametrize("scores", [[5.0, 3.0, 2.5, 0.5, 0.25, 0.2, 0.1], [3.0, 1.0, 0.5, 0.0, 0.0, -1.0, -2.0]])
def test_expanded_queries(interpreted, monkeypatch, scores):
    module = interpreted(expansion, neighbours, feedback)
    monkeypatch.setattr(module, "N_TERMS", 6)
    documents, forward, lengths, idf = small_index(1)
    firsts = np.random.default_rng(2).integers(0, module.N_FIRSTS, len(forward[1]))
    first_of = {(doc, int(forward[1][k])): int(firsts[k]) for doc in range(len(documents))
                for k in range(forward[0][doc], forward[0][doc + 1])}  # fmt: skip
    docs = [9, 2, 7, 0, 4, 5, 11]
    queries = np.array([0, 1, 3]), np.array([8, 3, 4], np.int32), np.array([1.0, 0.25, 0.75])
    offsets = np.array([0, 0, len(docs)])  # the first query has no candidates
    out, mean = np.empty((len(docs), module.N_EXPANSION)), float(lengths.mean())
    candidates = offsets, np.array(docs, np.int32), np.array(scores)
    module.describe_expansion(forward, firsts, idf, lengths, mean, queries, candidates, 2, out)

    def part(doc, term, counts_opening):
        tf = documents[doc][term]
        tf += math.exp(-first_of[doc, term] / module.REACH) if counts_opening else 0
        return tf / (tf + module.K1 * (1 - module.B + module.B * lengths[doc] / mean))

    query = {3: 0.25, 4: 0.75}
    for column in range(module.N_EXPANSION):
        weights, counts_opening = query, column <= len(module.SIZES)
        if column:
            n = min(module.SIZES[(column - 1) % len(module.SIZES)], len(docs))
            sums: dict[int, float] = {}
            for doc, share in zip(docs[:n], feedback_shares(scores, n), strict=True):
                for term in documents[doc]:
                    sums[term] = sums.get(term, 0.0) + share * idf[term] * part(doc, term, counts_opening)
            best = dict(sorted(sums.items(), key=lambda item: -item[1])[: module.N_TERMS])
            added = {term: 0.5 * weight / sum(best.values()) for term, weight in best.items()}
            weights = {term: 0.5 * query.get(term, 0) + added.get(term, 0) for term in {*query, *added}}
        expected = [
            sum(weight * idf[term] * (module.K1 + 1) * part(doc, term, counts_opening)
                for term, weight in weights.items() if term in documents[doc])
            for doc in docs
        ]  # fmt: skip
        np.testing.assert_allclose(out[:, column], expected, rtol=1e-5)
