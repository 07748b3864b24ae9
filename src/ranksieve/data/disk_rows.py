"""`DiskRows`: rows of a bin file, some of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numba import get_num_threads

from ranksieve.data.bin_file import BinFile
from ranksieve.dtypes import BIN, ROW
from ranksieve.kernels.copy_bytes import copy_rows, take_rows
from ranksieve.kernels.row_slots import ABSENT, N_FREE, REQUESTED, Slots, give_slots, renew_slots
from ranksieve.kernels.traverse_binned import RowBins

WHOLE_SHARE = 0.25  # rows that cost more than this share of the whole file are read with the whole file
CHOSEN_SHARE = 0.5  # the same for rows that were just chosen: reading the whole file mostly brings no others
WHOLE_BYTES = 26  # more bytes of a document while a tree is grown on all documents: gradients
PART_ROWS = 1 << 18  # slots that are worked on at a time
SAMPLE = 64  # rows of each block that are sampled to estimate the priorities
RECENT = 8  # blocks whose samples count: queries differ
SPARE_SHARE = 0.0625  # share of the memory for rows that is kept free for rows that are needed early
COPIED_SHARE = 0.125  # largest share of the memory for rows that copies of training rows take
TAKEN_BYTES = 80  # bytes of a training row besides the copy of its bins: gradients, scores, places


class DiskRows:
    """The bins of a data set in a file: row r is at `slots[r]` of a matrix in memory, or not in memory.

    Memory is filled whenever the whole file is read, with the rows that are needed most, see `refill`. In between, few
    rows that are missing are read on their own.
    """

    def __init__(self, file: BinFile, room: Callable[[BinFile], int]) -> None:
        self.file, self._room = file, room
        self.slots = np.full(self.file.n_rows, ABSENT, np.int32)
        self._taken = np.empty(0, ROW)  # the training rows of the last tree
        self._n_copied = 0  # slots that stay unused, because the copies of training rows take their memory

    @cached_property
    def _matrix(self) -> np.ndarray:
        """Made when it is first used: then all data sets that share the memory are known."""
        return np.empty((self._room(self.file), self.file.width), BIN)

    @cached_property
    def _slots(self) -> Slots:
        return Slots(self.slots, self._matrix.view(np.int32)[:, 0], np.array([ABSENT, len(self._matrix), 0]))

    @property
    def bins(self) -> RowBins:
        """The rows in memory, for kernels."""
        return RowBins(self._matrix, self.slots)

    def fits(self, n_rows: int) -> bool:
        """Whether so many rows can be in memory at a time."""
        return n_rows <= int((1.0 - SPARE_SHARE) * len(self._matrix))

    @property
    def room(self) -> int:
        """How many rows are in memory after `refill`, beside others that are needed now and then."""
        return int((1.0 - SPARE_SHARE) * (len(self._matrix) - self._n_copied))

    def load_requested(self, n: int) -> bool:
        """`load` the n rows that a kernel has marked as requested; if False, `refill` is next."""
        if n > self._slots.state[N_FREE]:  # there may be hundreds of millions
            return False
        found = [np.flatnonzero(slots == REQUESTED).astype(ROW) + ROW(first) for first, slots in self._parts()]
        rows = np.concatenate(found)
        self.slots[rows] = ABSENT
        return self.load(rows)

    def _parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """The slots in parts, each with its first row: flags of all rows at once would take more memory."""
        for first in range(0, len(self.slots), PART_ROWS):
            yield first, self.slots[first : first + PART_ROWS]

    def load(self, rows: np.ndarray, share: float = WHOLE_SHARE) -> bool:
        """Bring rows, ascending, into memory; False if they would cost more than a share of the whole file."""
        missing = rows[self.slots[rows] < 0]
        if not len(missing):
            return True
        too_many = len(missing) > self._slots.state[N_FREE]
        if too_many or self.file.cost(missing) > share * self.file.n_bytes:
            return False
        bins = self.file.take(missing)
        give_slots(missing, self._slots)
        self._matrix[self.slots[missing]] = bins
        return True

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The bins of the training rows of a tree."""
        self._taken = rows
        if not self.load(rows):
            self.refill(rows)
        self._reserve_copy(len(rows))
        return take_rows(self._matrix, self.slots[rows])

    def _reserve_copy(self, n_rows: int) -> None:
        """Leave slots unused for a copy of so many rows and what belongs to them, if they are free."""
        needed = n_rows * (self.file.width + TAKEN_BYTES) // self.file.width
        most = min(needed, int(COPIED_SHARE * len(self._matrix)))
        more = min(most - self._n_copied, int(self._slots.state[N_FREE]))
        if more > 0:
            self._n_copied += more
            self._slots.state[N_FREE] -= more

    def _release_copy(self, n_rows: int) -> None:
        """Use the slots for copies again if so many rows need them."""
        fewer = min(self._n_copied, n_rows - (len(self._matrix) - self._n_copied))
        if fewer > 0:
            self._n_copied -= fewer
            self._slots.state[N_FREE] += fewer

    def buffer(self) -> np.ndarray:
        """Memory for other rows while a tree is grown on all; none of the rows is in memory then."""
        self._clear()
        return self._matrix[: max(len(self._matrix) - self.file.n_rows * WHOLE_BYTES // self.file.width, 1)]

    def _clear(self) -> None:
        """No row is in memory."""
        self.slots.fill(ABSENT)
        self._slots.state[:] = ABSENT, len(self._matrix) - self._n_copied, 0

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
        first row before that. Several threads call these two.
        """
        self._reserve_copy(len(rows))  # before memory is filled: what was used once stays with the process
        wanted = np.union1d(rows, self._taken) if len(rows) + len(self._taken) <= self.room else rows
        self._release_copy(len(wanted))
        if np.count_nonzero(self.slots[wanted] < 0) > self._slots.state[N_FREE]:
            self._clear()
        n_missing, n_near = int(np.count_nonzero(self.slots[wanted] < 0)), max(self.room - len(wanted), 0)
        recent: deque[np.ndarray] = deque(maxlen=RECENT)  # priorities of some rows of the last blocks

        def work(first: int, bins: np.ndarray) -> np.ndarray:
            if on_block is not None:
                on_block(first, bins)
            last = first + len(bins)
            return np.where(self.slots[first:last] >= 0, 0.0, -np.inf) if priority is None else priority(first, last)

        for first, bins, values in self.file.visit(work, get_num_threads()):
            low, high = map(int, np.searchsorted(wanted, np.array([first, first + len(bins)], wanted.dtype)))
            lowest, n = 0.0, len(bins)
            if priority is not None:
                recent.append(values[:: 1 + len(values) // SAMPLE].copy())
                lowest, n = _lowest_of_largest(np.concatenate(recent), n_near / (self.file.n_rows - first)), n_near
            values[wanted[low:high] - first] = np.inf
            new = np.empty(len(bins), ROW)
            n_new, n_wanted, n_kept = renew_slots(first, values, lowest, n, n_missing, self._slots, new)
            n_missing, n_near = n_missing - n_wanted, n_near - n_kept
            copy_rows(0, n_new, bins, first, new, self.slots, self._matrix)


def _lowest_of_largest(values: np.ndarray, share: float) -> float:
    """The lowest of a share of the values, the largest ones."""
    n = int(share * len(values))
    if n >= len(values):
        return -np.inf
    return float(np.partition(values, len(values) - n)[len(values) - n]) if n > 0 else np.inf
