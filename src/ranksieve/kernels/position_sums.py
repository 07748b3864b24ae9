"""Sums of gradients by position, as integers: they do not depend on how machines share the rows."""

import numpy as np

from ranksieve.kernels.jit import njit

EXPONENT = 30  # values are counted in units of 2^-30
LOW_BITS = 24  # a sum is high · 2^24 + low, since one integer could overflow
LARGEST = 2.0**32  # larger values count as this one
GRAD, GRAD_LOW, HESS, HESS_LOW, COUNT = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def position_sums(grad, hess, positions, out):
    """Add gradients, second derivatives and counts of each position to `out`, one row per position."""
    unit, mask = 2.0**EXPONENT, np.int64((1 << LOW_BITS) - 1)
    for i in range(len(grad)):
        p = positions[i]
        g = np.int64(np.rint(min(max(grad[i], -LARGEST), LARGEST) * unit))
        h = np.int64(np.rint(min(max(hess[i], -LARGEST), LARGEST) * unit))
        out[p, GRAD] += g >> LOW_BITS
        out[p, GRAD_LOW] += g & mask
        out[p, HESS] += h >> LOW_BITS
        out[p, HESS_LOW] += h & mask
        out[p, COUNT] += 1
