"""Sizes of the pieces into which offsets cut an array: lists of a data set, trees of a forest."""

from ranksieve.kernels.jit import njit


@njit(cache=True, nogil=True)
def longest_piece(offsets):
    """The size of the longest piece."""
    most = 0
    for i in range(len(offsets) - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    return most
