"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import dividing, extents, tree_start
from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import (
    THREADS,
    CudaGraphs,
    PinnedArray,
    empty,
    n_multiprocessors,
    overwrite,
    synchronize,
    upload,
)
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.planning import plan_round
from ranksieve.cuda.sorting import clear
from ranksieve.cuda.split_search import search, search_with_hess
from ranksieve.cuda.splitting import COLUMNS
from ranksieve.cuda.tree_tables import (
    HESS_BITS,
    IS_DONE,
    MOST_AHEAD,
    MOST_TASKS,
    N_FIELDS,
    N_NODES,
    N_NUMBERS,
    N_ROUNDS,
    N_SETTINGS,
    WITH_HESS,
    FoundCuts,
    Plan,
    Rows,
    SplitColumns,
    TreeNodes,
    TreeSettings,
    Work,
)

RESIDENT = 3  # blocks of a multiprocessor that sum histograms at a time, by their shared memory
PLANNERS = THREADS  # threads that plan a round
FIRST_ROUNDS, ROUNDS = 8, 2  # launched for every tree, and then at a time


class TreeSpace:
    """Memory for the rows of a tree: up to `room` of them, their gradients, and where their bins are.

    Where the rows are some of all, `numbers` are theirs in the training set; else they are 0, 1, …
    """

    def __init__(self, room: int, words: Any, bins: Any, *, by_column: bool, numbered: bool = False) -> None:
        self.room = room
        self.numbered, self.numbers = numbered, empty(room if numbered else 1, np.int32)
        packed, hess = empty(room, np.int64), empty(room, np.int64)
        self.rows = Rows(words, bins, int(by_column), room, empty(2 * room, np.int32), packed, hess)
        self.grad, self.hess = empty(room, np.float64), empty(room, np.float64)
        self.graphs = CudaGraphs()
        self.n_rows, self.device_n_rows = -1, empty(1, np.int64)

    def take(self, n_rows: int) -> None:
        """Set how many rows there are."""
        if n_rows != self.n_rows:
            self.n_rows = n_rows
            overwrite(self.device_n_rows, np.array([n_rows]))


class SearchedNodes(NamedTuple):
    """The nodes of a tree as they come from the device, see `tree_tables.TreeNodes`."""

    numbers: np.ndarray
    totals: np.ndarray
    hess_totals: np.ndarray
    found: np.ndarray
    children: np.ndarray
    cuts: np.ndarray
    bounds: np.ndarray
    sums: np.ndarray


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
        self._features = SplitColumns(
            upload(n_bins), self._allowed, upload(signs), upload(places),
            upload(padded.reshape(-1, GROUP).max(axis=1)),
        )  # fmt: skip
        self.n_columns, self.n_signs = len(n_bins), len(signs)
        self._sent = PinnedArray(2 * N_SETTINGS, np.int64)
        numbers = self._sent.device
        bits = numbers[N_SETTINGS:]
        self._settings = TreeSettings(numbers[:N_SETTINGS], bits.view(np.float64), bits)
        self._work = self._allocate()
        self._lately = deque([FIRST_ROUNDS], maxlen=8)  # rounds of the last trees
        extent = empty(10, np.int64)
        self._extent = extents.ExtentSums(
            extent[:2].view(np.float64), extent[:2], extent[2:6], extent[6:].view(np.float64), extent[6:]
        )

    def _allocate(self) -> Work:
        """The space of a tree; what the host reads is one array."""
        most = 2 * (self._max_leaves + MOST_AHEAD) - 1
        shapes = SearchedNodes((N_NUMBERS,), *[(most,)] * 4, (most, 5), (most, 3), (most, 2))  # type: ignore
        self._result = PinnedArray(sum(map(math.prod, shapes)), np.int64)
        self._nodes, parts = _parts_of(self._result.host, shapes), _parts_of(self._result.device, shapes)

        def zeros(*shape: int, dtype: Any = np.int64) -> Any:
            return upload(np.zeros(shape, dtype))

        plan = Plan(
            numbers=parts.numbers, tasks=zeros(MOST_TASKS, N_FIELDS), cursors=zeros(MOST_TASKS, 2, dtype=np.int32),
            leaves=zeros(self._max_leaves, dtype=np.int32),
        )  # fmt: skip
        found = FoundCuts(
            gains=zeros(MOST_TASKS, 2, self._searches, dtype=np.float64), cuts=zeros(MOST_TASKS, 2, self._searches, 6)
        )
        nodes = TreeNodes(
            totals=parts.totals, hess_totals=parts.hess_totals, limits=zeros(most, 2, dtype=np.float64),
            depths=zeros(most), bounds=parts.bounds, slots=zeros(most), children=parts.children, found=parts.found,
            gains=zeros(most, dtype=np.float64), cuts=parts.cuts, sums=parts.sums,
        )  # fmt: skip
        return Work(zeros((self._max_leaves + MOST_AHEAD) * self._n_groups * CELLS), zeros(1), plan, found, nodes)

    def run(
        self, space: TreeSpace, allowed: np.ndarray, numbers: tuple[int, ...], floats: tuple[float, ...]
    ) -> SearchedNodes:
        """Divide and search the nodes of a tree, whose settings are in the order of `tree_tables`.

        There are two histograms where second derivatives have no bits in the packed sums, though splits depend on them.

        The nodes are there until the next tree. How many rounds it takes is seen afterwards: as many are launched as
        most trees took lately, and more if these were too few; rounds after the last one do nothing.
        """
        sent = self._sent.open()
        sent[: len(numbers)] = numbers
        sent[N_SETTINGS : N_SETTINGS + len(floats)].view(np.float64)[:] = floats
        if not np.array_equal(allowed, self._allowed_here):
            self._allowed_here = allowed
            overwrite(self._allowed, allowed)
        separate_hess = bool(numbers[WITH_HESS] and not numbers[HESS_BITS])
        if separate_hess and len(self._work.hess_hist) == 1:
            self._work = self._work._replace(hess_hist=empty(len(self._work.hist), np.int64))
        space.graphs.run(("start", separate_hess), lambda: self._launch_start(space, separate_hess))
        found, times, more = self._nodes.numbers, self._times_to_launch(), 2
        found[IS_DONE] = 0
        while not found[IS_DONE]:
            for _ in range(times):
                space.graphs.run(("rounds", separate_hess), lambda: self._launch_rounds(space, ROUNDS, separate_hess))
            space.graphs.run("end", lambda: self._launch_end(space))
            synchronize()
            times, more = more, 2 * more
        self._lately.append(int(found[N_ROUNDS]))
        return SearchedNodes(found, *(part[: found[N_NODES]] for part in self._nodes[1:]))

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _parts(self, space: TreeSpace) -> int:
        """Parts of the rows that histograms are summed of at a time."""
        most = min(RESIDENT * n_multiprocessors() // self._n_groups, -(-space.room // THREADS))
        return max(most, MOST_TASKS + 1)  # each task has a part

    def _times_to_launch(self) -> int:
        """How often ROUNDS rounds follow those at the start: a third of the trees lately took more."""
        usual = sorted(self._lately)[2 * len(self._lately) // 3]
        return max(0, -(-(usual - FIRST_ROUNDS) // ROUNDS))

    def _launch_start(self, space: TreeSpace, separate_hess: bool) -> None:
        """The scales, the root, and the first rounds."""
        work, settings, features, rows = self._work, self._settings, self._features, space.rows
        gradients, blocks = (space.grad, space.hess), self._blocks(space)
        extents.clear[1, 32](self._extent)
        extents.largest[blocks, THREADS](*gradients, space.device_n_rows, self._extent)
        extents.set_factors[1, 32](self._extent)
        extents.absolute_sums[blocks, THREADS](*gradients, space.device_n_rows, self._extent)
        self._sent.send()
        tree_start.reset[4 * n_multiprocessors(), THREADS](features, settings, work, rows.members, self._extent)
        tree_start.pack[blocks, THREADS](*gradients, space.numbers, space.numbered, settings, rows, work.nodes)
        tree_start.begin[1, 1](settings, work)
        if separate_hess:
            clear[4 * n_multiprocessors(), THREADS](work.hess_hist)
        for summed, hist in self._histograms(rows, separate_hess):
            tree_start.sum_root[(self._parts(space), self._n_groups), THREADS](summed, features, settings, hist)
        self._launch_search(space, 1, separate_hess)
        self._launch_rounds(space, min(FIRST_ROUNDS, max(self._max_leaves - 1, 1)), separate_hess)

    def _histograms(self, rows: Rows, separate_hess: bool) -> list[tuple[Rows, Any]]:
        """The integers of rows to sum, and the histograms that they are summed into."""
        return [(rows, self._work.hist), (rows._replace(packed=rows.hess), self._work.hess_hist)][: 1 + separate_hess]

    def _launch_search(self, space: TreeSpace, n_tasks: int, separate_hess: bool) -> None:
        """Search the sides of so many nodes at most, and plan the next round."""
        features, settings, work = self._features, self._settings, self._work
        (search_with_hess if separate_hess else search)[(self._searches, 2, n_tasks), THREADS](features, settings, work)
        plan_round[1, PLANNERS](features, settings, work, self._max_leaves, self._parts(space))

    def _launch_rounds(self, space: TreeSpace, n_rounds: int, separate_hess: bool) -> None:
        work, features, rows = self._work, self._features, space.rows
        parts, n_tasks = self._parts(space), min(MOST_TASKS, self._max_leaves)
        for _ in range(n_rounds):
            dividing.divide[self._blocks(space), THREADS](rows, work.plan)
            for summed, hist in self._histograms(rows, separate_hess):
                dividing.sum_sides[(parts, self._n_groups), THREADS](summed, features, work.plan, hist)
            self._launch_search(space, n_tasks, separate_hess)

    def _launch_end(self, space: TreeSpace) -> None:
        """The sums of the leaves, if the tree is complete; and what the host reads."""
        n_nodes = 2 * (self._max_leaves + MOST_AHEAD) - 1
        per_node = max(1, min(8 * n_multiprocessors() // self._max_leaves, -(-space.room // THREADS)))
        dividing.sum_nodes[(n_nodes, per_node), THREADS](
            self._settings, self._work.plan, self._work.nodes, space.rows.members, space.room, space.grad, space.hess
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
