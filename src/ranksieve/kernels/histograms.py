"""Histograms of a leaf's rows: sums of gradients, second derivatives and counts for every bin of every feature.

A histogram is stored in groups of LANES features, and in a group bin by bin, `hist[group, plane, bin, lane]`, so that
one vector instruction handles several features, and a group, 32 KB, stays in the first-level cache while it is
summed, subtracted and searched. Plane 0 packs sums in one integer: gradient << count_bits | count, or with second
derivatives in between, see `gain.SplitRules`. Plane 1, if present, sums second derivatives on their own.
All sums are integers in fixed point: they do not depend on how threads or machines share the rows.
"""

import sys
from typing import NamedTuple

import numpy as np
from numba import uint64, uintp

from ranksieve.dtypes import MISSING_BIN
from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import prefetch
from ranksieve.kernels.parallel import run_parts

LANES = 16  # features searched together
WORD = 8  # bins that are read together, as one word; byte k, counted from the lowest, is the k-th column
WORDS = LANES // WORD  # words of a row in a group
CHUNK = 256  # rows whose bins are copied before they are summed
TILE = WORDS * CHUNK + 8  # words of the copy of a group; not a power of two, so that copies are in different cache sets
TOGETHER = 4  # rows that are prefetched while as many before them are copied
LARGE_LEAF = 32_768  # leaves of so many rows or more are summed by rows, others by columns


if sys.byteorder != "little":
    raise ImportError("ranksieve needs a little-endian processor; this one is big-endian")


class TreeRows(NamedTuple):
    """The rows that a tree is grown on."""

    bins: np.ndarray  # row by row, a column per feature
    members: np.ndarray  # the numbers of the rows; those of a leaf are next to each other
    scratch: np.ndarray  # work space of the same length
    packed: np.ndarray  # by row: gradient, second derivative where it is packed, and count 1
    hess: np.ndarray  # by row: second derivative; empty if they are packed or not used


BY_BIN, BY_SET = 1, 2  # how a tree may split on a column


class Columns(NamedTuple):
    """The features of a tree; arrays by column, padded to whole groups of LANES."""

    n_bins: np.ndarray
    allowed: np.ndarray  # how the tree may split on the column: 0 (not at all), BY_BIN or BY_SET
    signs: np.ndarray  # 1: scores must not fall where the column rises; -1: must not rise; 0: free. Empty: all are free
    borders: np.ndarray  # thread t works on the columns borders[t]:borders[t + 1]
    # the other fields are for splits by sets of categories, see `category_splits`
    smooth: float = 0.0  # added to H where categories are sorted; categories with fewer documents are left out
    set_l2: float = 0.0  # added to l2
    most: int = 0  # most categories of a set
    one_hot: int = 0  # in columns of at most so many categories, a set has one
    group: int = 0  # sets that are tried differ by at least so many documents, and leave as many outside


@njit(cache=True, nogil=True)
def widest(n_bins, lane):
    """The most bins among LANES columns."""
    most = 0
    for k in range(LANES):
        most = max(most, n_bins[lane + k])
    return most


@njit(cache=True, nogil=True)
def prefetch_rows(rows, flat_bins, start, stop, first, last):
    """Prefetch the members start:stop where they are scattered; rows in sequence are prefetched by the processor."""
    if start < stop and rows.members[stop - 1] - rows.members[start] != stop - 1 - start:
        for i in range(start, stop):
            row = np.int64(rows.members[i])
            prefetch(rows.packed, row)
            for column in range(first, last, 64):
                prefetch(flat_bins, row * rows.bins.shape[1] + column)


@njit(cache=True, nogil=True)
def groups_of(hist, first, last):
    """The groups of a histogram that have the columns first:last."""
    return hist[first // LANES : last // LANES]


@njit(cache=True, nogil=True)
def clear_columns(hist, n_bins, first):
    """Zero the groups of `hist`, which are those of the columns from `first` on."""
    for g in range(len(hist)):
        for plane in range(hist.shape[1]):
            hist[g, plane, : widest(n_bins, first + g * LANES)] = 0
            hist[g, plane, MISSING_BIN] = 0


@njit(cache=True, nogil=True)
def copy_members(rows, start, stop, first, last, tiles):
    """The bins of members start:stop in the columns first:last, group by group: LANES bytes for each member."""
    words, width = rows.bins.reshape(rows.bins.size).view(np.uint64), uintp(rows.bins.shape[1] // WORD)
    flat_bins = rows.bins.reshape(rows.bins.size)
    first_word, n_words, tile = uintp(first // WORD), uintp((last - first) // WORD), uintp(TILE)
    for i in range(start, stop):
        if (i - start) % TOGETHER == 0:
            prefetch_rows(rows, flat_bins, i + TOGETHER, min(i + 2 * TOGETHER, stop), first, last)
        source, target = uintp(rows.members[i]) * width + first_word, uintp(i - start) * uintp(WORDS)
        for word in range(uintp(0), n_words, uintp(WORDS)):
            for half in range(uintp(WORDS)):
                tiles[target + half] = words[source + word + half]
            target += tile


@njit(cache=True, nogil=True, error_model="numpy")
def add_tile(tiles, tile, values, n, flat_hist, place):
    """Add the values of n members to the LANES columns of a group, whose sums begin at `place`.

    Unsigned positions in flat arrays need no check for negative ones: half the time of `hist[g, 0, bins[row, f], k]`.
    """
    lanes, eight, mask = uintp(LANES), uint64(8), uint64(255)
    for i in range(uintp(n)):
        value = values[i]
        for half in range(uintp(WORDS)):
            word, first = tiles[tile + uintp(WORDS) * i + half], place + uintp(WORD) * half
            for k in range(uintp(WORD)):
                flat_hist[first + ((word >> (eight * k)) & mask) * lanes + k] += value


@njit(cache=True, nogil=True, error_model="numpy")
def add_members(rows, start, stop, counted, first, last, hist):
    """Add the members start:stop to the columns first:last; `hist` has the groups of these columns.

    `counted` is subtracted from each packed integer: 1 if `hist` has the counts already. Bins of CHUNK members are
    copied first, so that they can be added to one group after the other: one group fits into the first-level cache.
    """
    n_planes, plane_size, flat_hist = hist.shape[1], uintp(hist.shape[2] * LANES), hist.reshape(hist.size)
    most = min(CHUNK, stop - start)
    tiles, values = np.empty((last - first) // LANES * TILE, np.uint64), np.empty((n_planes, most), np.int64)
    for begin in range(start, stop, CHUNK):
        n = min(CHUNK, stop - begin)
        copy_members(rows, begin, begin + n, first, last, tiles)
        for i in range(n):
            values[0, i] = rows.packed[rows.members[begin + i]] - counted
        for i in range(n if n_planes == 2 else 0):
            values[1, i] = rows.hess[rows.members[begin + i]]
        place, tile = uintp(0), uintp(0)
        for _ in range((last - first) // LANES):
            for plane in range(n_planes):
                add_tile(tiles, tile, values[plane], n, flat_hist, place)
                place += plane_size
            tile += uintp(TILE)


@njit(cache=True, nogil=True, error_model="numpy")
def build_histogram(rows, start, stop, n_bins, first, last, hist):
    """Sum the members start:stop into the columns first:last; `hist` has their groups."""
    clear_columns(hist, n_bins, first)
    add_members(rows, start, stop, 0, first, last, hist)


@njit(cache=True, nogil=True)
def add_histogram(hist, other, n_bins, first, sign):
    """Add another histogram (`sign` 1), or subtract it (-1): the parent minus one child is the other child.

    Both have the groups of the columns from `first` on.
    """
    flat, flat_other = hist.reshape(hist.size), other.reshape(other.size)
    for g in range(len(hist)):
        n = widest(n_bins, first + g * LANES) * LANES
        for plane in range(hist.shape[1]):
            start = uintp((g * hist.shape[1] + plane) * hist.shape[2] * LANES)
            for k in range(start, start + uintp(n)):
                flat[k] += sign * flat_other[k]
            start += uintp(MISSING_BIN * LANES)
            for k in range(start, start + uintp(LANES)):
                flat[k] += sign * flat_other[k]


@njit(cache=True, nogil=True)
def is_summed_by_rows(columns, start, stop):
    """Whether threads sum ranges of rows, not of columns: to read half a row from memory takes as long as a row."""
    return len(columns.borders) > 2 and stop - start >= LARGE_LEAF


@njit(cache=True, nogil=True, error_model="numpy")
def sum_some_rows(first, last, rows, columns, start, stop, spare, hist):
    """`sum_by_rows` of the parts first:last of the members."""
    n_parts, width, n_bins = len(columns.borders) - 1, rows.bins.shape[1], columns.n_bins
    for part in range(first, last):
        low = start + (stop - start) * part // n_parts
        high = start + (stop - start) * (part + 1) // n_parts
        build_histogram(rows, low, high, n_bins, 0, width, hist if part == 0 else spare[part - 1])


@njit(cache=True, nogil=True)
def sum_by_rows(rows, columns, start, stop, spare, hist):
    """Sum a range of the members start:stop per thread, into `hist` and `spare`; `finish_columns` adds these up."""
    run_parts(sum_some_rows, len(columns.borders) - 1, (rows, columns, start, stop, spare, hist))


@njit(cache=True, nogil=True, error_model="numpy")
def finish_columns(rows, columns, start, stop, first, last, spare, hist):
    """The histogram of members start:stop in the columns first:last; `sum_by_rows` has run where it applies.

    `hist` has the groups of these columns.
    """
    if is_summed_by_rows(columns, start, stop):
        for other in range(len(columns.borders) - 2):
            add_histogram(hist, groups_of(spare[other], first, last), columns.n_bins, first, 1)
    else:
        build_histogram(rows, start, stop, columns.n_bins, first, last, hist)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_some_columns(first, last, rows, columns, start, stop, hist, spare, slot, parent):
    """`sum_leaf` of the parts first:last of the columns."""
    for part in range(first, last):
        low, high = columns.borders[part], columns.borders[part + 1]
        sums = groups_of(hist[slot], low, high)
        finish_columns(rows, columns, start, stop, low, high, spare, sums)
        if parent >= 0:
            add_histogram(groups_of(hist[parent], low, high), sums, columns.n_bins, low, -1)


@njit(cache=True, nogil=True)
def sum_leaf(rows, columns, start, stop, hist, spare, slot, parent):
    """Sum members start:stop into `hist[slot]`, and subtract the result from `hist[parent]` if `parent` is not -1."""
    if is_summed_by_rows(columns, start, stop):
        sum_by_rows(rows, columns, start, stop, spare, hist[slot])
    given = rows, columns, start, stop, hist, spare, slot, parent
    run_parts(sum_some_columns, len(columns.borders) - 1, given)


@njit(cache=True, nogil=True)
def copy_bins(source, target):
    """`target[:] = source`; as a slice this takes seconds to compile, as it has an error message."""
    flat_source, flat_target = source.reshape(source.size), target.reshape(target.size)
    for i in range(source.size):
        flat_target[i] = flat_source[i]


@njit(cache=True, nogil=True, error_model="numpy")
def sum_some_sparse_rows(first, last, rows, columns, counts, hist, spare):
    """`sum_sparse_rows` of the parts first:last of the rows, without adding the parts."""
    n_parts, n_rows, width = len(columns.borders) - 1, len(rows.packed), rows.bins.shape[1]
    others = TreeRows(rows.bins, rows.scratch, rows.scratch, rows.packed, rows.hess)
    for part in range(first, last):
        low, high = n_rows * part // n_parts, n_rows * (part + 1) // n_parts
        n_others = 0
        for row in range(low, high):
            rows.scratch[low + n_others] = row
            n_others += rows.packed[row] != 1
        if part == 0:
            copy_bins(counts, hist)
        else:
            clear_columns(spare[part - 1], columns.n_bins, 0)
        add_members(others, low, low + n_others, 1, 0, width, hist if part == 0 else spare[part - 1])


@njit(cache=True, nogil=True)
def add_some_spare(first, last, columns, hist, spare):
    """Add the histograms `spare` to `hist` in the parts first:last of the columns."""
    for part in range(first, last):
        low, high = columns.borders[part], columns.borders[part + 1]
        for other in range(len(columns.borders) - 2):
            sums = groups_of(hist, low, high)
            add_histogram(sums, groups_of(spare[other], low, high), columns.n_bins, low, 1)


@njit(cache=True, nogil=True)
def sum_sparse_rows(rows, columns, counts, hist, spare):
    """The histogram of all rows: `counts` plus the sums of the rows whose derivatives do not round to 0."""
    n_parts = len(columns.borders) - 1
    run_parts(sum_some_sparse_rows, n_parts, (rows, columns, counts, hist, spare))
    run_parts(add_some_spare, n_parts, (columns, hist, spare))
