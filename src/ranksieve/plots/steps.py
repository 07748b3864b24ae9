"""The metric of a combination at every weight, and the step sizes of boosting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.plots.style import BASELINE, COLOURS, add_legend, axes_for, label_axes, lines_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksieve.rankers.combination import Combination


def combination_curve(found: Combination, *, ax: Axes | None = None) -> Axes:
    """The metric of two rankers' weighted sum at every α, and the α that was chosen.

    Parameters
    ----------
    found : Combination
        As `ranksieve.combine` returns it.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> found = rs.combine(data.features[:, 0], data.features[:, 1], data)
    >>> rs.plots.combination_curve(found).get_xlabel()
    'α'
    """
    ax = axes_for(ax, (6.0, 4.0))
    curve, (first, second) = found.curve, found.weights
    ax.stairs(curve.values, curve.borders, baseline=None, color=COLOURS[0], linewidth=1.2)
    ax.axvline(found.alpha, color=BASELINE, linestyle=(0, (3, 1.5)), linewidth=1.0, zorder=1.5)
    ax.plot([found.alpha], [found.value], marker="o", markersize=4.5, color=COLOURS[1])
    sign = "+" if second >= 0 else "-"
    label_axes(ax, x="α", y=str(found.metric), title=f"{found.value:.4f} at {first:.4g} a {sign} {abs(second):.4g} b")
    return ax


def tree_steps(models: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """The step along each tree, as `step="optimal"` chose it (Wu et al. 2010, Fig. 4).

    Parameters
    ----------
    models : mapping
        From names to forests trained so, or to the steps themselves.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), algo="lambdamart", trees=4, leaves=4, step="optimal")
    >>> rs.plots.tree_steps({"OC": model}).get_xlabel()
    'trees'
    """
    ax, styles = lines_for(models, ax, (7.0, 3.5), like="{'OC': model}")
    for name, given in models.items():
        steps = _steps(name, given)
        line = {**styles[name], "linewidth": 0.6, "alpha": 0.8}
        ax.plot(np.arange(1, len(steps) + 1), steps, marker="o", markersize=2.2, label=name, **line)
    label_axes(ax, x="trees", y="step α")
    ax.set_xlim(left=0)
    add_legend(ax, models)
    return ax


def _steps(name: str, given: Any) -> np.ndarray:
    info = getattr(given, "info", None)
    if info is None:
        return np.asarray(given, dtype=np.float64)
    if "steps" not in info:
        raise ParameterError(
            f"{name!r} was trained with one step size for all trees; train with ", param("step", "optimal")
        )
    return np.asarray(info["steps"])
