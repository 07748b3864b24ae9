"""Numbers and rows of numbers as text, against `float` and `json`."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_lanes import PLAIN
from ranksieve.kernels import decimals, json_matrix

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")
POWERS = np.array([10.0**power for power in range(309)])
DIGITS = st.text("0123456789", max_size=24)
NUMBERS = st.builds(
    lambda sign, whole, point, exponent: sign + whole + point + exponent,
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=24),
    st.one_of(st.just(""), DIGITS.map(lambda digits: "." + digits)),
    st.one_of(st.just(""), st.integers(-60, 60).map(lambda power: f"e{power}"), st.just("E+5")),
)


def buffer_of(text):
    return np.frombuffer(text.encode() + b" }", np.uint8)


@pytest.fixture(scope="module")
def plain():
    with pytest.MonkeyPatch.context() as patch:
        for module in (decimals, json_matrix):
            for name, value in list(vars(module).items()):
                if function := PLAIN.get(name) or getattr(value, "py_func", None):
                    patch.setattr(module, name, function)
        with np.errstate(over="ignore"):
            yield


@settings(max_examples=300, deadline=None)
@given(NUMBERS)
def test_a_number_that_is_not_in_doubt_is_the_one_of_python(plain, text):
    with np.errstate(over="ignore"):
        value, end, kind, doubtful = decimals.parse_number(buffer_of("x" + text), 1, POWERS)
        assert (end, kind) == (1 + len(text), 0)
        limit = float(np.finfo(np.float32).max)
        if not doubtful:
            assert np.float32(value) == np.float32(np.clip(float(text), -limit, limit))


@pytest.mark.parametrize("text", ["0.1", "3", "-2.5e-3", "1e10", "123456.789", "0.30000001192092896"])
def test_usual_numbers_are_not_in_doubt(plain, text):
    with np.errstate(over="ignore"):
        value, _, kind, doubtful = decimals.parse_number(buffer_of(text), 0, POWERS)
    assert (np.float32(value), kind, bool(doubtful)) == (np.float32(float(text)), 0, False)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("nan", 0),
        ("-NaN", 0),
        ("inf", 2),
        ("+Infinity", 2),
        ("", 1),
        ("-", 1),
        (".", 1),
        ("na", 1),
        ("1e", 1),
        ("e5", 1),
    ],
)
def test_words_and_what_is_no_number(plain, text, kind):
    value, _, found, _ = decimals.parse_number(buffer_of(text), 0, POWERS)
    assert found == kind
    assert np.isnan(value) == (kind == 0)


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
