import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.data.lists import Lists, starts_of
from ranksieve.data.negatives import Negatives


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=1, max_size=9), min_size=1, max_size=6))
def test_rows_and_places_of_negatives(queries):
    labels = np.concatenate(queries).astype(np.float32)
    negatives = Negatives(Lists(labels, starts_of([len(one) for one in queries]), np.arange(len(queries))))
    expected = np.flatnonzero(labels == 0)
    assert (negatives.marks == (labels != 0)).all() and negatives.marks.dtype == np.uint8
    assert negatives.rows.tolist() == expected.tolist()
    assert negatives.rows_at(np.arange(len(expected))).tolist() == expected.tolist()
    assert negatives.places_of(negatives.rows).tolist() == list(range(len(expected)))
    assert np.diff(negatives.offsets).tolist() == [one.count(0) for one in queries]
