"""A metric without each tree, against sorting every list again."""

import numpy as np
import pytest

from naive_pruning import best_rows, list_value, untied_lists
from ranksieve.kernels import leave_one_out
from ranksieve.kernels.pruning import Pools, Terms


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
@pytest.mark.parametrize("gone", [[], [3], [3, 0, 10]])
def test_a_metric_without_each_tree(interpreted, among, gone):
    module = interpreted(leave_one_out)
    rng, scores, offsets = untied_lists(3, (9, 4, 14))
    n_docs, n_trees, width = len(scores), 11, 5
    leaves, starts = rng.integers(0, 3, (n_docs, n_trees)).astype(np.uint8), 3 * np.arange(n_trees)
    table = 16 * rng.integers(-6, 7, 3 * n_trees)  # the lowest bits of scores keep documents apart
    scores = 2 * scores + np.concatenate([np.arange(size) for size in np.diff(offsets)])
    outputs, grades = table[starts + leaves], rng.integers(-1, 3, n_docs)
    terms = rng.integers(0, 100, (40, width))
    terms[:, -1] = 0
    scales = np.ones(3)
    metric = Terms(grades, terms.ravel(), width, among, scales)

    def value(total, q):
        return list_value(grades[best_rows(total, offsets[q], offsets[q + 1])], terms, among)

    reach = np.ptp(table.reshape(n_trees, 3), axis=1)
    trees = np.array(sorted(set(range(n_trees)) - set(gone), key=lambda t: -reach[t]))
    rows = np.concatenate([best_rows(scores, offsets[q], offsets[q + 1]) for q in range(3)])
    out, pool = np.zeros((2, len(trees)), np.int64), scores[rows].copy()
    pools = Pools(offsets, rows.copy(), pool)
    module.changes_without(leaves, trees, reach[trees], table, starts, np.array(gone, np.int64), pools, metric, out)
    before = scores - outputs[:, gone].sum(axis=1)
    expected = [sum(value(before - outputs[:, t], q) - value(before, q) for q in range(3)) for t in trees]
    assert out.sum(axis=0).tolist() == expected
