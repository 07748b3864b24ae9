"""Decimal text to float32, as exactly as Python's `float` does it."""

from __future__ import annotations

import math

import numpy as np

from ranksieve.kernels.jit import njit

EXACT_MANTISSA = 2**53  # whole numbers up to here are float64
EXACT_POWER = 22  # powers of ten up to here are float64, so one multiplication or division rounds once
SAFE_DIGITS = 18  # so many decimal digits always fit int64
LARGEST = 3.4028234663852886e38  # float32; finite numbers beyond it (Istella writes 1.8e308 for "none") stop there
SMALLEST_NORMAL = 1.1754943508222875e-38
FAR = np.int64(1_000_000_000)  # an exponent beyond anything; longer ones stop here
NOT_A_NUMBER, INFINITE = 1, 2


@njit(cache=True, nogil=True)
def first_digits(buffer, i, stop):
    """The first 18 significant digits of the decimal in i:stop and the power of ten that goes with them."""
    mantissa = exponent = np.int64(0)
    taken, after_point = 0, False
    while i < stop:
        digit = np.int64(buffer[i]) - 48
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


@njit(cache=True, nogil=True)
def scale(mantissa, exponent, powers):
    """mantissa * 10**exponent clamped to float32's range, and whether its float32 rounding is in doubt.

    At most three roundings put it within 4 units of the last place of float64; only within that distance of the
    middle between two float32 numbers could the cast to float32 differ from that of the exact number.
    """
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
    # The distance to the middle of the float32 interval, in units of that interval.
    _, power = math.frexp(value)
    fraction = math.ldexp(value, 24 - power)
    fraction -= np.floor(fraction)
    return value, abs(fraction - 0.5) < 1e-7


@njit(cache=True, nogil=True)
def parse_word(buffer, i):
    """`nan`, or the kinds of infinity: the value, where it ends and its kind."""
    a, b, c = buffer[i] | 32, 0, 0
    if a == 105 or a == 110:
        b = buffer[i + 1] | 32
        if b == 110 or b == 97:
            c = buffer[i + 2] | 32
    if a == 110 and b == 97 and c == 110:
        return np.nan, i + 3, 0
    if a == 105 and b == 110 and c == 102:
        return np.inf, i + 3, INFINITE
    return 0.0, i, NOT_A_NUMBER


@njit(cache=True, nogil=True)
def parse_number(buffer, i, powers):
    """The number at i, the end of it, its kind (0 is fine) and whether its float32 rounding is in doubt.

    Same as float32(float(text)) where not in doubt. Beyond 18 digits the mantissa wraps around and is taken anew.
    """
    negative = buffer[i] == 45
    if negative or buffer[i] == 43:
        i += 1
    start = i
    mantissa = np.int64(0)
    digit = np.int64(buffer[i]) - 48
    while digit >= 0 and digit <= 9:
        mantissa = mantissa * 10 + digit
        i += 1
        digit = np.int64(buffer[i]) - 48
    n_digits = i - start
    exponent = np.int64(0)
    if buffer[i] == 46:
        i += 1
        point = i
        digit = np.int64(buffer[i]) - 48
        while digit >= 0 and digit <= 9:
            mantissa = mantissa * 10 + digit
            i += 1
            digit = np.int64(buffer[i]) - 48
        n_digits += i - point
        exponent = point - i
    if n_digits == 0:
        value, i, kind = parse_word(buffer, start)
        return value, i, kind, False
    if n_digits > SAFE_DIGITS:
        mantissa, exponent = first_digits(buffer, start, i)
    if buffer[i] == 101 or buffer[i] == 69:
        i += 1
        down = buffer[i] == 45
        if down or buffer[i] == 43:
            i += 1
        start = i
        written = np.int64(0)
        while buffer[i] >= 48 and buffer[i] <= 57:
            written = min(written * 10 + np.int64(buffer[i]) - 48, FAR)
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
