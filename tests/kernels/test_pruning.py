"""Lists cut to the documents that can matter, against whole lists."""

import numpy as np
import pytest

from naive_pruning import best_rows, list_value, untied_lists
from ranksieve.kernels import pruning


@pytest.mark.parametrize("among", [False, True])
def test_the_metric_of_lists(interpreted, among):
    module = interpreted(pruning)
    rng, scores, offsets = untied_lists(0)
    width, grades = 5, rng.integers(-1, 3, len(scores))
    values, scales, out = rng.integers(0, 100, (40, width)), rng.random(len(offsets) - 1), np.zeros(4, np.int64)
    values[:, -1] = 0
    terms = module.Terms(grades, values.ravel(), width, among, scales)
    module.list_values(scores, offsets, terms, out)
    for q in range(len(offsets) - 1):
        ranked = grades[best_rows(scores, offsets[q], offsets[q + 1])]
        total = list_value(ranked, values, among)
        assert out[q] == round(total * scales[q])
        assert module.sum_of_terms(ranked[: width - 1], terms) == total


@pytest.mark.parametrize(("k", "margin"), [(3, 0), (3, 40), (10, 17), (50, 5)])
def test_pools_hold_every_document_that_can_enter_the_first_ranks(interpreted, k, margin):
    module = interpreted(pruning)
    rng, scores, offsets = untied_lists(1)
    low, high = scores - rng.integers(0, 30, len(scores)), scores + rng.integers(0, 30, len(scores))
    n_lists = len(offsets) - 1
    floors, counts = np.zeros(n_lists, np.int64), np.zeros(n_lists, np.int64)
    module.find_floors(low, high, offsets, k, margin, floors, counts)
    pool_offsets = np.cumsum([0, *counts])
    rows, pool_scores = np.zeros(pool_offsets[-1], np.int64), np.zeros(pool_offsets[-1], np.int64)
    module.fill_pools(scores, high, offsets, floors, module.Pools(pool_offsets, rows, pool_scores))
    for q in range(n_lists):
        own = rows[pool_offsets[q] : pool_offsets[q + 1]]
        assert pool_scores[pool_offsets[q] : pool_offsets[q + 1]].tolist() == scores[own].tolist()
        assert own.tolist() == [row for row in best_rows(scores, offsets[q], offsets[q + 1]) if row in own]
        for row in range(offsets[q], offsets[q + 1]):
            others, drawn = np.arange(len(scores)) != row, high + margin
            drawn[others] = low[others]  # the best that a document can hope for
            if row in best_rows(drawn, offsets[q], offsets[q + 1])[:k]:
                assert row in own


def test_outputs_are_added_up(interpreted):
    module, rng = interpreted(pruning), np.random.default_rng(2)
    leaves, starts = rng.integers(0, 4, (9, 5)).astype(np.uint8), np.arange(0, 20, 4)
    table, base, trees = rng.integers(-50, 50, 20), rng.integers(0, 9, 9), np.array([4, 1, 2])
    out, shares, inverse = np.zeros(9, np.int64), np.zeros(5), rng.random(9)
    outputs = table[starts + leaves]
    module.sum_outputs(leaves, trees, table, starts, base, out)
    assert out.tolist() == (base + outputs[:, trees].sum(axis=1)).tolist()
    module.mean_shares(leaves, table, starts, inverse, 7.0, shares)
    np.testing.assert_allclose(shares, (outputs * inverse[:, None]).sum(axis=0) / 7)
