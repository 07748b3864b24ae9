"""Sets of categories as words of 32 bits, as LightGBM and XGBoost store them."""

from __future__ import annotations

import numpy as np

BITS = 32


def codes_of_words(words: np.ndarray) -> np.ndarray:
    """The categories in a set: bit b of word w stands for category 32 w + b.

    Examples
    --------
    >>> codes_of_words(np.array([5, 1])).tolist()
    [0, 2, 32]
    """
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)


def words_of_codes(codes: np.ndarray) -> np.ndarray:
    """The words of a set, as many as its largest category needs, and at least one.

    Examples
    --------
    >>> words_of_codes(np.array([0, 2, 32])).tolist()
    [5, 1]
    """
    bits = np.zeros(BITS * (int(codes.max(initial=0)) // BITS + 1), np.uint8)
    bits[codes] = 1
    return np.packbits(bits, bitorder="little").view("<u4")
