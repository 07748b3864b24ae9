"""`evaluate`: systems × metrics on one data set, one number per query."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.dtypes import SCORE
from ranksieve.errors import (
    DataError,
    ParameterError,
    RanksieveWarning,
    caller_level,
    check_choice,
    check_once,
    param,
)
from ranksieve.evaluation.metrics import Metric, mean, parse_metric
from ranksieve.evaluation.significance import TESTS, TestResult
from ranksieve.forest.forest import check_no_file_name
from ranksieve.forest.formats.from_model import from_model
from ranksieve.forest.score_file import read_for_models
from ranksieve.html_tables import html_notes, html_table
from ranksieve.kernels.numba_cache import report_first_compile
from ranksieve.text_formats import counted


class ResultTable(list[dict[str, Any]]):
    """Rows of results, for `pandas.DataFrame(table)` and similar; printed as aligned columns.

    Examples
    --------
    >>> ResultTable([{"name": "first", "mrr": 0.75}, {"name": "second", "mrr": 0.5}])
    name    mrr
    first   0.7500
    second  0.5000
    """

    def cells(self) -> list[list[str]]:
        """The table as text, with its header."""
        columns = list(self[0]) if self else [""]
        return [columns, *([_cell(row[column]) for column in columns] for row in self)]

    def __str__(self) -> str:
        return aligned(self.cells())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *rows = self.cells()
        return html_table(rows, header=header)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of metrics per query, for one or more systems, as `evaluate` returns them.

    Methods take the name of a system and a metric. The default is the first system, and the first metric.

    Attributes
    ----------
    query_ids
        The ids of the queries.
    values
        `values[name][metric]` has one number per query, in the order of `query_ids`; NaN where the query is left out.
    metrics
        The metrics, with their conventions.
    query_weights
        The weights of the queries in means; None: all the same.
    ties
        How equal scores were ranked, in words, where it differs from the metrics' `ties`.
    notes
        More conventions, a sentence each.

    Examples
    --------
    >>> import ranksieve as rs
    >>> train, test = rs.synth.cubic(20), rs.synth.cubic(20, start=20)
    >>> models = {"short": rs.train(train, trees=2, leaves=4), "long": rs.train(train, trees=20, leaves=4)}
    >>> result = rs.evaluate(models, test, metrics=("ndcg@10", "map"))
    >>> result.per_query("long", "map").shape, result.mean("long") > result.mean("short")
    ((20,), True)
    >>> result.compare("long", "short").p_value < 0.05
    True
    >>> [row["name"] for row in result.table()]
    ['short', 'long']
    """

    query_ids: np.ndarray
    values: dict[str, dict[str, np.ndarray]]
    metrics: tuple[Metric, ...]
    query_weights: np.ndarray | None = None  # weights of the means
    ties: str | None = None  # how equal scores were ranked, in words, where it differs from the metrics' `ties`
    notes: tuple[str, ...] = ()  # more conventions, a sentence each

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
        check_choice("test", test, TESTS)
        return TESTS[test](self.per_query(a, metric), self.per_query(b, metric), **options)

    def table(self) -> ResultTable:
        """One row per system: its `name`, its mean by every metric and, of several systems, p-values.

        A p-value is of the two-sided randomization test against the first system, which has none (NaN).
        """
        first, *others = self.values
        rows = ResultTable()
        for name in self.values:
            row: dict[str, Any] = {"name": name}
            for metric in map(str, self.metrics):
                row[metric] = self.mean(name, metric)
                if others:
                    row[f"{metric} p-value"] = self._p_value(name, first, metric)
            rows.append(row)
        return rows

    def cells(self) -> list[list[str]]:
        """The table as text: the metrics' names, how they use labels, and one row per system."""
        p_value = ["p-value"] if len(self.values) > 1 else []
        names, relevance = [""], [""]
        for metric in self.metrics:
            names += [str(metric), *p_value]
            relevance += [metric.relevance, *("" for _ in p_value)]
        return [names, relevance, *([_cell(value) for value in row.values()] for row in self.table())]

    def __str__(self) -> str:
        """The means as a table, and their conventions."""
        return "\n".join([aligned(self.cells()), *self.conventions])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: the means as a table, and their conventions."""
        names, *rows = self.cells()
        return html_table(rows, header=names) + html_notes(self.conventions)

    @property
    def conventions(self) -> list[str]:
        """The conventions of the numbers: a sentence per metric, of several systems one on the p-values, and notes."""
        weighted = "" if self.query_weights is None else ", by their weights"
        first, *others = self.values
        return [
            *(f"{metric.describe(self.ties)}; {self._n_counted(metric)}{weighted}" for metric in self.metrics),
            *([f"p-values: two-sided randomization test against {first}"] if others else []),
            *self.notes,
        ]

    def _n_counted(self, metric: Metric) -> str:
        """How many queries count; for each system, where these are not as many."""
        counts = {name: np.count_nonzero(~np.isnan(self.per_query(name, metric))) for name in self.values}
        total, numbers = counted(query=len(self.query_ids)), set(counts.values())
        if len(numbers) == 1:
            return f"{numbers.pop():,} of {total} counted"
        return f"counted of {total}: {', '.join(f'{count:,} ({name})' for name, count in counts.items())}"

    def _p_value(self, name: str, first: str, metric: str | Metric) -> float:
        both = ~(np.isnan(self.per_query(name, metric)) | np.isnan(self.per_query(first, metric)))
        return float("nan") if name == first or not both.any() else self.compare(name, first, metric).p_value

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


def aligned(rows: list[list[str]]) -> str:
    """Rows of cells as text, columns side by side."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _cell(value: Any) -> str:
    """Text of a number, of the two ends of an interval, or of a name; empty for None and NaN."""
    if isinstance(value, tuple):
        return "[{:.4f}, {:.4f}]".format(*value)
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4f}"
    return "" if value is None else str(value)


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
        One score per document, in the row order of the given data. Or a model: anything whose `predict(data)` returns
        such scores, or a fitted model of LightGBM, XGBoost, CatBoost or trees of scikit-learn. Or a mapping from names
        to scores or models, or a list of models.
    data
        The data set. For scores its `Lists` are enough.
    metrics
        Names as `parse_metric` reads them, or `Metric`s with their own conventions.
    weighted
        Weight each query by the mean weight of its documents in means. Values per query do not change.

    Returns
    -------
    Evaluation
        One number per system, metric and query. It prints as a table of means with p-values against the first system.
        A single system is named `scores` or `model`; the models of a list are named `model 1`, `model 2`, ….

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> data = rs.Dataset.from_arrays(np.zeros((4, 1)), [1, 0, 2, 0], qid=[7, 7, 8, 8])
    >>> result = evaluate({"first": [2, 1, 1, 2], "second": [1, 2, 1, 2]}, data, ["ndcg@10", "mrr"])
    >>> result.mean("first", "mrr"), result.values["second"]["mrr"].tolist()
    (0.75, [0.5, 0.5])
    >>> print(result)
            ndcg@10         p-value  mrr                    p-value
            gain 2^label-1           label > 0 is positive
    first   0.8155                   0.7500
    second  0.6309          1.0000   0.5000                 1.0000
    ndcg@10: gain 2^label-1, ties in input order, queries without positives left out; 2 of 2 queries counted
    mrr: label > 0 is positive, ties in input order, queries without positives left out; 2 of 2 queries counted
    p-values: two-sided randomization test against first
    >>> result.table()
    name    ndcg@10  ndcg@10 p-value  mrr     mrr p-value
    first   0.8155                    0.7500
    second  0.6309   1.0000           0.5000  1.0000
    """
    if isinstance(scores, Lists | Dataset) or hasattr(data, "predict"):
        raise DataError("models or scores come first, then data: rs.evaluate(model, data)")
    systems = _named(scores)
    data = read_for_models(data, systems.values())
    lists = data if isinstance(data, Lists) else data.lists
    wanted = wanted_metrics(metrics)
    report_first_compile("metrics")
    values = {}
    for name, system in systems.items():
        ours = list_scores(name, system, data, lists)
        values[name] = {str(metric): metric.per_query(lists.labels, ours, lists.offsets) for metric in wanted}
    if weighted and lists.weights is None:
        raise ParameterError("the data has no weights; give it weights, or leave out ", param("weighted"))
    _warn_if_undefined(values)
    return Evaluation(lists.query_ids, values, wanted, lists.query_weights if weighted else None)


def _named(scores: Any) -> Mapping[str, Any]:
    """The systems by their names."""
    if isinstance(scores, list | tuple) and any(
        isinstance(one, str | os.PathLike) or hasattr(one, "predict") for one in scores
    ):
        systems: Mapping[str, Any] = {f"model {number}": one for number, one in enumerate(scores, start=1)}
    else:
        systems = scores if isinstance(scores, Mapping) else {_kind(scores): scores}
    if not systems:
        raise ParameterError("got no systems to measure; give at least one")
    for system in systems.values():
        check_no_file_name(system)
    return systems


def _kind(system: Any) -> str:
    return "model" if hasattr(system, "predict") else "scores"


def _warn_if_undefined(values: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Warn of metrics that are defined for no query; their means are NaN."""
    for metric, found in next(iter(values.values())).items():
        if np.isnan(found).all():
            warnings.warn(
                RanksieveWarning(
                    f"{metric} is undefined because no query has a positive document; check the labels of the data"
                ),
                stacklevel=caller_level(),
            )


def wanted_metrics(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Metrics to measure, each once."""
    parsed = tuple(map(parse_metric, [metrics] if isinstance(metrics, str | Metric) or callable(metrics) else metrics))
    if not parsed:
        raise ParameterError("got no metrics; give at least one, as in 'ndcg@10'")
    check_once(map(str, parsed), "measure it with other conventions in a second call")
    return parsed


def _as_forest(model: Any) -> Any:
    """A model of another library as a forest; other models as they are."""
    homes = [base.__module__.split(".")[0] for base in type(model).__mro__]
    foreign = homes[0] == "sklearn" or not {"lightgbm", "xgboost", "catboost"}.isdisjoint(homes)
    return from_model(model) if foreign else model


def list_scores(name: str, system: Any, data: Dataset | Lists, lists: Lists) -> np.ndarray:
    """Scores of one system in the row order of the lists."""
    check_no_file_name(system)
    if hasattr(system, "predict"):
        if isinstance(data, Lists):
            raise ParameterError(f"{name!r} is a model but the data has no features; give the Dataset, or scores")
        system = _as_forest(system).predict(data)
    scores = np.asarray(system, dtype=SCORE)
    if scores.shape != (lists.n_docs,):
        raise DataError(
            f"{name!r} has scores of shape {scores.shape} for {lists.n_docs} documents; give one per document"
        )
    return lists.ordered(scores)
