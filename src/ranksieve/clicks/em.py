"""Expectation maximisation with fewer steps (SQUAREM, Varadhan and Roland 2008)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EDGE = 1e-6  # parameters are probabilities and keep this distance from 0 and 1

Step = Callable[[np.ndarray], tuple[np.ndarray, float]]


def maximize(
    step: Step, start: np.ndarray, *, iterations: int, tolerance: float, watched: int
) -> tuple[np.ndarray, int]:
    """Repeat a step of expectation maximisation until the parameters stay the same.

    Two steps show a direction; a third one starts further along it. Where the likelihood is smaller there, the two
    plain steps count.

    Parameters
    ----------
    step
        From parameters to better ones, and the log-likelihood of those given.
    start
        First values of the parameters.
    iterations
        Most steps to take.
    tolerance
        Stop when no watched parameter changes by more, and the others by no more on average.
    watched
        How many parameters at the end of the vector are watched one by one.

    Returns
    -------
    tuple
        The parameters, and the number of steps taken.
    """
    here, used = start, 0
    while used < iterations:
        once, _ = step(here)
        twice, plain = step(once)
        used += 2
        first, bend = once - here, twice - 2.0 * once + here
        length = np.sqrt(bend @ bend)
        new = twice
        if length > 0.0:
            stride = min(-1.0, -np.sqrt(first @ first) / length)
            ahead, value = step(np.clip(here - 2.0 * stride * first + stride**2 * bend, EDGE, 1.0 - EDGE))
            used += 1
            if value >= plain:
                new = ahead
        change = np.abs(new - here)
        here = new
        others = len(here) - watched
        if change[others:].max(initial=0.0) < tolerance and change[:others].mean() < tolerance:
            break
    return here, used
