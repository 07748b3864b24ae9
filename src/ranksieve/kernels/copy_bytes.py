"""Copying bytes and rows of bytes between arrays."""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import load_bytes, prefetch, store
from ranksieve.kernels.parallel import run_parts

AHEAD = 6  # rows between the one that is copied and the one that is prefetched


@njit(cache=True, nogil=True)
def copy_bytes(source, start, n, target, place):
    """`target[place : place + n] = source[start : start + n]`, in blocks of 64 bytes; the last one overlaps."""
    if n < 64:
        for k in range(n):
            target[place + k] = source[start + k]
        return
    for k in range(0, n - 63, 64):
        store(target, place + k, load_bytes(source, start + k))
    store(target, place + n - 64, load_bytes(source, start + n - 64))


@njit(cache=True, nogil=True)
def prefetch_row(array, row, width):
    """Prefetch all cache lines of a row of a flat matrix with rows of `width` bytes."""
    for line in range(0, width, 64):
        prefetch(array, np.int64(row) * width + line)


@njit(cache=True, nogil=True)
def copy_rows(start, stop, matrix, first, rows, slots, out):
    """Copy rows[start:stop], row r to `out[slots[r]]`; the first row of `matrix` is row number `first`."""
    width, source, target = matrix.shape[1], matrix.reshape(matrix.size), out.reshape(out.size)
    for k in range(start, stop):
        if k + AHEAD < stop:
            row = rows[k + AHEAD]
            prefetch_row(source, row - first, width)
            prefetch_row(target, slots[row], width)
        row = np.int64(rows[k])
        copy_bytes(source, (row - first) * width, width, target, np.int64(slots[row]) * width)


@njit(cache=True, nogil=True)
def take_some(start, stop, matrix, rows, out):
    """`take_rows` of rows[start:stop]."""
    width, source, target = matrix.shape[1], matrix.reshape(matrix.size), out.reshape(out.size)
    for k in range(start, stop):
        if k + AHEAD < stop:
            prefetch_row(source, rows[k + AHEAD], width)
        copy_bytes(source, np.int64(rows[k]) * width, width, target, k * width)


@njit(cache=True, nogil=True)
def take_rows(matrix, rows):
    """Some rows of a matrix of bytes: same as `np.take(matrix, rows, axis=0)`, on all threads."""
    out = np.empty((len(rows), matrix.shape[1]), np.uint8)
    run_parts(take_some, len(rows), (matrix, rows, out))
    return out
