"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import dividing, extents, tree_start
from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import THREADS, Replays, download, empty, n_multiprocessors, overwrite, upload
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.searching import search
from ranksieve.cuda.splitting import COLUMNS
from ranksieve.cuda.tree_tables import (
    IS_DONE,
    MOST_TASKS,
    N_FIELDS,
    N_NUMBERS,
    N_ROUNDS,
    N_SETTINGS,
    SPARE_SLOTS,
    Features,
    Found,
    Leaves,
    Plan,
    Rows,
    Settings,
    Work,
)
from ranksieve.kernels.growing import GrowState

RESIDENT = 3  # blocks of a multiprocessor that sum histograms at a time, by their shared memory
MOST_LEAVES = 1024  # of a tree on a GPU
FIRST_ROUNDS, MORE_ROUNDS = 24, 8  # launched for the first tree, and where a tree needs more


class TreeSpace:
    """Memory for the rows of a tree: up to `room` of them, their gradients, and where their bins are.

    Where the rows are some of all, `numbers` are theirs in the training set; else they are 0, 1, …
    """

    def __init__(self, room: int, words: Any, bins: Any, *, by_column: bool, numbered: bool = False) -> None:
        self.room = room
        self.numbered, self.numbers = numbered, empty(room if numbered else 1, np.int32)
        self.rows = Rows(words, bins, int(by_column), room, empty(2 * room, np.int32), empty(room, np.int64))
        self.grad, self.hess = empty(room, np.float64), empty(room, np.float64)
        self.replays = Replays()
        self.n_rows, self.n_rows_there = -1, empty(1, np.int64)

    def take(self, n_rows: int) -> None:
        """Set how many rows there are."""
        if n_rows != self.n_rows:
            self.n_rows = n_rows
            overwrite(self.n_rows_there, np.array([n_rows]))


class Grown(NamedTuple):
    """A tree as it comes from the device."""

    n_rounds: int
    is_done: bool  # or more rounds are needed
    splits: np.ndarray
    gains: np.ndarray
    limits: np.ndarray
    sums: np.ndarray
    bounds: np.ndarray  # start, stop, buffer


@dataclass(frozen=True)
class TreeSettings:
    """The numbers of a tree, in the order of `tree_tables`."""

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
        self._allowed_here = np.zeros(len(n_bins), np.bool_)
        self._allowed = upload(self._allowed_here)
        self._features = Features(
            upload(n_bins), self._allowed, upload(signs), upload(places),
            upload(padded.reshape(-1, GROUP).max(axis=1)),
        )  # fmt: skip
        self.n_columns, self.n_signs = len(n_bins), len(signs)
        buffer = upload(np.zeros(2 * N_SETTINGS, np.int64))
        self._buffer = buffer
        self._settings = Settings(buffer[:N_SETTINGS], buffer[N_SETTINGS:].view(np.float64))
        self._state, self._work = self._allocate()
        self._lately = deque([min(max_leaves, FIRST_ROUNDS)], maxlen=8)
        self._extent = upload(np.zeros(8, np.int64))  # largest values, sums, factors

    def _allocate(self) -> tuple[GrowState, Work]:
        """The space of a tree; what the host reads is one array."""
        most, groups = self._max_leaves, self._n_groups
        shapes = {"numbers": (N_NUMBERS,), "n_leaves": (1,), "splits": (most, 6), "gains": (most,), "limits": (most, 2),
                  "sums": (most, 2), "bounds": (most, 3)}  # fmt: skip
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
        plan = Plan(
            numbers=parts["numbers"], tasks=zeros(MOST_TASKS, N_FIELDS), cursors=zeros(MOST_TASKS, 2, dtype=np.int32),
            finished=zeros(1, dtype=np.int32),
        )  # fmt: skip
        found = Found(
            gains=zeros(MOST_TASKS, 2, self._searches, dtype=np.float64), cuts=zeros(MOST_TASKS, 2, self._searches, 5)
        )
        leaves = Leaves(
            bounds=parts["bounds"], slots=zeros(most), sums=parts["sums"], is_ahead=zeros(most, dtype=np.bool_),
            borders=zeros(most), ranks=zeros(most), side_slots=zeros(most, 2),
            side_gains=zeros(most, 2, dtype=np.float64), side_cuts=zeros(most, 2, 5),
        )  # fmt: skip
        return state, Work(zeros((most + SPARE_SLOTS) * groups * CELLS), plan, found, leaves)

    def extent(self, space: TreeSpace) -> tuple[tuple[float, float], tuple[int, int]]:
        """The largest |gradient| and second derivative of the rows, and their sums, see `extents`."""
        space.replays.run("extent", lambda: self._launch_extent(space))
        found = download(self._extent)
        grad, hess = found[:2].view(np.float64).tolist()
        return (grad, hess), (int(found[2]), int(found[3]))

    def _launch_extent(self, space: TreeSpace) -> None:
        buffer, blocks, n_rows = self._extent, self._blocks(space), space.n_rows_there
        largest, sums, factors = buffer[:2].view(np.float64), buffer[2:4], buffer[4:8]
        extents.clear[1, 32](largest, sums)
        extents.largest[blocks, THREADS](space.grad, space.hess, n_rows, largest)
        extents.set_factors[1, 32](buffer, factors)
        extents.absolute_sums[blocks, THREADS](space.grad, space.hess, n_rows, factors.view(np.float64), sums)

    def run(self, space: TreeSpace, allowed: np.ndarray, settings: TreeSettings) -> Grown:
        """Grow a tree. How many rounds it takes is seen afterwards: as many are launched as trees took lately."""
        overwrite(self._buffer, settings.packed())
        if not np.array_equal(allowed, self._allowed_here):
            self._allowed_here = allowed
            overwrite(self._allowed, allowed)
        n_rounds = min(_rounded_up(max(self._lately)), max(self._max_leaves - 1, 1))
        space.replays.run(f"tree of {n_rounds} rounds", lambda: self._launch_tree(space, n_rounds))
        grown = self._read()
        while not grown.is_done:
            space.replays.run("more rounds", lambda: self._launch_rounds(space, MORE_ROUNDS))
            grown = self._read()
        self._lately.append(grown.n_rounds)
        return grown

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _parts(self, space: TreeSpace) -> int:
        """Parts of the rows that histograms are summed of at a time."""
        return max(1, min(RESIDENT * n_multiprocessors() // self._n_groups, -(-space.room // THREADS)))

    def _launch_tree(self, space: TreeSpace, n_rounds: int) -> None:
        state, work, settings, features, rows = self._state, self._work, self._settings, self._features, space.rows
        tree_start.reset[4 * n_multiprocessors(), THREADS](state, features, settings, work, rows.members)
        tree_start.pack[self._blocks(space), THREADS](
            space.grad, space.hess, space.numbers, space.numbered, settings, rows.packed, state.totals
        )  # fmt: skip
        tree_start.begin[1, 1](state, settings, work)
        tree_start.sum_root[(self._parts(space), self._n_groups), THREADS](rows, features, settings, work.hist)
        search[(self._searches, 2, 1), THREADS](state, features, settings, work, self._parts(space))
        self._launch_rounds(space, n_rounds)

    def _launch_rounds(self, space: TreeSpace, n_rounds: int) -> None:
        """Rounds, and the sums of the leaves if the tree is complete then; rounds after that do nothing."""
        state, work, settings, features, rows = self._state, self._work, self._settings, self._features, space.rows
        parts, n_tasks = self._parts(space), min(MOST_TASKS, self._max_leaves)
        for _ in range(n_rounds):
            dividing.divide[self._blocks(space), THREADS](rows, work.plan)
            dividing.sum_sides[(parts, self._n_groups), THREADS](rows, features, work.plan, work.hist)
            search[(self._searches, 2, n_tasks), THREADS](state, features, settings, work, parts)
        per_leaf = max(1, min(8 * n_multiprocessors() // self._max_leaves, -(-space.room // THREADS)))
        dividing.sum_leaves[(self._max_leaves, per_leaf), THREADS](
            state, settings, work.plan, work.leaves, rows.members, space.room, space.grad, space.hess
        )

    def _read(self) -> Grown:
        """The tree on the host."""
        flat, start, parts = download(self._result), 0, {}
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            part = flat[start : start + size].reshape(shape)
            parts[name] = part.view(np.float64) if name in ("gains", "limits") else part
            start += size
        n, numbers = int(parts["n_leaves"][0]), parts["numbers"]
        return Grown(
            int(numbers[N_ROUNDS]), bool(numbers[IS_DONE]), parts["splits"][: n - 1], parts["gains"][: n - 1],
            parts["limits"][:n], parts["sums"][:n], parts["bounds"][:n],
        )  # fmt: skip


def _rounded_up(n_rounds: int) -> int:
    """One of few numbers of rounds: each is recorded on its own."""
    step = max(4, n_rounds // 8)
    return -(-n_rounds // step) * step
