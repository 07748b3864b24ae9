import numpy as np

from ranksieve.kernels.top_per_query import largest_per_query


def test_the_largest_of_each_query_ties_by_row():
    values = np.array([3.0, 1.0, np.nan, 2.0, 2.0, 2.0, 9.0, -np.inf, 0.0])
    candidates, offsets = np.array([0, 1, 2, 3, 4, 5, 7, 8], np.int32), np.array([0, 3, 6, 8])
    counts = np.array([2, 2, 2])
    starts = np.array([0, 2, 4, 6])
    chosen = np.empty(6, np.int32)
    largest_per_query(values, candidates, offsets, counts, starts, chosen)
    assert chosen.tolist() == [0, 1, 3, 4, 7, 8]
