"""Rows of numbers as text, against `json`."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.kernels import json_matrix

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")
POWERS = np.array([10.0**power for power in range(309)])


def buffer_of(text):
    return np.frombuffer(text.encode() + b" }", np.uint8)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.none() | st.floats(-1e6, 1e6, width=32), min_size=width, max_size=width), min_size=1, max_size=5
        )
    ),
    st.sampled_from([None, 0, 1]),
)
def test_rows_are_those_of_json(plain, rows, indent):
    text, values = json.dumps(rows, indent=indent), np.full(20, -7.0, np.float32)
    with np.errstate(over="ignore"):
        end, n_rows, n_values = json_matrix.parse_matrix(buffer_of(text), 0, POWERS, values)
    if n_rows:  # else the float32 of a number is in doubt
        expected = [np.nan if value is None else value for row in rows for value in row]
        assert (end, n_rows, n_values) == (len(text), len(rows), len(expected))
        np.testing.assert_array_equal(values[:n_values], np.array(expected, np.float32))


@pytest.mark.parametrize(
    "text",
    ["[]", "[[]]", "[1]", "[[1],[2,3]]", "[[01]]", "[[.5]]", "[[1.]]", "[[+1]]", "[[1,]]", "[[1] [2]]", "[[nul]]",
     "[[NaN]]", "[[1e]]", "[[1]", "{}", "[[true]]", '[["1"]]'],
)  # fmt: skip
def test_anything_else_has_no_rows(plain, text):
    assert json_matrix.parse_matrix(buffer_of(text), 0, POWERS, np.empty(9, np.float32))[1] == 0
