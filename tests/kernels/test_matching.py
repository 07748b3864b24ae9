"""Matches of candidates, against dicts of documents."""

import numpy as np
import pytest

from naive_retrieval import random_postings
from ranksieve.kernels import matching


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
