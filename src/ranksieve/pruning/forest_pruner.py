"""`ForestPruner`: pruning and re-weighting of one forest on lists whose leaf numbers are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import Metric
from ranksieve.forest.forest import Forest
from ranksieve.pruning.leaves import LeafTable
from ranksieve.pruning.records import Reporter, until_interrupted
from ranksieve.pruning.reweighting import WeightStep, better_step, search_weights
from ranksieve.pruning.strategies import LowWeights, Proposal, Strategy
from ranksieve.pruning.tree_outputs import TreeOutputs
from ranksieve.pruning.weight_search import WeightSearch
from ranksieve.text_formats import counted

GROWTH_POINTS = 40  # points of the curve of growing trees


@dataclass
class ForestPruner:
    """A forest that is pruned and re-weighted, and a record of how.

    Trees are judged on `sets[judge]`. The metric on `sets[watch]`, or on the same lists where `watch` is None, ends
    the search for weights and selects its best round. The other sets are only measured.
    """

    forest: Forest
    sets: dict[str, LeafTable]
    judge: str
    watch: str | None
    metric: Metric
    reporter: Reporter
    worth_keeping: bool = False  # whether Ctrl-C returns the current forest

    def __post_init__(self) -> None:
        self.original = self.forest
        self.kept = np.arange(self.forest.n_trees)  # their numbers in the original forest
        self.interrupted: str | None = None  # the phase that Ctrl-C ended
        self.curve: list[dict[str, float]] = []  # the metric after every round of re-weighting
        self.before = self.measure()
        self._after: dict[str, float] | None = None

    def measure(self, first: int | None = None) -> dict[str, float]:
        """The metric of the forest as it is now, or of its first trees, on every set."""
        kept = None if first is None else np.arange(first)
        outputs = {name: self.outputs(name) for name in self.sets}
        return {name: one.mean(one.total(kept)) for name, one in outputs.items()}

    def growth(self, n_before: int) -> dict[str, list[float]]:
        """The metric at some numbers of trees that were added to the first `n_before`."""
        ends = np.unique(np.linspace(n_before, self.forest.n_trees, GROWTH_POINTS + 1).astype(int))
        return {"trees": (ends - n_before).tolist(), **{name: _growth(self.outputs(name), ends) for name in self.sets}}

    def use_first_trees(self, n: int, values: dict[str, float]) -> None:
        """The first trees of the original forest in place of the pruned ones; `values` are their metric on the sets."""
        self.kept, self.forest = np.arange(n), self.original.take(np.arange(n))
        self._after = values

    def prune(self, strategy: Strategy, n: int, search: WeightSearch, rng: np.random.Generator) -> None:
        """Remove n trees."""
        with self._interruptible("prune"):
            self._prune(strategy, n, search, rng)

    def reweight(self, search: WeightSearch) -> None:
        """Search better weights for the remaining trees."""
        with self._interruptible("reweight"):
            self._reweight(search)

    @contextmanager
    def _interruptible(self, phase: str) -> Iterator[None]:
        """Ctrl-C before a phase has a result ends the phase, if the forest is worth keeping without it."""
        try:
            yield
        except KeyboardInterrupt:
            if not self.worth_keeping:
                raise
            self.interrupted = phase

    def _prune(self, strategy: Strategy, n: int, search: WeightSearch, rng: np.random.Generator) -> None:
        if isinstance(strategy, LowWeights) and np.ptp(self.forest.weights) == 0:
            self.reweight(search)
            if self.interrupted:
                return
        outputs = self.outputs(self.judge)
        removed = np.empty(0, np.int64)
        with self.reporter.phase("prune") as report:

            def take(proposal: Proposal) -> None:
                nonlocal removed
                removed = proposal.trees
                report(proposal.done, None if proposal.total is None else outputs.mean(proposal.total), None)

            if until_interrupted(_proposals(strategy, outputs, n, rng), take):
                self.interrupted = "prune"
            self._remove(_checked(removed, n, self.forest.n_trees, bool(self.interrupted)))

    def _reweight(self, search: WeightSearch) -> None:
        outputs = self.outputs(self.judge)
        watched = None if self.watch is None else self.outputs(self.watch)
        best: WeightStep | None = None
        with self.reporter.phase("reweight") as report:

            def take(found: WeightStep) -> None:
                nonlocal best
                best = better_step(found, best)
                values, best_value = {self.judge: outputs.mean(found.total)}, None
                if watched is not None and self.watch is not None:
                    values[self.watch] = watched.mean(found.valid_total or 0)
                    best_value = watched.mean(best.valid_total or 0)
                over = found.without_gain >= search.patience
                ended = f"ended after {counted(round=found.round)}, no gain for {found.without_gain}" if over else None
                report(found.round / search.rounds, values[self.judge], best_value, ended)
                self.curve.append(values)

            if until_interrupted(search_weights(outputs, watched, search), take):
                self.interrupted = "reweight"
            if best is not None:
                self.forest = self.forest.reweighted(best.weights)

    def outputs(self, name: str) -> TreeOutputs:
        return TreeOutputs(self.forest, self.sets[name], self.metric)

    def _remove(self, trees: np.ndarray) -> None:
        stay = np.setdiff1d(np.arange(self.forest.n_trees), trees)
        self.forest = self.forest.take(stay)
        self.kept = self.kept[stay]
        self.worth_keeping = True
        self.sets = {name: leaves.keep(stay) for name, leaves in self.sets.items()}

    def after(self) -> dict[str, float]:
        """The metric of the forest that is returned."""
        return self.measure() if self._after is None else self._after

    def facts(self) -> dict[str, Any]:
        """The record of pruning that the model file keeps."""
        return {
            "given": {"trees": self.original.n_trees, "weight": float(np.abs(self.original.weights).mean())},
            "judge_on": self.judge,
            "kept": self.kept.tolist(),
            "weights": self.forest.weights.tolist(),
            "metric": str(self.metric),
            "before": self.before,
            "after": self.after(),
            "rounds": self.curve,
            "interrupted": self.interrupted,
        }


def _growth(outputs: TreeOutputs, ends: np.ndarray) -> list[float]:
    """The metric of the first trees up to each end; every tree is added once."""
    unit = outputs.unit(outputs.weights)
    table, scores, values = outputs.table(outputs.weights, unit), outputs.base(unit), []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        scores = outputs.scores(table, np.arange(start, end), scores)
        values.append(outputs.mean(outputs.measure(scores)))
    return values


def _proposals(strategy: Strategy, outputs: TreeOutputs, n: int, rng: np.random.Generator) -> Iterable[Proposal]:
    found = strategy(outputs, n, rng)
    return found if isinstance(found, Iterator) else [Proposal(np.asarray(found))]


def _checked(trees: np.ndarray, n: int, n_trees: int, interrupted: bool) -> np.ndarray:
    """The trees that a strategy returned: n different numbers, or fewer if it was interrupted."""
    trees = np.asarray(trees)
    fine = trees.ndim == 1 and trees.dtype.kind in "iu" and len(np.unique(trees)) == len(trees)
    fine = (
        fine and (len(trees) == n or interrupted) and (not len(trees) or (trees.min() >= 0 and trees.max() < n_trees))
    )
    if not fine:
        raise ParameterError(f"the strategy returned {trees!r}; expected {n} different numbers from 0 to {n_trees - 1}")
    return trees
