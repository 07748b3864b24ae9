"""Gradients and second derivatives as integers.

Where the gradient, the second derivative and the count of a row share an integer, values are rounded up or down at
random. Rounding is unbiased: a value is rounded up with the probability of its fraction, so whole numbers stay as they
are. The random numbers depend on a key and the row's number in the whole training set alone.
"""

import math
from typing import NamedTuple

import numpy as np

from ranksieve.kernels.counter_random import GOLDEN, mixed
from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts

PART = 1 << 16  # values of a part
LEAST_BITS = 18  # fewest bits of the sum of gradients, and of second derivatives, in a packed sum
LITTLE_NOISE = -6  # log2 of the noise that packed sums of more than MANY_ROWS rows may have, see `packed_shift`
MANY_ROWS = 1 << 16


class Packing(NamedTuple):
    """A row is gradient << (hess_bits + count_bits) | second derivative << count_bits | 1.

    Units are powers of two, each in two factors: one alone may be too large or too small for a float.
    """

    count_bits: int
    hess_bits: int
    grad_factors: tuple[float, float]
    hess_factors: tuple[float, float]
    key: int


@njit(cache=True, nogil=True)
def rounded(value, chance):
    """The whole number below a value, or with the probability of the value's fraction the one above it."""
    below = math.floor(value)
    return np.int64(below) + np.int64(chance < value - below)


@njit(cache=True, nogil=True)
def packed_row(grad, hess, number, key, count_bits, hess_bits):
    """The packed integer of a row, given by its number in the whole training set and its derivatives in their units."""
    bits = mixed(np.uint64(key) + GOLDEN * np.uint64(number + 1))
    high, low = np.int64(bits >> np.uint64(32)), np.int64(bits & np.uint64(0xFFFFFFFF))
    g = rounded(grad, (np.float64(high) + 0.5) * 2.0**-32)
    h = rounded(hess, (np.float64(low) + 0.5) * 2.0**-32)
    return (g << (hess_bits + count_bits)) + (h << count_bits) + 1


@njit(cache=True, nogil=True)
def pack_some(start, stop, grad, hess, rows, first, packing, out):
    """`pack_rows` of the rows start:stop."""
    key, count_bits, hess_bits = packing.key, packing.count_bits, packing.hess_bits
    (a, b), (c, d) = packing.grad_factors, packing.hess_factors
    for i in range(start, stop):
        number = first + (rows[i] if len(rows) else i)
        out[i] = packed_row(grad[i] * a * b, hess[i] * c * d, number, key, count_bits, hess_bits)


@njit(cache=True, nogil=True)
def pack_rows(grad, hess, rows, first, packing, out):
    """The packed integers of rows with these numbers, all plus `first`; without numbers they are 0, 1, …"""
    run_parts(pack_some, len(grad), (grad, hess, rows, first, packing, out))


@njit(cache=True, nogil=True)
def round_some(start, stop, values, factors, shift, added, out):
    """`round_rows` of the rows start:stop."""
    for i in range(start, stop):
        out[i] = (np.int64(np.rint(values[i] * factors[0] * factors[1])) << shift) + added


@njit(cache=True, nogil=True)
def round_rows(values, factors, shift, added, out):
    """Values times both factors, rounded to the nearest integer, shifted to the left, plus `added`."""
    run_parts(round_some, len(values), (values, factors, shift, added, out))


@njit(cache=True, nogil=True)
def largest_of_parts(first, last, values, out):
    """`largest_absolute` of each of the parts first:last, PART values each."""
    for part in range(first, last):
        largest = 0.0
        for i in range(part * PART, min((part + 1) * PART, len(values))):
            largest = max(largest, abs(values[i]))
        out[part] = largest


@njit(cache=True, nogil=True)
def largest_absolute(values):
    """The largest absolute value; 0 where there is none."""
    parts, largest = np.empty(-(-len(values) // PART)), 0.0
    run_parts(largest_of_parts, len(parts), (values, parts))
    for part in range(len(parts)):
        largest = max(largest, parts[part])
    return largest


@njit(cache=True, nogil=True)
def absolute_sums_of_parts(first, last, values, factors, out):
    """`absolute_sums` of the parts first:last, PART values each, without adding the parts."""
    for part in range(first, last):
        total = squares = np.int64(0)
        for i in range(part * PART, min((part + 1) * PART, len(values))):
            value = np.int64(np.rint(abs(values[i]) * factors[0] * factors[1]))
            total += value
            squares += (value >> 15) * (value >> 15)
        out[part, 0], out[part, 1] = total, squares


@njit(cache=True, nogil=True)
def absolute_sums(values, factors):
    """The sum of absolute values times both factors, each rounded to the nearest integer; and that of squares / 2^30.

    Values times both factors are at most 2^30, so that neither sum overflows below 2^33 values.
    """
    sums = np.empty((-(-len(values) // PART), 2), np.int64)
    run_parts(absolute_sums_of_parts, len(sums), (values, factors, sums))
    total = squares = np.int64(0)
    for part in range(len(sums)):
        total += sums[part, 0]
        squares += sums[part, 1]
    return total, squares


def packed_shift(n_rows: int, fitting: int, of_least_bits: int, of_noise: int) -> int:
    """The shift of values that are packed; also compiled for GPUs.

    It is the one that fits into the room. Many rows use no more than LEAST_BITS while the noise of rounding is below
    2^LITTLE_NOISE: most of them may round to 0 then. `of_noise` is the shift for which it is 1.

    >>> packed_shift(1000, 5, -3, -4), packed_shift(1_000_000, 5, -3, -4), packed_shift(1_000_000, 5, -3, 4)
    (5, 2, 5)
    """
    return min(fitting, max(of_least_bits, of_noise - LITTLE_NOISE)) if n_rows > MANY_ROWS else fitting


def fitting_shift(most: int, room: int) -> int:
    """The largest e such that most · 2^e is at most `room`; also compiled for GPUs.

    >>> fitting_shift(3, 25), fitting_shift(25, 3)
    (3, -4)
    """
    shift = 0
    while 2 * most <= room:
        most *= 2
        shift += 1
    while most > room:
        room *= 2
        shift -= 1
    return shift
