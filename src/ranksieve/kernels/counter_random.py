"""Random numbers that depend only on a key and the number of a row or query, so each worker can draw its own."""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: the increment of splitmix64


def splitmix64(z):
    """The output function of splitmix64 (Steele, Lea and Flood 2014), a bijection; of a number or of an array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


mixed = njit(cache=True, nogil=True)(splitmix64)


@njit(cache=True, nogil=True)
def step_key(seed, step):
    """The key of a step's random numbers: steps of one seed have unrelated keys."""
    return mixed(mixed(np.uint64(seed) + GOLDEN) + GOLDEN * np.uint64(step + 1))


@njit(cache=True, nogil=True)
def uniform(key, row):
    """The random number of a row under a key, in (0, 1): the same wherever and whenever it is asked for."""
    return (np.float64(mixed(np.uint64(key) + GOLDEN * np.uint64(row + 1)) >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True, parallel=True)
def draw_per_query(sizes, counts, starts, key, first, out):
    """Draw `counts[q]` of `sizes[q]` places for each query, without repetition, ascending, into `out[starts[q]:]`.

    Selection sampling (Knuth, algorithm S): a place is taken with the probability (places still to take) / (places
    left). `first` is the number of the first query in the whole data.
    """
    for q in prange(len(sizes)):
        state = mixed(np.uint64(key) + GOLDEN * np.uint64(first + q + 1))
        left, place = counts[q], starts[q]
        for i in range(sizes[q]):
            if left == 0:
                break
            state += GOLDEN
            chance = np.float64(mixed(state) >> np.uint64(11)) * 2.0**-53
            if chance * (sizes[q] - i) < left:
                out[place] = i
                place += 1
                left -= 1
