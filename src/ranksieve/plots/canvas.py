"""Axes to draw on, and what to say where matplotlib is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ranksieve.errors import MissingExtraError, ParameterError
from ranksieve.plots.style import line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def without_display() -> None:
    """Draw for files alone, which needs no display."""
    try:
        import matplotlib
    except ImportError as error:
        raise _missing() from error
    matplotlib.use("agg")


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of a size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise _missing() from error
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def lines_for(
    named: Mapping[str, Any], ax: Axes | None, size: tuple[float, float], *, like: str, baseline: str | None = None
) -> tuple[Axes, dict[str, dict[str, Any]]]:
    """Axes for one line of each name, and how each is drawn; `like` is an example for those who give none."""
    if not named:
        raise ParameterError(f"there is nothing to draw; give at least one, as in {like}")
    return axes_for(ax, size), line_styles(list(named), baseline)


def _missing() -> MissingExtraError:
    return MissingExtraError("pictures need matplotlib; install it with pip install 'ranksieve[plots]'")
