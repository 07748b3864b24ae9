"""The places of a query's terms."""

import numpy as np

from ranksieve.kernels.term_pairs import terms_by_place


def test_terms_by_place():
    """Two analyzers; the second of them knows the first term alone."""
    starts, places = np.array([[0, 2, 3], [3, 4, 4]]), np.array([0, 3, 1, 2])
    assert terms_by_place(starts, places, 4).tolist() == [[0, 1, -1, 0], [-1, -1, 0, -1]]
