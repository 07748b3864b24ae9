"""The figures of a report: from stored cells to pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve import plots
from ranksieve.evaluation.analyses import difference_by_size, rank_distribution, rank_heat_map
from ranksieve.experiments.results import CellResult, Group, Results
from ranksieve.report import pruning_figures
from ranksieve.report.tables import sampled_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named = Iterator[tuple[str, Any]]  # a title and the axes
MEANINGS = {  # what a reader sees in a figure of each kind
    "curves": "Tree by tree, also beyond those that validation lists chose, until training stopped. The mean over "
    "seeds and folds; dashed: the baseline.",
    "steps": "The step that is best for the metric on the lists that steps are chosen on.",
    "sizes": "Above: the mean difference over the queries whose lists have so many documents, with its standard "
    "error; above 0 the first is better. Pale bars stand for fewer than 5 queries and say little. Below: how many test "
    "queries these are.",
    "heat": "Each row is a training query, short lists above, each column a range of first-stage ranks. Bright: "
    "negatives there were selected for many trees.",
    "cumulative": "Of all selections of a negative for a tree, the share that fell on first-stage ranks up to each.",
    "shared-leaves": "All pairs of negatives of one training query, under each model: further right, a model tells "
    "negatives apart less.",
    "shares": "Points are means over samples; dashed: everything.",
    "efficiency": "The upper left is best: more quality in less time. Points are choices of the grid.",
    "removed": "The forest from its first tree to its last, cut into runs of trees: how many of each were removed.",
    "weights": "Mean weight of the trees that stayed, 1 being the mean before; in the bars, the share removed.",
    "phases": "Rounds are numbered: a circle where a round has grown its trees, a square after it pruned and weighed "
    "them.",
    "costs": "Shares of the time of all rounds.",
}


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file, its title, and what is to be seen."""

    name: str
    title: str
    meaning: str
    figure: Figure  # to be closed by the caller


def figures(results: Results) -> Iterator[Picture]:
    """Every figure an experiment asks for."""
    for data in results.data:
        for kind in results.facts["figures"]:
            for number, (title, ax) in enumerate(FIGURES[kind](results, data) if kind in FIGURES else ()):
                name = "-".join([kind, *data.split(), *([str(number + 1)] if number else [])])
                yield Picture(name, title, MEANINGS[kind], ax.figure)


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
    times: dict[str, Callable[[Group], float | None]] = {
        "seconds for a tree (median)": lambda group: group.seconds_per_tree,
        "seconds of training": lambda group: group.seconds("training"),
    }
    for words, seconds in times.items():
        timed = [(group, seconds(group)) for group in groups]
        points = {group.label: (took, group.value(metric)) for group, took in timed if took is not None}
        if points:
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
