"""Choosing the best rows without sorting, against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.kernels.lazy_scores import keep_best, kth_largest

VALUES = st.lists(st.integers(-5, 5) | st.floats(-1e300, 1e300), min_size=1, max_size=60)


@given(VALUES, st.data())
def test_the_kth_largest_value_is_that_of_sorted_values(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert kth_largest(np.array(values, np.float64), k) == sorted(map(float, values))[-k]


@given(VALUES, st.data())
def test_the_best_rows_are_the_first_of_a_stable_sort_in_the_order_of_rows(values, data):
    k, values = data.draw(st.integers(0, len(values))), np.array(values, np.float64)
    rows, out = np.arange(100, 100 + len(values), dtype=np.int32), np.full(len(values), -1, np.int32)
    keep_best(values, rows, k, out)
    assert out[:k].tolist() == sorted(rows[np.argsort(-values, kind="stable")[:k]].tolist())
    assert (out[k:] == -1).all()
