"""Cross-fitted pruning: trees are chosen on one half of the lists and measured on the other.

The training lists cannot show overfitting, so trees are chosen on other lists. The score on the lists that they are
chosen on is optimistic. Therefore the lists are split into halves, pruning on each half is measured on the other, and
the mean of the two estimates the score on unseen lists.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.errors import RanksieveWarning, caller_level
from ranksieve.pruning.forest_pruner import ForestPruner
from ranksieve.pruning.records import PruningRecord, Reporter
from ranksieve.pruning.strategies import Strategy
from ranksieve.pruning.weight_search import WeightSearch

LOG = logging.getLogger("ranksieve")


@dataclass(frozen=True)
class PruningPlan:
    """How many trees are removed, by which strategy, and how weights are searched."""

    strategy: Strategy
    n_removed: int  # 0: weights are searched only
    search: WeightSearch
    reweight: bool
    seed: int
    # If pruned trees are worse than the first trees: "warn" and "log" return the first trees, "keep" the pruned ones.
    if_worse: str = "warn"


@dataclass(frozen=True)
class CrossFit:
    """The metric of pruned forests on lists that they were not judged on, at the best number of rounds."""

    value: float
    rounds: int


def prune_forest(pruner: ForestPruner, plan: PruningPlan) -> dict[str, Any]:
    """Prune and re-weight as planned; returns the metrics on lists that trees were not judged on.

    If trees are judged on validation lists, cross-fitting gives the number of rounds of re-weighting. If truncating
    the forest to the same size is better on lists that the pruned trees were not judged on, the truncated forest is
    returned, with a warning, unless the plan has another `if_worse`.
    """
    n_kept = pruner.forest.n_trees - plan.n_removed
    first = pruner.measure(n_kept) if plan.n_removed else {}
    try:
        found = cross_fit(pruner, plan) if pruner.judge == "valid" else None
    except KeyboardInterrupt:
        if not pruner.worth_keeping:
            raise
        pruner.interrupted = "check"
        return {}
    bar = -np.inf if plan.if_worse == "keep" else first.get("valid", -np.inf)
    if found is not None and found.value < bar:
        return _first_trees(pruner, n_kept, found.value, first, plan.if_worse)
    facts: dict[str, Any] = {}
    if plan.n_removed:
        pruner.prune(plan.strategy, plan.n_removed, plan.search, np.random.default_rng(plan.seed))
        facts["after_pruning"] = pruner.measure()
    if plan.reweight and pruner.interrupted is None:
        if found is None:
            pruner.reweight(plan.search)
        elif found.rounds:
            pruner.reweight(replace(plan.search, rounds=found.rounds, patience=found.rounds + 1))
    if found is not None:
        return {**facts, "unseen": found.value, "returned": "pruned"}
    if pruner.watch != "valid":
        return facts
    value = pruner.measure()["valid"]
    if pruner.interrupted is None and value < bar:
        return _first_trees(pruner, n_kept, value, first, plan.if_worse)
    return {**facts, "unseen": value, "returned": "pruned"}


def _first_trees(pruner: ForestPruner, n: int, value: float, first: dict[str, float], if_worse: str) -> dict[str, Any]:
    """The first n trees in place of pruned ones that are worse; `first` are their values."""
    pruner.use_first_trees(n, first)
    unseen = " that trees were not judged on" if pruner.judge == "valid" else ""
    message = (
        f"{pruner.metric} on validation lists{unseen} is {value:.4f} after pruning and {first['valid']:.4f} with the "
        f"first {n} trees; the first {n} trees are returned"
    )
    if if_worse == "warn":
        warnings.warn(RanksieveWarning(message), stacklevel=caller_level())
    else:
        LOG.info("round %d: %s", pruner.reporter.round, message)
    return {"after_pruning": first, "unseen": first["valid"], "returned": "first trees"}


def cross_fit(pruner: ForestPruner, plan: PruningPlan) -> CrossFit | None:
    """Pruning on each half of the lists, measured on the other half; None if there are fewer than two lists."""
    halves = _halves(pruner, plan.seed)
    if halves is None:
        return None
    curves, weights = [], []
    with pruner.reporter.phase("check") as report:
        for number, (fit, check) in enumerate((halves, halves[::-1])):

            def forward(record: PruningRecord, number: int = number) -> None:
                share = 0.5 * (record.done + (record.phase == "reweight")) if plan.n_removed else record.done
                report(0.5 * (number + share), None, None)

            sets = {
                "fit": pruner.sets[pruner.judge].take_queries(fit),
                "check": pruner.sets[pruner.judge].take_queries(check),
            }
            half = ForestPruner(pruner.forest, sets, "fit", "check", pruner.metric, Reporter("", [forward]))
            curves.append(_curve(half, plan))
            weights.append(half.outputs("check").total_weight)
        report(1.0, None, None)
    length = min(map(len, curves))
    means = np.average([curve[:length] for curve in curves], axis=0, weights=weights)
    return CrossFit(float(means.max()), int(means.argmax()))


def _curve(half: ForestPruner, plan: PruningPlan) -> list[float]:
    """The metric on the other half after pruning, and after every round of re-weighting."""
    if plan.n_removed:
        half.prune(plan.strategy, plan.n_removed, plan.search, np.random.default_rng(plan.seed))
    values = [half.measure()["check"]]
    if plan.reweight and half.interrupted is None:
        before = len(half.curve)
        half.reweight(plan.search)
        values = [step["check"] for step in half.curve[before:]]
    if half.interrupted is not None:
        raise KeyboardInterrupt
    return values


def _halves(pruner: ForestPruner, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Two random halves of the queries on which the metric is defined."""
    counted = np.flatnonzero(pruner.outputs(pruner.judge).incremental.weights > 0)
    if len(counted) < 2:
        return None
    order = np.random.default_rng(seed).permutation(counted)
    middle = len(order) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])
