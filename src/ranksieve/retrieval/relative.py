"""Features relative to a query's list, as LETOR's query-level normalisation has them."""

from __future__ import annotations

import numpy as np

RELATIVE = "relative."  # in front of a feature's name


def within_lists(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Columns scaled in every list: the smallest value becomes 0, the largest 1; what is missing stays missing.

    Examples
    --------
    >>> within_lists(np.array([[2.0], [4.0], [3.0], [7.0]]), np.array([0, 3, 4])).ravel().tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    if not len(starts):
        return values
    lowest = np.fmin.reduceat(values, starts, axis=0)
    widths = np.fmax.reduceat(values, starts, axis=0) - lowest
    widths[widths == 0] = 1
    sizes = sizes[sizes > 0]
    return (values - np.repeat(lowest, sizes, axis=0)) / np.repeat(widths, sizes, axis=0)
