"""Leaf numbers of documents, a block of 512 at a time, as in `scoring`."""

import numpy as np

from ranksieve.kernels.compile_trees import TOGETHER
from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.scoring import BLOCK, column_scratch, evaluate_together, make_all_tests, scratch, take_tested


@njit(cache=True, nogil=True)
def leaves_of_block(columns, n_docs, trees, space, out):
    """The leaf of every tree for a block of documents."""
    shifted, bits, beyond, number, leaf, upper = space
    lines, line_starts, levels, starts, leaves = (
        trees.lines, trees.line_starts, trees.levels, trees.leaf_starts, trees.leaves,
    )  # fmt: skip
    n_groups = (n_docs + 63) // 64
    make_all_tests(columns, n_groups, trees, shifted, bits)
    for t in range(0, len(levels), TOGETHER):
        together = evaluate_together(
            lines, line_starts, levels, starts, t, n_groups, True, bits, beyond, number, leaf, upper
        )
        for i in range(n_docs):
            for k in range(together):
                place = np.int64(leaf[i + k * BLOCK]) | np.int64(upper[i + k * BLOCK]) << 8
                out[i, t + k] = leaves[starts[t + k] + place]


@njit(cache=True, nogil=True)
def leaves_of_ranked_blocks(first, last, ranked, n_docs, trees, out):
    """`leaves_of_ranked` of the blocks first:last."""
    space = scratch(trees)
    for block in range(first, last):
        start = block * BLOCK
        leaves_of_block(ranked[block], min(BLOCK, n_docs - start), trees, space, out[start:])


@njit(cache=True, nogil=True)
def leaves_of_ranked(ranked, n_docs, trees, out):
    """The leaf of every tree, by its number in the forest, for documents as in `add_ranked`."""
    run_parts(leaves_of_ranked_blocks, len(ranked), (ranked, n_docs, trees, out))


@njit(cache=True, nogil=True)
def leaves_of_binned_blocks(first, last, bins, trees, out):
    """`leaves_of_binned` of the blocks first:last."""
    (positions, rows, columns), space = column_scratch(bins.shape[1]), scratch(trees)
    for start in range(BLOCK * first, min(BLOCK * last, len(bins)), BLOCK):
        n_docs = min(BLOCK, len(bins) - start)
        take_tested(bins, start, n_docs, trees, positions, rows, columns)
        leaves_of_block(columns, n_docs, trees, space, out[start:])


@njit(cache=True, nogil=True)
def leaves_of_binned(bins, trees, out):
    """The leaf of every tree, counted within the tree, for documents as rows of bins."""
    run_parts(leaves_of_binned_blocks, (len(bins) + BLOCK - 1) // BLOCK, (bins, trees, out))
