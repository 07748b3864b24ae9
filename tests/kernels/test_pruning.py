"""Lists cut to the documents that can matter, against whole lists."""

import numpy as np
import pytest

from ranksieve.kernels import leave_one_out, pruning


def lists(seed, sizes=(12, 1, 20, 5)):
    """Scores without ties within a list, as the kernels get them, and offsets."""
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *sizes])
    return rng, rng.permutation(offsets[-1]).astype(np.int64) * 8 - 100, offsets


def best_first(scores, start, stop):
    return start + np.argsort(-scores[start:stop])


@pytest.mark.parametrize("among", [False, True])
def test_the_metric_of_lists(interpreted, among):
    module = interpreted(pruning, leave_one_out)
    rng, scores, offsets = lists(0)
    width, grades = 5, rng.integers(-1, 3, len(scores))
    terms, scales, out = rng.integers(0, 100, 40 * width), rng.random(len(offsets) - 1), np.zeros(4, np.int64)
    terms.reshape(-1, width)[:, -1] = 0
    module.list_values(scores, offsets, grades, terms, width, among, scales, out)
    for q in range(len(offsets) - 1):
        ranked = [grades[row] for row in best_first(scores, offsets[q], offsets[q + 1])[: width - 1]]
        total, gaining = 0, 0
        for rank, grade in enumerate(ranked):
            if grade >= 0:
                total += terms[(gaining if among else grade) * width + rank]
                gaining += 1
        assert out[q] == round(total * scales[q])
        assert leave_one_out.current_total(np.array(ranked), terms, width, among) == total


@pytest.mark.parametrize(("k", "margin"), [(3, 0), (3, 40), (10, 17), (50, 5)])
def test_pools_hold_every_document_that_can_enter_the_first_ranks(interpreted, k, margin):
    module = interpreted(pruning)
    rng, scores, offsets = lists(1)
    low, high = scores - rng.integers(0, 30, len(scores)), scores + rng.integers(0, 30, len(scores))
    n_lists = len(offsets) - 1
    floors, counts = np.zeros(n_lists, np.int64), np.zeros(n_lists, np.int64)
    module.find_floors(low, high, offsets, k, margin, floors, counts)
    pool_offsets = np.cumsum([0, *counts])
    rows, pool_scores = np.zeros(pool_offsets[-1], np.int64), np.zeros(pool_offsets[-1], np.int64)
    module.fill_pools(scores, high, offsets, floors, pool_offsets, rows, pool_scores)
    for q in range(n_lists):
        own = rows[pool_offsets[q] : pool_offsets[q + 1]]
        assert pool_scores[pool_offsets[q] : pool_offsets[q + 1]].tolist() == scores[own].tolist()
        assert own.tolist() == [row for row in best_first(scores, offsets[q], offsets[q + 1]) if row in own]
        for row in range(offsets[q], offsets[q + 1]):
            others, drawn = np.arange(len(scores)) != row, high + margin
            drawn[others] = low[others]  # the best that a document can hope for
            if row in best_first(drawn, offsets[q], offsets[q + 1])[:k]:
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


@pytest.mark.parametrize("k", [1, 4, 30])
def test_what_a_change_of_some_reach_can_move(interpreted, k):
    module, rng = interpreted(leave_one_out), np.random.default_rng(k)
    scores = -np.sort(-rng.permutation(200)[:20])
    grades = rng.integers(-1, 2, 20)
    different = [scores[i] - scores[j] for i in range(min(k, 20)) for j in range(i + 1, 20) if grades[i] != grades[j]]
    assert module.smallest_gap(scores, grades, k) == min(different, default=module.FAR)
    for reach in (0, 5, 30, 500):
        expected = [score for score in scores if len(scores) <= k or score >= scores[k - 1] - reach]
        assert module.within(scores, k, reach) == len(expected)
    rows, moved = np.arange(20), scores - rng.integers(0, 40, 20)
    expected = sorted(range(20), key=lambda row: -moved[row])
    module.sort_again(rows, moved)
    assert rows.tolist() == expected


@pytest.mark.parametrize("among", [False, True])
@pytest.mark.parametrize("gone", [-1, 3])
def test_a_metric_without_each_tree(interpreted, among, gone):
    module = interpreted(leave_one_out)
    rng, scores, offsets = lists(3, (9, 4, 14))
    n_docs, n_trees, width = len(scores), 11, 5
    leaves, starts = rng.integers(0, 3, (n_docs, n_trees)).astype(np.uint8), 3 * np.arange(n_trees)
    table = 16 * rng.integers(-6, 7, 3 * n_trees)  # the lowest bits of scores keep documents apart
    scores = 2 * scores + np.concatenate([np.arange(size) for size in np.diff(offsets)])
    outputs, grades = table[starts + leaves], rng.integers(-1, 3, n_docs)
    terms = rng.integers(0, 100, (40, width))
    terms[:, -1] = 0
    scales = np.ones(3)
    metric = grades, terms.ravel(), width, among, scales

    def value(total, q):
        out, order = 0, best_first(total, offsets[q], offsets[q + 1])
        gaining = 0
        for rank, row in enumerate(order[: width - 1]):
            if grades[row] >= 0:
                out += terms[gaining if among else grades[row], rank]
                gaining += 1
        return out

    reach = np.ptp(table.reshape(n_trees, 3), axis=1)
    trees = np.array(sorted(set(range(n_trees)) - {gone}, key=lambda t: -reach[t]))
    rows = np.concatenate([best_first(scores, offsets[q], offsets[q + 1]) for q in range(3)])
    out, pool = np.zeros((2, len(trees)), np.int64), scores[rows].copy()
    module.changes_without(leaves, trees, reach[trees], table, starts, gone, offsets, rows.copy(), pool, metric, out)
    before = scores - (outputs[:, gone] if gone >= 0 else 0)
    expected = [sum(value(before - outputs[:, t], q) - value(before, q) for q in range(3)) for t in trees]
    assert out.sum(axis=0).tolist() == expected
