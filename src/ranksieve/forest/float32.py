"""float64 thresholds as float32, and the shortest text of a float32.

Search engines compute features in float32, and most consumers of models store thresholds and leaf values in float32.
This loses nothing for a float32 document if thresholds are rounded to the right side.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def to_single(values: Any) -> np.ndarray:
    """The float32 nearest to each number; infinite where it is too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32)


def floor_single(values: np.ndarray) -> np.ndarray:
    """The largest float32 not above each value: for every float32 x, `x <= value` equals `x <= floor`.

    Examples
    --------
    >>> import numpy as np
    >>> floor_single(np.array([0.5, 0.1, 1e300])).tolist()
    [0.5, 0.09999999403953552, 3.4028234663852886e+38]
    """
    nearest = to_single(values)
    return np.where(nearest > values, below_single(nearest), nearest)


def above_single(values: np.ndarray) -> np.ndarray:
    """The smallest float32 above each value: for every finite float32 x, `x <= value` equals `x < above`.

    Examples
    --------
    >>> import numpy as np
    >>> above_single(np.array([0.0, 0.5])).tolist()
    [1.401298464324817e-45, 0.5000000596046448]
    """
    with np.errstate(over="ignore"):
        return np.nextafter(floor_single(values), np.float32(np.inf))


def below_single(values: np.ndarray) -> np.ndarray:
    """The largest float32 below each float32: for every float32 x, `x < value` equals `x <= below`."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(values, dtype=np.float32), np.float32(-np.inf))


def single_texts(values: np.ndarray, infinity: str = "1e39") -> list[str]:
    """The shortest decimal of each float32; `infinity` is the text of an infinite one.

    `1e39` is a JSON number that readers of float32 round to infinity.

    Examples
    --------
    >>> import numpy as np
    >>> single_texts(np.array([0.1, -np.inf], dtype=np.float32))
    ['0.1', '-1e39']
    """
    return [text.replace("inf", infinity) for text in map(str, np.asarray(values, dtype=np.float32))]
