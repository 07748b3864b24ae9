"""How likely each rank of a result page is examined: true, estimated and learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.clicks.propensity import Propensities
from ranksieve.errors import ParameterError
from ranksieve.plots.style import label_axes, lines_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIKE = "position_biases({'learned': model})"


def position_biases(biases: Mapping[str, Any], *, baseline: str | None = None, ax: Axes | None = None) -> Axes:
    """Position bias by rank, relative to the first rank, on a logarithmic axis.

    A model's learned biases are shown as exp(bias): clicks of two documents differ by that factor at two ranks.

    Parameters
    ----------
    biases : mapping of names to models, Propensities or arrays
        Models that were trained on data with positions, propensities, or one number per rank.
    baseline : str, optional
        The name to draw dashed, such as the truth.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> true = rs.clicks.Propensities.power(1, 10)
    >>> rs.plots.position_biases({"true": true}, baseline="true").get_xlabel()
    'rank'
    """
    ax, styles = lines_for(biases, ax, (6.0, 4.0), like=LIKE, baseline=baseline)
    longest = 1
    for name, given in biases.items():
        values = _relative(name, given)
        longest = max(longest, len(values))
        ax.plot(np.arange(1, len(values) + 1), values, marker="o", markersize=3, label=name, **styles[name])
    ax.set_yscale("log")
    ax.set_xticks(np.arange(1, longest + 1, max(1, longest // 10)))
    label_axes(ax, x="rank", y="examination, relative to the first rank", legend=biases)
    return ax


def _relative(name: str, given: Any) -> np.ndarray:
    if isinstance(given, Propensities):
        return np.asarray(given.values / given.values[0])
    if hasattr(given, "info"):
        learned = np.asarray(given.info.get("position_biases", ()), dtype=float)[1:]
        if not len(learned):
            raise ParameterError(f"the model {name!r} has no biases of positions; train it on data with positions")
        return np.asarray(np.exp(learned - learned[0]))
    values = np.asarray(given, dtype=float)
    return np.asarray(values / values[0])
