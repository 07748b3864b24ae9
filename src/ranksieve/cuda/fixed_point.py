"""The largest gradients, their sums, and the scales of fixed-point sums computed from them: `boosting.fixed_point`."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda, float64, int64

from ranksieve.cuda.device import kernel
from ranksieve.cuda.thread_blocks import MAXIMA, max_over_block, sum_over_block
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
    NOISE,
    WITH_HESS,
)
from ranksieve.kernels.rounding import LEAST_BITS, fitting_shift, packed_shift

shift_of, packed_shift_of = cuda.jit(device=True)(fitting_shift), cuda.jit(device=True)(packed_shift)


class ExtentSums(NamedTuple):
    """Views of one array: the largest values, sums, and factors; values and factors as floats and as bits."""

    largest: Any
    largest_bits: Any
    sums: Any  # sums of the gradients, of the second derivatives, and of the squares of both
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
    """The exponent of the power of two above a number; `bits` are the bits of the float."""
    return ((bits >> 52) & 0x7FF) - 1022


@cuda.jit(device=True)
def set_power(exponent, bits, place):
    """Write two factors, as bits of floats, whose product is 2^exponent."""
    bits[place], bits[place + 1] = (exponent // 2 + 1023) << 52, (exponent - exponent // 2 + 1023) << 52


@kernel
def set_factors(extent):
    """Factors that scale values to units of 2^-30 times the power of two above the largest one."""
    i = cuda.grid(1)
    if i < 2:
        set_power(30 - unit_of(extent.largest_bits[i]), extent.factor_bits, 2 * i)
        if extent.largest_bits[i] == 0:
            extent.factor_bits[2 * i] = 0


@cuda.jit(device=True)
def packed_exponent(extent, which, n_rows, room, out):
    """The exponent of packed gradients (`which` 0) or second derivatives (1), plus the unit of the largest one."""
    if extent.largest_bits[which] == 0:
        return int64(0)
    total, squares = extent.sums[which], extent.sums[which + 2]
    fitting, of_noise = shift_of(total + n_rows, room) + 30, -shift_of(total, squares)
    out[NOISE] = max(out[NOISE], of_noise - fitting)
    of_least_bits = shift_of(total + n_rows, int64(1 << LEAST_BITS)) + 30
    return packed_shift_of(n_rows, fitting, of_least_bits, of_noise)


@cuda.jit(device=True)
def set_scales(extent, numbers, float_bits, out):
    """The exponents of a tree's scales, as in `Scales.of`, and their factors; called by one thread."""
    most_grad = extent.sums[0] + numbers[N_ROWS]
    grad_unit, hess_unit = unit_of(extent.largest_bits[0]), unit_of(extent.largest_bits[1])
    out[EXPONENTS + 2] = shift_of(most_grad, numbers[EXACT_ROOM]) + 30 - grad_unit
    out[EXPONENTS + 3] = 61 - numbers[COUNT_BITS] - hess_unit
    out[EXPONENTS], out[EXPONENTS + 1], out[NOISE] = out[EXPONENTS + 2], out[EXPONENTS + 3], -64
    if numbers[WITH_HESS]:
        packed_grad = packed_exponent(extent, 0, numbers[N_ROWS], numbers[GRAD_ROOM], out) - grad_unit
        packed_hess = packed_exponent(extent, 1, numbers[N_ROWS], numbers[HESS_ROOM], out) - hess_unit
        if numbers[HESS_BITS] > 0:
            out[EXPONENTS], out[EXPONENTS + 1] = packed_grad, packed_hess
    for k in range(4):
        if extent.largest_bits[k % 2] == 0:
            out[EXPONENTS + k] = 0
        set_power(out[EXPONENTS + k], float_bits, GRAD_A + 2 * k)
    float_bits[HESS_UNIT] = max(1023 - out[EXPONENTS + 1], 1) << 52


@kernel
def absolute_sums(grad, hess, n, extent):
    """The sums of |gradient| and of second derivatives in units of the factors, each value rounded; and of squares."""
    factors = extent.factors
    grads, hesses, grad_squares, hess_squares = int64(0), int64(0), int64(0), int64(0)
    for i in range(cuda.grid(1), n[0], cuda.gridsize(1)):
        g = int64(round(abs(grad[i]) * factors[0] * factors[1]))
        h = int64(round(hess[i] * factors[2] * factors[3]))
        grads, grad_squares = grads + g, grad_squares + (g >> 15) * (g >> 15)
        hesses, hess_squares = hesses + h, hess_squares + (h >> 15) * (h >> 15)
    grads, grad_squares = sum_over_block(grads), sum_over_block(grad_squares)
    hesses, hess_squares = sum_over_block(hesses), sum_over_block(hess_squares)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(extent.sums, 0, grads)
        cuda.atomic.add(extent.sums, 1, hesses)
        cuda.atomic.add(extent.sums, 2, grad_squares)
        cuda.atomic.add(extent.sums, 3, hess_squares)


@kernel
def clear(extent):
    """Set values and sums to 0."""
    i = cuda.grid(1)
    if i < 2:
        extent.largest[i], extent.sums[i], extent.sums[i + 2] = 0.0, 0, 0
