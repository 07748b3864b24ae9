import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.kernels.metrics import top_k

FEW_SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0])  # few, so that many are tied


@settings(max_examples=60, deadline=None)
@given(scores=st.lists(FEW_SCORES, max_size=40), k=st.integers(0, 45), shift=st.integers(0, 5))
def test_top_k_is_the_start_of_a_stable_sort(scores, k, shift):
    padded = np.array([9.0] * shift + scores + [9.0])
    rows = np.full(k, -1, dtype=np.int32)
    count = top_k(padded, shift, shift + len(scores), k, rows)
    expected = shift + np.argsort(-np.array(scores, dtype=np.float64), kind="stable")[:k]
    assert rows[:count].tolist() == expected.tolist()
