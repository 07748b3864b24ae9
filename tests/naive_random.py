"""Random numbers by integers of Python: splitmix64 (Steele, Lea and Flood 2014)."""

from __future__ import annotations

ALL_BITS = (1 << 64) - 1


def splitmix64(seed, n):
    """The n-th output of a seed, from 1 on."""
    z = (int(seed) + n * 0x9E3779B97F4A7C15) & ALL_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL_BITS
    return z ^ (z >> 31)


def step_key(seed, step):
    """The key of a step's random numbers."""
    return splitmix64(splitmix64(seed, 1), step + 1)


def uniforms(key, rows):
    """The random number of each row under a key, between 0 and 1."""
    return [((splitmix64(key, int(row) + 1) >> 12) + 0.5) / 2**52 for row in rows]
