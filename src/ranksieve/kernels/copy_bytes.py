"""Copying bytes and rows of bytes between arrays."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import load_bytes, prefetch, store
from ranksieve.kernels.parallel import run_parts

AHEAD = 6  # rows that are copied later, which are asked for now


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


@njit(cache=True, nogil=True)
def take_some_rows(start, stop, matrix, rows, out):
    width, source, target = matrix.shape[1], matrix.reshape(matrix.size), out.reshape(out.size)
    for k in range(start, stop):
        for line in range(0, width if k + AHEAD < stop else 0, 64):
            prefetch(source, np.int64(rows[k + AHEAD]) * width + line)
        copy_bytes(source, np.int64(rows[k]) * width, width, target, k * width)


@njit(cache=True, nogil=True)
def take_rows(matrix, rows):
    """Some rows of a matrix of bytes: same as `np.take(matrix, rows, axis=0)`, on all threads."""
    out = np.empty((len(rows), matrix.shape[1]), np.uint8)
    run_parts(take_some_rows, len(rows), (matrix, rows, out))
    return out
