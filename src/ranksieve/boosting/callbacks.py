"""What happens after each tree: measuring, early stopping, telling the user."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranksieve.boosting.loop import State
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import share_of
from ranksieve.dtypes import ROW
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metrics import Metric, mean

LOG = logging.getLogger("ranksieve")


@dataclass(frozen=True)
class Record:
    """One line of training history, passed to the user's callbacks after each tree.

    Examples
    --------
    >>> import ranksieve as rs
    >>> steps = []
    >>> _ = rs.train(rs.synth.cubic(20), trees=3, leaves=4, callbacks=[lambda record: steps.append(record.step)])
    >>> steps
    [1, 2, 3]
    """

    step: int  # trees so far
    n_trees: int  # trees asked for
    evaluations: dict[str, dict[str, float]]  # set → metric → value
    seconds: float  # of this tree, measuring included
    metric: str
    best_step: int | None
    best_value: float | None
    round: str = "tree"  # what a step is
    measuring: float = 0.0  # seconds of this tree that went into measuring

    def __str__(self) -> str:
        return "  ".join((f"{self.step}/{self.n_trees} {self.round}s", *self.measured()))

    def measured(self) -> list[str]:
        """What there is to tell, as in `valid ndcg@10 0.4312`, `best 0.4400 at 17`."""
        told = [
            f"{name} {metric} {value:.4f}"
            for name, values in self.evaluations.items()
            for metric, value in values.items()
        ]
        return told if self.best_value is None else [*told, f"best {self.best_value:.4f} at {self.best_step}"]


def named_sets(valid: Any) -> Mapping[str, Any]:
    """What the user gave to validate on, each set with a name."""
    if valid is None:
        return {}
    if isinstance(valid, Mapping):
        return valid
    if isinstance(valid, (list, tuple)):
        return {f"valid_{i}": data for i, data in enumerate(valid)}
    return {"valid": valid}


class Course(Protocol):
    """Training in rounds (trees, epochs): how far it is, and what was measured on the way."""

    @property
    def step(self) -> int: ...

    history: dict[str, dict[str, list[float]]]
    seconds: list[float]
    stopped: bool


class Watch(Protocol):
    """A data set whose metric is followed."""

    @property
    def name(self) -> str: ...

    def measure(self, state: Any, metric: Metric) -> float: ...


def checked_mean(metric: Metric, lists: Lists, scores: np.ndarray, name: str) -> float:
    """The metric's mean over the queries of a set; refuses a set that has none."""
    return defined_mean(metric.per_query(lists.labels, scores, lists.offsets), lists.query_weights, metric, name)


def defined_mean(values: np.ndarray, weights: np.ndarray | None, metric: Metric, name: str) -> float:
    """The weighted mean of a metric's values, one per query."""
    value = mean(values, weights)
    if np.isnan(value):
        raise DataError(f"{name}: {metric} is undefined, no query has a positive document; use other data")
    return value


@dataclass
class Watched:
    """A data set whose metric is followed, with its scores."""

    name: str
    data: Binned
    scores: Scores
    _best: np.ndarray | None = None

    def measure(self, state: State, metric: Metric) -> float:
        return defined_mean(self.per_query(state.trees, metric), self.data.lists.query_weights, metric, self.name)

    def per_query(self, trees: Sequence[Tree], metric: Metric) -> np.ndarray:
        """The metric of every query under a forest that has grown since the last time."""
        for tree in trees[self.scores.n_trees :]:
            self.scores.add(tree)
        lists = self.data.lists
        scores = self._top_scores(metric.k) if metric.k is not None and metric.sees_top_only else self.scores.all()
        return metric.per_query(lists.labels, scores, lists.offsets)

    def _top_scores(self, k: int) -> np.ndarray:
        """Scores of each query's k best documents, the others below them: all that a metric at k can see."""
        lists = self.data.lists
        counts = np.minimum(lists.sizes, k)
        self._best = self.scores.top(np.arange(lists.n_docs, dtype=ROW), lists.offsets, counts, self._best)
        scores = np.full(lists.n_docs, -np.inf)
        scores[self._best] = self.scores.at(self._best)
        return scores


class Tally:
    """Counts how many trees each document taught, as the selection chose; trees taught by everybody count for nobody.

    Examples
    --------
    >>> import ranksieve as rs
    >>> tally = rs.callbacks.Tally()
    >>> _ = rs.train(rs.synth.cubic(4), negatives=0.1, trees=6, leaves=4, tally=tally)
    >>> tally.n_trees, int(tally.counts.max()), len(tally.counts)
    (5, 5, 200)
    """

    def __init__(self) -> None:
        self.counts = np.empty(0, np.int32)  # per document, in the order of the data set's lists
        self.n_trees = 0  # trees that a selection taught
        self.lessons = 0  # documents a tree was grown on, summed over all trees, those taught by everybody included
        self._row_fraction = 1.0

    def begin(self, lists: Lists, *, resume: bool, row_fraction: float = 1.0) -> None:
        """Start counting; training calls it before the first tree."""
        if resume:
            raise ParameterError("a tally does not know the trees before a checkpoint; leave out resume or tally")
        self.counts, self.n_trees, self.lessons = np.zeros(lists.n_docs, np.int32), 0, 0
        self._row_fraction = row_fraction

    def __call__(self, state: State) -> None:
        rows = state.sample.rows
        sizes = np.diff(state.sample.offsets)
        self.lessons += int((sizes if self._row_fraction == 1.0 else share_of(sizes, self._row_fraction)).sum())
        if rows is not None:
            self.counts[rows] += 1
            self.n_trees += 1


@dataclass
class Monitor:
    """Measures the watched sets, remembers the best round of the first, stops when it lies too far back."""

    watched: Sequence[Watch]
    metric: Metric
    n_trees: int
    early_stopping: int
    callbacks: Sequence[Callable[[Record], None]] = ()
    best_step: int | None = None
    best_value: float | None = None
    round: str = "tree"
    base_value: float | None = None  # of the first watched set before the first tree, where there is a base
    _clock: float = field(default_factory=time.perf_counter)

    def __call__(self, state: Course) -> None:
        name = str(self.metric)
        values = {}
        grown = time.perf_counter()
        for watched in self.watched:
            values[watched.name] = {name: watched.measure(state, self.metric)}
            state.history.setdefault(watched.name, {}).setdefault(name, []).append(values[watched.name][name])
        now = time.perf_counter()
        state.seconds.append(now - self._clock)
        self._clock = now
        state.stopped = self.too_late(state)
        record = Record(
            step=state.step,
            n_trees=self.n_trees,
            evaluations=values,
            seconds=state.seconds[-1],
            metric=name,
            best_step=self.best_step,
            best_value=self.best_value,
            round=self.round,
            measuring=now - grown,
        )
        if state.stopped or state.step % max(1, self.n_trees // 10) == 0:
            LOG.info("%s", record)
        for callback in self.callbacks:
            callback(record)

    def measure_base(self, state: Course) -> None:
        """Remember what the base alone is worth: trees that only make it worse are not kept."""
        if self.watched:
            self.base_value = self.watched[0].measure(state, self.metric)

    def too_late(self, state: Course) -> bool:
        """Find the best tree of the first watched set; True if it lies too far back to go on."""
        if not self.watched or not state.step:
            return False
        curve = np.array(state.history[self.watched[0].name][str(self.metric)])
        best = int(np.argmax(curve))
        self.best_step, self.best_value = best + 1, float(curve[best])
        if self.base_value is not None and self.base_value >= self.best_value:
            self.best_step, self.best_value = 0, self.base_value
        return 0 < self.early_stopping <= len(curve) - self.best_step
