"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import extents, growing
from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import SIMULATED, THREADS, Replay, download, empty, n_multiprocessors, overwrite, upload
from ranksieve.cuda.growing import N_SETTINGS, Features, Rows, Settings, Work
from ranksieve.cuda.histograms import CELLS
from ranksieve.kernels.growing import GrowState

RESIDENT = 3  # blocks of a multiprocessor that sum histograms at a time, by their shared memory
SEARCH_THREADS = 32 if SIMULATED else 256
MOST_LEAVES = 1024  # of a tree on a GPU


class TreeSpace:
    """Memory for the rows of a tree: up to `room` of them, their gradients, and where their bins are."""

    def __init__(self, room: int, words: Any, bins: Any, *, by_column: bool) -> None:
        self.room = room
        self.rows = Rows(words, bins, int(by_column), room, empty(2 * room, np.int32), empty(room, np.int64))
        self.grad, self.hess = empty(room, np.float64), empty(room, np.float64)


class Grown(NamedTuple):
    """A tree as it comes from the device."""

    splits: np.ndarray
    gains: np.ndarray
    limits: np.ndarray
    sums: np.ndarray
    bounds: np.ndarray  # start, stop, buffer


@dataclass(frozen=True)
class TreeSettings:
    """The numbers of a tree, in the order of `growing`."""

    numbers: tuple[int, ...]
    floats: tuple[float, ...]

    def packed(self) -> np.ndarray:
        out = np.zeros(2 * N_SETTINGS, np.int64)
        out[: len(self.numbers)] = self.numbers
        out[N_SETTINGS : N_SETTINGS + len(self.floats)].view(np.float64)[:] = self.floats
        return out


class Growth:
    """Grows trees of up to `max_leaves` leaves on columns with these numbers of bins."""

    def __init__(self, n_bins: np.ndarray, places: np.ndarray, signs: np.ndarray, max_leaves: int) -> None:
        self._n_groups = -(-len(n_bins) // GROUP)
        self._max_leaves = max_leaves
        padded = np.ones(self._n_groups * GROUP, np.int64)
        padded[: len(n_bins)] = n_bins
        self._allowed = upload(np.zeros(len(n_bins), np.bool_))
        self._features = Features(
            upload(n_bins), self._allowed, upload(signs), upload(places),
            upload(padded.reshape(-1, GROUP).max(axis=1)),
        )  # fmt: skip
        self.n_columns, self.n_signs = len(n_bins), len(signs)
        buffer = upload(np.zeros(2 * N_SETTINGS, np.int64))
        self._buffer = buffer
        self._settings = Settings(buffer[:N_SETTINGS], buffer[N_SETTINGS:].view(np.float64))
        self._state, self._work = self._allocate()
        self.bounds = self._work.bounds
        self._replays: dict[int, Replay] = {}
        self._largest, self._sums = empty(2, np.float64), empty(2, np.int64)
        self._factors = empty(4, np.float64)

    def _allocate(self) -> tuple[GrowState, Work]:
        """The space of a tree; what the host reads is one array."""
        most, groups = self._max_leaves, self._n_groups
        shapes = {"n_leaves": (1,), "splits": (most, 6), "gains": (most,), "limits": (most, 2), "sums": (most, 2),
                  "bounds": (most, 3)}  # fmt: skip
        sizes = {name: math.prod(shape) for name, shape in shapes.items()}
        self._shapes, self._result = shapes, upload(np.zeros(sum(sizes.values()), np.int64))
        parts, start = {}, 0
        for name, size in sizes.items():
            part = self._result[start : start + size]
            part = part.view(np.float64) if name in ("gains", "limits") else part
            parts[name] = part.reshape(shapes[name]) if len(shapes[name]) > 1 else part
            start += size

        def zeros(*shape: int, dtype: Any = np.int64) -> Any:
            return upload(np.zeros(shape, dtype))

        state = GrowState(
            n_leaves=parts["n_leaves"], splits=parts["splits"], split_gains=parts["gains"], totals=zeros(most),
            hess_totals=zeros(most), limits=parts["limits"], depths=zeros(most), parents=zeros(most),
            slots=zeros(most), gains=zeros(most, dtype=np.float64), cuts=zeros(most, 5), pair=zeros(2),
            searched=zeros(2, dtype=np.bool_), found_gains=zeros(2, dtype=np.float64), found_cuts=zeros(2, 5),
        )  # fmt: skip
        work = Work(
            hist=empty(most * groups * CELLS, np.int64), task=zeros(16), cursors=zeros(2, dtype=np.int32),
            bounds=parts["bounds"], found_gains=zeros(2, groups, dtype=np.float64),
            found_cuts=zeros(2, groups, 5), finished=zeros(1, dtype=np.int32), sums=parts["sums"],
        )  # fmt: skip
        return state, work

    def largest(self, space: TreeSpace, n_rows: Any) -> tuple[float, float]:
        """The largest |gradient| and second derivative of the rows; `n_rows` is on the device."""
        extents.clear[1, 32](self._largest, self._sums)
        extents.largest[self._blocks(space), THREADS](space.grad, space.hess, n_rows, self._largest)
        grad, hess = download(self._largest).tolist()
        return grad, hess

    def sums(self, space: TreeSpace, n_rows: Any, factors: tuple[float, ...]) -> tuple[int, int]:
        """The sums of |gradient| and of second derivatives in units of these factors."""
        overwrite(self._factors, np.array(factors))
        extents.absolute_sums[self._blocks(space), THREADS](space.grad, space.hess, n_rows, self._factors, self._sums)
        grads, hesses = download(self._sums).tolist()
        return grads, hesses

    def run(self, space: TreeSpace, row_numbers: Any, allowed: np.ndarray, settings: TreeSettings) -> Grown:
        """Grow a tree; rows have these numbers in the training set, or theirs in the space where there are none."""
        overwrite(self._buffer, settings.packed())
        overwrite(self._allowed, allowed)
        if id(space) not in self._replays:
            self._replays[id(space)] = Replay(lambda: self._launch(space, row_numbers))
        self._replays[id(space)].run()
        return self._read()

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _launch(self, space: TreeSpace, row_numbers: Any) -> None:
        state, work, settings, features, rows = self._state, self._work, self._settings, self._features, space.rows
        groups, blocks = self._n_groups, self._blocks(space)
        parts = max(1, min(RESIDENT * n_multiprocessors() // groups, -(-space.room // THREADS)))
        numbered = row_numbers is not None
        growing.reset[4 * n_multiprocessors(), THREADS](state, features, settings, work, rows.members)
        growing.pack[blocks, THREADS](
            space.grad, space.hess, row_numbers if numbered else rows.members, numbered, settings, rows.packed,
            state.totals,
        )  # fmt: skip
        growing.begin[1, 1](state, settings, work)
        growing.sum_root[(parts, groups), THREADS](rows, features, settings, work.hist)
        growing.search[(groups, 2), SEARCH_THREADS](state, features, settings, work)
        for split in range(self._max_leaves - 1):
            growing.divide[(parts, groups), THREADS](rows, features, work)
            if split < self._max_leaves - 2:
                growing.search[(groups, 2), SEARCH_THREADS](state, features, settings, work)
        per_leaf = max(1, min(2 * n_multiprocessors(), -(-space.room // THREADS)))
        growing.sum_leaves[(self._max_leaves, per_leaf), THREADS](
            state, settings, work, rows.members, space.room, space.grad, space.hess
        )

    def _read(self) -> Grown:
        """The tree on the host."""
        flat, start, parts = download(self._result), 0, {}
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            part = flat[start : start + size].reshape(shape)
            parts[name] = part.view(np.float64) if name in ("gains", "limits") else part
            start += size
        n = int(parts["n_leaves"][0])
        return Grown(
            parts["splits"][: n - 1], parts["gains"][: n - 1], parts["limits"][:n], parts["sums"][:n],
            parts["bounds"][:n],
        )  # fmt: skip
