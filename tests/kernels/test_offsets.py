import numpy as np
import pytest

from ranksieve.kernels import offsets


@pytest.mark.parametrize(("borders", "longest"), [([0], 0), ([0, 0], 0), ([0, 2, 7, 7, 9], 5), ([3, 4, 10], 6)])
def test_the_longest_piece(interpreted, borders, longest):
    assert interpreted(offsets).longest_piece(np.array(borders)) == longest


def test_the_largest_of_each_query_ties_by_row():
    values = np.array([3.0, 1.0, np.nan, 2.0, 2.0, 2.0, 9.0, -np.inf, 0.0])
    candidates, borders = np.array([0, 1, 2, 3, 4, 5, 7, 8], np.int32), np.array([0, 3, 6, 8])
    counts = np.array([2, 2, 2])
    starts = np.array([0, 2, 4, 6])
    chosen = np.empty(6, np.int32)
    offsets.largest_per_query(values, candidates, borders, counts, starts, chosen)
    assert chosen.tolist() == [0, 1, 3, 4, 7, 8]
