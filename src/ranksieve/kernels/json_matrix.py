"""Rows of numbers in JSON to float32."""

from __future__ import annotations

import numpy as np

from ranksieve.kernels.decimals import (
    CARRIAGE_RETURN,
    COMMA,
    LINE_FEED,
    MINUS,
    NINE,
    POINT,
    SPACE,
    TAB,
    ZERO,
    byte_at,
    parse_number,
)
from ranksieve.kernels.jit import njit

OPEN, CLOSE = 91, 93  # brackets
NULL = 0x6C6C756E  # the letters, the first one lowest


@njit(cache=True, nogil=True, _nrt=False)
def skip_space(buffer, i):
    """The first place from i on that is not white space in JSON."""
    byte = byte_at(buffer, i)
    while byte <= SPACE and byte in (SPACE, LINE_FEED, CARRIAGE_RETURN, TAB):
        i += 1
        byte = byte_at(buffer, i)
    return i


@njit(cache=True, nogil=True, _nrt=False)
def is_null(buffer, i):
    """Whether the four characters at i are `null`."""
    letters = 0
    for place in range(min(4, len(buffer) - i)):
        letters |= byte_at(buffer, i + place) << (8 * place)
    return letters == NULL


@njit(cache=True, nogil=True, _nrt=False)
def starts_number(buffer, i):
    """Whether JSON allows a number to begin so: with digits, not with 0 and another one, and one after a point."""
    i += byte_at(buffer, i) == MINUS
    first = i
    while ZERO <= byte_at(buffer, i) <= NINE:
        i += 1
    if i == first or (byte_at(buffer, first) == ZERO and i > first + 1):
        return False
    return byte_at(buffer, i) != POINT or ZERO <= byte_at(buffer, i + 1) <= NINE


@njit(cache=True, nogil=True, _nrt=False)
def parse_matrix(buffer, i, powers, values):
    """The numbers of `[[1, null], [2.5, 3]]` at i: where it ends, and how many rows and numbers it has.

    0 rows stand for anything else than rows of equal length, and for numbers whose float32 is in doubt. The buffer ends
    with a character that is neither white space nor part of a number, so a scan that stops there needs no other bound.
    """
    n_rows, n_values, width = 0, 0, 0
    if byte_at(buffer, i) != OPEN:
        return i, 0, 0
    while True:
        i = skip_space(buffer, i + 1)
        if byte_at(buffer, i) != OPEN:
            return i, 0, 0
        first = n_values
        while True:
            i = skip_space(buffer, i + 1)
            if starts_number(buffer, i):
                value, i, kind, doubtful = parse_number(buffer, i, powers)
                if kind != 0 or doubtful:
                    return i, 0, 0
                values[n_values] = np.float32(value)
            elif is_null(buffer, i):
                values[n_values] = np.nan
                i += 4
            else:
                return i, 0, 0
            n_values += 1
            i = skip_space(buffer, i)
            if byte_at(buffer, i) != COMMA:
                break
        if byte_at(buffer, i) != CLOSE or (n_rows > 0 and n_values - first != width):
            return i, 0, 0
        n_rows, width = n_rows + 1, n_values - first
        i = skip_space(buffer, i + 1)
        if byte_at(buffer, i) != COMMA:
            break
    return (i + 1, n_rows, n_values) if byte_at(buffer, i) == CLOSE else (i, 0, 0)
