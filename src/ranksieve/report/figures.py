"""The figures of a report: from stored cells to pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve import plots
from ranksieve.evaluation.analyses import difference_by_size, rank_distribution, rank_heat_map
from ranksieve.experiments.results import CellResult, Group, Results
from ranksieve.experiments.spec import FIGURES
from ranksieve.report.result_tables import sampled_runs
from ranksieve.report.size_tables import sized_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named = Iterator[tuple[str, Any]]  # titles and axes
BUCKETS = 10  # runs of consecutive trees that the figures of pruned forests show


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file, its title and its caption."""

    name: str
    title: str
    caption: str
    figure: Figure  # to be closed by the caller


def figures(results: Results) -> Iterator[Picture]:
    """Every figure of the specification."""
    for data in results.data:
        for kind in results.facts["figures"]:
            for number, (title, ax) in enumerate(DRAWN[kind](results, data) if kind in DRAWN else ()):
                name = "-".join([kind, *data.split(), *([str(number + 1)] if number else [])])
                yield Picture(name, title, _caption(kind, results, data), ax.figure)


def curves(results: Results, data: str) -> Named:
    """The test metric tree by tree; a figure for each value of a second axis of a grid."""
    metric = results.facts["metrics"][0]
    groups = [group for group in results.groups(data) if group.has_stages]
    baseline = _baseline_label(results, data)
    panels = dict.fromkeys(_others(group.grid) for group in groups if len(group.grid) > 1) or {"": None}
    for panel in panels:
        drawn = [group for group in groups if _others(group.grid) in ("", panel)]
        forests = {group.label: _by_round(group) for group in drawn if group.n_trees is not None}
        most = max((rounds[-1] for rounds, _ in forests.values()), default=1)
        shown = {  # rankers without trees have one value
            group.label: forests.get(group.label, ([1, most], [group.value(metric)] * 2)) for group in drawn
        }
        ax = plots.learning_curves(shown, metric=metric, baseline=baseline)
        several = {group.run: size for group in drawn if (size := _trees_of_a_round(group)) > 1}
        if several:
            words = "; ".join(f"{run}: rounds of {size} trees" for run, size in several.items())
            ax.set_xlabel(f"trees ({words})")
        where = f" ({panel})" if panel else ""
        yield f"{metric} on the test lists of {data} by number of trees{where}", ax


def _by_round(group: Group) -> tuple[np.ndarray, np.ndarray]:
    """The curve by trees, or by rounds where a round grows several trees, one for each grade."""
    trees, values = group.curve()
    return trees // _trees_of_a_round(group), values


def _trees_of_a_round(group: Group) -> int:
    """How many trees are grown between two points of a curve: one for each grade, or one."""
    if group.n_trees is None or group.in_rounds:
        return 1
    trees = group.curve()[0]
    return int(trees[1] - trees[0]) if len(trees) > 1 else 1


def _baseline_label(results: Results, data: str) -> str | None:
    """The curve that is drawn dark and dashed; none if there is only one run."""
    groups = [group for group in results.groups(data) if group.has_stages]
    if len({group.run for group in groups}) == 1:
        return None
    return next((group.label for group in groups if group.run == results.facts["baseline"]), None)


def _caption(kind: str, results: Results, data: str) -> str:
    if kind == "sizes":
        return FIGURES[kind].format(first=_compared(results, data)[0].label)
    baseline = _baseline_label(results, data) if kind == "curves" else None
    return FIGURES[kind] + ("" if baseline is None else f" The dark dashed line is {baseline}, the baseline.")


def steps(results: Results, data: str) -> Named:
    """The step along each tree, of the runs whose steps are optimal."""
    groups = results.groups(data)
    found = {group.label: group.first.table("curve").get("step") for group in groups}
    shown = {label: chosen for label, chosen in found.items() if chosen is not None}
    if shown:
        yield f"Step α along each tree on {data}", plots.tree_steps(shown)


def _compared(results: Results, data: str) -> tuple[Group, Group]:
    """The two runs of the figure of list sizes."""
    best = {group.run: group for group in results.best(data)}
    first, second = results.facts["compare"] or (next(iter(best)), results.facts["baseline"])
    return best[first], best[second]


def sizes(results: Results, data: str) -> Named:
    """The difference of two runs by list size."""
    metric = results.facts["metrics"][0]
    first, second = _compared(results, data)
    names_a, a = first.per_query(metric)
    names_b, b = second.per_query(metric)
    n_docs = first.per_query("n_docs")[1]
    _, at_a, at_b = np.intersect1d(names_a, names_b, return_indices=True)
    buckets = difference_by_size(a[at_a], b[at_b], n_docs[at_a])
    above, _ = plots.difference_by_size(buckets, metric=metric, names=(first.label, second.label))
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
    firsts = [group.first for group in results.groups(data)]
    return [cell for cell in firsts if cell.settings["selections"]]


def shared(results: Results, data: str) -> Named:
    """How many leaves pairs of negatives share."""
    firsts = [group.first for group in results.groups(data)]
    counts = {cell.label: cell.table("shared_leaves")["pairs"] for cell in firsts if cell.settings["shared_leaves"]}
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
        "seconds per tree (median)": lambda group: group.seconds_per_tree,
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


def by_size(results: Results, data: str) -> Named:
    """The metric of forests by their size; a figure for all that were trained, and one for each that was pruned."""
    metric = results.facts["metrics"][0]
    for title, lines in sized_runs(results, data):
        points = {line.name: sorted((size.trees, size.value) for size in line.sizes) for line in lines}
        if any(len(found) > 1 for found in points.values()):
            shown = {name: tuple(np.transpose(found)) for name, found in points.items()}
            ax = plots.learning_curves(shown, metric=metric, baseline=results.facts["baseline"])
            legend = ax.get_legend()
            for drawn in [*ax.lines, *(legend.get_lines() if legend is not None else ())]:
                drawn.set(marker="o", markersize=3.5)
            yield f"{metric} on {data} by number of trees{title}", ax


def removed(results: Results, data: str) -> Named:
    """Which trees each strategy removed."""
    for title, models in _pruned(results, data):
        yield f"Removed trees: {title}, on {data}", _in_buckets(plots.removed_trees, models)


def weights(results: Results, data: str) -> Named:
    """Weights of the remaining trees along the forest."""
    for title, models in _pruned(results, data):
        yield f"Weights of the remaining trees: {title}, on {data}", _in_buckets(plots.tree_weights, models)


def _in_buckets(draw: Callable[..., list[Any]], models: dict[str, Any]) -> Any:
    fewest = min(model.info["pruning"]["given"]["trees"] for model in models.values())
    return draw(models, buckets=min(BUCKETS, fewest))[0]


def _pruned(results: Results, data: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pruned models by strategy, for each run and each choice of the rest of its grid; the first seed."""
    found: dict[str, dict[str, Any]] = {}
    for group in results.groups(data):
        if group.pruned is not None:
            words = [f"{name} {value}" for name, value in group.grid.items() if name != "strategy"]
            strategy = group.params["strategy"]
            found.setdefault(", ".join([group.run, *words]), {})[f"strategy {strategy}"] = group.first.model()
    yield from found.items()


def phases(results: Results, data: str) -> Named:
    """The metric on training lists through the rounds of every X-CLEaVER run, and the baseline's."""
    metric = results.facts["metrics"][0]
    baseline = results.groups(data, results.facts["baseline"])
    values = baseline[0].first.table("curve").get("train") if baseline else None
    for group in _in_rounds(results, data):
        ax = plots.rounds(group.first.model(), baseline=values)
        dashed = f" (dashed: {baseline[0].label})" if baseline else ""
        yield f"{metric} on the training lists of {data} while {group.label} is trained{dashed}", ax


def costs(results: Results, data: str) -> Named:
    """Seconds of every phase of X-CLEaVER."""
    seconds = {group.label: group.first.facts["seconds"].get("phases") for group in _in_rounds(results, data)}
    known = {label: phases for label, phases in seconds.items() if phases is not None}
    if known:
        yield f"Time of the phases of X-CLEaVER on {data}", plots.phase_costs(known)


def _in_rounds(results: Results, data: str) -> list[Group]:
    return [group for group in results.groups(data) if group.in_rounds]


def _others(grid: dict[str, Any]) -> str:
    """All but the first axis of a grid, in words."""
    return ", ".join(f"{name} {value}" for name, value in list(grid.items())[1:])


def _first(grid: dict[str, Any]) -> str:
    """The value on the first axis of a grid."""
    return str(next(iter(grid.values()), ""))


DRAWN: dict[str, Callable[[Results, str], Named]] = {
    "curves": curves,
    "steps": steps,
    "sizes": sizes,
    "heat": heat,
    "cumulative": cumulative,
    "shared-leaves": shared,
    "shares": shares,
    "efficiency": efficiency,
    "by-size": by_size,
    "removed": removed,
    "weights": weights,
    "phases": phases,
    "costs": costs,
}
