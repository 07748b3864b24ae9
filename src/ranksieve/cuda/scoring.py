"""Adding trees to the scores of binned documents on a GPU, in the order of the CPU: the scores have the same bits."""

from __future__ import annotations

from numba import cuda, float64, int32, uint64

from ranksieve.cuda.device import kernel
from ranksieve.cuda.tree_tables import MOST_LEAVES

SIDE_BY_SIDE = 4  # documents of a thread, which wait for memory together


@cuda.jit(device=True)
def pack_split(splits, first, n_splits):
    """A split in two integers: column << 16 | missing left << 15 | cut, and left child << 16 | right child.

    Leaf l is child `n_splits` + l.
    """
    left, right = splits[first + 3], splits[first + 4]
    left = left if left >= 0 else n_splits + ~left
    right = right if right >= 0 else n_splits + ~right
    return (splits[first] << 16) | (splits[first + 2] << 15) | splits[first + 1], (left << 16) | right


@kernel
def add_tree(columns, n_rows, size, splits, leaf_values, scores):
    """Add a tree to the scores of documents whose bins are by columns; `size[0]` is its number of splits."""
    tests = cuda.shared.array(MOST_LEAVES, int32)
    children = cuda.shared.array(MOST_LEAVES, int32)
    values = cuda.shared.array(MOST_LEAVES, float64)
    nodes = cuda.local.array(SIDE_BY_SIDE, int32)
    t, n_splits = cuda.threadIdx.x, size[0]
    for i in range(t, n_splits, cuda.blockDim.x):
        tests[i], children[i] = pack_split(splits, 5 * i, n_splits)
    for i in range(t, n_splits + 1, cuda.blockDim.x):
        values[i] = leaf_values[i]
    cuda.syncthreads()
    step = cuda.blockDim.x
    for base in range(cuda.blockIdx.x * step * SIDE_BY_SIDE + t, n_rows, cuda.gridDim.x * step * SIDE_BY_SIDE):
        for k in range(SIDE_BY_SIDE):
            nodes[k] = 0 if base + k * step < n_rows else n_splits
        going = n_splits > 0
        while going:
            going = False
            for k in range(SIDE_BY_SIDE):
                if nodes[k] < n_splits:
                    test = tests[nodes[k]]
                    value = int32(columns[uint64(test >> 16) * uint64(n_rows) + uint64(base + k * step)])
                    left_if_missing = (test >> 15) & 1
                    right = ((value + left_if_missing) & 255) > (test & 255) + left_if_missing
                    both = children[nodes[k]]
                    nodes[k] = both & 0xFFFF if right else both >> 16
                    going |= nodes[k] < n_splits
        for k in range(SIDE_BY_SIDE):
            if base + k * step < n_rows:
                scores[base + k * step] += values[nodes[k] - n_splits]
