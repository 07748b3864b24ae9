"""Decimal text to float32, with the result of Python's `float`."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import BYTE, LONG, address, intrinsic

EXACT_MANTISSA = 2**53  # whole numbers up to here are float64
EXACT_POWER = 22  # powers of ten up to here are float64, so one multiplication or division rounds once
SAFE_DIGITS = 18  # decimal digits that always fit int64
LARGEST = 3.4028234663852886e38  # of float32; larger finite numbers become this one (Istella has 1.8e308 for "none")
SMALLEST_NORMAL = 1.1754943508222875e-38
FAR = np.int64(1_000_000_000)  # larger exponents count as this one, which is beyond any number
DOUBT = 1e-14  # more than the relative error of three roundings of float64
NOT_A_NUMBER, INFINITE = 1, 2

# Characters.
TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, HASH, PLUS, COMMA, MINUS, POINT = 9, 10, 13, 32, 35, 43, 44, 45, 46
ZERO, NINE, COLON, UPPER_E, LOWER_A, LOWER_E, LOWER_F, LOWER_I, LOWER_N = 48, 57, 58, 69, 97, 101, 102, 105, 110
TO_LOWER = 32  # the bit that turns an upper-case letter into a lower-case one

# Eight characters as one number, the first in its lowest byte.
ZEROS = np.uint64(0x3030303030303030)
ABOVE_NINE = np.uint64(0x7676767676767676)  # added to a byte above 9, sets its highest bit
HIGHEST_BITS = np.uint64(0x8080808080808080)
PAIRS, FOURS, EIGHT = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
TENS, HUNDREDS, TEN_THOUSANDS = np.uint64(10 << 8 | 1), np.uint64(100 << 16 | 1), np.uint64(10_000 << 32 | 1)


@intrinsic
def load_word(typing, buffer, position):
    """The eight bytes from `position` on."""

    def code(context, builder, signature, arguments):
        buffer, position = arguments
        return builder.load(address(context, builder, signature.args[0], buffer, position, LONG), align=1)

    return types.uint64(buffer, types.intp), code


@intrinsic
def byte_at(typing, buffer, position):
    """The byte at `position`, which is not negative: unlike `buffer[position]`, for which Numba allows that."""

    def code(context, builder, signature, arguments):
        buffer, position = arguments
        return builder.zext(builder.load(address(context, builder, signature.args[0], buffer, position, BYTE)), LONG)

    return types.int64(buffer, types.intp), code


@intrinsic
def trailing_zeros(typing, word):
    """The number of 0 bits below the lowest 1."""

    def code(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), code


@njit(cache=True, nogil=True, _nrt=False)
def eight_digits(digits):
    """The number that eight bytes from 0 to 9 spell: two bytes become one number in each of three steps."""
    digits = ((digits & PAIRS) * TENS) >> np.uint64(8)
    digits = ((digits & FOURS) * HUNDREDS) >> np.uint64(16)
    return np.int64(((digits & EIGHT) * TEN_THOUSANDS) >> np.uint64(32))


@njit(cache=True, nogil=True, _nrt=False)
def take_digits(buffer, i, mantissa, powers):
    """Append the digits from i on to the mantissa; returns it and where they end. Beyond 18 digits it overflows."""
    while i + 8 <= len(buffer):
        digits = load_word(buffer, i) ^ ZEROS
        others = ((digits + ABOVE_NINE) | digits) & HIGHEST_BITS
        if others != 0:
            n = trailing_zeros(others) >> 3
            front = (digits << np.uint64(8)) << np.uint64(56 - 8 * n)  # zeros, then the n digits
            return mantissa * np.int64(powers[n]) + eight_digits(front), i + n
        mantissa = mantissa * 100_000_000 + eight_digits(digits)
        i += 8
    digit = byte_at(buffer, i) - ZERO
    while digit >= 0 and digit <= 9:
        mantissa = mantissa * 10 + digit
        i += 1
        digit = byte_at(buffer, i) - ZERO
    return mantissa, i


@njit(cache=True, nogil=True, _nrt=False)
def first_digits(buffer, i, stop):
    """The first 18 significant digits of the decimal in i:stop and the power of ten that goes with them."""
    mantissa = exponent = np.int64(0)
    taken, after_point = 0, False
    while i < stop:
        digit = byte_at(buffer, i) - ZERO
        i += 1
        if digit < 0 or digit > 9:
            after_point = True
            continue
        if taken < SAFE_DIGITS:
            mantissa = mantissa * 10 + digit
            taken += 1 if mantissa > 0 else 0
            exponent -= 1 if after_point else 0
        else:
            exponent += 0 if after_point else 1
    return mantissa, exponent


@njit(cache=True, nogil=True, _nrt=False)
def scale(mantissa, exponent, powers):
    """mantissa * 10**exponent clamped to float32's range, and whether its rounding to float32 is in doubt.

    It is not in doubt if all numbers within the error round to the same float32: the exact number is one of them.
    """
    if exponent < -EXACT_POWER or exponent > EXACT_POWER:
        magnitude, rest = exponent, mantissa
        while rest > 0:
            magnitude += 1
            rest //= 10
        if magnitude > 40:
            return LARGEST, False
        if magnitude < -46:
            return 0.0, False
    value = mantissa * powers[exponent] if exponent >= 0 else mantissa / powers[-exponent]
    if value > LARGEST:
        return LARGEST, False
    if value < SMALLEST_NORMAL:
        return value, True
    return value, np.float32(value * (1.0 - DOUBT)) != np.float32(value * (1.0 + DOUBT))


@njit(cache=True, nogil=True, _nrt=False)
def parse_word(buffer, i):
    """The word at i, `nan` or one for infinity: the value, where the word ends, and its kind."""
    a, b, c = byte_at(buffer, i) | TO_LOWER, 0, 0
    if a == LOWER_I or a == LOWER_N:  # noqa: SIM109
        b = byte_at(buffer, i + 1) | TO_LOWER
        if b == LOWER_N or b == LOWER_A:  # noqa: SIM109
            c = byte_at(buffer, i + 2) | TO_LOWER
    if a == LOWER_N and b == LOWER_A and c == LOWER_N:
        return np.nan, i + 3, 0
    if a == LOWER_I and b == LOWER_N and c == LOWER_F:
        return np.inf, i + 3, INFINITE
    return 0.0, i, NOT_A_NUMBER


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def parse_number(buffer, i, powers):
    """The number at i, where it ends, its kind (0: finite or NaN), and whether its rounding to float32 is in doubt.

    If it is not, the number is float32(float(text)). Beyond 18 digits the mantissa overflows, and is read again.
    """
    negative = byte_at(buffer, i) == MINUS
    if negative or byte_at(buffer, i) == PLUS:
        i += 1
    start = i
    mantissa, i = take_digits(buffer, i, np.int64(0), powers)
    n_digits = i - start
    exponent = np.int64(0)
    if byte_at(buffer, i) == POINT:
        point = i + 1
        mantissa, i = take_digits(buffer, point, mantissa, powers)
        n_digits += i - point
        exponent = point - i
    if n_digits == 0:
        value, i, kind = parse_word(buffer, start)
        return value, i, kind, False
    first = start
    while n_digits > SAFE_DIGITS and (byte_at(buffer, first) == ZERO or byte_at(buffer, first) == POINT):
        n_digits -= byte_at(buffer, first) == ZERO  # zeros in front do not count
        first += 1
    if n_digits > SAFE_DIGITS:
        mantissa, exponent = first_digits(buffer, start, i)
    if byte_at(buffer, i) == LOWER_E or byte_at(buffer, i) == UPPER_E:
        i += 1
        down = byte_at(buffer, i) == MINUS
        if down or byte_at(buffer, i) == PLUS:
            i += 1
        start = i
        written = np.int64(0)
        while byte_at(buffer, i) >= ZERO and byte_at(buffer, i) <= NINE:
            written = min(written * 10 + byte_at(buffer, i) - ZERO, FAR)
            i += 1
        if i == start:
            return 0.0, i, NOT_A_NUMBER, False
        exponent += -written if down else written
    doubtful = False
    if mantissa == 0:
        value = 0.0
    elif mantissa <= EXACT_MANTISSA and -EXACT_POWER <= exponent <= EXACT_POWER:
        value = mantissa / powers[-exponent] if exponent < 0 else mantissa * powers[exponent]
    else:
        value, doubtful = scale(mantissa, exponent, powers)
    return -value if negative else value, i, 0, doubtful
