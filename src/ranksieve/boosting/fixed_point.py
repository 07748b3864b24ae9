"""Gradients as integers whose sums are exact, so that no split of the rows over threads or machines changes a bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FixedPoint:
    """`packed` is gradient · 2^grad_exponent << count_bits | 1, `hess` is second derivative · 2^hess_exponent."""

    packed: np.ndarray
    hess: np.ndarray
    count_bits: int
    grad_exponent: int
    hess_exponent: int

    def grad_sum(self, total: np.ndarray) -> np.ndarray:
        """The gradient sum inside sums of `packed`."""
        return np.ldexp((total >> self.count_bits).astype(np.float64), -self.grad_exponent)

    def hess_sum(self, total: np.ndarray) -> np.ndarray:
        return np.ldexp(total.astype(np.float64), -self.hess_exponent)


def to_fixed_point(grad: np.ndarray, hess: np.ndarray) -> FixedPoint:
    """Scale by powers of two so that no sum overflows: gradients by their exact absolute sum, derivatives by n · max.

    The scales depend only on the largest value, an integer sum and the count: the same however the rows are split.
    """
    n = len(grad)
    count_bits = max(int(n).bit_length(), 1)
    largest = float(np.max(np.abs(grad), initial=0.0))
    grad_exponent = 0
    if largest > 0.0:
        unit = math.frexp(largest)[1]  # largest < 2^unit
        absolute = int(np.rint(np.ldexp(np.abs(grad), 30 - unit)).astype(np.int64).sum())
        # the sum of |gradient| is below (absolute + n) · 2^(unit - 30)
        grad_exponent = 61 - count_bits - (absolute + n).bit_length() - (unit - 30)
    packed = np.rint(np.ldexp(grad, grad_exponent)).astype(np.int64)
    np.left_shift(packed, count_bits, out=packed)
    packed += 1
    largest = float(np.max(hess, initial=0.0))
    hess_exponent = 61 - count_bits - math.frexp(largest)[1] if largest > 0.0 else 0
    fixed_hess = np.rint(np.ldexp(hess, hess_exponent)).astype(np.int64)
    return FixedPoint(packed, fixed_hess, count_bits, grad_exponent, hess_exponent)
