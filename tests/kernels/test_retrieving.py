"""Retrieval, against dicts of documents."""

import numpy as np
import pytest

from naive_retrieval import random_postings, rank, scores_by_terms
from ranksieve.kernels import retrieving


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("n_fields", [1, 3])
def test_the_best_documents_of_every_query(interpreted, logarithmic, n_fields):
    module, rng = interpreted(retrieving), np.random.default_rng(n_fields + logarithmic)
    n_docs, k = 40, 7
    entries, postings = random_postings(rng, n_docs, n_fields=n_fields)
    starts, terms = np.array([0, 3, 3, 4, 6]), np.array([8, 2, 5, 1, 8, 7], np.int32)
    masks, scales, rates = rng.random((6, n_fields)) < 0.7, rng.random(6), rng.random(6)
    masks[:, 0] |= n_fields == 1
    factors, steps = rng.random((n_fields, n_docs)).astype(np.float32), 0.5 + rng.random(n_docs)
    bases, totals = rng.normal(size=n_docs) / 10, rng.random(4)
    docs, scores, counts = np.full((4, k), -1, np.int32), np.zeros((4, k)), np.zeros(4, int)
    queries = starts, terms, masks, scales, rates, totals
    module.retrieve(postings, queries, (factors, steps, bases, logarithmic), k, 2, docs, scores, counts)
    for q in range(4):
        own = [part[starts[q] : starts[q + 1]] for part in (terms, masks, scales, rates)]
        expected = scores_by_terms(entries, (*own, totals[q]), (factors, steps, bases, logarithmic))
        best = rank(expected, k)
        assert docs[q, : counts[q]].tolist() == best
        np.testing.assert_allclose(scores[q, : counts[q]], [expected[doc] for doc in best], rtol=1e-5)


def test_equal_scores_stay_in_the_order_of_the_documents(interpreted):
    scores, touched = np.array([1.0, -2.0, 1.0, 0.5, 1.0, -0.0]), np.array([4, 1, 5, 2, 0, 3], np.int32)
    docs, values = np.zeros(4, np.int32), np.zeros(4)
    assert interpreted(retrieving).best(scores, touched, 4, docs, values) == 4
    assert (docs.tolist(), values.tolist()) == ([0, 2, 4, 3], [1.0, 1.0, 1.0, 0.5])
