"""The largest gradients and their sums; the scales of fixed-point sums follow from them, see `boosting.fixed_point`."""

from __future__ import annotations

from numba import cuda, float64, int64

from ranksieve.cuda.blocks import MAXIMA, max_over_block, sum_over_block
from ranksieve.cuda.device import kernel


@kernel
def largest(grad, hess, n, out):
    """The largest |gradient| and the largest second derivative."""
    maxima = cuda.shared.array(MAXIMA, float64)
    most_grad, most_hess = 0.0, 0.0
    for i in range(cuda.grid(1), n[0], cuda.gridsize(1)):
        most_grad, most_hess = max(most_grad, abs(grad[i])), max(most_hess, hess[i])
    most_grad, most_hess = max_over_block(most_grad, most_hess, maxima)
    if cuda.threadIdx.x == 0:
        cuda.atomic.max(out, 0, most_grad)
        cuda.atomic.max(out, 1, most_hess)


@kernel
def set_factors(largest_bits, factor_bits):
    """Two factors each, as bits, whose product scales a value to units of 2^-30 of the largest one's power of two."""
    i = cuda.grid(1)
    if i < 2:
        exponent = 30 - (((largest_bits[i] >> 52) & 0x7FF) - 1022)
        half = exponent // 2
        is_zero = largest_bits[i] == 0
        factor_bits[2 * i] = 0 if is_zero else (half + 1023) << 52
        factor_bits[2 * i + 1] = 0 if is_zero else (exponent - half + 1023) << 52


@kernel
def absolute_sums(grad, hess, n, factors, out):
    """The sums of |gradient| and of second derivatives in units of the factors, each value rounded."""
    grads, hesses = int64(0), int64(0)
    for i in range(cuda.grid(1), n[0], cuda.gridsize(1)):
        grads += int64(round(abs(grad[i]) * factors[0] * factors[1]))
        hesses += int64(round(hess[i] * factors[2] * factors[3]))
    grads, hesses = sum_over_block(grads), sum_over_block(hesses)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, grads)
        cuda.atomic.add(out, 1, hesses)


@kernel
def clear(largest_values, sums):
    """Begin with zeros."""
    i = cuda.grid(1)
    if i < 2:
        largest_values[i], sums[i] = 0.0, 0
