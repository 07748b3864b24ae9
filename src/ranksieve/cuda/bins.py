"""Bins on the device, in two layouts.

In groups, `words[group, row, 8]`: the bins of 32 columns of a row are 32 bytes, which one access to memory reads.
Histograms are summed from this layout. By columns, `columns[column, row]`: neighbouring rows that go the same way in a
tree read neighbouring bytes. Trees are traversed, and rows are divided, by this layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, uint8

from ranksieve.cuda.device import SIMULATED, download, empty, kernel, n_blocks, overwrite, pin, upload

GROUP = 32  # columns of a group
WORDS = 8  # 32-bit words of a row's group
TILE = 32 if SIMULATED else 128  # rows that a block lays out
STAGED = 64 << 20  # bytes sent at a time


@dataclass(frozen=True)
class DeviceBins:
    """Bins that are on the device as a whole; `words` is None where rows are only scored."""

    words: Any  # uint32, flat
    columns: Any  # uint8, flat
    n_rows: int
    n_groups: int

    def parts(self) -> Iterator[tuple[int, int, Any]]:
        """The bins by columns: first row, number of rows, columns."""
        yield 0, self.n_rows, self.columns

    def gather(self, rows: Any, space: Any) -> None:
        """Copy the bins of some rows to a `TreeSpace`; `rows` are on the device."""
        blocks = n_blocks(2)
        gather_rows[(blocks, self.n_groups), 32 if SIMULATED else 256](
            self.words.view(np.uint64), self.n_rows, rows, space.device_n_rows, space.rows.words.view(np.uint64),
            space.room, space.numbers,
        )  # fmt: skip


@kernel
def lay_out(rows, first, n_rows, words, columns, with_words, with_columns):
    """Write rows of a matrix, which are rows `first`, `first` + 1, … of `n_rows`, to both layouts.

    Each block writes a tile of rows and a group of columns.
    """
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
    """Copy the bins of chosen rows to groups that have room for `room` rows; a thread copies 8 bytes."""
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
    return layouts * n_rows * n_groups_of(width) * GROUP


class StreamedBins:
    """Bins on the host, which are sent part by part each time they are used; the first rows can stay on the device."""

    def __init__(self, bins: np.ndarray) -> None:
        self._bins = bins
        self.n_rows, width = bins.shape
        self.n_groups = n_groups_of(width)
        self._n_kept = 0
        self._kept: DeviceBins | None = None
        self._part = min(part_rows(width), -(-self.n_rows // TILE) * TILE)
        self._columns = empty(self._part * self.n_groups * GROUP, np.uint8)
        self._staged = empty((self._part, width), np.uint8)
        self._pinned = pin(bins)  # makes copies faster

    def keep(self, n_bytes: int) -> int:
        """Keep as many rows as fit into so much memory; returns how many are sent each time."""
        n_bytes = max(n_bytes - self._part * self._bins.shape[1], 0)  # a part needs memory while it is sent
        self._n_kept = min(n_bytes // (self.n_groups * GROUP), self.n_rows)
        if self._n_kept:
            self._kept = send_bins(self._bins[: self._n_kept], words=False)
        return self.n_rows - self._n_kept

    def parts(self) -> Iterator[tuple[int, int, Any]]:
        """The bins by columns: first row, number of rows, columns."""
        if self._kept is not None:
            yield from self._kept.parts()
        for start in range(self._n_kept, self.n_rows, self._part):
            n = min(self._part, self.n_rows - start)
            staged = self._staged[:n]
            overwrite(staged, self._bins[start : start + n])
            _lay_out(staged, 0, n, None, self._columns)
            yield start, n, self._columns

    def gather(self, rows: Any, space: Any) -> None:
        """Copy the bins of some rows to a `TreeSpace`; `rows` are on the device."""
        numbers = download(rows)[: space.n_rows]
        overwrite(space.numbers[: len(numbers)], numbers)
        for start in range(0, len(numbers), self._part):
            taken = np.take(self._bins, numbers[start : start + self._part], axis=0)
            staged = self._staged[: len(taken)]
            overwrite(staged, taken)
            _lay_out(staged, start, space.room, space.rows.bins, None)


def part_rows(width: int) -> int:
    """Rows that are sent at a time."""
    return max(TILE, STAGED // max(width, 1) // TILE * TILE)


def _lay_out(rows: Any, first: int, n_rows: int, grouped: Any, by_column: Any) -> None:
    """Write rows that are on the device to one or both layouts, see `lay_out`; None: not to this one."""
    nothing = rows.reshape(-1)
    lay_out[(-(-rows.shape[0] // TILE), n_groups_of(rows.shape[1])), 32 if SIMULATED else 256](
        rows, first, n_rows, nothing if grouped is None else grouped, nothing if by_column is None else by_column,
        grouped is not None, by_column is not None,
    )  # fmt: skip


def send_bins(bins: np.ndarray, *, words: bool) -> DeviceBins:
    """The bins of a row-major matrix on the device by columns, and with `words` also in groups; sent part by part."""
    n_rows, width = bins.shape
    size, part = n_rows * n_groups_of(width) * GROUP, part_rows(width)
    grouped: Any = empty(size, np.uint8) if words else None
    by_column = empty(size, np.uint8)
    for start in range(0, n_rows, part):
        _lay_out(upload(bins[start : start + part]), start, n_rows, grouped, by_column)
    return DeviceBins(grouped.view(np.uint32) if words else None, by_column, n_rows, n_groups_of(width))
