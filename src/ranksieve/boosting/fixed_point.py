"""Gradients as integers whose sums are exact, so that no split of the rows over threads or machines changes a bit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranksieve.dtypes import FIXED, OFFSET
from ranksieve.kernels.rounding import (
    LEAST_BITS,
    Packing,
    absolute_sums,
    fitting_shift,
    largest_absolute,
    pack_rows,
    packed_shift,
    round_rows,
)

MOST_NOISE = -1  # log2 of the noise of random rounding above which derivatives are not packed, see `Scale.packed`


@dataclass(frozen=True)
class Extent:
    """How many gradients there are and the largest ones: the same however the rows are split."""

    n: int
    largest_grad: float
    largest_hess: float

    @classmethod
    def of(cls, grad: np.ndarray, hess: np.ndarray) -> Extent:
        return cls(len(grad), largest_absolute(grad), largest_absolute(hess))

    @classmethod
    def joined(cls, parts: Iterable[Extent]) -> Extent:
        """The extent of all parts together."""
        n, grads, hesses = zip(*((part.n, part.largest_grad, part.largest_hess) for part in parts), strict=True)
        return cls(sum(n), max(grads), max(hesses))

    def sums(self, grad: np.ndarray, hess: np.ndarray) -> Sums:
        """Sums over some of these rows; those of parts add up exactly."""
        return Sums(*_sums(grad, self.largest_grad), *_sums(hess, self.largest_hess))


class Sums(NamedTuple):
    """Of |gradients| and of second derivatives, and of their squares, rounded value by value.

    In units of 2^-30 of the largest value's power of two, and of 2^-30 of the square of that power.
    """

    grad: int
    grad_squares: int
    hess: int
    hess_squares: int

    @classmethod
    def joined(cls, parts: Iterable[Sums]) -> Sums:
        """The sums of all parts together."""
        return cls(*map(sum, zip(*parts, strict=True)))


@dataclass(frozen=True)
class Scale:
    """How gradients, second derivatives and counts are integers.

    A packed sum is gradient · 2^grad_exponent << (hess_bits + count_bits) | hess << count_bits | count, where hess is
    second derivative · 2^hess_exponent. With `hess_bits` 0, second derivatives are summed on their own.
    """

    count_bits: int
    grad_exponent: int
    hess_exponent: int
    hess_bits: int = 0

    @classmethod
    def exact(cls, extent: Extent, sums: Sums) -> Scale:
        """Powers of two such that no sum overflows: gradients by their absolute sum, derivatives by n · max."""
        limits = SumLimits.of(extent.n)
        grad_exponent = _exponent(limits.exact, extent.n, extent.largest_grad, sums.grad)
        hess_exponent = 0
        if extent.largest_hess > 0.0:
            hess_exponent = 61 - limits.count_bits - math.frexp(extent.largest_hess)[1]
        return cls(limits.count_bits, grad_exponent, hess_exponent)

    @classmethod
    def packed(cls, extent: Extent, sums: Sums) -> Scale | None:
        """Gradient, second derivative and count share an integer: about equal bits, one more for the gradient's sign.

        Values are rounded up or down at random, see `kernels.rounding`, to multiples of a unit u. This adds a variance
        of at most u Σ|value| to their sum. The noise is its ratio to Σ value²; None where it is above 2^MOST_NOISE.
        """
        limits = SumLimits.of(extent.n)
        if not fits_one_integer(extent.n):
            return None
        grad = _packed_exponent(limits.grad, extent.n, extent.largest_grad, sums.grad, sums.grad_squares)
        hess = _packed_exponent(limits.hess, extent.n, extent.largest_hess, sums.hess, sums.hess_squares)
        if grad is None or hess is None:
            return None
        return cls(limits.count_bits, grad, hess, limits.hess_bits)

    @property
    def factors(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """What turns gradients and second derivatives into their units, as `factors_of` gives it."""
        return factors_of(self.grad_exponent), factors_of(self.hess_exponent)

    def grad_sum(self, total: np.ndarray) -> np.ndarray:
        """The gradient sum inside packed sums."""
        return np.ldexp((total >> (self.hess_bits + self.count_bits)).astype(np.float64), -self.grad_exponent)

    def hess_sum(self, total: np.ndarray) -> np.ndarray:
        """The sum of second derivatives that were summed on their own."""
        return np.ldexp(total.astype(np.float64), -self.hess_exponent)

    def count(self, total: np.ndarray) -> np.ndarray:
        """How many rows packed sums are of."""
        return total & ((1 << self.count_bits) - 1)


class SumLimits(NamedTuple):
    """What sums over so many rows may be at most: exact ones of gradients, and the two of a packed integer.

    By Bernstein's inequality the sum of values rounded at random is more than t above that of the values with a
    probability below exp(-t² / (2 V + t)), where V, the variance, is at most the sum: below e^-128 for
    t = 16 √(2^bits) + 144. So much is left free.
    """

    count_bits: int
    hess_bits: int
    exact: int
    grad: int
    hess: int

    @classmethod
    def of(cls, n_rows: int) -> SumLimits:
        count_bits = max(int(n_rows).bit_length(), 1)
        hess_bits = (63 - count_bits) // 2
        grad, hess = (
            (1 << bits) - 1 - 16 * math.isqrt(1 << bits) - 144 for bits in (63 - count_bits - hess_bits, hess_bits)
        )
        return cls(count_bits, hess_bits, (1 << (61 - count_bits)) - 1, grad, hess)


class Scales(NamedTuple):
    """The scales of one tree: of the sums that splits are chosen by, and of the exact ones for leaf values."""

    exact: Scale
    split: Scale
    n_planes: int  # of histograms: 2 where second derivatives are summed on their own
    key: int  # of the random rounding

    @classmethod
    def of(cls, extent: Extent, sums: Sums, *, with_hess: bool, key: int) -> Scales:
        """`with_hess`: splits depend on second derivatives. These are packed where enough bits are left."""
        exact = Scale.exact(extent, sums)
        packed = Scale.packed(extent, sums) if with_hess else None
        if packed is not None:
            return cls(exact, packed, 1, key)
        return cls(exact, exact, 2 if with_hess else 1, key)


def fits_one_integer(n_rows: int) -> bool:
    """Whether gradients, second derivatives and counts of so many rows share one integer: below 2^28 rows."""
    return (64 - SumLimits.of(n_rows).count_bits) // 2 >= LEAST_BITS


@dataclass(frozen=True)
class FixedPoint:
    """Gradients and counts packed in one integer per row; second derivatives in it too, or in another, or nowhere."""

    packed: np.ndarray
    hess: np.ndarray


def to_fixed_point(
    grad: np.ndarray, hess: np.ndarray, scales: Scales, rows: np.ndarray | None = None, first_row: int = 0
) -> FixedPoint:
    """The integers that histograms sum, of rows with these numbers (None: 0, 1, …) plus `first_row`."""
    scale = scales.split
    if scale.hess_bits:
        packed = np.empty(len(grad), FIXED)
        numbers = np.empty(0, OFFSET) if rows is None else rows.astype(OFFSET, copy=False)
        packing = Packing(scale.count_bits, scale.hess_bits, *scale.factors, scales.key)
        pack_rows(grad, hess, numbers, first_row, packing, packed)
        return FixedPoint(packed, np.empty(0, FIXED))
    packed, seconds = np.empty(len(grad), FIXED), np.empty(len(hess) if scales.n_planes == 2 else 0, FIXED)
    round_rows(grad, scale.factors[0], scale.count_bits, 1, packed)
    round_rows(hess[: len(seconds)], scale.factors[1], 0, 0, seconds)
    return FixedPoint(packed, seconds)


def factors_of(exponent: int) -> tuple[float, float]:
    """Two powers of two whose product is 2^exponent, which alone may not be a float."""
    return math.ldexp(1.0, exponent // 2), math.ldexp(1.0, exponent - exponent // 2)


def _exponent(room: int, n_rows: int, largest: float, total: int) -> int:
    """The largest e such that the sum of |values| · 2^e is at most `room`; `total` is the sum as in `Extent.sums`."""
    if largest == 0.0:
        return 0
    # the sum of the values is below (total + n) · 2^(unit - 30) where the largest one is below 2^unit
    return fitting_shift(total + n_rows, room) + 30 - math.frexp(largest)[1]


def _packed_exponent(room: int, n_rows: int, largest: float, total: int, squares: int) -> int | None:
    """The exponent of values that are packed; None where their noise would be too large, see `Scale.packed`."""
    exponent = _exponent(room, n_rows, largest, total)
    # the least e such that rounding at random to units of 2^-e has a noise of at most 1
    noisy = -fitting_shift(total, squares) - math.frexp(largest)[1] if squares else exponent + MOST_NOISE
    if exponent < noisy - MOST_NOISE:
        return None
    return packed_shift(n_rows, exponent, _exponent(1 << LEAST_BITS, n_rows, largest, total), noisy)


def _sums(values: np.ndarray, largest: float) -> tuple[int, int]:
    if largest == 0.0:
        return 0, 0
    return absolute_sums(values, factors_of(30 - math.frexp(largest)[1]))
