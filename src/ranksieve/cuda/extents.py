"""The largest gradients and their sums, and the scales of fixed-point sums that follow, see `boosting.fixed_point`."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda, float64, int64

from ranksieve.cuda.blocks import MAXIMA, max_over_block, sum_over_block
from ranksieve.cuda.device import kernel
from ranksieve.cuda.tree_tables import (
    COUNT_BITS,
    EXACT_ROOM,
    EXPONENTS,
    GRAD_A,
    GRAD_ROOM,
    HESS_BITS,
    HESS_ROOM,
    HESS_UNIT,
    N_ROWS,
)
from ranksieve.kernels.rounding import fitting_shift

shift_of = cuda.jit(device=True)(fitting_shift)


class Sums(NamedTuple):
    """Parts of one array: the largest values, as floats and as bits, their sums, and factors, as floats and as bits."""

    largest: Any
    largest_bits: Any
    sums: Any
    factors: Any
    factor_bits: Any


@kernel
def largest(grad, hess, n, extent):
    """The largest |gradient| and the largest second derivative."""
    maxima = cuda.shared.array(MAXIMA, float64)
    most_grad, most_hess = 0.0, 0.0
    for i in range(cuda.grid(1), n[0], cuda.gridsize(1)):
        most_grad, most_hess = max(most_grad, abs(grad[i])), max(most_hess, hess[i])
    most_grad, most_hess = max_over_block(most_grad, most_hess, maxima)
    if cuda.threadIdx.x == 0:
        cuda.atomic.max(extent.largest, 0, most_grad)
        cuda.atomic.max(extent.largest, 1, most_hess)


@cuda.jit(device=True)
def unit_of(bits):
    """The exponent of the power of two above a number, given by its bits."""
    return ((bits >> 52) & 0x7FF) - 1022


@cuda.jit(device=True)
def set_power(exponent, bits, place):
    """Two factors, as bits, whose product is a power of two."""
    bits[place], bits[place + 1] = (exponent // 2 + 1023) << 52, (exponent - exponent // 2 + 1023) << 52


@kernel
def set_factors(extent):
    """Factors that scale a value to units of 2^-30 of the largest one's power of two."""
    i = cuda.grid(1)
    if i < 2:
        set_power(30 - unit_of(extent.largest_bits[i]), extent.factor_bits, 2 * i)
        if extent.largest_bits[i] == 0:
            extent.factor_bits[2 * i] = 0


@cuda.jit(device=True)
def set_scales(extent, numbers, float_bits, out):
    """The exponents of a tree's scales, as `Scales.of` has them, and their factors; by one thread."""
    most_grad, most_hess = extent.sums[0] + numbers[N_ROWS], extent.sums[1] + numbers[N_ROWS]
    grad_unit, hess_unit = unit_of(extent.largest_bits[0]), unit_of(extent.largest_bits[1])
    out[EXPONENTS] = shift_of(most_grad, numbers[GRAD_ROOM]) + 30 - grad_unit
    out[EXPONENTS + 2] = shift_of(most_grad, numbers[EXACT_ROOM]) + 30 - grad_unit
    out[EXPONENTS + 3] = 61 - numbers[COUNT_BITS] - hess_unit
    out[EXPONENTS + 1] = out[EXPONENTS + 3]
    if numbers[HESS_BITS] > 0:
        out[EXPONENTS + 1] = shift_of(most_hess, numbers[HESS_ROOM]) + 30 - hess_unit
    for k in range(4):
        if extent.largest_bits[k % 2] == 0:
            out[EXPONENTS + k] = 0
        set_power(out[EXPONENTS + k], float_bits, GRAD_A + 2 * k)
    float_bits[HESS_UNIT] = max(1023 - out[EXPONENTS + 1], 1) << 52


@kernel
def absolute_sums(grad, hess, n, extent):
    """The sums of |gradient| and of second derivatives in units of the factors, each value rounded."""
    factors = extent.factors
    grads, hesses = int64(0), int64(0)
    for i in range(cuda.grid(1), n[0], cuda.gridsize(1)):
        grads += int64(round(abs(grad[i]) * factors[0] * factors[1]))
        hesses += int64(round(hess[i] * factors[2] * factors[3]))
    grads, hesses = sum_over_block(grads), sum_over_block(hesses)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(extent.sums, 0, grads)
        cuda.atomic.add(extent.sums, 1, hesses)


@kernel
def clear(extent):
    """Begin with zeros."""
    i = cuda.grid(1)
    if i < 2:
        extent.largest[i], extent.sums[i] = 0.0, 0
