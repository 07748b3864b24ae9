"""Feature vectors in JSON: the fast decoder takes rows of numbers, and gives what the library of JSON gives."""

from __future__ import annotations

import json

import numpy as np
import pydantic_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.errors import DataError
from ranksieve.serve.answers import decode

NUMBERS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: repr(float(x))),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: str(np.float32(x))),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e38, max_value=1e38).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["0", "-0", "0.0", "1E5", "-2.5e+3", "1e-40", "1e300", "0.00000000012345678901234567", "null"]),
)
SPACES = st.sampled_from(["", " ", "\n\t", "\r "])


def expected(rows: list[list[float | None]]) -> np.ndarray:
    largest = float(np.finfo(np.float32).max)
    return np.clip(np.array(rows, dtype=np.float64), -largest, largest).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_of_numbers(data):
    width, n_rows = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rows = [[data.draw(NUMBERS) for _ in range(width)] for _ in range(n_rows)]
    space = data.draw(SPACES)
    text = f"[{space}" + f"{space},".join(f"[{f'{space},{space}'.join(row)}]" for row in rows) + f"{space}]"
    body = f'{{"model":"a",{space}"features"{space}:{space}{text}{space}}}'.encode()
    found = decode(body)
    assert found.keys() == {"model", "features"} and found["model"] == "a"
    if not isinstance(found["features"], np.ndarray):  # a number whose rounding is in doubt
        assert found == json.loads(body)
        return
    np.testing.assert_array_equal(found["features"], expected(json.loads(text)))


def test_vectors_of_a_model_take_the_fast_way():
    rows = np.random.default_rng(0).gamma(1.0, size=(50, 30)).astype(np.float32)
    rows[rows < 0.1] = 0
    found = decode(json.dumps({"features": rows.tolist()}).encode())["features"]
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_array_equal(found, rows)
    found = decode(json.dumps({"features": rows.tolist()}).encode() + b"\r\n")["features"]
    assert isinstance(found, np.ndarray)


VALUES = [
    "[[1], [1, 2]]", "[]", "[[]]", "[[1], []]", "[1]", '[["x"]]', "[[true]]", "null", "[[[1]]]", "[[nul]]", "[[-]]",
    "[[01]]", "[[+1]]", "[[.5]]", "[[NaN]]", "[[-nan]]", "[[Infinity]]", "[[1,]]", "[[1] [2]]", "[[1", "[[1e]]",
    "[[n", "", "[[1.]]", "[[-0.]]", "[[1.e5]]", "[[1.,2]]", "[[12.E-3]]", "[[1.5.]]",
]  # fmt: skip
BODIES = [
    *(f'{{"features": {value}}}' for value in VALUES),
    '{"a": {"features": [[1]]}}',
    '[{"features": [[1]]}]',
    '{"\\"features": [[1]]}',
    '{"query": "\\"features\\": [[1]]"}',
    '{"features": [[1]], "features": [[2], [3]]}',
    '{"features": [[1, 2], [3, 4]], "features": null}',
    '{"x": {"features": [[1]]}, "features": null}',
    '{"features": [[1]], "model": }',
    '{"features": [[1]]]}',
    '{"features": [[1]], "x": 1',
]


@pytest.mark.parametrize("text", BODIES)
def test_odd_bodies_give_what_the_library_gives(text):
    try:
        wanted = pydantic_core.from_json(text.encode())
    except ValueError as error:
        with pytest.raises(DataError) as caught:
            decode(text.encode())
        assert str(error) in str(caught.value)
        return
    assert repr(decode(text.encode())) == repr(wanted)
