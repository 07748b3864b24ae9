"""Differences by list size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.evaluation.analyses import SizeBuckets
from ranksieve.plots.style import BASELINE, COLOURS, label_axes, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW, PALE = 5, 0.25  # bars of fewer queries, and their opacity


def difference_by_size(
    buckets: SizeBuckets, *, metric: str = "ndcg@10", names: tuple[str, str] = ("a", "b"), axes: Any = None
) -> tuple[Axes, Axes]:
    """Mean difference of two systems by list size, above the numbers of queries (Lucchese et al. 2018, Fig. 6).

    Thin lines are one standard error of the mean to both sides, if a bucket has two queries or more; bars of fewer
    than five queries are pale.

    Parameters
    ----------
    buckets : SizeBuckets
        As `ranksieve.evaluation.analyses.difference_by_size` returns them.
    metric : str
    names : (str, str)
        The two systems; the second is subtracted.
    axes : two Axes, optional
        Above and below.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from ranksieve.evaluation.analyses import difference_by_size
    >>> buckets = difference_by_size([0.5, 0.75, 1.0], [0.25, 0.75, 0.5], [120, 40, 199])
    >>> above, below = rs.plots.difference_by_size(buckets, names=("SelGB", "λ-MART"))
    >>> below.get_ylabel()
    'queries'
    """
    above, below = panels_for((7.0, 4.5), 2, 1, sharex=True, height_ratios=(3, 1)) if axes is None else axes
    middles, width = (buckets.edges[:-1] + buckets.edges[1:]) / 2, 0.9 * np.diff(buckets.edges)
    differences = np.nan_to_num(buckets.differences)
    colours = np.where(differences >= 0, COLOURS[0], COLOURS[1])
    faint = np.where(buckets.n_queries < FEW, PALE, 1.0)
    above.bar(middles, differences, width, color=list(zip(colours.tolist(), faint.tolist(), strict=True)))
    known = np.isfinite(buckets.errors)
    above.errorbar(middles[known], differences[known], buckets.errors[known], fmt="none", ecolor="0.25", elinewidth=0.8)
    above.axhline(0, color="0.3", linewidth=0.8)
    label_axes(above, x="", y=f"difference in {metric}", title=f"{names[0]} − {names[1]}")
    below.bar(middles, buckets.n_queries, width, color=BASELINE)
    label_axes(below, x="documents in the list", y="queries")
    return above, below
