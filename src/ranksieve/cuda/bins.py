"""Bins on the device, in two layouts.

In groups, `words[group, row, 8]`: the bins of 32 columns of a row are 32 bytes, one access to memory; histograms are
summed from these. By columns, `columns[column, row]`: neighbouring rows that a tree sends the same way read
neighbouring bytes; trees are walked and rows are divided on these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, uint8

from ranksieve.cuda.device import SIMULATED, empty, kernel, upload

GROUP = 32  # columns
WORDS = 8  # 32-bit words of a row's group
TILE = 32 if SIMULATED else 128  # rows laid out together
STAGED = 64 << 20  # bytes sent at a time


@dataclass(frozen=True)
class DeviceBins:
    """Bins of some rows; `columns` is None where only groups are there."""

    words: Any  # uint32, flat
    columns: Any  # uint8, flat
    n_rows: int
    n_groups: int


@kernel
def lay_out(rows, first, n_rows, words, columns, with_words, with_columns):
    """Rows of a matrix, numbers `first` and so on of `n_rows`, into both layouts. A block is a tile and a group."""
    tile = cuda.shared.array((TILE, GROUP), uint8)
    t, group = cuda.threadIdx.x, cuda.blockIdx.y
    start = cuda.blockIdx.x * TILE
    stop = min(start + TILE, rows.shape[0])
    for i in range(t, (stop - start) * GROUP, cuda.blockDim.x):
        row, column = i // GROUP, i % GROUP
        source = group * GROUP + column
        tile[row, column] = rows[start + row, source] if source < rows.shape[1] else 0
    cuda.syncthreads()
    if with_words:
        for i in range(t, (stop - start) * GROUP, cuda.blockDim.x):
            row, column = i // GROUP, i % GROUP
            words[(group * n_rows + first + start + row) * GROUP + column] = tile[row, column]
    if with_columns:
        for i in range(t, TILE * GROUP, cuda.blockDim.x):
            row, column = i % TILE, i // TILE
            if start + row < stop:
                columns[(group * GROUP + column) * n_rows + first + start + row] = tile[row, column]


@kernel
def gather_rows(words, n_rows, rows, n_chosen, out, room, numbers):
    """The groups of chosen rows, laid out for `room` rows; a thread copies 8 bytes."""
    n_groups = cuda.gridDim.y
    group, quarters = cuda.blockIdx.y, WORDS // 2
    for i in range(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, n_chosen[0] * quarters,
                   cuda.gridDim.x * cuda.blockDim.x):  # fmt: skip
        if group < n_groups:
            place, part = i // quarters, i % quarters
            if group == 0 and part == 0:
                numbers[place] = rows[place]
            out[(group * room + place) * quarters + part] = words[(group * n_rows + rows[place]) * quarters + part]


def n_groups_of(width: int) -> int:
    return -(-width // GROUP)


def bytes_needed(n_rows: int, width: int, layouts: int = 2) -> int:
    """Device memory of the bins of a matrix in so many layouts."""
    return layouts * n_rows * n_groups_of(width) * GROUP + STAGED


def send_bins(bins: np.ndarray, *, words: bool, columns: bool) -> DeviceBins:
    """The bins of a row-major matrix on the device, part by part."""
    n_rows, width = bins.shape
    n_groups = n_groups_of(width)
    size = n_rows * n_groups * GROUP
    grouped = empty(size if words else 1, np.uint8)
    by_column = empty(size if columns else 1, np.uint8)
    part = max(TILE, STAGED // max(width, 1) // TILE * TILE)
    for start in range(0, n_rows, part):
        sent = upload(bins[start : start + part])
        tiles = -(-min(part, n_rows - start) // TILE)
        lay_out[(tiles, n_groups), 32 if SIMULATED else 256](sent, start, n_rows, grouped, by_column, words, columns)
    return DeviceBins(grouped.view(np.uint32) if words else None, by_column if columns else None, n_rows, n_groups)
