"""Pruning: removed trees, weights of the others, rounds of X-CLEaVER and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.forest.forest import forest_of
from ranksieve.plots.style import BASELINE, COLOURS, axes_for, label_axes, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASES = {
    "grow": "growing",
    "leaves": "finding leaves",
    "check": "cross-fitting",
    "prune": "pruning",
    "reweight": "re-weighting",
}


def removed_trees(models: Mapping[str, Any], *, buckets: int = 10, axes: Any = None) -> list[Axes]:
    """The share of trees removed along the forest, a panel for each model (Lucchese et al. 2018, X-CLEaVER, Fig. 2).

    Parameters
    ----------
    models : mapping
        From names to pruned models.
    buckets : int
        Number of groups of consecutive trees.
    axes : Axes, one for each model, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=8, leaves=4)
    >>> pruned = {name: rs.prune(model, data, judge_on="train", rate=0.5, strategy=name) for name in ("last", "skip")}
    >>> [float(bar.get_height()) for bar in rs.plots.removed_trees(pruned, buckets=2)[0].patches]
    [0.0, 100.0]
    """
    panels = _panels(models, axes)
    for (name, model), ax in zip(models.items(), panels, strict=True):
        edges, removed, _ = _buckets(name, model, buckets)
        ax.bar(edges[:-1], 100 * removed, 0.92 * np.diff(edges), align="edge", color=COLOURS[0])
        ax.set(ylim=(0, 100), xlim=(0, edges[-1]))
        label_axes(ax, x="tree", y="removed, %", title=name)
    return panels


def tree_weights(models: Mapping[str, Any], *, buckets: int = 10, axes: Any = None) -> list[Axes]:
    """Mean weights along the forest after pruning, 1 being the mean before (X-CLEaVER, Fig. 3).

    The text in a bar is the share of its trees that were removed.

    Parameters
    ----------
    models, buckets, axes
        As in `removed_trees`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> pruned = rs.prune(rs.train(data, trees=8, leaves=4), data, judge_on="train", rate=0.5)
    >>> rs.plots.tree_weights({"quality-loss": pruned}, buckets=4)[0].get_ylabel()
    'mean weight'
    """
    panels = _panels(models, axes)
    for (name, model), ax in zip(models.items(), panels, strict=True):
        edges, removed, weights = _buckets(name, model, buckets)
        ax.bar(edges[:-1], weights, 0.92 * np.diff(edges), align="edge", color=COLOURS[0])
        ax.axhline(1.0, color=BASELINE, linestyle=(0, (3, 1.5)), linewidth=1.2)
        ax.set(xlim=(0, edges[-1]))
        for left, right, share, weight in zip(edges[:-1], edges[1:], removed, weights, strict=True):
            inside = weight > 0.15 * np.nanmax(weights)  # at the bottom of the bar, where no line crosses it
            ax.annotate(
                f"{100 * share:.0f}%", ((left + right) / 2, 0.0 if inside else max(weight, 0.0)), xytext=(0, 2),
                textcoords="offset points", ha="center", fontsize="xx-small", color="white" if inside else "0.25",
            )  # fmt: skip
        label_axes(ax, x="tree", y="mean weight", title=name)
    return panels


def rounds(
    model: Any, *, set_name: str = "train", baseline: Sequence[float] | np.ndarray | None = None, ax: Axes | None = None
) -> Axes:
    """The training of an X-CLEaVER model: the metric while trees grow, and after pruning and re-weighting (Fig. 5).

    Parameters
    ----------
    model : Forest or fitted Ranker
        Trained with `algo="xcleaver"`.
    set_name : str
        `train`, or `valid` if there were validation lists.
    baseline : array, optional
        The metric of another model after each tree, drawn dashed.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, valid = rs.synth.cubic(200), rs.synth.cubic(80, start=200)
    >>> model = rs.train(train, valid=valid, algo="xcleaver", trees=10, grow=20, rate=0.5, leaves=8)
    >>> rs.plots.rounds(model).get_xlabel()
    'trees'
    """
    info = forest_of(model).info
    found = info.get("rounds", [])
    if not found or set_name not in found[0].get("growth", {}):
        raise ParameterError(
            f"the model has no rounds measured on {set_name!r}; train with ", param("algo", "xcleaver"),
            " (and validation data for 'valid')",
        )  # fmt: skip
    ax = axes_for(ax, (7.0, 4.5))
    if baseline is not None:
        ax.plot(np.arange(1, len(baseline) + 1), baseline, color=BASELINE, linestyle=(0, (3, 1.5)), linewidth=1.2)
        ax.axhline(baseline[-1], color=BASELINE, linestyle=(0, (1, 2)), linewidth=0.8)
    start = 0
    for number, facts in enumerate(found, start=1):
        trees, values = start + np.array(facts["growth"]["trees"]), np.array(facts["growth"][set_name])
        shown = slice(1, None) if start == 0 else slice(None)  # a forest without trees ranks nothing
        ax.plot(trees[shown], values[shown], color=COLOURS[0], linewidth=1.0, alpha=0.7)
        end = facts["trees"] if facts["improved"] else start + len(facts["kept"])
        after = facts["after"][set_name]
        for x, y, marker, colour in ((trees[-1], values[-1], "o", COLOURS[0]), (end, after, "s", COLOURS[1])):
            face = colour if marker == "o" or facts["improved"] else "white"
            ax.plot(x, y, marker=marker, markersize=5, color=colour, markerfacecolor=face, linestyle="none")
            ax.annotate(
                str(number), (x, y), xytext=(4, 4), textcoords="offset points", fontsize="x-small", color=colour
            )
        start = facts["trees"]
    label_axes(ax, x="trees", y=f"{info['params']['metric']}, {set_name}", title="○ grown   □ pruned and re-weighted")
    ax.set_xlim(left=0)
    return ax


def phase_costs(models: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Seconds of every phase of X-CLEaVER, with shares (Fig. 6).

    Parameters
    ----------
    models : mapping
        From names to models that `train` returned with `algo="xcleaver"`, or to seconds by phase.
    ax : Axes, optional

    Examples
    --------
    >>> import ranksieve as rs
    >>> rs.plots.phase_costs({"X-CLEaVER": {"grow": 2.0, "prune": 0.3, "reweight": 0.2}}).get_xlabel()
    'seconds'
    """
    if not models:
        raise ParameterError("got no models; give at least one")
    ax = axes_for(ax, (7.0, 1.2 + 0.45 * len(models)))
    costs = {name: _costs(name, model) for name, model in models.items()}
    names = list(costs)[::-1]
    left = np.zeros(len(names))
    for colour, (phase, words) in zip(COLOURS, PHASES.items(), strict=False):
        widths = np.array([costs[name].get(phase, 0.0) for name in names])
        ax.barh(names, widths, left=left, color=colour, label=words, height=0.7)
        for place, name in enumerate(names):
            share = widths[place] / max(sum(costs[name].values()), 1e-12)
            if share > 0.05:
                ax.text(left[place] + widths[place] / 2, place, f"{share:.0%}", ha="center", va="center",
                        fontsize="x-small", color="white")  # fmt: skip
        left += widths
    label_axes(ax, x="seconds", y="", legend=list(PHASES))
    return ax


def _panels(models: Mapping[str, Any], axes: Any) -> list[Axes]:
    """The given axes, or a figure with rows of three."""
    if not models:
        raise ParameterError("got no models; give at least one, as in {'quality-loss': pruned}")
    if axes is not None:
        given = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(given) != len(models):
            raise ParameterError(f"got {len(given)} axes for {len(models)} models; give one for each")
        return given
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    size = (7.0, 3.0) if len(models) == 1 else (max(3.2 * columns + 0.6, 7.0), 2.4 * rows)
    panels = panels_for(size, rows, columns)
    for spare in panels[len(models) :]:
        spare.remove()
    return panels[: len(models)]


def _buckets(name: str, model: Any, n_buckets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges of the buckets, the share of trees removed, and the mean weight of the others."""
    forest = forest_of(model)
    story = forest.info.get("pruning", {})
    if "given" not in story:
        raise ParameterError(f"{name!r} does not record which trees were removed; give a model that prune returned")
    n = story["given"]["trees"]
    if not 1 <= n_buckets <= n:
        raise ParameterError(
            param("buckets"), f" is {n_buckets}; expected an integer from 1 to {n}, the trees before pruning"
        )
    edges = np.linspace(0, n, n_buckets + 1).astype(int)
    kept = np.asarray(story["kept"], np.int64)
    n_kept = np.histogram(kept, edges)[0]
    sums = np.histogram(kept, edges, weights=np.asarray(story["weights"]) / story["given"]["weight"])[0]
    means = np.divide(sums, n_kept, out=np.zeros(n_buckets), where=n_kept > 0)
    return edges, 1 - n_kept / np.diff(edges), means


def _costs(name: str, model: Any) -> dict[str, float]:
    if isinstance(model, Mapping):
        return dict(model)
    info = forest_of(model).info
    if not info.get("rounds"):
        raise ParameterError(f"{name!r} was not trained in rounds; train with ", param("algo", "xcleaver"))
    if "phase_seconds" not in info:
        raise ParameterError(f"{name!r} has no times, which model files leave out; give the model that train returned")
    seconds: dict[str, float] = info["phase_seconds"]
    return seconds
