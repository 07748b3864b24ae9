"""Axes to draw on, and what to say where matplotlib is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksieve.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of a size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError("pictures need matplotlib; install it with pip install 'ranksieve[plots]'") from error
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=size, layout="constrained")[1]
