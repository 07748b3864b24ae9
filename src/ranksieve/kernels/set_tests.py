"""Tests of sets of categories: which of them are true for a document, given the byte of its category.

The tests of a column are a table of bits: for each of 256 bytes, `n_words` words of 64 tests. 64 documents look up one
word each. The transpose of these 64 × 64 bits has one word for each test. So a test of 64 documents takes about as long
as one look-up.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

BYTES = 256


class SetTests(NamedTuple):
    """Tests of sets of categories, numbered column by column after the tests of limits."""

    columns: np.ndarray  # int32: the columns with such tests, ascending
    starts: np.ndarray  # int64, len(columns) + 1: the tests of each
    words: np.ndarray  # uint64: a table per column, 256 rows of one bit per test; 1: right
    word_starts: np.ndarray  # int64, len(columns) + 1


NO_SETS = SetTests(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint64), np.zeros(1, np.int64))


@njit(cache=True, nogil=True)
def transpose_bits(square):
    """The transpose of 64 words of 64 bits, in place: bit j of word i and bit i of word j change places.

    Blocks of 32, 16, … 1 bits off the diagonal are exchanged (Warren, Hacker's Delight, 7-3).
    """
    width, mask = np.uint64(32), np.uint64(0x00000000FFFFFFFF)
    while width > np.uint64(0):
        step = np.int64(width)
        for first in range(0, 64, 2 * step):
            for i in range(first, first + step):
                swapped = ((square[i] >> width) ^ square[i + step]) & mask
                square[i] ^= swapped << width
                square[i + step] ^= swapped
        width >>= np.uint64(1)
        mask ^= mask << width


@njit(cache=True, nogil=True)
def make_set_tests(columns, n_groups, stride, sets, first_row, words_per_row, bits):
    """Write the outcome of each test for every document to the rows of `bits` from `first_row` on."""
    square = np.empty(64, np.uint64)
    for u in range(len(sets.columns)):
        n_tests, table = sets.starts[u + 1] - sets.starts[u], sets.words[sets.word_starts[u] :]
        n_words = (n_tests + 63) // 64
        for g in range(n_groups):
            place = sets.columns[u] * stride + 64 * g
            for word in range(n_words):
                for i in range(64):
                    square[i] = table[np.int64(columns[place + i]) * n_words + word]
                transpose_bits(square)
                row = first_row + sets.starts[u] + 64 * word
                for k in range(min(64, n_tests - 64 * word)):
                    bits[words_per_row * (row + k) + g] = square[k]


@njit(cache=True, nogil=True)
def class_of(x, classes, start, stop):
    """The byte of a category, `classes[start:stop][int(x)]`; 255 is missing, 0 a category that is in no set."""
    if x != x:
        return np.uint8(255)
    # as LightGBM: the whole part, so that -0.5 is category 0
    return classes[start + np.int64(x)] if -1.0 < x < np.float64(stop - start) else np.uint8(0)


@njit(cache=True, nogil=True)
def take_classes(X, row_step, column_step, first_row, n_docs, categories, stride, first_column, out):
    """Write the bytes of the categories of some documents to the columns of `out` from `first_column` on."""
    for c in range(len(categories.feature)):
        start, stop = categories.starts[c], categories.starts[c + 1]
        source, place = first_row * row_step + categories.feature[c] * column_step, (first_column + c) * stride
        for i in range(n_docs):
            out[place + i] = class_of(X[source + i * row_step], categories.classes, start, stop)


@njit(cache=True, nogil=True)
def expand_tests(rows, n_features, categories, sets):
    """Write the outcome of every test, 0 left or 1 right, to the columns of `rows` from `n_features` on."""
    for i in range(len(rows)):
        for u in range(len(sets.columns)):
            c = sets.columns[u]
            x = rows[i, categories.feature[c]]
            byte = np.int64(class_of(x, categories.classes, categories.starts[c], categories.starts[c + 1]))
            first, n_tests = sets.starts[u], sets.starts[u + 1] - sets.starts[u]
            row = sets.word_starts[u] + byte * ((n_tests + 63) // 64)
            for k in range(n_tests):
                rows[i, n_features + first + k] = (sets.words[row + k // 64] >> np.uint64(k % 64)) & np.uint64(1)
