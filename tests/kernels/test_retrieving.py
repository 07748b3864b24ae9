"""Retrieval and the matches of candidates, against dicts of documents."""

from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.kernels import matching, retrieving


def random_postings(rng, n_docs=40, n_terms=9, n_fields=3):
    """Entries sorted by term, document and field; and the same as a dict of (term, document, field)."""
    found = {
        (term, doc, field): int(rng.integers(1, 9))
        for term in range(n_terms) for doc in range(n_docs) for field in range(n_fields) if rng.random() < 0.02 * term
    }  # fmt: skip
    keys = np.array([*found]).reshape(-1, 3)
    starts = np.searchsorted(keys[:, 0], np.arange(n_terms + 1))
    return found, SimpleNamespace(
        entry_starts=starts,
        docs=keys[:, 1].astype(np.int32),
        fields=keys[:, 2].astype(np.uint8),
        tfs=np.array([*found.values()], np.int32),
    )


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
        expected: dict[int, float] = {}
        for t in range(starts[q], starts[q + 1]):
            for doc in range(n_docs):
                x = sum(factors[f, doc] * entries.get((terms[t], doc, f), 0) for f in range(n_fields) if masks[t, f])
                if x > 0:
                    part = np.log1p(rates[t] * x * steps[doc]) if logarithmic else x / (x + steps[doc])
                    expected[doc] = expected.get(doc, 0.0) + scales[t] * part
        for doc in expected:
            expected[doc] += bases[doc] * totals[q]
        best = sorted(expected, key=lambda doc: -expected[doc])[:k]
        assert docs[q, : counts[q]].tolist() == best
        np.testing.assert_allclose(scores[q, : counts[q]], [expected[doc] for doc in best], rtol=1e-5)


def test_equal_scores_stay_in_the_order_of_the_documents(interpreted):
    scores, touched = np.array([1.0, -2.0, 1.0, 0.5, 1.0, -0.0]), np.array([4, 1, 5, 2, 0, 3], np.int32)
    docs, values = np.zeros(4, np.int32), np.zeros(4)
    assert interpreted(retrieving).best(scores, touched, 4, docs, values) == 4
    assert (docs.tolist(), values.tolist()) == ([0, 2, 4, 3], [1.0, 1.0, 1.0, 0.5])


@pytest.mark.parametrize("rare", [0, 1, 1000])
def test_scanning_and_searching_find_the_same_entries(interpreted, monkeypatch, rare):
    module, rng = interpreted(matching), np.random.default_rng(5)
    monkeypatch.setattr(module, "RARE", rare)  # 0: every list is searched; 1000: every list is scanned
    entries, postings = random_postings(rng)
    terms, candidates = np.array([8, 0, 6], np.int32), np.array([31, 2, 17], np.int32)
    numbers = np.full(40, -1, np.int32)
    numbers[candidates] = np.arange(3)
    room = module.most_matches(postings.entry_starts, terms, len(candidates), 3)
    owners, slots, found = (np.zeros(room, np.int64) for _ in range(3))
    n = module.find_matches(postings, terms, candidates, numbers, owners, slots, found)
    got = {
        (terms[slot], candidates[owner], postings.fields[entry]): postings.tfs[entry]
        for owner, slot, entry in zip(owners[:n], slots[:n], found[:n], strict=True)
    }
    expected = {key: tf for key, tf in entries.items() if key[0] in terms and key[1] in candidates}
    assert got == expected
    assert n == len(expected) <= room
    assert slots[:n].tolist() == sorted(slots[:n])
