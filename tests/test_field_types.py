"""Types of fields: which values fit, and in which type they are kept."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Optional

import pytest

from ranksieve.field_types import fitted, words


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, int, 1),
        (1, float, 1.0),
        (True, bool, True),
        ([1, 2.5], tuple[float, float], (1.0, 2.5)),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        ([], tuple[int, ...], ()),
        ((1, "a"), tuple, (1, "a")),
        (None, int | None, None),
        (None, Optional[int], None),  # noqa: UP045
        ([["a"], "b"], tuple[tuple[str, ...] | str, ...], (("a",), "b")),
        ({"a": 1}, dict[str, Any], {"a": 1}),
        (OrderedDict(a=1), dict, {"a": 1}),
        ([1], list[int], [1]),  # other types are not checked
        (3, object, 3),
    ],
)
def test_a_value_that_fits_has_the_type(value, kind, expected):
    found = fitted(value, kind)
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected] if isinstance(found, tuple) else True
    assert type(found) is type(value) or type(found) in (float, tuple)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (10**400, float),
        (1.0, int),
        (True, int),
        (True, float),
        (1, bool),
        (1, str),
        (None, int),
        ([1], tuple[int, int]),
        (["a"], tuple[int, ...]),
        ("ab", tuple[str, ...]),
        ([("a", 1)], dict[str, int]),
        ("a", int | None),
        ([1, None], tuple[int, ...] | None),
    ],
)
def test_other_values_are_refused(value, kind):
    with pytest.raises(TypeError):
        fitted(value, kind)


def test_words_of_types():
    assert words(tuple) == "a list of values"
    assert words(tuple[dict[str, int], ...]) == "a list of tables"
    assert words(list[int]) == "a value"
    assert words(int | str | None) == "an integer or a text"
