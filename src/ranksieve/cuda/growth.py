"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import extents, growing
from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import THREADS, Replay, download, empty, n_multiprocessors, overwrite, upload
from ranksieve.cuda.growing import N_SETTINGS, Features, Rows, Settings, Work
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.splitting import COLUMNS
from ranksieve.kernels.growing import GrowState

RESIDENT = 3  # blocks of a multiprocessor that sum histograms at a time, by their shared memory
MOST_LEAVES = 1024  # of a tree on a GPU


class TreeSpace:
    """Memory for the rows of a tree: up to `room` of them, their gradients, and where their bins are.

    Where the rows are some of all, `numbers` are theirs in the training set; else they are 0, 1, …
    """

    def __init__(self, room: int, words: Any, bins: Any, *, by_column: bool, numbered: bool = False) -> None:
        self.room = room
        self.numbered, self.numbers = numbered, empty(room if numbered else 1, np.int32)
        self.rows = Rows(words, bins, int(by_column), room, empty(2 * room, np.int32), empty(room, np.int64))
        self.grad, self.hess = empty(room, np.float64), empty(room, np.float64)
        self._replays: dict[str, Replay] = {}

    def replay(self, name: str, launches: Callable[[], None]) -> None:
        """Launch what is launched each time under this name for these rows."""
        if name not in self._replays:
            self._replays[name] = Replay(launches)
        self._replays[name].run()


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
        self._searches = self._n_groups * GROUP // COLUMNS
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
        self._extent = upload(np.zeros(8, np.int64))  # largest values, sums, factors

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
            bounds=parts["bounds"], found_gains=zeros(2, self._searches, dtype=np.float64),
            found_cuts=zeros(2, self._searches, 5), finished=zeros(1, dtype=np.int32), sums=parts["sums"],
        )  # fmt: skip
        return state, work

    def extent(self, space: TreeSpace, n_rows: Any) -> tuple[tuple[float, float], tuple[int, int]]:
        """The largest |gradient| and second derivative of the rows, and their sums, see `extents`.

        `n_rows` is on the device.
        """
        space.replay("extent", lambda: self._launch_extent(space, n_rows))
        found = download(self._extent)
        grad, hess = found[:2].view(np.float64).tolist()
        return (grad, hess), (int(found[2]), int(found[3]))

    def _launch_extent(self, space: TreeSpace, n_rows: Any) -> None:
        buffer, blocks = self._extent, self._blocks(space)
        largest, sums, factors = buffer[:2].view(np.float64), buffer[2:4], buffer[4:8]
        extents.clear[1, 32](largest, sums)
        extents.largest[blocks, THREADS](space.grad, space.hess, n_rows, largest)
        extents.set_factors[1, 32](buffer, factors)
        extents.absolute_sums[blocks, THREADS](space.grad, space.hess, n_rows, factors.view(np.float64), sums)

    def run(self, space: TreeSpace, allowed: np.ndarray, settings: TreeSettings) -> Grown:
        """Grow a tree."""
        overwrite(self._buffer, settings.packed())
        overwrite(self._allowed, allowed)
        space.replay("tree", lambda: self._launch(space))
        return self._read()

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _launch(self, space: TreeSpace) -> None:
        state, work, settings, features, rows = self._state, self._work, self._settings, self._features, space.rows
        groups, blocks = self._n_groups, self._blocks(space)
        parts = max(1, min(RESIDENT * n_multiprocessors() // groups, -(-space.room // THREADS)))
        growing.reset[4 * n_multiprocessors(), THREADS](state, features, settings, work, rows.members)
        growing.pack[blocks, THREADS](
            space.grad, space.hess, space.numbers, space.numbered, settings, rows.packed, state.totals
        )  # fmt: skip
        growing.begin[1, 1](state, settings, work)
        growing.sum_root[(parts, groups), THREADS](rows, features, settings, work.hist)
        growing.search[(self._searches, 2), THREADS](state, features, settings, work)
        for split in range(self._max_leaves - 1):
            growing.move_rows[blocks, THREADS](rows, work)
            if split < self._max_leaves - 2:
                growing.sum_side[(parts, groups), THREADS](rows, features, work)
                growing.search[(self._searches, 2), THREADS](state, features, settings, work)
        per_leaf = max(1, min(8 * n_multiprocessors() // self._max_leaves, -(-space.room // THREADS)))
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
