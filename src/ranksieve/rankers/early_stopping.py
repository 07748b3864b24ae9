"""Early stopping without validation data: by cross-validation, or on held-out queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.boosting.checkpoint import CheckpointOptions
from ranksieve.boosting.disk_training import display_of, listener_of, store_of
from ranksieve.boosting.initial_scores import gives_scores
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.train_forest import check_early
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data, read
from ranksieve.errors import InterruptedTraining, ParameterError, ParamName, joined_parts, param
from ranksieve.evaluation.metric_table import BUILT_IN
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.params import Params
from ranksieve.progress import ProgressDisplay
from ranksieve.text_formats import counted

LOG = logging.getLogger("ranksieve")
HIGHEST = 30  # label that is told apart to find the queries with a value of the metric
FEWEST = 10  # queries with a value of the metric; fewer do not say when to stop
MOST_FOLDS = 20
ENOUGH = 400  # held-out queries that say it well: folds beyond them are not trained


def choose_stopping(
    job: TrainingJob, train: Callable[[TrainingJob], Any]
) -> tuple[TrainingJob, dict[str, dict[str, Any]]]:
    """A job that needs no validation data, and what its model stores about the choice.

    A job with validation data, or with a number of trees, stays as it is; see `Params.held_out`. Otherwise the number
    of trees (or epochs) is chosen by cross-validation, with `train` for each fold, and the job trains on all queries.
    For models that need validation lists for more than that, some queries become the job's validation data.
    """
    share = 0.0 if job.valid is not None else job.params.held_out
    if share == 0.0 or job.cluster is not None:
        return job, {}
    needs_lists = job.init is not None or job.params.needs_validation
    if gives_scores(job.init):
        return _without_stopping(job, param("init"), " has a score for every training document")
    if needs_lists and job.counter is not None:
        return _without_stopping(job, param("counter"), " counts every training document")
    is_own = not isinstance(job.data, Binned)
    job = replace(job, data=_opened(job))
    if isinstance(job.data, Binned) and job.data.disk is not None:
        return _without_stopping(job, "no queries are held out of data that does not fit into memory")
    queries = measured_queries(job.data.lists, metric_of(job.params))
    if len(queries) < FEWEST:
        return _without_stopping(job, f"only {counted(query=len(queries))} can be measured")
    queries = np.random.default_rng(job.params.seed).permutation(queries)
    if needs_lists:
        return _hold_out(job, queries, share)
    folds = np.array_split(queries, min(round(1 / share), len(queries) // 2, MOST_FOLDS))
    return _cross_validate(job, folds[: -(-ENOUGH // len(folds[0]))], train, is_own=is_own)


def _without_stopping(job: TrainingJob, *reason: str | ParamName) -> tuple[TrainingJob, dict[str, dict[str, Any]]]:
    """The job as it is, with a note that no queries can be held out."""
    listener_of(job.callbacks).note(*reason, ", so training does not stop early; give ", param("valid"))
    return job, {}


def check_cluster_has_valid(params: Params, valid: Any) -> None:
    """Refuse to train on a cluster without validation data, if queries would be held out on one machine."""
    if params.held_out and not valid:
        raise ParameterError(
            "no queries are held out on a cluster; give ", param("valid"), " for early stopping, or ", param("trees")
        )


def measured_queries(lists: Lists, metric: Metric) -> np.ndarray:
    """The queries that count in the mean of a metric: those with a value, and a weight above 0."""
    # labels that no gain is defined for are reported in training
    labels = np.minimum(lists.labels, HIGHEST) if metric.name in BUILT_IN else lists.labels
    counts = ~np.isnan(metric.per_query(labels, np.zeros(lists.n_docs), lists.offsets))
    weights = lists.query_weights
    return np.flatnonzero(counts if weights is None else counts & (weights > 0))


def best_length(curves: Sequence[Sequence[float]], weights: Sequence[float], window: int, multiple: int = 1) -> int:
    """The number of rounds at which the mean of curves is highest.

    Each curve is averaged over about `window` neighbouring rounds, and continues with its last mean. The result is a
    multiple of `multiple`.

    Examples
    --------
    >>> best_length([[0.1, 0.5, 0.2], [0.1, 0.2, 0.3, 0.4]], [1, 1], window=1)
    2
    """
    length = max(map(len, curves))
    smooth = [_moving_mean(np.asarray(curve), window // 2) for curve in curves]
    smooth = [np.concatenate([curve, np.full(length - len(curve), curve[-1])]) for curve in smooth]
    ends = np.arange(multiple, length + 1, multiple) if length >= multiple else np.array([length])
    return int(ends[np.argmax(np.average(smooth, axis=0, weights=weights)[ends - 1])])


def _moving_mean(values: np.ndarray, reach: int) -> np.ndarray:
    """The mean of each value and up to `reach` values before and after it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    low, high = np.maximum(places - reach, 0), np.minimum(places + reach + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)


def _opened(job: TrainingJob) -> Binned | Dataset:
    """The data in memory: bins if trees are grown here, without a base that may need the values of features."""
    params = job.params
    if not params.grows_trees or job.init is not None:
        return job.data if isinstance(job.data, Binned) else read(job.data, missing=job.missing)
    given = open_data(job.data, missing=job.missing)
    check_early(params, given.feature_names)
    return bin_data(given, **params.bin_limits, binning=job.binning, store=store_of(params, job.callbacks))


def _hold_out(job: TrainingJob, queries: np.ndarray, share: float) -> tuple[TrainingJob, dict[str, dict[str, Any]]]:
    """The job with a share of the queries as validation data; the others, and those that do not count, stay."""
    held_out = queries[: max(1, round(share * len(queries)))]
    _note(
        job, f"{len(held_out):,} of {counted(query=job.data.lists.n_queries)} are held out as validation data; give ",
        param("valid"), " for other lists, or ", param("valid_fraction", 0), " to train on all queries",
    )  # fmt: skip
    rest, part = (job.data.take_rows(rows) for rows in _rows(job.data.lists, held_out))
    return replace(job, data=rest, valid=part), {"held_out_validation": {"queries": len(held_out)}}


def _cross_validate(
    job: TrainingJob, folds: Sequence[np.ndarray], train: Callable[[TrainingJob], Any], *, is_own: bool
) -> tuple[TrainingJob, dict[str, dict[str, Any]]]:
    """The job with the number of rounds that is best on the queries of each fold, by models of all other queries.

    Bins of its own are divided in place, so that they are not in memory twice.
    """
    params, name = job.params, str(metric_of(job.params))
    sizes = [len(held_out) for held_out in folds]
    rounds = "epochs" if "epochs" in params.used else "trees"
    _note(
        job, f"the number of {rounds} is chosen by cross-validation on {counted(query=sum(sizes), fold=len(folds))}; "
        "give ", param("valid"), " for early stopping on other lists, or ", param(rounds),
    )  # fmt: skip
    weights, curves = _query_weights(job.data.lists), []
    for number, held_out in enumerate(folds, start=1):
        with _divided(job.data, held_out, in_place=is_own) as (rest, part):
            fold = replace(
                job, data=rest, valid=part, callbacks=(_FoldProgress(job, f"fold {number} of {len(folds)}"),),
                checkpoint=CheckpointOptions(), counter=None, warns_of_ties=job.warns_of_ties and number == 1,
            )  # fmt: skip
            try:
                info = train(fold).info
            except InterruptedTraining:
                raise KeyboardInterrupt from None  # the model of a fold is not a result
        if info["history"]:  # else no tree could be grown
            curves.append((info["history"]["valid"][name], weights[held_out].sum()))
    if not curves:
        return job, {}
    values, shares = zip(*curves, strict=True)
    best = best_length(values, shares, params.trees_to_wait // 5, params.bag)
    value = float(np.average([curve[min(best, len(curve)) - 1] for curve in values], weights=shares))
    chosen = {rounds: max(1, best // params.bag), "early_stopping": 0}
    facts = {"folds": len(folds), "queries": sum(sizes), "rounds": best, "metric": name, "value": value}
    return replace(job, params=params.replace(**chosen).load_files()), {"cross_validation": facts}


def _query_weights(lists: Lists) -> np.ndarray:
    """The weight of each query in a mean; 1 without weights."""
    weights = lists.query_weights
    return np.ones(lists.n_queries) if weights is None else weights


@contextmanager
def _divided(data: Binned | Dataset, queries: np.ndarray, *, in_place: bool) -> Iterator[tuple[Any, Any]]:
    """The other queries, and these; divided in place, they are in their places again afterwards."""
    rest, rows = _rows(data.lists, queries)
    if not in_place or not isinstance(data, Binned):
        yield data.take_rows(rest), data.take_rows(rows)
        return
    part = data.take_rows(rows)
    yield data.keep_rows(rest), part
    data.put_back(rest, rows, part)


def _rows(lists: Lists, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the other queries, and of these."""
    is_part = np.zeros(lists.n_queries, dtype=bool)
    is_part[queries] = True
    in_part = np.repeat(is_part, lists.sizes)
    return np.flatnonzero(~in_part), np.flatnonzero(in_part)


class _FoldProgress:
    """The callback of a fold: shows how far it is, and no notes, which all folds share."""

    def __init__(self, job: TrainingJob, title: str) -> None:
        display = display_of(job.callbacks)
        self._display = display if isinstance(display, ProgressDisplay) else None
        self._title = title

    def __call__(self, record: Any) -> None:
        if self._display is not None:
            self._display.update(
                record.step, record.n_trees, unit=record.round, details=record.measured(), title=self._title,
                estimate="at most {} left",
            )  # fmt: skip

    def note(self, *parts: str | ParamName) -> None:
        """Nothing: the job that trains on all queries has the same notes."""

    def prepare(self, doing: str, share: float) -> None:
        """Nothing: the data is in memory."""


def _note(job: TrainingJob, *parts: str | ParamName) -> None:
    """Tell the user who watches; else log it."""
    display = display_of(job.callbacks)
    if display is None:
        LOG.info(joined_parts(parts))
    else:
        display.note(*parts)
