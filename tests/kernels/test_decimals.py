"""Numbers as text, against `float`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.kernels import decimals

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


@settings(max_examples=100, deadline=None)
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
