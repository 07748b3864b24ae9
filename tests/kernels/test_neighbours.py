"""Key terms and nearest candidates, against sorting all of them."""

import itertools

import numpy as np
import pytest

from naive_retrieval import forward_index, key_vector, neighbour_score
from ranksieve.kernels import feedback, neighbours


def random_documents(rng, n_docs, n_terms):
    """For each document its terms and how often they occur; and the same as a forward index."""
    documents = [
        {int(term): int(rng.integers(1, 9)) for term in rng.permutation(n_terms)[: rng.integers(0, n_terms)]}
        for _ in range(n_docs)
    ]
    return documents, forward_index(documents)


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbours_are_the_candidates_with_the_largest_cosine(interpreted, monkeypatch, seed):
    module, rng = interpreted(neighbours, feedback), np.random.default_rng(seed)
    monkeypatch.setattr(module, "N_TERMS", 6)
    n_docs, n_terms, offsets = 30, 25, np.array([0, 12, 12, 13, 40])
    documents, forward = random_documents(rng, n_docs, n_terms)
    idf = rng.random(n_terms) * (rng.random(n_terms) < 0.9)
    sizes, shape = np.empty(n_docs, np.int32), (n_docs, 6)
    found = sizes, np.empty(shape, np.int32), np.empty(shape, np.float32)
    module.all_key_terms(forward, np.arange(n_docs), idf, 2, *found)
    vectors = [key_vector(document, idf, 6) for document in documents]
    for doc, vector in enumerate(vectors):
        terms, weights = (part[doc, : sizes[doc]].tolist() for part in found[1:])
        assert dict(zip(terms, weights, strict=True)) == pytest.approx(vector, rel=1e-5)
    rows = np.concatenate([rng.permutation(n_docs)[:size] for size in np.diff(offsets)])
    scores, out = rng.random(len(rows)), np.empty((len(rows), module.N_NEIGHBOURS))
    module.describe_neighbours(found, n_terms, offsets, rows, scores, 2, out)
    for start, stop in itertools.pairwise(offsets):
        for c in range(start, stop):
            for column, size in enumerate(module.NEAREST):
                own = [vectors[row] for row in rows[start:stop]]
                expected = neighbour_score(own, scores[start:stop], c - start, size)
                assert out[c, column] == pytest.approx(expected, rel=1e-5, nan_ok=True)


@pytest.mark.parametrize("room", [1, 4, 40])
def test_the_largest_values_stay_in_order_where_they_are_equal(interpreted, room):
    module, rng = interpreted(neighbours), np.random.default_rng(room)
    values = rng.choice([0.0, 0.25, 0.5, -1.0], 37).astype(np.float32)
    best, numbers = np.zeros(room, np.float32), np.zeros(room, np.int32)
    n = module.largest(values, best, numbers)
    expected = sorted(np.flatnonzero(values > 0), key=lambda k: -values[k])[:room]
    assert (numbers[:n].tolist(), best[:n].tolist()) == (expected, values[expected].tolist())


@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.02])
def test_counting_finds_the_nearest_that_comparing_finds(size, scale):
    random = np.random.default_rng(size)
    kept, counts = np.empty(size + 1, np.int32), np.empty(neighbours.LEVELS, np.int32)
    for share in (0.0, 0.1, 1.0):
        values = (random.random(size) * scale * (random.random(size) < share)).astype(np.float32)
        values[random.random(size) < 0.3] = values[0]  # equal ones stay in order
        best, others = np.zeros(20, np.float32), np.zeros(20, np.float32)
        numbers, other_numbers = np.zeros(20, np.int32), np.zeros(20, np.int32)
        assert neighbours.nearest(values, kept, counts, best, numbers) == neighbours.largest(
            values, others, other_numbers
        )
        assert (best.tolist(), numbers.tolist()) == (others.tolist(), other_numbers.tolist())
        expected = sorted(values[values > 0].tolist(), reverse=True)[:20]
        assert best[: len(expected)].tolist() == expected
