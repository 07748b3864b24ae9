"""Analyses of experiments, against plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive_forest
from naive import best_first
from naive_experiments import heat_map
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.analyses import (
    difference_by_size,
    list_ranks,
    rank_distribution,
    rank_heat_map,
    shared_leaves,
    smallest_shares,
)


@pytest.mark.parametrize(("n_trees", "n_leaves", "dtype"), [(7, 3, np.uint8), (300, 2, np.uint16), (5, 400, np.int32)])
def test_shared_leaves_count_every_pair(n_trees, n_leaves, dtype):
    rng = np.random.default_rng(n_trees)
    sizes = [1, 0, 40, 3, 25]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    leaves = rng.integers(0, n_leaves, (offsets[-1], n_trees)).astype(dtype)
    expected = naive_forest.shared_leaves(leaves, offsets).sum(axis=0)
    np.testing.assert_array_equal(shared_leaves(leaves, offsets), expected)


def test_shared_leaves_of_long_lists():
    leaves = np.zeros((1500, 3), np.uint8)
    leaves[:700, 0] = 1
    counts = shared_leaves(leaves, [0, 1500])
    alike = 700 * 699 // 2 + 800 * 799 // 2
    assert counts.tolist() == [0, 0, 1500 * 1499 // 2 - alike, alike]


def test_shared_leaves_refuse_wrong_shapes():
    with pytest.raises(DataError, match="documents × trees"):
        shared_leaves([0, 1], [0, 2])
    with pytest.raises(DataError, match="do not cut 2 documents"):
        shared_leaves([[0], [1]], [0, 3])


def test_ranks_are_those_of_sorting():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 5, 5, 30])
    values = rng.integers(0, 6, 30).astype(float)
    values[[3, 20]] = np.nan
    ranks = list_ranks(values, offsets)
    for start, stop in itertools.pairwise(offsets):
        order = best_first(range(start, stop), values)
        assert [ranks[row] for row in order] == list(range(1, stop - start + 1))
    with pytest.raises(DataError, match="one per document"):
        list_ranks(values, [0, 5])


def test_heat_map_is_the_mean_count_of_a_cell():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 40, 23)
    chosen = [(q, r, int(rng.integers(1, 15))) for q in range(23) for r in range(1, sizes[q] + 1) if rng.random() < 0.3]
    queries, ranks, counts = (np.array(column) for column in zip(*chosen, strict=True))
    heat, row_sizes, column_ranks = rank_heat_map(queries, ranks, counts, sizes, shape=(6, 9), most=10)
    expected, longest = heat_map(chosen, sizes, (6, 9), 10)
    np.testing.assert_allclose(heat, expected)
    assert row_sizes.tolist() == longest
    assert column_ranks[0] == 1
    assert (np.diff(column_ranks) > 0).all()
    with pytest.raises(DataError, match="no queries"):
        rank_heat_map([], [], [], [])


def test_rank_distribution():
    assert rank_distribution([2, 1, 2], [1, 2, 1], 4).tolist() == [0.5, 1.0, 1.0, 1.0]
    with pytest.raises(DataError, match="ever selected"):
        rank_distribution([], [])
    with pytest.raises(ParameterError, match="rank 5 was selected"):
        rank_distribution([5], [1], 3)


def test_differences_by_size_skip_queries_without_a_value():
    a, b = np.array([0.5, np.nan, 0.3, 0.9]), np.array([0.1, 0.2, 0.4, 0.5])
    buckets = difference_by_size(a, b, [10, 15, 35, 38], width=10)
    assert buckets.n_queries.tolist() == [0, 1, 0, 2]
    np.testing.assert_allclose(buckets.differences, [np.nan, 0.4, np.nan, 0.15])
    spread = np.std([-0.1, 0.4], ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(buckets.errors, [np.nan, np.nan, np.nan, spread])
    with pytest.raises(DataError, match="one per query"):
        difference_by_size(a, b, [1, 2])
    with pytest.raises(DataError, match="nothing to compare"):
        difference_by_size([np.nan], [1.0], [3])


def test_smallest_shares():
    assert smallest_shares([0.4, 0.1, 0.2], [0.95, 0.5, 0.9], 1.0) == [0.2, 0.4, None]
    assert smallest_shares([0.3], [0.9 * 0.7], 0.7, [0.9]) == [0.3]
    with pytest.raises(DataError, match="one value per share"):
        smallest_shares([0.1], [0.1, 0.2], 1.0)
