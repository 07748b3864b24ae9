"""Axes, colours and lines that all figures share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ParameterError, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito: distinct for colour-blind readers, and in print
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MORE_COLOURS = (*COLOURS, "#882255", "#332288", "#999933", "#44aa99")  # of Tol's muted ones, for more lines
BASELINE = "#444444"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))


def without_display() -> None:
    """Draw only into files, which needs no display."""
    _matplotlib().use("agg")


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of a size in inches."""
    _matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def panels_for(size: tuple[float, float], rows: int, columns: int, **options: Any) -> list[Axes]:
    """The axes of a new figure with several panels, row by row."""
    one = axes_for(None, size)
    figure = one.figure
    assert figure is not None
    one.remove()
    return list(figure.subplots(rows, columns, squeeze=False, **options).ravel())


def lines_for(
    named: Mapping[str, Any], ax: Axes | None, size: tuple[float, float], *, like: str, baseline: str | None = None
) -> tuple[Axes, dict[str, dict[str, Any]]]:
    """Axes for one line of each name, and the style of each; `like` is an example for the error if there is none."""
    if not named:
        raise ParameterError(f"nothing to draw; give at least one, as in {like}")
    return axes_for(ax, size), line_styles(list(named), baseline)


def _matplotlib() -> Any:
    return import_extra("matplotlib", "figures need matplotlib", "ranksieve[plots]")


def line_styles(names: Sequence[str], baseline: str | None = None) -> dict[str, dict[str, Any]]:
    """A colour and a line style for each name; the baseline is dark and dashed.

    Many names that differ by a number alone, such as the values of a parameter, have the colours of a scale.
    """
    others = [name for name in names if name != baseline]
    if len(others) <= len(COLOURS):
        colours: Sequence[Any] = COLOURS
    elif _differ_by_number(others):
        from matplotlib import colormaps

        colours = [colormaps["viridis"](place) for place in np.linspace(0.0, 0.92, len(others))]
    else:
        colours = MORE_COLOURS
    styles = {}
    for number, name in enumerate(others):
        turn, place = divmod(number, len(colours))  # a colour that is used again has other dashes
        dashes = DASHES[(place + turn) % len(DASHES)] if len(others) > 3 else "-"
        styles[name] = {"color": colours[place], "linestyle": dashes}
    if baseline in names:
        styles[str(baseline)] = {"color": BASELINE, "linestyle": (0, (3, 1.5)), "zorder": 1.5}
    return styles


def _differ_by_number(names: Sequence[str]) -> bool:
    return len({re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "0", name) for name in names}) == 1


def log_axis(ax: Axes, words: Callable[[float], str]) -> None:
    """A logarithmic x-axis for what is drawn: ticks at 1, 2 and 5 times powers of ten, more within a decade."""
    from matplotlib.ticker import FixedLocator, Locator, LogLocator, MaxNLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    locator: Locator = LogLocator(subs=(1.0, 2.0, 5.0) if high >= 10 * low else (1.0, 2.0, 3.0, 5.0, 7.0))
    if high < 4 * low:
        ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
        locator = FixedLocator([tick for tick in ticks if low <= tick <= high])
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(lambda value, _: words(value))
    ax.xaxis.set_minor_formatter(NullFormatter())


def label_axes(
    ax: Axes, *, x: str, y: str, title: str | None = None, legend: Mapping[str, Any] | Sequence[str] = ()
) -> None:
    """Axis names, a light grid, no box, and a legend: inside the axes for two or three names, beside them for more."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if x in ("tree", "trees") and ax.get_xscale() == "linear":
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))  # whole trees
    if title:
        ax.set_title(title, loc="left", fontsize="medium")
    ax.grid(True, color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if len(legend) > 3:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    elif len(legend) > 1:
        ax.legend(frameon=False, fontsize="small")
