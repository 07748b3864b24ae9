"""`label_points`: texts beside points that do not cover each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# in points of 1/72 inch
MARKER = 3.5  # half of a marker and its margin
ASIDE, ABOVE = 5.0, 3.0  # from a point to the text beside it
GAP = 1.5  # at both ends of a text
LEVEL, LEVELS = 9.0, 8  # further up and down, where there is no room beside the point
LEADER = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": MARKER}
WORDS: Any = {"fontsize": "x-small", "color": "0.25"}

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top


def label_points(ax: Axes, texts: Sequence[tuple[str, Point]], points: Iterable[Point]) -> None:
    """Write texts beside points: each where it covers neither another text nor any of the points.

    A text stands to the right or left of its point, else further above or below it, with a thin line to the point.
    The limits of the axes must be final.
    """
    ax.figure.canvas.figure.draw_without_rendering()
    to_points = 72.0 / ax.figure.dpi

    def spot(point: Point) -> Point:
        x, y = ax.transData.transform(point) * to_points
        return float(x), float(y)

    inside = tuple(float(edge) for edge in np.array(ax.get_window_extent().extents) * to_points)
    taken: list[Box] = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in map(spot, points)]
    for text, point in sorted(texts, key=lambda one: one[1]):
        tried = ax.annotate(text, point, **WORDS)
        size = tried.get_window_extent()
        tried.remove()
        (x, y), box = _free(spot(point), size.width * to_points, size.height * to_points, inside, taken)
        is_near = y <= ABOVE and y + size.height * to_points >= -ABOVE
        ax.annotate(text, point, (x, y), textcoords="offset points", arrowprops=None if is_near else LEADER, **WORDS)
        taken.append(box)


def _free(spot: Point, width: float, height: float, inside: Sequence[float], taken: list[Box]) -> tuple[Point, Box]:
    """The first place that is free, relative to the point and as a box; that to the right of the point if none is."""
    found = []
    for dx, dy in _offsets(width, height):
        left, bottom = spot[0] + dx, spot[1] + dy
        box = left - GAP, bottom, left + width + GAP, bottom + height
        is_inside = box[0] >= inside[0] and box[1] >= inside[1] and box[2] <= inside[2] and box[3] <= inside[3]
        found.append(((dx, dy), box))
        if is_inside and not any(_overlap(box, other) for other in taken):
            return found[-1]
    return found[0]


def _offsets(width: float, height: float) -> Iterator[Point]:
    """Where a text may stand, nearest first: its lower left corner relative to the point."""
    for dy in (ABOVE, -ABOVE - height):
        yield ASIDE, dy
        yield -ASIDE - width, dy
    for level in range(LEVELS):
        for dx in (-width / 2, ASIDE, -ASIDE - width):
            yield dx, ABOVE + (level + 1) * LEVEL
            yield dx, -ABOVE - height - (level + 1) * LEVEL


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
