"""`Growth`: trees grown on a GPU, and the memory for it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ranksieve.cuda import dividing, fixed_point, tree_start
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

RESIDENT = 3  # blocks that sum histograms on a multiprocessor at a time; shared memory has room for no more
PLAN_THREADS = THREADS  # threads that plan a round
FIRST_ROUNDS = 8  # rounds that are launched at the start of every tree
ROUNDS = 2  # rounds that are launched at a time after those


class TreeSpace:
    """Memory for up to `room` rows of a tree: their bins and their gradients.

    If the tree is grown on some of the rows, `numbers` are their numbers in the training set. Otherwise these are 0,
    1, …, and `numbers` is not used.
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
    """The nodes of a tree, received from the device; see `tree_tables.TreeNodes`."""

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
        self._allowed_on_host = np.zeros(len(n_bins), np.bool_)
        self._allowed = upload(self._allowed_on_host)
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
        self._recent_rounds = deque([FIRST_ROUNDS], maxlen=8)  # how many rounds the last trees took
        extent = empty(10, np.int64)
        self._extent = fixed_point.ExtentSums(
            extent[:2].view(np.float64), extent[:2], extent[2:6], extent[6:].view(np.float64), extent[6:]
        )

    def _allocate(self) -> Work:
        """The space of a tree. What the host reads are views of one array."""
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
        self, space: TreeSpace, allowed: np.ndarray, numbers: Mapping[int, int], floats: Mapping[int, float]
    ) -> SearchedNodes:
        """Divide and search the nodes of a tree; `numbers` and `floats` are by their places in `TreeSettings`.

        There are two histograms if splits depend on second derivatives, and these have no bits in the packed sums.

        The result is valid until the next tree. How many rounds a tree takes is known only afterwards. As many are
        launched as most of the last trees took, and more if these were too few; rounds after the last one do nothing.
        """
        sent = self._sent.open()
        sent[list(numbers)] = list(numbers.values())
        sent[N_SETTINGS:].view(np.float64)[list(floats)] = list(floats.values())
        if not np.array_equal(allowed, self._allowed_on_host):
            self._allowed_on_host = allowed
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
        self._recent_rounds.append(int(found[N_ROUNDS]))
        return SearchedNodes(found, *(part[: found[N_NODES]] for part in self._nodes[1:]))

    def _blocks(self, space: TreeSpace) -> int:
        return max(1, min(4 * n_multiprocessors(), -(-space.room // THREADS)))

    def _parts(self, space: TreeSpace) -> int:
        """The number of parts of the rows; each is summed by one block for each group of columns."""
        most = min(RESIDENT * n_multiprocessors() // self._n_groups, -(-space.room // THREADS))
        return max(most, MOST_TASKS + 1)  # each task has a part

    def _times_to_launch(self) -> int:
        """How often ROUNDS rounds are launched after the first ones: enough for two thirds of the last trees."""
        usual = sorted(self._recent_rounds)[2 * len(self._recent_rounds) // 3]
        return max(0, -(-(usual - FIRST_ROUNDS) // ROUNDS))

    def _launch_start(self, space: TreeSpace, separate_hess: bool) -> None:
        """Launch what computes the scales and the root, and the first rounds."""
        work, settings, features, rows = self._work, self._settings, self._features, space.rows
        gradients, blocks = (space.grad, space.hess), self._blocks(space)
        fixed_point.clear[1, 32](self._extent)
        fixed_point.largest[blocks, THREADS](*gradients, space.device_n_rows, self._extent)
        fixed_point.set_factors[1, 32](self._extent)
        fixed_point.absolute_sums[blocks, THREADS](*gradients, space.device_n_rows, self._extent)
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
        """The rows whose integers are summed, and the histogram for them; two pairs with `separate_hess`."""
        return [(rows, self._work.hist), (rows._replace(packed=rows.hess), self._work.hess_hist)][: 1 + separate_hess]

    def _launch_search(self, space: TreeSpace, n_tasks: int, separate_hess: bool) -> None:
        """Launch the search of the sides of at most so many nodes, and the plan of the next round."""
        features, settings, work = self._features, self._settings, self._work
        (search_with_hess if separate_hess else search)[(self._searches, 2, n_tasks), THREADS](features, settings, work)
        plan_round[1, PLAN_THREADS](features, settings, work, self._max_leaves, self._parts(space))

    def _launch_rounds(self, space: TreeSpace, n_rounds: int, separate_hess: bool) -> None:
        work, features, rows = self._work, self._features, space.rows
        parts, n_tasks = self._parts(space), min(MOST_TASKS, self._max_leaves)
        for _ in range(n_rounds):
            dividing.divide[self._blocks(space), THREADS](rows, work.plan)
            for summed, hist in self._histograms(rows, separate_hess):
                dividing.sum_sides[(parts, self._n_groups), THREADS](summed, features, work.plan, hist)
            self._launch_search(space, n_tasks, separate_hess)

    def _launch_end(self, space: TreeSpace) -> None:
        """Launch the exact sums of the leaves, if the tree is complete, and send the result to the host."""
        n_nodes = 2 * (self._max_leaves + MOST_AHEAD) - 1
        per_node = max(1, min(8 * n_multiprocessors() // self._max_leaves, -(-space.room // THREADS)))
        dividing.sum_nodes[(n_nodes, per_node), THREADS](
            self._settings, self._work.plan, self._work.nodes, space.rows.members, space.room, space.grad, space.hess
        )
        self._result.receive()


def _parts_of(flat: Any, shapes: SearchedNodes) -> SearchedNodes:
    """Views of one array of 64-bit numbers, with these shapes."""
    parts, start = [], 0
    for name, shape in zip(shapes._fields, shapes, strict=True):
        part = flat[start : start + math.prod(shape)]
        part = part.view(np.float64) if name == "found" else part
        parts.append(part.reshape(shape) if len(shape) > 1 else part)
        start += math.prod(shape)
    return SearchedNodes(*parts)
