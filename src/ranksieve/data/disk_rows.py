"""`DiskRows`: rows of a bin file, some of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from ranksieve.data.bin_file import BinFile
from ranksieve.dtypes import BIN, ROW
from ranksieve.kernels.lazy_scores import ABSENT, REQUESTED
from ranksieve.kernels.traverse_binned import RowBins

WHOLE_SHARE = 0.25  # rows that cost more than this share of the whole file are read with the whole file
WHOLE_BYTES = 26  # of a document more than usual, while a tree is grown on all of them: gradients
WANTED = -3  # slots of rows that the next pass over the file brings into memory
PART_ROWS = 1 << 18  # slots that are worked on at a time
SPARE_SHARE = 0.125  # of the memory for rows, which stays free for rows that are needed before the file is read again


class DiskRows:
    """The bins of a data set in a file: row r is at `slots[r]` of a matrix in memory, or not in memory.

    Memory is filled whenever the whole file is read, with the rows that are needed most, see `refill`. In between, few
    rows that are missing are read on their own.
    """

    def __init__(self, file: BinFile, room: Callable[[BinFile], int]) -> None:
        self.file, self._room = file, room
        self.slots = np.full(self.file.n_rows, ABSENT, np.int32)
        self._n_kept = 0
        self._taken = np.empty(0, ROW)  # the training rows of the last tree

    @cached_property
    def _matrix(self) -> np.ndarray:
        """Made when it is first used: then all data sets that share the memory are known."""
        return np.empty((self._room(self.file), self.file.width), BIN)

    @property
    def bins(self) -> RowBins:
        """The rows in memory, for kernels."""
        return RowBins(self._matrix, self.slots)

    def fits(self, n_rows: int) -> bool:
        """Whether so many rows can be in memory at a time."""
        return n_rows <= self.room

    @property
    def room(self) -> int:
        """How many rows can be in memory at a time, beside others that are needed now and then."""
        return int((1.0 - SPARE_SHARE) * len(self._matrix))

    def requested(self) -> np.ndarray:
        """The rows that a kernel has marked as requested."""
        found = [np.flatnonzero(slots == REQUESTED).astype(ROW) + ROW(first) for first, slots in self._parts()]
        rows = np.concatenate(found)
        self.slots[rows] = ABSENT
        return rows

    def _parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """The slots in parts, each with its first row: flags of all rows at once would take more memory."""
        for first in range(0, len(self.slots), PART_ROWS):
            yield first, self.slots[first : first + PART_ROWS]

    def load(self, rows: np.ndarray) -> bool:
        """Bring rows, ascending, into memory; False if it is better to read the whole file."""
        missing = rows[self.slots[rows] < 0]
        if not len(missing):
            return True
        too_many = self._n_kept + len(missing) > len(self._matrix)
        if too_many or self.file.cost(missing) > WHOLE_SHARE * self.file.n_bytes:
            return False
        self._keep(missing, self.file.take(missing))
        return True

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The bins of the training rows of a tree."""
        self._taken = rows
        if not self.load(rows):
            self.refill(rows)
        return np.take(self._matrix, self.slots[rows], axis=0)

    def buffer(self) -> np.ndarray:
        """Memory for other rows while a tree is grown on all; none of the rows is in memory then."""
        self.slots.fill(ABSENT)
        self._n_kept = 0
        return self._matrix[: max(len(self._matrix) - self.file.n_rows * WHOLE_BYTES // self.file.width, 1)]

    def refill(
        self,
        rows: np.ndarray,
        on_block: Callable[[int, np.ndarray], None] | None = None,
        priority: Callable[[int, int], np.ndarray] | None = None,
    ) -> None:
        """Read the whole file, and fill the memory anew.

        With `rows`, the last training rows if there is room for them, and those other rows whose `priority` is
        largest: a number for each of the rows first:last, negative infinity for rows that are not needed. Without it,
        rows that are in memory stay there if there is room for them. `on_block` gets every block with the number of its
        first row before that.
        """
        n_rows, n_near = self.file.n_rows, 0
        spare = self.room - self._mark(rows, priority is None and self._n_kept + len(rows) <= len(self._matrix))
        self._n_kept = 0
        for first, bins in self.file.blocks():
            last = first + len(bins)
            if on_block is not None:
                on_block(first, bins)
            kept = self.slots[first:last] == WANTED
            self.slots[first:last] = ABSENT
            if priority is not None:
                near = _largest(np.where(kept, -np.inf, priority(first, last)), spare * last // n_rows - n_near)
                n_near += len(near)
                kept[near] = True
            inside = np.flatnonzero(kept)
            self._keep(first + inside, bins[inside])

    def _mark(self, rows: np.ndarray, with_kept: bool) -> int:
        """Mark rows as wanted, the last training rows if there is room for them, and those in memory; their number."""
        for _, slots in self._parts():
            slots[:] = np.where(slots >= 0, WANTED, ABSENT) if with_kept else ABSENT
        if len(rows) + len(self._taken) <= self.room:
            self.slots[self._taken] = WANTED
        self.slots[rows] = WANTED
        return sum(int(np.count_nonzero(slots == WANTED)) for _, slots in self._parts())

    def _keep(self, rows: np.ndarray, bins: np.ndarray) -> None:
        end = self._n_kept + len(rows)
        self._matrix[self._n_kept : end] = bins
        self.slots[rows] = np.arange(self._n_kept, end, dtype=np.int32)
        self._n_kept = end


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """The places of the n largest values, without negative infinity."""
    n = min(max(n, 0), len(values))
    places = np.argpartition(values, len(values) - n)[len(values) - n :] if 0 < n < len(values) else np.arange(n)
    return places[values[places] > -np.inf]
