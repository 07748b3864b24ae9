"""Types of the fields of dataclasses: which values fit, and what a user calls them."""

from __future__ import annotations

import types
from contextlib import suppress
from typing import Any, Union, get_args, get_origin

WORDS = {str: "a text", int: "an integer", float: "a number", bool: "true or false", dict: "a table"}
PLURALS = {str: "texts", int: "integers", float: "numbers", dict: "tables"}
UNIONS = (types.UnionType, Union)


def fitted(value: Any, kind: Any) -> Any:
    """The value in a type, with integers as floats and lists as tuples; `TypeError` where it has another type.

    Plain types, tables, tuples and unions are checked.

    Examples
    --------
    >>> fitted([1, 2], tuple[float, float]), fitted([1, 2], tuple[int, ...] | None)
    ((1.0, 2.0), (1, 2))
    """
    plain = get_origin(kind) or kind
    if plain in UNIONS:
        for one in get_args(kind):
            with suppress(TypeError):
                return fitted(value, one)
        raise TypeError
    if plain is tuple and isinstance(value, list | tuple):
        parts = get_args(kind) or (object, ...)
        parts = parts[:1] * len(value) if parts[-1:] == (...,) else parts
        if len(parts) != len(value):
            raise TypeError
        return tuple(map(fitted, value, parts))
    if plain is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise TypeError from None
    fits = isinstance(value, dict) if plain is dict else type(value) is plain
    if plain in (*WORDS, tuple, types.NoneType) and not fits:
        raise TypeError
    return value


def words(kind: Any) -> str:
    """A type as a user calls it.

    Examples
    --------
    >>> words(tuple[int, ...] | None), words(str | dict[str, int])
    ('a list of integers', 'a text or a table')
    """
    plain, parts = get_origin(kind) or kind, get_args(kind)
    if plain in UNIONS:
        return " or ".join(words(one) for one in parts if one is not types.NoneType)
    if plain is tuple:
        first = parts[0] if parts else object
        return f"a list of {PLURALS.get(get_origin(first) or first, 'values')}"
    return WORDS.get(plain, "a value")
