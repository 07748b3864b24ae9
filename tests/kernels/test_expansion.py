"""Feedback and expanded queries on a small forward index, against sums over dicts."""

import math

import numpy as np
import pytest

from ranksieve.kernels import expansion, feedback, neighbours


def small_index(seed, n_docs=14, n_terms=30):
    rng = np.random.default_rng(seed)
    documents = [
        {int(term): int(rng.integers(1, 6)) for term in rng.permutation(n_terms)[: rng.integers(2, 12)]}
        for _ in range(n_docs)
    ]
    starts = np.cumsum([0, *map(len, documents)])
    terms = np.array([term for one in documents for term in one], np.int32)
    tfs = np.array([tf for one in documents for tf in one.values()], np.int32)
    lengths = np.array([sum(one.values()) for one in documents], np.int32)
    return documents, (starts, terms, tfs), lengths, 0.1 + rng.random(n_terms)


def shares(scores, n):
    """By score, or equal where scores are not above 0."""
    best = scores[:n]
    return [1 / n] * n if best[-1] <= 0 else [score / sum(best) for score in best]


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
            for doc, share in zip(docs[:n], shares(scores, n), strict=True):
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


@pytest.mark.parametrize("scores", [[5.0, 3.0, 2.5, 0.5, 0.25, 0.2], [3.0, 1.0, 0.5, 0.0, 0.0, -1.0]])
def test_likeness_to_the_best_candidates(interpreted, monkeypatch, scores):
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
        own = shares(scores, n)
        for i, doc in enumerate(docs):
            others = [(share, d) for k, (share, d) in enumerate(zip(own, docs, strict=False)) if k != i]
            total = sum(share for share, _ in others)
            expected = sum(share * cosine(doc, d) for share, d in others) / total if total > 1e-9 else 0.0
            assert out[before + i, column] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    for column, size in enumerate(module.MODELS, start=len(module.SIZES)):
        n = min(size, len(docs))
        chances: dict[int, float] = {}
        for doc, share in zip(docs[:n], shares(scores, n), strict=True):
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
