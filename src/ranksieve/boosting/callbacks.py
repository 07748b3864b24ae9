"""What happens after each tree: measuring, early stopping, reporting."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.loop import Rounds, Rows, State, TrainScores
from ranksieve.boosting.scores import Choice, Scores
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.data.lists import Lists, share_of
from ranksieve.dtypes import LABEL
from ranksieve.errors import DataError, ParameterError, param
from ranksieve.evaluation.metrics import Metric, mean

LOG = logging.getLogger("ranksieve")


@dataclass(frozen=True)
class Record:
    """One line of training history, passed to the callbacks of `train` after each tree.

    Attributes
    ----------
    step
        Number of trees so far.
    n_trees
        Number of trees requested.
    evaluations
        The metrics of each validation set, as `evaluations["valid"]["ndcg@10"]`.
    seconds
        Time of this tree, with measuring.
    metric
        The metric that early stopping uses.
    best_step, best_value
        The best number of trees so far, and the metric there; None without validation data.
    round
        What a step is: a tree, an epoch or a round.
    measuring
        The seconds of this tree that measuring took.

    Examples
    --------
    >>> import ranksieve as rs
    >>> steps = []
    >>> _ = rs.train(rs.synth.cubic(20), trees=3, leaves=4, callbacks=[lambda record: steps.append(record.step)])
    >>> steps
    [1, 2, 3]
    """

    step: int
    n_trees: int
    evaluations: dict[str, dict[str, float]]
    seconds: float
    metric: str
    best_step: int | None
    best_value: float | None
    round: str = "tree"
    measuring: float = 0.0

    def __str__(self) -> str:
        return "  ".join((f"{self.step}/{self.n_trees} {self.round}s", *self.measured()))

    def measured(self) -> list[str]:
        """The measured values, as in `valid ndcg@10 0.4312`, `best 0.4400 at 17`."""
        shown = [
            f"{name} {metric} {value:.4f}"
            for name, values in self.evaluations.items()
            for metric, value in values.items()
        ]
        return shown if self.best_value is None else [*shown, f"best {self.best_value:.4f} at {self.best_step}"]


class MeasuredSet(Protocol):
    """A data set that is measured after each round."""

    @property
    def name(self) -> str: ...

    def measure(self, state: Any, metric: Metric) -> float: ...


class ForestValidation(MeasuredSet, Protocol):
    """A data set that is measured after each tree, and again under the trees that a model keeps."""

    @property
    def weights(self) -> np.ndarray | None: ...

    def keep_scores(self) -> None: ...

    def measure_again(self, trees: Sequence[Tree], metrics: Sequence[Metric]) -> list[np.ndarray]: ...


def checked_mean(metric: Metric, lists: Lists, scores: np.ndarray, name: str) -> float:
    """The metric's mean over the queries of a set; refuses a set that has none."""
    return defined_mean(metric.per_query(lists.labels, scores, lists.offsets), lists.query_weights, metric, name)


def defined_mean(values: np.ndarray, weights: np.ndarray | None, metric: Metric, name: str) -> float:
    """The weighted mean of a metric's values, one per query."""
    value = mean(values, weights)
    if np.isnan(value):
        raise DataError(f"{name}: {metric} is undefined because no query has a positive document; use other data")
    return value


def measure_in_blocks(metrics: Sequence[Metric], lists: Lists, scores: np.ndarray) -> list[np.ndarray]:
    """Metrics of every query, block by block: the worst order of equal scores needs several temporary arrays."""
    metrics = [metric.with_highest(float(lists.stored_labels.max())) for metric in metrics]
    values = [np.empty(lists.n_queries) for _ in metrics]
    for first, last in lists.query_blocks():
        offsets = lists.offsets[first : last + 1]
        rows = slice(offsets[0], offsets[-1])
        labels = lists.stored_labels[rows].astype(LABEL)
        for metric, found in zip(metrics, values, strict=True):
            found[first:last] = metric.per_query(labels, scores[rows], offsets - offsets[0])
    return values


@dataclass
class ValidationSet:
    """A data set that is measured after each tree, with its scores."""

    name: str
    data: Binned
    scores: Scores
    start: float | np.ndarray = 0.0  # the scores before the first tree
    _best: Choice | None = None
    _kept: tuple[int, np.ndarray] | None = None  # a number of trees, and the scores under them

    def measure(self, state: State[Any, Any], metric: Metric) -> float:
        return defined_mean(self.per_query(state.trees, metric), self.weights, metric, self.name)

    @property
    def weights(self) -> np.ndarray | None:
        """Of the queries."""
        return self.data.lists.query_weights

    def keep_scores(self) -> None:
        """Keep a copy of the scores, so that `measure_again` need not start from the first tree.

        Of bins in a file there is none: memory is scarce then.
        """
        n_trees, scores = self.scores.last_scored()
        if self.data.disk is not None or n_trees == 0 or (self._kept is not None and self._kept[0] == n_trees):
            return
        with suppress(MemoryError):  # training goes on; these scores are then computed again
            copy = np.empty_like(scores) if self._kept is None else self._kept[1]
            copy[:] = scores
            self._kept = n_trees, copy

    def measure_again(self, trees: Sequence[Tree], metrics: Sequence[Metric]) -> list[np.ndarray]:
        """Metrics of every query under the first trees of the forest; the scores of all trees stay as they are.

        These are all trees, or at least those of the last `keep_scores`.
        """
        again = self.scores
        if again.n_trees != len(trees):
            n_trees, start = (0, self.start) if self._kept is None else self._kept
            again = new_scores(self.data, start=start)
            for tree in trees[n_trees:]:
                again.add(tree)
        return measure_in_blocks(metrics, self.data.lists, again.all())

    def per_query(self, trees: Sequence[Tree], metric: Metric) -> np.ndarray:
        """The metric of every query under a forest that has grown since the last time."""
        for tree in trees[self.scores.n_trees :]:
            self.scores.add(tree)
        lists = self.data.lists
        scores = self._top_scores(metric.k) if metric.k is not None and metric.depends_on_top_k else self.scores.all()
        return metric.per_query(lists.labels, scores, lists.offsets)

    def _top_scores(self, k: int) -> np.ndarray:
        """Scores of each query's k best documents, the others below them: all that a metric at k can see."""
        lists = self.data.lists
        counts = np.minimum(lists.sizes, k)
        self._best = self.scores.choose(counts, counts, last=self._best)
        scores = np.full(lists.n_docs, -np.inf)
        rows = self._best.rows
        scores[rows] = self.scores.at(rows)
        return scores


class SelectionCounter:
    """Counts for how many trees each document was selected; trees trained on all rows do not count.

    Examples
    --------
    >>> import ranksieve as rs
    >>> counter = rs.callbacks.SelectionCounter()
    >>> _ = rs.train(rs.synth.cubic(4), negatives=0.1, trees=6, leaves=4, counter=counter)
    >>> counter.n_trees, int(counter.counts.max()), len(counter.counts)
    (5, 5, 200)
    """

    def __init__(self) -> None:
        self.counts = np.empty(0, np.int32)  # per document, in the order of the data set's lists
        self.n_trees = 0  # trees trained on a selection
        self.n_rows = 0  # training rows summed over all trees, those trained on all rows included
        self._row_fraction = 1.0

    def begin(self, lists: Lists, *, resume: bool, row_fraction: float = 1.0) -> None:
        """Start counting; training calls it before the first tree."""
        if resume:
            raise ParameterError(
                "a counter cannot count the trees that a checkpoint already has; leave out ", param("resume"), " or ",
                param("counter"),
            )  # fmt: skip
        self.counts, self.n_trees, self.n_rows = np.zeros(lists.n_docs, np.int32), 0, 0
        self._row_fraction = row_fraction

    def __call__(self, state: State[Rows, TrainScores]) -> None:
        rows = state.rows.rows
        sizes = np.diff(state.rows.offsets)
        self.n_rows += int((sizes if self._row_fraction == 1.0 else share_of(sizes, self._row_fraction)).sum())
        if rows is not None:
            self.counts[rows] += 1
            self.n_trees += 1


@dataclass
class Monitor:
    """Measures the validation sets after each round, and stops when the first has not improved for too long."""

    sets: Sequence[MeasuredSet]
    metric: Metric
    n_trees: int
    early_stopping: int
    callbacks: Sequence[Callable[[Record], None]] = ()
    best_step: int | None = None
    best_value: float | None = None
    round: str = "tree"
    bag: int = 1  # forests; a model ends after as many rounds of each
    base_value: float | None = None  # of the first set before the first tree, where there is a base
    _clock: float = field(default_factory=time.perf_counter)

    def __call__(self, state: Rounds) -> None:
        name = str(self.metric)
        values = {}
        grown = time.perf_counter()
        for measured in self.sets:
            values[measured.name] = {name: measured.measure(state, self.metric)}
            state.history.setdefault(measured.name, {}).setdefault(name, []).append(values[measured.name][name])
        now = time.perf_counter()
        state.seconds.append(now - self._clock)
        self._clock = now
        state.stopped = self.should_stop(state)
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

    def facts(self, state: Rounds) -> dict[str, Any]:
        """What a model stores about its rounds: those up to the best one, or all without early stopping."""
        kept, value = self.best_step, self.best_value
        if kept is None:
            kept = state.step
        elif not self.early_stopping:
            kept, value = state.step, state.history[self.sets[0].name][str(self.metric)][-1]
        return {
            "history": state.history,
            "seconds": state.seconds,
            "best_iteration": kept,
            "best_score": value,
            **({} if self.round == "tree" else {"round": self.round}),
        }

    def measure_base(self, state: Rounds) -> None:
        """Measure the base alone: trees that only make it worse are not kept."""
        if self.sets:
            self.base_value = self.sets[0].measure(state, self.metric)

    def should_stop(self, state: Rounds) -> bool:
        """Find the best round of the first set; True if it is so long ago that training stops."""
        if not self.sets or not state.step:
            return False
        curve = np.array(state.history[self.sets[0].name][str(self.metric)])
        ends = np.arange(self.bag, len(curve) + 1, self.bag) if len(curve) >= self.bag else np.array([len(curve)])
        best = int(ends[np.argmax(curve[ends - 1])])
        self.best_step, self.best_value = best, float(curve[best - 1])
        if self.base_value is not None and self.base_value >= self.best_value:
            self.best_step, self.best_value = 0, self.base_value
        return 0 < self.early_stopping <= len(curve) - self.best_step
