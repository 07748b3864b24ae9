"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import dividing, extents, tree_start
from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import THREADS, Mail, Replays, empty, n_multiprocessors, overwrite, synchronize, upload
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.planning import plan_round
from ranksieve.cuda.searching import search
from ranksieve.cuda.splitting import COLUMNS
from ranksieve.cuda.tree_tables import (
    IS_DONE,
    MOST_AHEAD,
    MOST_TASKS,
    N_FIELDS,
    N_NODES,
    N_NUMBERS,
    N_ROUNDS,
    N_SETTINGS,
    Features,
    Found,
    Nodes,
    Plan,
    Rows,
    Settings,
    Work,
)

RESIDENT = 3  # blocks of a multiprocessor that sum histograms at a time, by their shared memory
PLANNERS = min(THREADS, 256)  # threads that plan a round
FIRST_ROUNDS, MORE_ROUNDS = 12, 4  # launched for the first tree, and where a tree needs more


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


class SearchedNodes(NamedTuple):
    """The nodes of a tree as they come from the device, see `tree_tables.Nodes`."""

    numbers: np.ndarray
    totals: np.ndarray
    found: np.ndarray
    children: np.ndarray
    cuts: np.ndarray
    bounds: np.ndarray
    sums: np.ndarray


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
        self._sent = Mail(2 * N_SETTINGS, np.int64)
        numbers = self._sent.there
        self._settings = Settings(numbers[:N_SETTINGS], numbers[N_SETTINGS:].view(np.float64))
        self._work = self._allocate()
        self._lately = deque([min(max_leaves, FIRST_ROUNDS)], maxlen=8)
        self._extent = Mail(8, np.int64)  # largest values, sums, factors

    def _allocate(self) -> Work:
        """The space of a tree; what the host reads is one array."""
        most = 2 * (self._max_leaves + MOST_AHEAD) - 1
        shapes = SearchedNodes((N_NUMBERS,), (most,), (most,), (most,), (most, 5), (most, 3), (most, 2))  # type: ignore
        self._result = Mail(sum(map(math.prod, shapes)), np.int64)
        self._nodes, parts = _parts_of(self._result.here, shapes), _parts_of(self._result.there, shapes)

        def zeros(*shape: int, dtype: Any = np.int64) -> Any:
            return upload(np.zeros(shape, dtype))

        plan = Plan(
            numbers=parts.numbers, tasks=zeros(MOST_TASKS, N_FIELDS), cursors=zeros(MOST_TASKS, 2, dtype=np.int32),
            leaves=zeros(self._max_leaves, dtype=np.int32),
        )  # fmt: skip
        found = Found(
            gains=zeros(MOST_TASKS, 2, self._searches, dtype=np.float64), cuts=zeros(MOST_TASKS, 2, self._searches, 5)
        )
        nodes = Nodes(
            totals=parts.totals, hess_totals=zeros(most), limits=zeros(most, 2, dtype=np.float64), depths=zeros(most),
            bounds=parts.bounds, slots=zeros(most), children=parts.children, found=parts.found,
            gains=zeros(most, dtype=np.float64), cuts=parts.cuts, sums=parts.sums,
        )  # fmt: skip
        return Work(zeros((self._max_leaves + MOST_AHEAD) * self._n_groups * CELLS), plan, found, nodes)

    def extent(self, space: TreeSpace) -> tuple[tuple[float, float], tuple[int, int]]:
        """The largest |gradient| and second derivative of the rows, and their sums, see `extents`."""
        space.replays.run("extent", lambda: self._launch_extent(space))
        synchronize()
        found = self._extent.here
        grad, hess = found[:2].view(np.float64).tolist()
        return (grad, hess), (int(found[2]), int(found[3]))

    def _launch_extent(self, space: TreeSpace) -> None:
        buffer, blocks, n_rows = self._extent.there, self._blocks(space), space.n_rows_there
        largest, sums, factors = buffer[:2].view(np.float64), buffer[2:4], buffer[4:8]
        extents.clear[1, 32](largest, sums)
        extents.largest[blocks, THREADS](space.grad, space.hess, n_rows, largest)
        extents.set_factors[1, 32](buffer, factors)
        extents.absolute_sums[blocks, THREADS](space.grad, space.hess, n_rows, factors.view(np.float64), sums)
        self._extent.receive()

    def run(self, space: TreeSpace, allowed: np.ndarray, settings: TreeSettings) -> SearchedNodes:
        """Divide and search the nodes of a tree; they are there until the next tree.

        How many rounds that takes is seen afterwards: as many are launched as trees took lately.
        """
        self._sent.open()[:] = settings.packed()
        if not np.array_equal(allowed, self._allowed_here):
            self._allowed_here = allowed
            overwrite(self._allowed, allowed)
        n_rounds = min(_rounded_up(max(self._lately)), max(self._max_leaves - 1, 1))
        space.replays.run(f"tree of {n_rounds} rounds", lambda: self._launch_tree(space, n_rounds))
        synchronize()
        numbers = self._nodes.numbers
        while not numbers[IS_DONE]:
            space.replays.run("more rounds", lambda: self._launch_rounds(space, MORE_ROUNDS))
            synchronize()
        self._lately.append(int(numbers[N_ROUNDS]))
        return SearchedNodes(numbers, *(part[: numbers[N_NODES]] for part in self._nodes[1:]))

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _parts(self, space: TreeSpace) -> int:
        """Parts of the rows that histograms are summed of at a time."""
        most = min(RESIDENT * n_multiprocessors() // self._n_groups, -(-space.room // THREADS))
        return max(most, MOST_TASKS + 1)  # each task has a part

    def _launch_tree(self, space: TreeSpace, n_rounds: int) -> None:
        work, settings, features, rows = self._work, self._settings, self._features, space.rows
        self._sent.send()
        tree_start.reset[4 * n_multiprocessors(), THREADS](features, settings, work, rows.members)
        tree_start.pack[self._blocks(space), THREADS](
            space.grad, space.hess, space.numbers, space.numbered, settings, rows.packed, work.nodes.totals
        )  # fmt: skip
        tree_start.begin[1, 1](settings, work)
        tree_start.sum_root[(self._parts(space), self._n_groups), THREADS](rows, features, settings, work.hist)
        self._launch_search(space, 1)
        self._launch_rounds(space, n_rounds)

    def _launch_search(self, space: TreeSpace, n_tasks: int) -> None:
        """Search the sides of so many nodes at most, and plan the next round."""
        features, settings, work = self._features, self._settings, self._work
        search[(self._searches, 2, n_tasks), THREADS](features, settings, work)
        plan_round[1, PLANNERS](features, settings, work, self._max_leaves, self._parts(space))

    def _launch_rounds(self, space: TreeSpace, n_rounds: int) -> None:
        """Rounds, and the sums of the leaves if the tree is complete then; rounds after that do nothing."""
        work, settings, features, rows = self._work, self._settings, self._features, space.rows
        parts, n_tasks = self._parts(space), min(MOST_TASKS, self._max_leaves)
        for _ in range(n_rounds):
            dividing.divide[self._blocks(space), THREADS](rows, work.plan)
            dividing.sum_sides[(parts, self._n_groups), THREADS](rows, features, work.plan, work.hist)
            self._launch_search(space, n_tasks)
        n_nodes = 2 * (self._max_leaves + MOST_AHEAD) - 1
        per_node = max(1, min(8 * n_multiprocessors() // self._max_leaves, -(-space.room // THREADS)))
        dividing.sum_nodes[(n_nodes, per_node), THREADS](
            settings, work.plan, work.nodes, rows.members, space.room, space.grad, space.hess
        )
        self._result.receive()


def _parts_of(flat: Any, shapes: SearchedNodes) -> SearchedNodes:
    """The arrays, in one array of 64-bit numbers."""
    parts, start = [], 0
    for name, shape in zip(shapes._fields, shapes, strict=True):
        part = flat[start : start + math.prod(shape)]
        part = part.view(np.float64) if name == "found" else part
        parts.append(part.reshape(shape) if len(shape) > 1 else part)
        start += math.prod(shape)
    return SearchedNodes(*parts)


def _rounded_up(n_rounds: int) -> int:
    """One of few numbers of rounds: each is recorded on its own."""
    step = max(2, n_rounds // 8)
    return -(-n_rounds // step) * step
