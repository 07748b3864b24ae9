"""`evaluate`: systems × metrics on one data set, one number per query."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset, check_is_data
from ranksieve.data.lists import Lists
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metrics import Metric, mean, parse_metric
from ranksieve.evaluation.significance import TESTS, TestResult
from ranksieve.text_formats import counted


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Per-query values of one or more systems; `values[name][metric]` stands in the order of `query_ids`.

    Where a system or a metric may be left out, the first one is meant.
    """

    query_ids: np.ndarray
    values: dict[str, dict[str, np.ndarray]]
    metrics: tuple[Metric, ...]
    query_weights: np.ndarray | None = None  # means are by these, where given
    ties: str | None = None  # what was done with equal scores, in words, where it is not what the metrics say

    def per_query(self, name: str | None = None, metric: str | Metric | None = None) -> np.ndarray:
        """One number per query; NaN where the query is left out."""
        return self._of(name)[self._metric_name(metric)]

    def mean(self, name: str | None = None, metric: str | Metric | None = None) -> float:
        """Mean over the queries that count."""
        return mean(self.per_query(name, metric), self.query_weights)

    def compare(
        self, a: str, b: str, metric: str | Metric | None = None, *, test: str = "randomization", **options: Any
    ) -> TestResult:
        """Test system a against system b; options go to `randomization_test` or `paired_t_test` (`test="t"`)."""
        if test not in TESTS:
            raise ParameterError(f"unknown test {test!r}; known: {', '.join(TESTS)}")
        return TESTS[test](self.per_query(a, metric), self.per_query(b, metric), **options)

    def table(self) -> list[dict[str, str | float]]:
        """One row per system: its `name` and its mean by every metric."""
        return [
            {"name": name, **{metric: mean(values, self.query_weights) for metric, values in by_metric.items()}}
            for name, by_metric in self.values.items()
        ]

    def __str__(self) -> str:
        """The means as a table, and their conventions."""
        names = [str(metric) for metric in self.metrics]
        rows: list[list[Any]] = [
            ["", *names],
            *([row["name"], *(f"{row[name]:.4f}" for name in names)] for row in self.table()),
        ]
        widths = [max(len(str(row[column])) for row in rows) for column in range(len(names) + 1)]
        lines = ["  ".join(str(cell).ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *self.conventions])

    __repr__ = __str__  # what a notebook shows

    @property
    def conventions(self) -> list[str]:
        """What stands behind the numbers, one sentence per metric."""
        weighted = "" if self.query_weights is None else ", by their weights"
        counts = [int((~np.isnan(self.per_query(metric=metric))).sum()) for metric in self.metrics]
        return [
            f"{metric.describe(self.ties)}; {count} of {counted(query=len(self.query_ids))} counted{weighted}"
            for metric, count in zip(self.metrics, counts, strict=True)
        ]

    def _of(self, name: str | None) -> dict[str, np.ndarray]:
        name = next(iter(self.values)) if name is None else name
        if name not in self.values:
            raise ParameterError(f"no system is named {name!r}; known: {', '.join(self.values)}")
        return self.values[name]

    def _metric_name(self, metric: str | Metric | None) -> str:
        name = str(self.metrics[0] if metric is None else parse_metric(metric))
        known = [str(metric) for metric in self.metrics]
        if name not in known:
            raise ParameterError(f"{name} was not measured; known: {', '.join(known)}")
        return name


def evaluate(
    scores: Any,
    data: Dataset | Lists,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10",),
    *,
    weighted: bool = False,
) -> Evaluation:
    """Measure one or more systems on a data set.

    Parameters
    ----------
    scores
        Scores of the documents in the row order the data was given in; or a model, that is anything with a
        `predict(data)` returning such scores; or a mapping from names to either, or a list of models.
    data
        The data set; its `Lists` will do for scores.
    metrics
        Names as `parse_metric` reads them, or `Metric`s with their own conventions.
    weighted
        Let means count every query by the mean weight of its documents; values per query do not change.

    Returns
    -------
    Evaluation
        With one number per system, metric and query. A single system is called `scores`, or `model`; those of a list
        `model 1`, `model 2`, ….

    Examples
    --------
    >>> import numpy as np
    >>> from ranksieve.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.zeros((4, 1)), [1, 0, 2, 0], qid=[7, 7, 8, 8])
    >>> result = evaluate({"first": [2, 1, 1, 2], "second": [1, 2, 1, 2]}, data, ["ndcg@10", "mrr"])
    >>> result.mean("first", "mrr"), result.values["second"]["mrr"].tolist()
    (0.75, [0.5, 0.5])
    >>> print(result)
            ndcg@10  mrr
    first   0.8155   0.7500
    second  0.6309   0.5000
    ndcg@10: gain 2^label-1, ties in input order, queries without positives left out; 2 of 2 queries counted
    mrr: labels above 0 are positive, ties in input order, queries without positives left out; 2 of 2 queries counted
    >>> result.conventions[1]
    'mrr: labels above 0 are positive, ties in input order, queries without positives left out; 2 of 2 queries counted'
    """
    check_is_data(data)
    lists = data if isinstance(data, Lists) else data.lists
    systems = _named(scores)
    wanted = wanted_metrics(metrics)
    values = {}
    for name, system in systems.items():
        ours = list_scores(name, system, data, lists)
        values[name] = {str(metric): metric.per_query(lists.labels, ours, lists.offsets) for metric in wanted}
    if weighted and lists.weights is None:
        raise ParameterError(
            "the data has no weights, which weighted means need; give it weights, or leave out weighted"
        )
    _warn_of_nothing(values)
    return Evaluation(lists.query_ids, values, wanted, lists.query_weights if weighted else None)


def _named(scores: Any) -> Mapping[str, Any]:
    """The systems by their names."""
    if isinstance(scores, list | tuple) and any(hasattr(one, "predict") for one in scores):
        return {f"model {number}": one for number, one in enumerate(scores, start=1)}
    systems = scores if isinstance(scores, Mapping) else {_kind(scores): scores}
    if not systems:
        raise ParameterError("got no systems to measure; give at least one")
    return systems


def _kind(system: Any) -> str:
    return "model" if hasattr(system, "predict") else "scores"


def _warn_of_nothing(values: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Tell of metrics that no query counts for; their means are NaN."""
    for metric, found in next(iter(values.values())).items():
        if np.isnan(found).all():
            warnings.warn(
                f"{metric} is undefined, no query has a positive document; check the labels of the data", stacklevel=3
            )


def wanted_metrics(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Metrics to measure, each once."""
    parsed = tuple(map(parse_metric, [metrics] if isinstance(metrics, str | Metric) or callable(metrics) else metrics))
    if not parsed:
        raise ParameterError("got no metrics; give at least one, as in 'ndcg@10'")
    names = [str(metric) for metric in parsed]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{name} is asked for twice; measure it with other conventions in a second call")
    return parsed


def list_scores(name: str, system: Any, data: Dataset | Lists, lists: Lists) -> np.ndarray:
    """Scores of one system in the row order of the lists."""
    if isinstance(system, str | os.PathLike):
        raise DataError(f"{name!r} is the file name {os.fspath(system)!r}; give the model, as rs.load returns it")
    if hasattr(system, "predict"):
        if isinstance(data, Lists):
            raise ParameterError(f"{name!r} is a model but the data has no features; give the Dataset, or scores")
        system = system.predict(data)
    scores = np.asarray(system, dtype=SCORE)
    if scores.shape != (lists.n_docs,):
        raise DataError(
            f"{name!r} has scores of shape {scores.shape} for {lists.n_docs} documents; give one per document"
        )
    return scores if lists.order is None else scores[lists.order]
