"""Quality against trees, weights, the share of the training set, time, and the size of lists; and step sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.evaluation.analyses import SizeBuckets
from ranksieve.plots.point_labels import label_points
from ranksieve.plots.style import (
    BASELINE,
    COLOURS,
    axes_for,
    label_axes,
    line_styles,
    lines_for,
    log_axis,
    panels_for,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksieve.rankers.combination import Combination

FEW, PALE = 5, 0.25  # bars of fewer queries, and their opacity


def learning_curves(
    curves: Mapping[str, Any],
    *,
    metric: str = "ndcg@10",
    set_name: str | None = None,
    baseline: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A metric against the number of trees, one line for each model.

    Parameters
    ----------
    curves : mapping
        From names to values after each tree, to numbers of trees with the values there, or to models, whose own
        history is drawn (`Forest`, `Ranker`).
    metric : str
        Which metric of a model's history, and the name of the axis.
    set_name : str, optional
        Which data set of a model's history; the first where not given.
    baseline : str, optional
        The name to draw dark and dashed.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(30), rs.synth.cubic(10, start=30)
    >>> model = rs.train(train, valid=valid, trees=4, leaves=4)
    >>> rs.plots.learning_curves({"SelGB": model}).get_ylabel()
    'ndcg@10'
    """
    ax, styles = lines_for(curves, ax, (7.0, 4.0), like="{'SelGB': model}", baseline=baseline)
    for name, given in curves.items():
        trees, values = given if isinstance(given, tuple) else (None, _values(name, given, metric, set_name))
        places = np.arange(1, len(values) + 1) if trees is None else trees
        ax.plot(places, values, label=name, linewidth=1.6, **styles[name])
    label_axes(ax, x="trees", y=metric, legend=curves)
    ax.set_xlim(left=0)
    return ax


def _values(name: str, given: Any, metric: str, set_name: str | None) -> np.ndarray:
    history = getattr(given, "evals_result_", None)
    if history is None:
        return np.asarray(given, dtype=np.float64)
    if not history:
        raise ParameterError(f"{name!r} was trained without validation data, so it has no curve; give ", param("valid"))
    chosen = next(iter(history)) if set_name is None else set_name
    if chosen not in history or metric not in history[chosen]:
        known = ", ".join(f"{one}: {', '.join(metrics)}" for one, metrics in history.items())
        raise ParameterError(f"{name!r} has no history of {metric} on {chosen!r}; known: {known}")
    return np.asarray(history[chosen][metric])


def share_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    metric: str = "ndcg@10",
    full: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A metric against the share of the training set (Ibrahim and Carman 2014, Fig. 6 and 7).

    Parameters
    ----------
    curves : mapping
        From names to shares and values.
    metric : str
        The name of the axis.
    full : float, optional
        The value of the full training set, drawn as a horizontal line.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> rs.plots.share_curves({"random": ([0.01, 0.1, 0.5], [0.3, 0.4, 0.41])}, full=0.42).get_xlabel()
    'share of the training set'
    """
    ax, styles = lines_for(curves, ax, (7.0, 4.0), like="{'random': ([0.1, 0.5], [0.40, 0.41])}")
    for name, (shares, values) in curves.items():
        order = np.argsort(shares)
        ax.plot(
            np.asarray(shares)[order], np.asarray(values)[order], marker="o", markersize=3.5, label=name, **styles[name]
        )
    if full is not None:
        ax.axhline(full, color="#444444", linestyle=(0, (3, 1.5)), linewidth=1.2, label="full training set", zorder=1.5)
    log_axis(ax, lambda share: f"{100 * share:g}%")
    label_axes(ax, x="share of the training set", y=metric, legend=[*curves, "full training set"])
    return ax


def time_against_quality(
    points: Mapping[str, tuple[float, float]],
    *,
    metric: str = "ndcg@10",
    time: str = "seconds of training",
    groups: Mapping[str, str] | None = None,
    marks: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A metric against time, one point for each model; the upper left is best.

    Parameters
    ----------
    points : mapping
        From names to seconds and values.
    metric, time : str
        Names of the axes.
    groups : mapping, optional
        From names to groups; the points of a group share a colour and a line.
    marks : mapping, optional
        From names to the text beside the point.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> rs.plots.time_against_quality({"SelGB": (1.5, 0.7), "λ-MART": (8.0, 0.68)}).get_ylabel()
    'ndcg@10'
    """
    if not points:
        raise ParameterError("got no points; give at least one")
    ax = axes_for(ax, (7.0, 4.5))
    group_of = {name: name for name in points} if groups is None else dict(groups)
    kinds = list(dict.fromkeys(group_of[name] for name in points))
    styles, texts = line_styles(kinds), list[tuple[str, tuple[float, float]]]()
    for kind in kinds:
        names = [name for name in points if group_of[name] == kind]
        places = np.array(sorted(points[name] for name in names))
        line = {**styles[kind], "linewidth": 0.8, "alpha": 0.9}
        ax.plot(places[:, 0], places[:, 1], marker="o", markersize=5, label=kind, **line)
        for name in names if groups is not None and len(names) > 1 else ():
            texts.append((name if marks is None else marks[name], points[name]))
    ax.margins(y=0.1)  # room for texts
    log_axis(ax, lambda seconds: f"{seconds:g}")
    label_axes(ax, x=time, y=metric, legend=kinds)
    label_points(ax, texts, list(points.values()))
    return ax


def difference_by_size(
    buckets: SizeBuckets, *, metric: str = "ndcg@10", names: tuple[str, str] = ("a", "b"), axes: Any = None
) -> tuple[Axes, Axes]:
    """Mean difference of two systems by list size, above the numbers of queries (Lucchese et al. 2018, Fig. 6).

    Thin lines are one standard error of the mean to both sides, if a bucket has two queries or more; bars of fewer
    than five queries are pale.

    Parameters
    ----------
    buckets : SizeBuckets
        As `ranksieve.analyses.difference_by_size` returns them.
    metric : str
    names : (str, str)
        The two systems; the second is subtracted.
    axes : two Axes, optional
        Above and below.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from ranksieve.analyses import difference_by_size
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
    label_axes(ax, x="trees", y="step α", legend=models)
    ax.set_xlim(left=0)
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
