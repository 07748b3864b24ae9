"""Sorting documents by how many steps they took through trees; and where the parts of a list begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, int32

from ranksieve.cuda.device import SIMULATED, empty, kernel, n_multiprocessors
from ranksieve.cuda.thread_blocks import MOST_WARPS, add_before_in_block

STEP_BUCKETS = 64 if SIMULATED else 1024  # larger numbers of steps count as the last one
SORT_THREADS = 32 if SIMULATED else 256


@kernel
def clear(sums):
    """Set all numbers to 0."""
    for i in range(cuda.grid(1), len(sums), cuda.gridsize(1)):
        sums[i] = 0


@kernel
def start_parts(counts):
    """Replace the sizes of parts by where each part begins; one block."""
    warps = cuda.shared.array(MOST_WARPS, int32)
    per_thread, total = (len(counts) + cuda.blockDim.x - 1) // cuda.blockDim.x, int32(0)
    first = cuda.threadIdx.x * per_thread
    last = min(first + per_thread, len(counts))
    for i in range(first, last):
        total += counts[i]
    before = add_before_in_block(total, warps)
    for i in range(first, last):
        here = counts[i]
        counts[i] = before
        before += here


@kernel
def count_steps(steps, n_docs, counts):
    """How many documents took each number of steps, the largest number first."""
    here = cuda.shared.array(STEP_BUCKETS, int32)
    t = cuda.threadIdx.x
    for i in range(t, STEP_BUCKETS, cuda.blockDim.x):
        here[i] = 0
    cuda.syncthreads()
    for doc in range(cuda.grid(1), n_docs, cuda.gridsize(1)):
        cuda.atomic.add(here, STEP_BUCKETS - 1 - min(steps[doc], STEP_BUCKETS - 1), 1)
    cuda.syncthreads()
    for i in range(t, STEP_BUCKETS, cuda.blockDim.x):
        if here[i] > 0:
            cuda.atomic.add(counts, i, here[i])


@kernel
def sort_by_steps(steps, n_docs, cursors, order):
    """Sort documents by steps, the most first. Equal ones are in any order: it does not change scores."""
    here = cuda.shared.array(STEP_BUCKETS, int32)
    t, size = cuda.threadIdx.x, cuda.blockDim.x
    for i in range(t, STEP_BUCKETS, size):
        here[i] = 0
    cuda.syncthreads()
    doc, bucket, place = cuda.grid(1), 0, 0
    if doc < n_docs:
        bucket = STEP_BUCKETS - 1 - min(steps[doc], STEP_BUCKETS - 1)
        place = cuda.atomic.add(here, bucket, 1)
    cuda.syncthreads()
    for i in range(t, STEP_BUCKETS, size):
        if here[i] > 0:
            here[i] = cuda.atomic.add(cursors, i, here[i])
    cuda.syncthreads()
    if doc < n_docs:
        order[here[bucket] + place] = doc


class OrderBySteps:
    """Sorts documents by their steps."""

    def __init__(self) -> None:
        self._cursors = empty(STEP_BUCKETS, np.int32)

    def sort(self, steps: Any, n: int, order: Any) -> None:
        """The order of n documents, those with the most steps first."""
        clear[1, SORT_THREADS](self._cursors)
        count_steps[max(1, min(4 * n_multiprocessors(), n // SORT_THREADS)), SORT_THREADS](steps, n, self._cursors)
        start_parts[1, SORT_THREADS](self._cursors)
        sort_by_steps[-(-n // SORT_THREADS), SORT_THREADS](steps, n, self._cursors, order)
