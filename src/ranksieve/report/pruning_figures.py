"""Figures of pruning and of X-CLEaVER."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ranksieve import plots
from ranksieve.experiments.results import Group, Results

BUCKETS = 10


def removed(results: Results, data: str) -> Iterator[tuple[str, Any]]:
    """Which trees each strategy removed."""
    for title, models in _pruned(results, data):
        yield f"Trees that were removed: {title}, on {data}", _drawn(plots.removed_trees, models)


def weights(results: Results, data: str) -> Iterator[tuple[str, Any]]:
    """Weights of the remaining trees along the forest."""
    for title, models in _pruned(results, data):
        yield f"Weights of the trees that stayed: {title}, on {data}", _drawn(plots.tree_weights, models)


def _drawn(draw: Callable[..., list[Any]], models: dict[str, Any]) -> Any:
    fewest = min(model.info["pruning"]["given"]["trees"] for model in models.values())
    return draw(models, buckets=min(BUCKETS, fewest))[0]


def _pruned(results: Results, data: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pruned models by strategy, for each run and each choice of the rest of its grid; of several seeds the first."""
    found: dict[str, dict[str, Any]] = {}
    for group in results.groups(data):
        if group.pruned is not None:
            words = [f"{name} {value}" for name, value in group.grid.items() if name != "strategy"]
            strategy = group.cells[0].facts["settings"]["params"]["strategy"]
            found.setdefault(", ".join([group.run, *words]), {})[f"strategy {strategy}"] = group.cells[0].model()
    yield from found.items()


def phases(results: Results, data: str) -> Iterator[tuple[str, Any]]:
    """The metric on training lists through the rounds of every X-CLEaVER run, beside the baseline's."""
    metric = results.facts["metrics"][0]
    baseline = results.groups(data, results.facts["baseline"])
    values = baseline[0].cells[0].table("curve").get("train") if baseline else None
    for group in _in_rounds(results, data):
        ax = plots.rounds(group.cells[0].model(), baseline=values)
        dashed = f"; dashed: {baseline[0].label}" if baseline else ""
        yield f"{metric} on the training lists of {data} while {group.label} is made{dashed}", ax


def costs(results: Results, data: str) -> Iterator[tuple[str, Any]]:
    """Seconds of every phase of X-CLEaVER."""
    seconds = {group.label: group.cells[0].facts["seconds"].get("phases") for group in _in_rounds(results, data)}
    known = {label: phases for label, phases in seconds.items() if phases is not None}
    if known:
        yield f"Time of the phases of X-CLEaVER on {data}", plots.phase_costs(known)


def _in_rounds(results: Results, data: str) -> list[Group]:
    return [
        group for group in results.groups(data)
        if group.pruned is None and group.cells[0].facts["settings"]["params"]["algo"] == "xcleaver"
    ]  # fmt: skip
