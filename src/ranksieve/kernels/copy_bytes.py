"""Copying bytes between arrays."""

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import load_bytes, store


@njit(cache=True, nogil=True)
def copy_bytes(source, start, n, target, place):
    """`target[place : place + n] = source[start : start + n]`, 64 bytes at a time; the last 64 overlap those before."""
    if n < 64:
        for k in range(n):
            target[place + k] = source[start + k]
        return
    for k in range(0, n - 63, 64):
        store(target, place + k, load_bytes(source, start + k))
    store(target, place + n - 64, load_bytes(source, start + n - 64))
