"""`GpuScores`: scores of every document in training, on a GPU."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.grower import KnownLeaves
from ranksieve.boosting.scores import Choice
from ranksieve.boosting.tree import Tree
from ranksieve.cuda import scoring
from ranksieve.cuda.bins import DeviceBins, StreamedBins
from ranksieve.cuda.device import SIMULATED, CudaGraph, PinnedArray, download, n_blocks, upload
from ranksieve.data.lists import starts_of
from ranksieve.data.negatives import largest_rows
from ranksieve.dtypes import ROW, SCORE

BLOCKS = 16  # blocks for each multiprocessor that add a tree


class GpuScores:
    """Scores of binned documents under trees that are added one by one; each tree is added to all scores at once.

    Arrays that are passed and returned are on the host; `values` are the scores on the device.
    """

    def __init__(
        self, bins: DeviceBins | StreamedBins, start: np.ndarray, offsets: np.ndarray, max_leaves: int
    ) -> None:
        self._bins, self._offsets = bins, offsets
        self.values = upload(np.asarray(start, SCORE))
        self.n_trees = 0
        self._host: np.ndarray | None = np.array(start, SCORE)
        self._room = 0
        self._make_room(max_leaves)

    @property
    def n_docs(self) -> int:
        return len(self.values)

    def _make_room(self, n_leaves: int) -> None:
        """Allocate one buffer for a tree: number of splits, values of leaves, splits."""
        self._room = n_leaves
        self._sent = PinnedArray(2 + 2 * n_leaves + 5 * n_leaves, np.int32)
        self._tree = self._sent.device
        self._values = self._tree[2 : 2 + 2 * n_leaves].view(np.float64)
        self._splits = self._tree[2 + 2 * n_leaves :]
        self._graph = CudaGraph(self._launch)

    def restarted(self, start: float | np.ndarray) -> GpuScores:
        """Scores of the same documents before the first tree."""
        return GpuScores(self._bins, np.full(len(self.values), start, SCORE), self._offsets, self._room)

    def add(self, tree: Tree, leaves: KnownLeaves | None = None) -> None:
        """Add a tree. All documents traverse it, which is faster than to add to the rows of its leaves."""
        n_leaves = len(tree.leaf_values)
        if n_leaves > self._room:
            self._make_room(n_leaves)
        sent, first = self._sent.open(), 2 + 2 * self._room
        sent[0] = n_leaves - 1
        sent[2 : 2 + 2 * n_leaves].view(np.float64)[:] = tree.leaf_values
        sent[first : first + 5 * (n_leaves - 1)] = tree.splits.reshape(-1)
        if isinstance(self._bins, DeviceBins):
            self._graph.run()
        else:
            self._launch()
        self.n_trees += 1
        self._host = None

    def _launch(self) -> None:
        self._sent.send()
        blocks = n_blocks(BLOCKS)
        for first, n, columns in self._bins.parts():
            scoring.add_tree[blocks, 32 if SIMULATED else 256](
                columns, n, self._tree, self._splits, self._values, self.values[first : first + n]
            )

    def all(self) -> np.ndarray:
        """The scores of every document."""
        if self._host is None:
            self._host = download(self.values)
        return self._host

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some documents."""
        return self.all()[rows]

    def choose(
        self, lows: np.ndarray, highs: np.ndarray, thresholds: np.ndarray | None = None, last: Choice | None = None, *,
        labels: np.ndarray | None = None, lowest: bool = False,
    ) -> Choice:  # fmt: skip
        """See `Scores.choose`; on the host, for rules of the user."""
        values = -self.all() if lowest else self.all()
        rows = np.flatnonzero(np.ones(len(values)) if labels is None else np.asarray(labels) == 0).astype(ROW)
        offsets = np.searchsorted(rows, self._offsets)
        sizes = np.diff(offsets)
        counts, highs = np.minimum(lows, sizes), np.minimum(highs, sizes)
        if thresholds is not None:
            is_above = values[rows] >= np.repeat(thresholds, sizes)
            counts = np.clip(np.diff(np.concatenate([[0], np.cumsum(is_above)])[offsets]), counts, highs)
        return Choice(largest_rows(values, rows, offsets, counts), starts_of(counts), counts)
