"""Which rows thresholds are learned from.

All of the first 262,144 rows; beyond these, every second stripe of 16,384 rows, from 524,288 on every fourth, and from
1,048,576 on every eighth. A row of such a stripe stands for 2, 4 or 8. The rule depends on the number of a row alone,
so that files, parts of files and data in memory have the same thresholds. Files with row groups need not decode the
other rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ranksieve.kernels.counter_random import GOLDEN, splitmix64

STRIPE = 16_384  # rows; those of a row group of our Parquet files
ALL = 16  # stripes that are taken as a whole
FARTHEST = 8  # at least one stripe in so many is taken


def weight_of(stripe: int) -> int:
    """How many rows a row of this stripe stands for; 0: thresholds are not learned from it."""
    every = min(1 << (stripe // ALL).bit_length(), FARTHEST)
    return every if stripe % every == every // 2 else 0


def parts_of(first: int, n_rows: int) -> Iterator[tuple[int, int, int]]:
    """The rows from number `first` on in parts of equal weight: where each begins and ends, and its weight."""
    start = done = 0
    weight = weight_of(first // STRIPE)
    while done < n_rows:
        done = min((first + done) // STRIPE * STRIPE + STRIPE - first, n_rows)
        following = weight_of((first + done) // STRIPE) if done < n_rows else -1
        if following != weight:
            yield start, done, weight
            start, weight = done, following


def is_sampled(first: int, n_rows: int) -> bool:
    """Whether thresholds are learned from any of the rows from number `first` on."""
    return any(weight for _, _, weight in parts_of(first, n_rows))


def rows_by_weight(n_rows: int) -> dict[int, int]:
    """The number of rows of each weight, the largest weight first."""
    counts: Counter[int] = Counter()
    for start, stop, weight in parts_of(0, n_rows):
        counts[weight] += stop - start
    return {weight: counts[weight] for weight in sorted(counts, reverse=True) if weight}


def share_below(n_expected: float, n_rows: int) -> float:
    """The share of the range of keys, counted from 0, that contains the keys of `n_expected` rows on average."""
    counts = rows_by_weight(n_rows)
    total = sum(weight * n for weight, n in counts.items())
    for weight, n in counts.items():
        if weight * n_expected <= total:
            return n_expected / total
        n_expected -= n  # all of these rows have a key in it
        total -= weight * n
    return 1.0


def key_of(rows: np.ndarray, weight: int) -> np.ndarray:
    """A random number of each row, by its number; the sample has the rows with the smallest ones.

    The keys of rows of weight w are in the first w-th of the range of keys, so that these rows are w times as frequent
    in a sample that is smaller than their number.
    """
    return np.asarray(splitmix64(rows + GOLDEN) // np.uint64(weight))
