"""LambdaRank: a neural net of two layers trained on λ-gradients, query by query (Burges et al. 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from ranksieve.boosting.callbacks import Monitor, checked_mean
from ranksieve.boosting.job import TrainingJob, model_info, sizes_of
from ranksieve.boosting.loop import Rounds
from ranksieve.boosting.objectives.lambdas import batch_gradients
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.boosting.views import Objective
from ranksieve.data.dataset import Dataset
from ranksieve.errors import InterruptedTraining, ModelError, param
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.models.linear import Standard
from ranksieve.models.net import Net
from ranksieve.rankers.inputs import training_set, validation_sets

if TYPE_CHECKING:
    from ranksieve.rankers.algorithms import LambdaRank


@dataclass
class NetState(Rounds):
    """A net during training."""

    net: Net


@dataclass(frozen=True)
class NetValidSet:
    """A validation set, scored by the net after each epoch."""

    name: str
    data: Dataset

    def measure(self, state: NetState, metric: Metric) -> float:
        lists = self.data.lists
        return checked_mean(metric, lists, lists.ordered(state.net.predict(self.data)), self.name)


def train_net(job: TrainingJob, rule: LambdaRank) -> Net:
    """Pass over the queries in random order, `epochs` times; returns the net that is best on validation."""
    data, params = training_set(job), job.params
    QueryLabels.of(data.lists).check_grades(data.source, pairs=True)
    watched = [NetValidSet(name, valid) for name, valid in validation_sets(job, data)]
    monitor = Monitor(watched, metric_of(params), rule.epochs, params.early_stopping, job.callbacks, round="epoch")
    objective = batch_gradients(params.objective_rule, metric_of(params), highest_grade(data.labels))
    state = NetState(first_net(data, rule.hidden, params.seed))
    best = state.net
    before, interrupted = (state.net, 0), False
    # small products: threads cost more time than they save, and could change bits
    with threadpool_limits(1, user_api="blas"):
        try:
            while state.step < rule.epochs and not state.stopped:
                before = state.net, state.step
                rng = np.random.default_rng([params.seed, state.step + 1])
                state.net = one_epoch(state.net, data, objective, params.learning_rate, rng)
                monitor(state)
                if monitor.best_step in (None, state.step):
                    best = state.net
        except KeyboardInterrupt:
            if not state.seconds:
                raise
            interrupted = True
            if state.drop_unmeasured() == before[1]:  # the last epoch was not measured yet
                state.net = before[0]
            if monitor.best_step in (None, state.step):
                best = state.net
    info = {**model_info(job.params, data.info, data=sizes_of(data.lists)), **monitor.facts(state)}
    net = replace(best if params.early_stopping else state.net, info=info)
    if interrupted:
        raise InterruptedTraining(net)
    return net


def first_net(data: Dataset, hidden: int, seed: int) -> Net:
    """Random weights, small enough that no hidden unit is saturated."""
    rng = np.random.default_rng([seed, 0])
    inner = rng.normal(size=(data.n_features, hidden)) / np.sqrt(data.n_features)
    outer = rng.normal(size=hidden) / np.sqrt(hidden)
    return Net(inner, np.zeros(hidden), outer, Standard.of(data), data.feature_names)


def one_epoch(net: Net, data: Dataset, objective: Objective, rate: float, rng: np.random.Generator) -> Net:
    """The net after one update per query: a step of length `rate` along the λ-gradient of the query's scores."""
    inner, biases, outer = net.inner.copy(), net.biases.copy(), net.outer.copy()
    lists = data.lists
    highest, lowest = (ufunc.reduceat(lists.labels, lists.offsets[:-1]) for ufunc in (np.maximum, np.minimum))
    for query in rng.permutation(np.flatnonzero(highest > lowest)):  # the others have no pair
        start, stop = lists.offsets[query], lists.offsets[query + 1]
        features = net.standard.apply(data.rows(start, stop))
        hidden = np.tanh(features @ inner + biases)
        grad, _ = objective(lists.labels[start:stop], hidden @ outer, np.array([0, stop - start]))
        if lists.weights is not None:
            grad = grad * lists.weights[start:stop]
        back = grad[:, None] * outer * (1.0 - hidden * hidden)  # the gradient at the inputs of the hidden units
        outer += rate * (grad @ hidden)
        biases += rate * back.sum(axis=0)
        inner += rate * (features.T @ back)
    _check_finite((inner, biases, outer), rate)
    return replace(net, inner=inner, biases=biases, outer=outer)


def _check_finite(arrays: Sequence[np.ndarray], rate: float) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise ModelError("the net's weights are not finite with ", param("learning_rate", rate), "; use a smaller one")
