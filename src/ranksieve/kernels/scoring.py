"""Scores of documents in columns of bytes, 512 documents at a time; `compile_trees` says how a tree is evaluated.

A block of 512 documents takes three steps: every test of the forest once, as a row of 512 bits; per tree the leaf
number, as up to 16 rows of bits, then as bytes; the leaf values, added in the order of the trees.
"""

import numpy as np

from ranksieve.kernels.compile_trees import TOGETHER, WORDS_PER_ROW, most_leaves, rows_per_tree, sets_of
from ranksieve.kernels.copy_bytes import copy_bytes
from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import (
    above,
    add_bytes,
    and_or_words,
    load_bytes,
    load_words,
    no_words,
    prefetch,
    set_where,
    splat_bytes,
    store,
    xor_words,
)
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.set_tests import make_set_tests
from ranksieve.kernels.transpose import transpose_tile

BLOCK = 64 * WORDS_PER_ROW  # documents of a block
STRIDE = BLOCK + 64  # bytes from column to column; with a power of two, all columns would be in the same cache sets
TILE = 16  # rows and columns that are transposed together
ROWS = 64  # rows whose columns are taken at a time
LINES = 4  # cache lines of the next rows that are prefetched with each tile: all lines if all columns are taken
FEW_BLOCKS = 4  # so many blocks take less time than waking other threads
NO_DOCS = np.empty(0, np.uint16)
MAX_LEAVES = 4096  # for trees with more leaves, `traverse_raw` is faster


@njit(cache=True, nogil=True)
def aligned(n_words):
    """Uninitialised words that start on a cache line: a vector load across two lines takes twice as long."""
    words = np.empty(n_words + 8, np.uint64)
    return words[(-(words.ctypes.data // 8)) % 8 :]


@njit(cache=True, nogil=True)
def make_tests(columns, n_groups, used, starts, limits, shifted, bits):
    """Write the outcome of test k for every document to row k of `bits`; columns are STRIDE bytes apart."""
    for u in range(len(used)):
        for missing_left in range(2):
            first, last = starts[2 * u + missing_left], starts[2 * u + missing_left + 1]
            if first == last:
                continue
            shift = splat_bytes(np.uint8(missing_left))
            for g in range(n_groups):
                store(shifted, 64 * g, add_bytes(load_bytes(columns, used[u] * STRIDE + 64 * g), shift))
            for k in range(np.uint64(first), np.uint64(last)):
                limit = splat_bytes(limits[k])
                for g in range(n_groups):
                    bits[np.uint64(WORDS_PER_ROW) * k + np.uint64(g)] = above(load_bytes(shifted, 64 * g), limit)


@njit(cache=True, nogil=True)
def make_all_tests(columns, n_groups, trees, shifted, bits):
    """`make_tests`, and the tests of sets of categories in the rows after those."""
    make_tests(columns, n_groups, trees.columns, trees.test_starts, trees.limits, shifted, bits)
    if len(trees.set_columns):
        make_set_tests(columns, n_groups, STRIDE, sets_of(trees), len(trees.limits), WORDS_PER_ROW, bits)


@njit(cache=True, nogil=True)
def run_lines(lines, first, last, bits, beyond):
    """Run the lines of the trees that are evaluated together, see `compile_trees`."""
    for k in range(np.uint64(4 * first), np.uint64(4 * last), np.uint64(4)):
        test, low = load_words(bits, lines[k]), load_words(beyond, lines[k + np.uint64(1)])
        high = load_words(beyond, lines[k + np.uint64(2)])
        store(beyond, lines[k + np.uint64(3)], and_or_words(low, test, high))


@njit(cache=True, nogil=True)
def row(words, place, number):
    """Row `number` of bits, counted from a place."""
    return load_words(words, place + WORDS_PER_ROW * number)


@njit(cache=True, nogil=True)
def find_leaf(beyond, base, n_leaves, n_bits, number):
    """Write the bits of the documents' leaf numbers to the rows of `number`, lowest first.

    Bit b of a leaf number is the parity of how many of beyond[2^b], beyond[2 * 2^b], … are true.
    """
    end = base + WORDS_PER_ROW * n_leaves
    odd, twos, fours, eights = no_words(), no_words(), no_words(), no_words()
    place = base
    while place < end:  # rows from n_leaves to the next multiple of eight are zero
        odd = xor_words(xor_words(odd, row(beyond, place, 1)), row(beyond, place, 3))
        odd = xor_words(xor_words(odd, row(beyond, place, 5)), row(beyond, place, 7))
        twos = xor_words(xor_words(twos, row(beyond, place, 2)), row(beyond, place, 6))
        fours = xor_words(fours, row(beyond, place, 4))
        place += 8 * WORDS_PER_ROW
    step = WORDS_PER_ROW << n_bits
    for b in range(n_bits - 1, 2, -1):
        place = base + (step >> 1)
        while place < end:
            eights = xor_words(eights, load_words(beyond, place))
            place += step
        store(number, WORDS_PER_ROW * b, eights)
        step >>= 1
    fours = xor_words(fours, eights)
    twos = xor_words(twos, fours)
    store(number, 2 * WORDS_PER_ROW, fours)
    store(number, WORDS_PER_ROW, twos)
    store(number, 0, xor_words(odd, twos))


@njit(cache=True, nogil=True)
def to_bytes(number, first_bit, last_bit, n_groups, start, leaf):
    """Bits `first_bit:last_bit` of 512 leaf numbers, given as rows of bits, as one byte each to `leaf[start:]`."""
    for g in range(n_groups):
        bytes_ = splat_bytes(np.uint8(0))
        for b in range(first_bit, last_bit):
            word = number[np.uint64(WORDS_PER_ROW) * np.uint64(b) + np.uint64(g)]
            bytes_ = set_where(bytes_, word, np.uint8(1 << (b - first_bit)))
        store(leaf, start + 64 * g, bytes_)


@njit(cache=True, nogil=True)
def add_values(values, starts, t, n_trees, n_docs, leaf, upper, wide, n_before, done, scores):
    """Add the values of trees t, t + 1, …: tree by tree for each document, so the sum has one order.

    If `done` is not empty, the score of document i has `done[i]` trees already, of `n_before` other trees and these.
    """
    if n_trees == TOGETHER and not wide and len(done) == 0:
        a, b = np.uint64(starts[t]), np.uint64(starts[t + 1])
        c, d = np.uint64(starts[t + 2]), np.uint64(starts[t + 3])
        for i in range(n_docs):
            score = scores[i] + values[a + leaf[i]]
            score += values[b + leaf[i + BLOCK]]
            score += values[c + leaf[i + 2 * BLOCK]]
            scores[i] = score + values[d + leaf[i + 3 * BLOCK]]
        return
    for k in range(n_trees):
        first = np.uint64(starts[t + k])
        for i in range(n_docs):
            place = np.uint64(leaf[i + k * BLOCK])
            if wide:
                place |= np.uint64(upper[i + k * BLOCK]) << np.uint64(8)
            is_missing = len(done) == 0 or done[i] <= n_before + t + k
            scores[i] += values[first + place] if is_missing else 0.0


@njit(cache=True, nogil=True)
def scratch(trees):
    """What a block needs to write to: (shifted column, test bits, beyond, number, leaf bytes, upper leaf bytes)."""
    room = WORDS_PER_ROW * rows_per_tree(trees.leaf_starts)
    beyond = aligned(TOGETHER * room)
    for k in range(TOGETHER):
        beyond[k * room : k * room + WORDS_PER_ROW] = ~np.uint64(0)
    return (
        aligned(BLOCK // 8).view(np.uint8),
        aligned(WORDS_PER_ROW * (len(trees.limits) + trees.set_starts[-1])),
        beyond,
        aligned(WORDS_PER_ROW * 16),
        aligned(TOGETHER * BLOCK // 8).view(np.uint8),
        aligned(TOGETHER * BLOCK // 8).view(np.uint8),
    )


@njit(cache=True, nogil=True)
def exit_leaves(levels, starts, t, n_trees, n_groups, room, wide, bits, beyond, number, leaf, upper):
    """Leaf numbers of trees t..t + n_trees - 1, whose lines were run: lower and, where `wide`, upper bytes."""
    for k in range(n_trees):
        n_bits, n_leaves = np.int64(levels[t + k, 0]), starts[t + k + 1] - starts[t + k]
        if n_bits > 0:
            for b in range(n_bits):
                store(number, WORDS_PER_ROW * b, load_words(bits, levels[t + k, 1 + b]))
        else:
            while (1 << n_bits) < n_leaves:
                n_bits += 1
            find_leaf(beyond, k * room, n_leaves, n_bits, number)
        to_bytes(number, 0, min(n_bits, 8), n_groups, k * BLOCK, leaf)
        if wide:
            to_bytes(number, 8, n_bits, n_groups, k * BLOCK, upper)


@njit(cache=True, nogil=True)
def clear_ends(starts, t, n_trees, room, beyond):
    """Clear the rows after the last leaf of each tree: no document is beyond it."""
    for k in range(n_trees):
        n_leaves = starts[t + k + 1] - starts[t + k]
        for j in range(n_leaves, max(n_leaves + 1, (n_leaves + 7) & ~7)):
            store(beyond, k * room + WORDS_PER_ROW * j, no_words())


@njit(cache=True, nogil=True)
def evaluate_together(lines, line_starts, levels, starts, t, n_groups, wide, bits, beyond, number, leaf, upper):
    """Leaf numbers of the trees from t on that are evaluated together, whose tests were made; returns how many."""
    n_trees, group = min(TOGETHER, len(levels) - t), t // TOGETHER
    room = WORDS_PER_ROW * rows_per_tree(starts)
    clear_ends(starts, t, n_trees, room, beyond)
    run_lines(lines, line_starts[group], line_starts[group + 1], bits, beyond)
    exit_leaves(levels, starts, t, n_trees, n_groups, room, wide, bits, beyond, number, leaf, upper)
    return n_trees


@njit(cache=True, nogil=True)
def add_block(columns, n_docs, trees, space, n_before, done, scores):
    """Add the values of all trees to the scores of a block of up to 512 documents.

    If `done` is not empty, the score of document i has `done[i]` trees already, of `n_before` other trees and these.
    """
    shifted, bits, beyond, number, leaf, upper = space
    # taken out of the tuple once: each access counts references, which takes as long as a tree
    lines, line_starts, levels, values, starts = (
        trees.lines, trees.line_starts, trees.levels, trees.values, trees.leaf_starts,
    )  # fmt: skip
    n_groups, wide = (n_docs + 63) // 64, most_leaves(starts) > 256
    make_all_tests(columns, n_groups, trees, shifted, bits)
    for t in range(0, len(levels), TOGETHER):
        together = evaluate_together(
            lines, line_starts, levels, starts, t, n_groups, wide, bits, beyond, number, leaf, upper
        )
        add_values(values, starts, t, together, n_docs, leaf, upper, wide, n_before, done, scores)


@njit(cache=True, nogil=True)
def take_columns(bins, start, n_docs, used, positions, rows, columns):
    """Copy the columns `used` of the documents start..start + n_docs - 1 out of row-major bins.

    ROWS rows are taken at a time; they begin at `positions`. The next rows are prefetched meanwhile, a few cache lines
    with each tile, as the processor does not prefetch tiles of 16 rows (14 instead of 20 ns a document). The last rows
    are copied to `rows`, so that no tile reaches beyond the bins.
    """
    all_rows, width = bins.reshape(bins.size), bins.shape[1]
    if width < TILE:
        for u in range(len(used)):
            for i in range(n_docs):
                columns[used[u] * STRIDE + i] = bins[start + i, used[u]]
        return
    for first in range(0, n_docs, ROWS):
        n, source, begin = min(ROWS, n_docs - first), all_rows, (start + first) * width
        line, end = begin + ROWS * width, min(begin + 2 * ROWS * width, bins.size)  # cache lines of the next rows
        if n < ROWS:
            copy_bytes(all_rows, begin, n * width, rows, 0)
            source, begin = rows, 0
        tile = -1
        for u in range(len(used)):
            if used[u] // TILE != tile:
                tile = used[u] // TILE
                feature = min(TILE * tile, width - TILE)  # the last tile overlaps the one before
                for i in range(0, n, TILE):
                    for _ in range(LINES):
                        if line < end:
                            prefetch(all_rows, line)
                        line += 64
                    transpose_tile(source, positions, i, begin + feature, columns, feature * STRIDE + first + i, STRIDE)
        for place in range(line, end, 64):
            prefetch(all_rows, place)


@njit(cache=True, nogil=True)
def take_tested(bins, start, n_docs, trees, positions, rows, columns):
    """`take_columns` of the features that the trees test."""
    take_columns(bins, start, n_docs, trees.columns, positions, rows, columns)
    if len(trees.set_columns):
        take_columns(bins, start, n_docs, trees.set_columns, positions, rows, columns)


@njit(cache=True, nogil=True)
def column_scratch(width):
    """What `take_tested` needs: the positions of ROWS rows, room for these, and room for columns."""
    rows, columns = aligned(ROWS * width // 8).view(np.uint8), aligned(width * STRIDE // 8).view(np.uint8)
    positions = np.empty(ROWS, np.int64)
    for i in range(ROWS):
        positions[i] = i * width
    return positions, rows, columns


@njit(cache=True, nogil=True)
def add_blocks_binned(first, last, bins, trees, n_before, done, scores):
    """Add the values of all trees to the scores of the documents in blocks first..last - 1; see `add_block`."""
    (positions, rows, columns), space = column_scratch(bins.shape[1]), scratch(trees)
    for start in range(BLOCK * first, min(BLOCK * last, len(bins)), BLOCK):
        n_docs = min(BLOCK, len(bins) - start)
        take_tested(bins, start, n_docs, trees, positions, rows, columns)
        add_block(columns, n_docs, trees, space, n_before, done[start:], scores[start:])


@njit(cache=True, nogil=True)
def add_trees_binned(bins, trees, n_before, done, scores):
    """Add the values of all trees to the scores of binned documents, tree by tree, as if each tree were traversed.

    `done[i]` is how many trees score i has already, of `n_before` other trees and these. It is empty if scores have
    just the other trees.
    """
    n_blocks = -(-len(bins) // BLOCK)
    if n_blocks <= FEW_BLOCKS:
        add_blocks_binned(0, n_blocks, bins, trees, n_before, done, scores)
    else:
        run_parts(add_blocks_binned, n_blocks, (bins, trees, n_before, done, scores))


@njit(cache=True, nogil=True)
def add_some_ranked(first, last, ranked, n_docs, trees, scores):
    """`add_ranked` of the blocks first:last."""
    space, done = scratch(trees), np.empty(0, np.uint16)
    for block in range(first, last):
        start = block * BLOCK
        add_block(ranked[block], min(BLOCK, n_docs - start), trees, space, 0, done, scores[start:])


@njit(cache=True, nogil=True)
def add_ranked(ranked, n_docs, trees, scores):
    """Add the values of all trees to the scores of documents; `ranked[b]` has the ranks of block b by columns."""
    run_parts(add_some_ranked, len(ranked), (ranked, n_docs, trees, scores))
