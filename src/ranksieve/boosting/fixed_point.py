"""Gradients as integers whose sums are exact, so that no split of the rows over threads or machines changes a bit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Extent:
    """How many gradients there are and the largest ones: the same however the rows are split."""

    n: int
    largest_grad: float
    largest_hess: float

    @classmethod
    def of(cls, grad: np.ndarray, hess: np.ndarray) -> Extent:
        return cls(len(grad), float(np.max(np.abs(grad), initial=0.0)), float(np.max(hess, initial=0.0)))

    @classmethod
    def joined(cls, parts: Iterable[Extent]) -> Extent:
        """The extent of all parts together."""
        n, grads, hesses = zip(*((part.n, part.largest_grad, part.largest_hess) for part in parts), strict=True)
        return cls(sum(n), max(grads), max(hesses))

    def absolute(self, grad: np.ndarray) -> int:
        """The sum of |gradient| in units of 2^-30 of the largest's power of two; sums of parts add up exactly."""
        if self.largest_grad == 0.0:
            return 0
        return int(_rounded(np.abs(grad), 30 - math.frexp(self.largest_grad)[1]).sum())


@dataclass(frozen=True)
class Scale:
    """A packed sum is gradient · 2^grad_exponent << count_bits | count; a second derivative has 2^hess_exponent."""

    count_bits: int
    grad_exponent: int
    hess_exponent: int

    @classmethod
    def of(cls, extent: Extent, absolute: int) -> Scale:
        """Powers of two such that no sum overflows: gradients by their absolute sum, derivatives by n · max."""
        count_bits = max(int(extent.n).bit_length(), 1)
        grad_exponent = hess_exponent = 0
        if extent.largest_grad > 0.0:
            unit = math.frexp(extent.largest_grad)[1]  # largest < 2^unit
            # the sum of |gradient| is below (absolute + n) · 2^(unit - 30)
            grad_exponent = 61 - count_bits - (absolute + extent.n).bit_length() - (unit - 30)
        if extent.largest_hess > 0.0:
            hess_exponent = 61 - count_bits - math.frexp(extent.largest_hess)[1]
        return cls(count_bits, grad_exponent, hess_exponent)

    def grad_sum(self, total: np.ndarray) -> np.ndarray:
        """The gradient sum inside packed sums."""
        return np.ldexp((total >> self.count_bits).astype(np.float64), -self.grad_exponent)

    def hess_sum(self, total: np.ndarray) -> np.ndarray:
        return np.ldexp(total.astype(np.float64), -self.hess_exponent)

    def count(self, total: np.ndarray) -> np.ndarray:
        """How many rows packed sums are of."""
        return total & ((1 << self.count_bits) - 1)


@dataclass(frozen=True)
class FixedPoint:
    """Gradients and counts packed in one integer per row, second derivatives in another."""

    packed: np.ndarray
    hess: np.ndarray
    scale: Scale


def to_fixed_point(grad: np.ndarray, hess: np.ndarray, scale: Scale | None = None) -> FixedPoint:
    """Integers on the scale of these gradients, or on a given one that more of them share."""
    if scale is None:
        extent = Extent.of(grad, hess)
        scale = Scale.of(extent, extent.absolute(grad))
    packed = _rounded(grad, scale.grad_exponent)
    np.left_shift(packed, scale.count_bits, out=packed)
    packed += 1
    return FixedPoint(packed, _rounded(hess, scale.hess_exponent), scale)


def _rounded(values: np.ndarray, exponent: int) -> np.ndarray:
    """`values · 2^exponent` as integers; with one array of working memory, not two."""
    scaled = np.ldexp(values, exponent)
    return np.rint(scaled, out=scaled).astype(np.int64)
