"""The figures of a report: from stored cells to pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve import plots
from ranksieve.evaluation.comparisons import difference_by_size
from ranksieve.evaluation.ranks import rank_distribution, rank_heat_map
from ranksieve.experiments.results import CellResult, Results
from ranksieve.report import pruning_figures
from ranksieve.report.tables import sampled_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named = Iterator[tuple[str, Any]]  # a caption and the axes


def figures(results: Results) -> Iterator[tuple[str, str, Figure]]:
    """Every figure an experiment asks for: a file name, a caption and the picture, which the caller closes."""
    for data in results.data:
        for kind in results.facts["figures"]:
            for number, (caption, ax) in enumerate(FIGURES[kind](results, data) if kind in FIGURES else ()):
                yield "-".join([kind, *data.split(), *([str(number + 1)] if number else [])]), caption, ax.figure


def curves(results: Results, data: str) -> Named:
    """The test metric tree by tree; a figure for each value of a second axis of a grid."""
    metric = results.facts["metrics"][0]
    groups = [group for group in results.groups(data) if group.has_stages]
    baseline = next((group.label for group in groups if group.run == results.facts["baseline"]), None)
    if len({group.run for group in groups}) == 1:
        baseline = None
    panels = dict.fromkeys(_others(group.grid) for group in groups if len(group.grid) > 1) or {"": None}
    for panel in panels:
        drawn = [group for group in groups if _others(group.grid) in ("", panel)]
        most = max(group.curve()[0][-1] for group in drawn)
        shown = {  # rankers without trees are the same all along
            group.label: ([1, most], [group.value(metric)] * 2) if group.n_trees is None else group.curve()
            for group in drawn
        }
        where = f" ({panel})" if panel else ""
        yield (
            f"{metric} on the test lists of {data} by number of trees{where}",
            plots.learning_curves(shown, metric=metric, baseline=baseline),
        )


def steps(results: Results, data: str) -> Named:
    """The step along each tree, of the runs whose steps are optimal."""
    groups = results.groups(data)
    found = {group.label: group.cells[0].table("curve").get("step") for group in groups}
    shown = {label: chosen for label, chosen in found.items() if chosen is not None}
    if shown:
        yield f"Step α along each tree on {data}", plots.tree_steps(shown)


def sizes(results: Results, data: str) -> Named:
    """The difference of two runs by list size."""
    metric = results.facts["metrics"][0]
    best = {group.run: group for group in results.best(data)}
    first, second = results.facts["compare"] or (next(iter(best)), results.facts["baseline"])
    names_a, a = best[first].per_query(metric)
    names_b, b = best[second].per_query(metric)
    n_docs = best[first].per_query("n_docs")[1]
    _, at_a, at_b = np.intersect1d(names_a, names_b, return_indices=True)
    buckets = difference_by_size(a[at_a], b[at_b], n_docs[at_a])
    above, _ = plots.difference_by_size(buckets, metric=metric, names=(best[first].label, best[second].label))
    yield f"Difference in {metric} on {data} by list size, and the number of queries", above


def heat(results: Results, data: str) -> Named:
    """How often each first-stage rank of each training query was selected."""
    for cell in _with_selections(results, data):
        selected = cell.table("selected")
        n_docs = results.lists(data, "train", cell.facts["fold"])["n_docs"]
        grid = rank_heat_map(selected["query"], selected["rank"], selected["count"], n_docs)
        yield f"Selections of {cell.label} on {data}", plots.rank_heat_map(*grid, title=cell.label)


def cumulative(results: Results, data: str) -> Named:
    """The first-stage ranks of the selected negatives."""
    found = {}
    for cell in _with_selections(results, data):
        selected = cell.table("selected")
        found[cell.label] = rank_distribution(selected["rank"], selected["count"])
    yield f"First-stage ranks of selected negatives on {data}", plots.rank_distribution(found)


def _with_selections(results: Results, data: str) -> list[CellResult]:
    """The first cell of each group that recorded its selections."""
    firsts = [group.cells[0] for group in results.groups(data)]
    return [cell for cell in firsts if cell.facts["settings"]["selections"]]


def shared(results: Results, data: str) -> Named:
    """How many leaves pairs of negatives share."""
    firsts = [group.cells[0] for group in results.groups(data)]
    counts = {
        cell.label: cell.table("shared_leaves")["pairs"] for cell in firsts if cell.facts["settings"]["shared_leaves"]
    }
    yield f"Leaves shared by pairs of training negatives of {data}", plots.shared_leaves(counts)


def shares(results: Results, data: str) -> Named:
    """Each metric against the share of the training set, and the training time."""
    baseline = results.groups(data, results.facts["baseline"])
    if not baseline:  # it is not finished
        return
    full, runs = baseline[0], sampled_runs(results, data)
    for metric in results.facts["metrics"]:
        lines = {
            run: ([group.share for group in groups], [group.value(metric) for group in groups])
            for run, groups in runs.items()
        }
        yield (
            f"{metric} on {data} against the share of the training set",
            plots.share_curves(lines, metric=metric, full=full.value(metric)),
        )
    times = {
        run: ([group.share for group in groups], [group.seconds("training") for group in groups])
        for run, groups in runs.items()
    }
    yield (
        f"Training time on {data} against the share of the training set",
        plots.share_curves(times, metric="seconds of training", full=full.seconds("training")),
    )


def efficiency(results: Results, data: str) -> Named:
    """The metric against the time of a tree and of the whole training."""
    metric = results.facts["metrics"][0]
    groups = results.groups(data)
    kinds = {group.label: ", ".join(filter(None, [group.run, _others(group.grid)])) for group in groups}
    marks = {group.label: _first(group.grid) for group in groups}
    for time, words in (("per_tree", "seconds for a tree (median)"), ("training", "seconds of training")):
        points = {group.label: (group.seconds(time), group.value(metric)) for group in groups}
        yield (
            f"{metric} on {data} against {words}",
            plots.time_against_quality(points, metric=metric, time=words, groups=kinds, marks=marks),
        )


def _others(grid: dict[str, Any]) -> str:
    """All but the first axis of a grid, in words."""
    return ", ".join(f"{name} {value}" for name, value in list(grid.items())[1:])


def _first(grid: dict[str, Any]) -> str:
    """The value on the first axis of a grid."""
    return str(next(iter(grid.values()), ""))


FIGURES: dict[str, Callable[[Results, str], Named]] = {
    "curves": curves,
    "steps": steps,
    "sizes": sizes,
    "heat": heat,
    "cumulative": cumulative,
    "shared-leaves": shared,
    "shares": shares,
    "efficiency": efficiency,
    "removed": pruning_figures.removed,
    "weights": pruning_figures.weights,
    "phases": pruning_figures.phases,
    "costs": pruning_figures.costs,
}
