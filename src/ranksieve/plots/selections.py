"""The negatives that were selected, and the leaves that documents share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.plots.style import axes_for, label_axes, lines_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rank_heat_map(
    heat: Any, row_sizes: Any, column_ranks: Any, *, most: int = 10, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """How often each first-stage rank of each query was selected (Lucchese et al. 2018, Fig. 7).

    Parameters
    ----------
    heat, row_sizes, column_ranks
        As `ranksieve.analyses.rank_heat_map` returns them: queries from short lists to long ones, ranks from
        the first.
    most : int
        The count of the brightest colour.
    title : str, optional
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> from ranksieve.analyses import rank_heat_map
    >>> heat = rank_heat_map([0, 0, 1], [1, 2, 1], [4, 99, 2], [3, 2])
    >>> rs.plots.rank_heat_map(*heat).get_xlabel()
    'first-stage rank'
    """
    heat, row_sizes = np.asarray(heat), np.asarray(row_sizes)
    if heat.ndim != 2 or heat.shape != (len(row_sizes), len(column_ranks)):
        raise ParameterError(
            f"heat has shape {heat.shape}; expected {len(row_sizes)} rows, {len(column_ranks)} columns"
        )
    ax = axes_for(ax, (7.0, 4.5))
    last = column_ranks[-1] + (column_ranks[1] - column_ranks[0] if len(column_ranks) > 1 else 1)
    extent = (1, float(last), float(len(heat)), 0.0)
    image = ax.imshow(heat, aspect="auto", extent=extent, cmap="inferno", vmin=0, vmax=most, interpolation="nearest")
    assert ax.figure is not None
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.set_label(f"times selected ({most} or more)")
    ticks = np.unique(np.linspace(0, len(heat) - 1, min(6, len(heat))).round().astype(int))
    ax.set_yticks(ticks + 0.5, [f"{row_sizes[tick]:,}" for tick in ticks])
    label_axes(ax, x="first-stage rank", y="queries, by documents in the list", title=title)
    ax.grid(False)
    return ax


def rank_distribution(distributions: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """The share of the selections on first-stage ranks up to each rank (Lucchese et al. 2018, Fig. 8).

    Parameters
    ----------
    distributions : mapping
        From names to cumulative shares by rank, as `ranksieve.analyses.rank_distribution` returns them.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> rs.plots.rank_distribution({"SelGB": [0.5, 0.8, 1.0]}).get_ylabel()
    'selections up to this rank'
    """
    ax, styles = lines_for(distributions, ax, (7.0, 4.0), like="{'SelGB': [0.5, 0.8, 1.0]}")
    for name, shares in distributions.items():
        ax.plot(np.arange(len(shares) + 1), np.concatenate([[0.0], shares]), label=name, linewidth=1.6, **styles[name])
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_ylim(0, 1.02)
    ax.set_xlim(left=0)
    label_axes(ax, x="first-stage rank", y="selections up to this rank", legend=distributions)
    return ax


def shared_leaves(counts: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Pairs of documents by the share of trees in which they end in the same leaf (Lucchese et al. 2015, Fig. 2).

    Parameters
    ----------
    counts : mapping
        From names to pairs by number of shared leaves, as `ranksieve.analyses.shared_leaves` returns
        them. Forests of different sizes are drawn on one scale: shares of trees, and density of pairs.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> rs.plots.shared_leaves({"full": [2, 5, 9], "10%": [9, 5, 2]}).get_xlabel()
    'share of trees in which two negatives share a leaf'
    """
    ax, styles = lines_for(counts, ax, (7.0, 4.0), like="{'full': [2, 5, 9]}")
    for name, pairs in counts.items():
        pairs = np.asarray(pairs, dtype=np.float64)
        n_trees = max(len(pairs) - 1, 1)
        density = pairs / max(pairs.sum(), 1.0) * n_trees
        ax.plot(np.arange(len(pairs)) / n_trees, density, label=name, drawstyle="steps-mid", **styles[name])
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_ylim(bottom=0)
    label_axes(ax, x="share of trees in which two negatives share a leaf", y="density of pairs", legend=counts)
    return ax
