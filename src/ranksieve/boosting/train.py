"""Training a boosted forest: from a job to a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import MeasuredSet, Monitor, Record, SelectionCounter, ValidationSet
from ranksieve.boosting.checkpoint import Checkpointer, CheckpointOptions, fingerprint, finished
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.initial_scores import TRAIN, Base, make_base
from ranksieve.boosting.job import TrainingJob, check_grades, model_info, named_sets
from ranksieve.boosting.loop import Parts, State, boost
from ranksieve.boosting.oblivious import ObliviousGrower
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import TrainingLists
from ranksieve.boosting.tree import to_forest
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.errors import ClusterError, InterruptedTraining, ParameterError, param
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import Forest
from ranksieve.models.blend import Blend
from ranksieve.params import Params
from ranksieve.threads import using_threads

GROWERS: dict[str, type[Grower]] = {"best-first": Grower, "oblivious": ObliviousGrower}


def train_forest(job: TrainingJob) -> Forest | Blend:
    """Train a boosted forest.

    A file is streamed into bins; its float matrix is never held whole. The forest ends at the best tree of the first
    validation set. With `job.init` the trees correct the errors of a base model (LambdaSMART).
    """
    params = job.params
    with using_threads(params.threads or os.cpu_count() or 1) as threads:
        given = open_data(job.data, missing=job.missing)
        train_set = bin_data(given, max_bins=params.max_bins, binning=job.binning)
        check_grades(train_set.lists, train_set.source, pairs=needs_pairs(params))
        constant = constant_of(*label_sums(train_set.lists)) if starts_at_mean(params) else 0.0
        base = make_base(job.init, constant, train_set, given)
        check_start(params, base)
        start = Scores(train_set, start=base.scores(TRAIN, given, train_set))
        valid_sets = list(_validation_sets(job, train_set, base))
        lists = TrainingLists(train_set.lists, params, metric_of(params), first_selection(base))
        step_size = params.step_rule((train_set, start), [(one.data, one.scores) for one in valid_sets], lists.metric)
        grower = GROWERS[params.forest_algorithm.grower](train_set, params, threads=threads)
        starts = [start, *(one.scores for one in valid_sets)]
        if job.counter is not None:
            job.counter.begin(train_set.lists, resume=job.checkpoint.resume, row_fraction=params.row_fraction)
        return BoostingRun(
            params=params,
            data=train_set,
            base=base,
            parts=Parts(lists, grower, step_size),
            state=State([], start, lists.all_rows),
            valid_sets=valid_sets,
            callbacks=job.callbacks,
            checkpoint=job.checkpoint,
            fingerprint=lambda: fingerprint(train_set, valid_sets, starts, params),
            counter=job.counter,
        ).train()


@dataclass
class BoostingRun:
    """A forest in training, with everything that happens after a tree.

    `fingerprint` describes the data and parameters that a checkpoint must match.
    """

    params: Params
    data: Binned
    base: Base
    parts: Parts[Any, Any]
    state: State[Any]
    valid_sets: Sequence[MeasuredSet]
    callbacks: Sequence[Callable[[Record], None]]
    checkpoint: CheckpointOptions
    fingerprint: Callable[[], dict[str, Any]]
    counter: SelectionCounter | None = None

    def train(self) -> Forest | Blend:
        """Boost to the end; Ctrl-C raises `InterruptedTraining` with the model of the finished trees."""
        params = self.params
        monitor = Monitor(self.valid_sets, metric_of(params), params.trees, params.early_stopping, self.callbacks)
        if self.base.ranks:
            monitor.measure_base(self.state)
        after_tree: list[Callable[[State[Any]], None]] = [monitor]
        if self.counter is not None:
            after_tree.append(self.counter)
        checkpointer = self._checkpointer(monitor)
        if checkpointer is not None:
            after_tree.append(checkpointer)
        try:
            boost(self.parts, self.state, n_trees=params.trees, seed=params.seed, callbacks=after_tree)
        except (ClusterError, KeyboardInterrupt) as error:
            self.state = finished(self.state)  # finished trees are kept even if workers were lost
            if checkpointer is not None and self.state.trees:
                checkpointer.save(self.state)
            if isinstance(error, KeyboardInterrupt) and self.state.trees:
                raise InterruptedTraining(self._model(monitor)) from None
            raise
        return self._model(monitor)

    def _checkpointer(self, monitor: Monitor) -> Checkpointer | None:
        options = self.checkpoint
        if options.folder is None:
            if options.resume:
                raise ParameterError(param("resume"), " needs a checkpoint folder; give ", param("checkpoint"))
            return None
        checkpointer = Checkpointer(options, self.data, self.params, self.fingerprint())
        if options.resume:
            self.state = checkpointer.load(self.state)
            self.state.stopped = monitor.too_late(self.state)
        else:
            checkpointer.refuse_to_overwrite()
        return checkpointer

    def _model(self, monitor: Monitor) -> Forest | Blend:
        """The base and the new trees, up to the best of them where there is validation data."""
        params, state, base = self.params, self.state, self.base
        best = len(state.trees) if monitor.best_step is None else monitor.best_step
        trees = state.trees[: best if params.early_stopping else len(state.trees)]
        info = model_info(
            params,
            self.data.info,
            history=state.history,
            seconds=state.seconds,
            best_iteration=best,
            best_score=monitor.best_value,
            **({"init": {**base.describe(), "score": monitor.base_value}} if base.ranks else {}),
            **({"steps": state.steps} if params.step == "optimal" else {}),
        )
        return base.join(to_forest(trees, self.data.binning, self.data.feature_names, info))


def first_selection(base: Base) -> int:
    """The first tree that a selection is made for: without a base there are no scores to rank by at step 0."""
    return 0 if base.ranks else 1


def needs_pairs(params: Params) -> bool:
    """Whether the objective needs documents of two grades in a query."""
    return getattr(params.objective_rule, "needs_pairs", False)


def starts_at_mean(params: Params) -> bool:
    """Whether scores start at the mean label; a ranking does not depend on a constant."""
    return getattr(params.objective_rule, "starts_at_mean", False)


def check_start(params: Params, base: Base) -> None:
    """Refuse a first tree that ignores the scores it starts from."""
    if base.ranks and getattr(params.objective_rule, "first_tree", "") == "labels":
        raise ParameterError(
            param("first_tree", "labels"), " ignores scores and cannot be used with ", param("init"), "; leave it out"
        )


def label_sums(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    """The weighted sum of each query's labels, and its sum of weights."""
    weights = np.ones(lists.n_docs) if lists.weights is None else lists.weights
    starts = lists.offsets[:-1]
    return np.add.reduceat(lists.labels * weights, starts), np.add.reduceat(weights, starts)


def constant_of(sums: np.ndarray, weights: np.ndarray) -> float:
    """The mean label; sums per query make it the same number however queries are spread over workers."""
    return float(sums.sum() / weights.sum())


def _validation_sets(job: TrainingJob, train_set: Binned, base: Base) -> Iterator[ValidationSet]:
    """The validation sets with their initial scores."""
    for name, data in named_sets(job.valid).items():
        given = open_data(data, missing=job.missing, wanted=train_set.feature_names)
        binned = bin_like(given, train_set)
        yield ValidationSet(name, binned, Scores(binned, start=base.scores(name, given, binned)))
