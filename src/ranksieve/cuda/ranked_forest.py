"""Scoring with a forest on a GPU, by ranks. Scores are those of the CPU, bit for bit.

Feature values become bytes: the rank of a value is how many of a column's thresholds are below it, as in
`kernels.quantize`. A block holds the ranks of its documents in shared memory, each document in a bank of its own, and a
batch of trees, as many as there is room for. From a leaf, a document goes on to the next tree at once: threads of a
warp do not wait for the deepest leaf. They wait for each other at the end of a batch. So after the first batch,
documents are sorted by how many steps they took: documents with deep leaves in one tree tend to have them in others.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, float64, int32, int64, uint8, uint32

from ranksieve.cuda.bins import GROUP
from ranksieve.cuda.device import SIMULATED, Kernel, empty, kernel, most_shared, n_multiprocessors, upload
from ranksieve.cuda.sorting import OrderBySteps
from ranksieve.cuda.thread_blocks import WARP, ballot
from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.quantize import ZERO_THRESHOLD

EDGES = 256  # thresholds of a column, filled up with infinity
NODES = 4096  # nodes of a batch of trees
VALUES_BYTES, TESTS_BYTES = 8 * NODES, 4 * NODES
MOST_COLUMNS = 2048
MOST_DOCS = WARP if SIMULATED else 896  # documents of a block
LEAST_DOCS = WARP if SIMULATED else 128  # so many of a block, or a multiple
STEPS = 1 if SIMULATED else 8  # steps between two checks whether a warp has reached the end of a batch
LEAF = 0xFF000000  # the cut of a leaf in its test: no rank is larger
AT_A_TIME = 1 << 20  # documents that are scored at a time
RANK_THREADS = WARP if SIMULATED else 256


def _rank_kernel(real: Any) -> Kernel:
    """The kernel that ranks documents of type `real`."""

    def rank_documents(rows, n_docs, edges, features, zero_missing, ranks):
        """Write ranks to `ranks[group, document, column]`; each block ranks some documents in 32 columns."""
        shared = cuda.shared.array(0, real)
        t, group = cuda.threadIdx.x, cuda.blockIdx.y
        lane, n_warps = t % WARP, cuda.blockDim.x // WARP
        for i in range(t, EDGES * GROUP, cuda.blockDim.x):
            shared[i] = edges[group * EDGES * GROUP + i]
        cuda.syncthreads()
        column = group * GROUP + lane
        feature = features[column]
        for doc in range(cuda.blockIdx.x * n_warps + t // WARP, n_docs, cuda.gridDim.x * n_warps):
            value = rows[doc, feature] if feature >= 0 else real(0.0)
            rank, half = uint32(0), uint32(EDGES // 2)
            while half > 0:
                if value > shared[uint32(uint32(rank + half - uint32(1)) * uint32(GROUP) + uint32(lane))]:
                    rank = uint32(rank + half)
                half = uint32(half >> uint32(1))
            if value != value or (zero_missing[column] and abs(value) <= ZERO_THRESHOLD):
                rank = uint32(MISSING_BIN)
            ranks[(group * n_docs + doc) * GROUP + lane] = uint8(rank)

    return Kernel(rank_documents)


RANK_KERNELS = {np.dtype(np.float32): _rank_kernel(float32), np.dtype(np.float64): _rank_kernel(float64)}


@cuda.jit(device=True)
def next_node(test, word):
    """The node that a document goes to; `word` has its rank in the column of the test, see `pack_tests`."""
    shift = uint32(uint32(uint32(test >> uint32(13)) & uint32(3)) << uint32(3))
    rank = uint32(uint32(word << shift) & uint32(LEAF))
    rank = uint32(rank + uint32(uint32(test & uint32(1)) << uint32(24)))  # 255 + 1 is 0: missing goes left
    child = uint32(uint32(test >> uint32(1)) & uint32(NODES - 1))
    return uint32(child + uint32(1)) if rank > test else child


class Batches(NamedTuple):
    """Batches of trees, see `RankedTrees`, and the documents that are scored with batches first:last."""

    tests: Any
    values: Any
    starts: Any
    first: int
    last: int
    order: Any  # the numbers of the documents in the order of their threads
    is_sorted: bool  # whether `order` is used; otherwise the order is 0, 1, …


@kernel(registers=40)
def add_trees(words, n_docs, n_words, batches, scores, steps):
    """Add trees, batch by batch, to the scores of documents; a thread has one. `steps` are those of the last batch."""
    near_values = cuda.shared.array(NODES, float64)
    near_tests = cuda.shared.array(NODES, uint32)
    ranks = cuda.shared.array(0, uint32)
    t, n = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    number = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    doc = min(number, n_docs - 1)
    if batches.is_sorted:
        doc = int64(batches.order[doc])
    for word in range(n_words):
        ranks[uint32(uint32(word) * n + t)] = words[(word // 8 * n_docs + doc) * 8 + word % 8]
    total, count = scores[doc] if batches.first > 0 else 0.0, int32(0)
    for batch in range(batches.first, batches.last):
        first, size = batches.starts[batch], int32(batches.starts[batch + 1] - batches.starts[batch])
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, size, cuda.blockDim.x):
            near_tests[i], near_values[i] = batches.tests[first + i], batches.values[first + i]
        if t == 0:
            near_tests[size], near_values[size] = uint32(uint32(LEAF) + uint32(2 * size)), 0.0  # leads to itself
        cuda.syncthreads()
        node, end, count = uint32(0), uint32(size), int32(0)
        while ballot(node != end) != 0:
            count += int32(node != end)
            for _ in range(STEPS):
                test = near_tests[node]
                word = ranks[uint32(uint32(uint32(test >> uint32(15)) & uint32(511)) * n + t)]
                if test >= uint32(LEAF):
                    total += near_values[node]
                node = next_node(test, word)
    if number < n_docs:
        scores[doc], steps[doc] = total, count


class RankedTrees(NamedTuple):
    """The nodes of trees, in batches of trees; the children of a node are next to each other."""

    tests: np.ndarray
    values: np.ndarray
    batches: np.ndarray  # where the nodes of each batch begin, and the end


def pack_tests(column: np.ndarray, cut: np.ndarray, child: np.ndarray, missing_left: np.ndarray) -> np.ndarray:
    """Splits in 32 bits: cut + missing left (8), word of the column (9), 3 - its byte (2), child (12), missing left.

    A document of rank r goes right of a cut c if r > c. Where missing values go left, it does if (r + 1) % 256 > c + 1.
    """
    missing, column = missing_left.astype(np.int64), column.astype(np.int64)
    where = (column >> 2 << 2) | (3 - (column & 3))
    return ((cut + missing) << 24 | where << 13 | child << 1 | missing).astype(np.uint32)


def pack_trees(
    splits: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    leaf_values: np.ndarray,
    split_offsets: np.ndarray,
    leaf_offsets: np.ndarray,
    most_nodes: int = NODES,
) -> RankedTrees:
    """Pack trees of up to 2,047 leaves; `splits` are (column, cut, left, right, missing left).

    The root of a tree is its first node, and the k-th split has the children 1 + 2 k and 2 + 2 k. A leaf leads to the
    first node of the next tree of its batch, or to the end.
    """
    column, cut, left, right, missing_left = splits
    n_splits, n_leaves = np.diff(split_offsets), np.diff(leaf_offsets)
    sizes = n_splits + n_leaves
    first = np.cumsum(sizes) - sizes
    n_nodes, batches = int(sizes.sum()), [0]
    for start, size in zip(first.tolist(), sizes.tolist(), strict=True):
        if start + size - batches[-1] >= most_nodes:
            batches.append(start)
    batches.append(n_nodes)
    batch_of = np.searchsorted(batches[1:-1], first, side="right") if len(batches) > 2 else np.zeros(len(first), int)
    origin = np.array(batches)[batch_of]  # the first node of each tree's batch
    tree = np.repeat(np.arange(len(sizes)), n_splits)
    number = np.arange(len(column)) - split_offsets[tree]
    node_of_split, node_of_leaf = first[tree].copy(), np.repeat(first, n_leaves)
    for side, child in enumerate((left, right)):
        place, inner = first[tree] + 1 + 2 * number + side, child >= 0
        node_of_split[split_offsets[tree[inner]] + child[inner]] = place[inner]
        node_of_leaf[leaf_offsets[tree[~inner]] + ~child[~inner]] = place[~inner]
    tests, values = np.empty(n_nodes, np.uint32), np.zeros(n_nodes)
    tests[node_of_split] = pack_tests(column, cut, first[tree] + 1 + 2 * number - origin[tree], missing_left)
    following = np.repeat(first + sizes - origin, n_leaves)
    tests[node_of_leaf] = (LEAF + 2 * following).astype(np.uint32)
    values[node_of_leaf] = leaf_values
    return RankedTrees(tests, values, np.array(batches, np.int64))


class RankedForest:
    """A forest on the GPU whose splits are cuts of ranks."""

    def __init__(
        self, features: np.ndarray, zero_missing: np.ndarray, edges: dict[Any, np.ndarray], starts: np.ndarray,
        trees: RankedTrees,
    ) -> None:  # fmt: skip
        """`edges` has the thresholds for each type of documents; those of column c are `starts[c]:starts[c + 1]`."""
        self._n_words, self._n_groups = -(-len(features) // 4), max(1, -(-len(features) // GROUP))
        padded = np.full(self._n_groups * GROUP, -1, np.int32)
        padded[: len(features)] = features
        zeros = np.zeros(len(padded), np.bool_)
        zeros[: len(features)] = zero_missing
        self._features, self._zero_missing = upload(padded), upload(zeros)
        self._edges = {dtype: upload(_edge_table(values, starts, self._n_groups)) for dtype, values in edges.items()}
        self._trees = RankedTrees(*map(upload, trees))
        self._kept: tuple[Any, Any, Any] | None = None
        self._order = OrderBySteps()

    @staticmethod
    def fits(n_columns: int, most_leaves: int) -> bool:
        """Whether a forest of this size can be scored here."""
        needed = VALUES_BYTES + TESTS_BYTES + 4 * -(-n_columns // 4) * LEAST_DOCS
        return n_columns <= MOST_COLUMNS and 2 * most_leaves <= NODES and needed <= most_shared()

    def score(self, rows: Any) -> Any:
        """Scores of documents on the device, float32 or float64."""
        n_docs = rows.shape[0]
        scores = empty(n_docs, np.float64)
        ranks, steps, order = self._space(min(n_docs, AT_A_TIME))
        for start in range(0, n_docs, AT_A_TIME):
            n = min(AT_A_TIME, n_docs - start)
            threads = self._threads(n)
            shared = max(4 * self._n_words * threads, 4)
            self._rank(rows[start : start + n], ranks)
            last = len(self._trees.batches) - 1
            for first, stop in ((0, min(1, last)), (1, last)):  # documents are sorted after the first batch
                if first == 1 and stop > 1:
                    self._order.sort(steps, n, order)
                batches = Batches(*self._trees, first, stop, order, first > 0)
                if stop > first:
                    add_trees[-(-n // threads), threads, shared](
                        ranks.view(np.uint32), n, self._n_words, batches, scores[start : start + n], steps
                    )
        return scores

    def _space(self, n: int) -> tuple[Any, Any, Any]:
        """Memory for the ranks, steps and order of n documents; kept for the next call."""
        if self._kept is None or len(self._kept[1]) < n:
            self._kept = empty(self._n_groups * n * GROUP, np.uint8), empty(n, np.int32), empty(n, np.int32)
        return self._kept

    def _threads(self, n: int) -> int:
        """Documents of a block: as many as fit, the same number for each of the four schedulers of a multiprocessor."""
        room = (most_shared() - VALUES_BYTES - TESTS_BYTES) // (4 * max(self._n_words, 1))
        return max(LEAST_DOCS, min(MOST_DOCS, room // LEAST_DOCS * LEAST_DOCS, -(-n // LEAST_DOCS) * LEAST_DOCS))

    def _rank(self, rows: Any, ranks: Any) -> None:
        dtype = np.dtype(rows.dtype)
        blocks = max(1, min(16 * n_multiprocessors() // self._n_groups, math.ceil(rows.shape[0] / 8)))
        RANK_KERNELS[dtype][(blocks, self._n_groups), RANK_THREADS, EDGES * GROUP * dtype.itemsize](
            rows, rows.shape[0], self._edges[dtype], self._features, self._zero_missing, ranks
        )


def _edge_table(values: np.ndarray, starts: np.ndarray, n_groups: int) -> np.ndarray:
    """Thresholds as `table[group, number, column]`, flat; infinite after the last one of a column."""
    table = np.full((n_groups, EDGES, GROUP), np.inf, values.dtype)
    column = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    table[column // GROUP, np.arange(len(values)) - starts[column], column % GROUP] = values
    return table.reshape(-1)
