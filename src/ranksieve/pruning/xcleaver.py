"""X-CLEaVER: grow, prune, re-weight, and again from there (Lucchese et al. 2018, Algorithm 1)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ranksieve.boosting.disk_training import store_of
from ranksieve.boosting.initial_scores import TRAIN, ModelBase
from ranksieve.boosting.job import TrainingJob, model_info, named_sets, report_data, sizes_of
from ranksieve.boosting.position_bias import INFO
from ranksieve.boosting.train_forest import train_forest
from ranksieve.boosting.tree import to_forest
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.errors import InterruptedTraining, caller_level
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import Forest, concatenate
from ranksieve.params import Params
from ranksieve.pruning.cross_fitting import PruningPlan, prune_forest
from ranksieve.pruning.forest_pruner import ForestPruner
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.prune import only_training_lists
from ranksieve.pruning.records import Reporter
from ranksieve.pruning.weight_search import WeightSearch


def train_in_rounds(job: TrainingJob) -> Forest:
    """Train a forest of `params.trees` trees: grow `grow` trees, keep the best of them, re-weight them, repeat.

    Trees are judged on the first validation set, as in `prune`, or on the training lists without one. It ends
    early when a round does not improve the metric. Interrupted with Ctrl-C it returns the best forest so far.
    """
    params = job.params
    store = store_of(params)
    train_set = bin_data(job.data, **params.bin_limits, missing=job.missing, store=store)
    report_data(job.callbacks, TRAIN, train_set)
    sets = []
    for name, given in named_sets(job.valid).items():
        sets.append(bin_like(given, train_set, missing=job.missing, store=store))
        report_data(job.callbacks, name, sets[-1])
    judge = "valid" if sets else "train"
    if not sets:
        warnings.warn(only_training_lists(), stacklevel=caller_level())
    reporter = Reporter(params.metric, job.callbacks, judge)
    rounds = _XCleaverRun(job, train_set, sets[0] if sets else None, reporter)
    while rounds.model.n_trees < params.trees and rounds.interrupted is None and rounds.round():
        pass
    return rounds.finished()


@dataclass
class _XCleaverRun:
    """The model so far, and the record of its rounds."""

    job: TrainingJob
    train_set: Binned
    valid_set: Binned | None
    reporter: Reporter

    def __post_init__(self) -> None:
        self.params = self.job.params
        self.model = to_forest([], self.train_set.binning, self.train_set.feature_names, {})
        self.rounds: list[dict[str, Any]] = []
        self.seconds: list[float] = []
        self.phase_seconds: dict[str, float] = {}
        self.best: float | None = None
        self.interrupted: str | None = None
        self._metric = metric_of(self.params)
        self._biases: dict[str, Any] = {}  # biases of positions; each round goes on with those of the last one

    def round(self) -> bool:
        """One round; False if it did not improve the model, which then stays as it was."""
        n_grown, n_removed = plan(self.params, self.model.n_trees)
        self.reporter.round, self.reporter.seconds = len(self.rounds) + 1, {}
        grown = self._grow(n_grown)
        if grown is None:
            return False
        facts: dict[str, Any] = {"grown": grown.n_trees - self.model.n_trees}
        whole = self.params.global_ or self.model.n_trees == 0
        try:
            pruner, facts["growth"] = self._pruner(grown, whole)
        except KeyboardInterrupt:
            self.interrupted, self.model = "leaves", self.model if self.model.n_trees else grown
            return False
        facts["after_growing"] = pruner.before
        # new trees on top of fixed ones are compared with these; a forest pruned as a whole with the one before
        bar = pruner.measure(0)["valid"] if pruner.judge == "valid" and not whole else self.best
        if self.interrupted is None:
            strategy, search = self.params.strategy_rule, WeightSearch()
            facts |= prune_forest(pruner, PruningPlan(strategy, n_removed, search, True, self._seed(), "log"))
            self.interrupted = pruner.interrupted
        facts["after"], facts["kept"] = pruner.after(), pruner.kept.tolist()
        facts["weights"] = pruner.forest.weights.tolist()
        self.rounds.append(facts)
        self.seconds.append(sum(self.reporter.seconds.values()))
        for phase, seconds in self.reporter.seconds.items():
            self.phase_seconds[phase] = self.phase_seconds.get(phase, 0.0) + seconds
        value = facts.get("unseen", facts["after"].get("valid", facts["after"]["train"]))
        facts["improved"] = self.best is None or bar is None or value > bar
        if facts["improved"]:
            self.model = pruner.forest if whole else concatenate([self.model, pruner.forest])
            self.best = value
        facts["trees"] = self.model.n_trees
        return facts["improved"]

    def _seed(self) -> int:
        """The first round is the base algorithm's own, tree by tree; later ones draw other random numbers."""
        number = len(self.rounds)
        if number == 0:
            return self.params.seed
        return int(np.random.SeedSequence([self.params.seed, number]).generate_state(1)[0])

    def _grow(self, n: int) -> Forest | None:
        """The model with n more trees; fewer if interrupted, None if then there is nothing new to keep."""
        params, first = self.params, self.model.n_trees == 0
        changes: dict[str, Any] = {} if first else {"first_tree": "lambdas"}
        params = params.replace(algo=params.base, trees=n, early_stopping=0, seed=self._seed(), **changes)
        with self.reporter.phase("grow") as report:
            try:
                growing = replace(
                    self.job,
                    data=self.train_set,
                    params=params,
                    valid=None,
                    init=None if first else replace(self.model, info={**self.model.info, **self._biases}),
                    callbacks=[lambda record: report(record.step / n, None, self.best)],
                )
                grown = cast(Forest, train_forest(growing))
                self._biases = {INFO: grown.info[INFO]} if INFO in grown.info else {}
                return grown
            except KeyboardInterrupt as stopped:
                self.interrupted = "grow"
                if not first:
                    return None
                if not isinstance(stopped, InterruptedTraining):
                    raise
                return stopped.model

    def _pruner(self, grown: Forest, whole: bool) -> tuple[ForestPruner, dict[str, list[float]]]:
        """The trees to be pruned, on top of the scores of those that are not; and the curve of their growing."""
        forest = grown if whole else grown.take(np.arange(self.model.n_trees, grown.n_trees))
        data = {"train": self.train_set, **({} if self.valid_set is None else {"valid": self.valid_set})}
        with self.reporter.phase("leaves") as report:
            sets = {name: find_leaves(forest, lists) for name, lists in data.items()}
            if not whole:
                base = ModelBase(self.model, "the model")
                sets = {name: replace(sets[name], base=base.scores("", data[name], data[name])) for name in data}
            pruner = ForestPruner(forest, sets, self.reporter.judge_on, None, self._metric, self.reporter, True)
            growth = pruner.growth(self.model.n_trees if whole else 0)
            report(1.0, None, self.best)
        return pruner, growth

    def finished(self) -> Forest:
        """The model, and how it was made."""
        info = model_info(
            self.params,
            self.train_set.info,
            data=sizes_of(self.train_set.lists),
            round="round",
            seconds=self.seconds,  # model files leave times out
            phase_seconds=self.phase_seconds,
            best_score=self.best if self.valid_set is not None else None,
            rounds=self.rounds,
            interrupted=self.interrupted,
            **self._biases,
        )
        return replace(self.model, info=info)


def plan(params: Params, n_trees: int) -> tuple[int, int]:
    """How many trees the next round grows and removes; the last round ends at `params.trees` exactly.

    Examples
    --------
    >>> plan(Params(grow=400, rate=0.75, trees=1000), 0), plan(Params(grow=400, rate=0.75, trees=1000), 970)
    ((400, 300), (120, 90))
    """
    n = params.grow
    kept = n - int(params.rate * n + 1e-9)
    if n_trees + kept > params.trees:
        kept = params.trees - n_trees
        n = min(n, math.ceil(kept / (1 - params.rate) - 1e-9))
    return n, n - kept
