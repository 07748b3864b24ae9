"""Metrics by name: `parse_metric("ndcg@10")`, with the conventions that tools disagree on as options.

A name in lower case is ours. A name that ir-measures has, in its spelling (`nDCG@10`, `AP(rel=2)`), is what ir-measures
computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.dtypes import LABEL, OFFSET, SCORE
from ranksieve.errors import DataError, ParameterError, param
from ranksieve.evaluation.metric_names import IR_NAMES, UserMetric, known_metric, own_name, read_name
from ranksieve.evaluation.metric_table import (
    METRICS,
    Ranking,
    count_positives,
    counts_of,
    divide,
    graded,
    label_counts,
    measure,
    norms,
    positive,
    rank_weights,
    stop_chances,
    sums_of,
)
from ranksieve.params import Params
from ranksieve.text_formats import AUTO, read_gains


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_cut_off(k: Any) -> bool:
    return k is None or (isinstance(k, int | np.integer) and not isinstance(k, bool) and bool(k >= 1))


def _is_gain(gain: Any) -> bool:
    if isinstance(gain, str):
        return gain in ("exp", "linear")
    if not isinstance(gain, tuple) or not gain or not all(map(_is_number, gain)):
        return False
    return bool(np.isfinite(gain).all() and gain[0] >= 0 and (np.diff(gain) >= 0).all())


VALID: dict[str, tuple[Callable[[Any], bool], str]] = {
    "k": (_is_cut_off, "an integer from 1, or None for the whole list"),
    "gain": (_is_gain, "'exp', 'linear', or a table of gains per grade that are not negative and never fall"),
    "ties": (lambda ties: ties in ("order", "mean", "worst"), "'order', 'mean' or 'worst'"),
    "empty": (lambda empty: empty == "skip" or (_is_number(empty) and empty in (0, 1)), "'skip', 0 or 1"),
    "one_label": (lambda one_label: one_label in ("count", "skip"), "'count' or 'skip'"),
    "p": (lambda p: _is_number(p) and 0 < p < 1, "a number between 0 and 1"),
    "rel": (lambda rel: rel is None or (_is_number(rel) and 0 < rel < np.inf), "a number above 0"),
    "highest": (lambda highest: highest is None or (_is_number(highest) and 0 < highest < np.inf), "a number above 0"),
    "spelling": (lambda spelling: spelling in ("ranksieve", "ir-measures"), "'ranksieve' or 'ir-measures'"),
}
_ONLY_FOR = {"rel": positive, "highest": stop_chances}  # the gains that read these options

_TIES = {"order": "ties in input order", "mean": "mean over the orders of ties", "worst": "ties in the worst order"}
_GAINS = {"exp": "gain 2^label-1", "linear": "gain = label"}


@dataclass(frozen=True)
class Metric:
    """A metric with its conventions; `parse_metric` makes one from a name.

    Parameters
    ----------
    name
        `ndcg`, `dcg`, `map`, `mrr`, `p`, `recall`, `err`, `rbp`; `avg-ndcg` and `avg-p`, the means of NDCG and P over
        the cut-offs 1 to k; or a name given to `register_metric`.
    k
        The cut-off; None measures the whole list. P@k divides by k even if a list is shorter, and MAP@k by all
        positives of the query, as trec_eval and ir-measures do.
    gain
        `"exp"` (2^label - 1), `"linear"` (the label), or a table with the gain of each grade. Read by `ndcg`, `dcg`
        and `avg-ndcg`; `err` has its own stopping probability (2^label - 1) / 2^highest, with the highest label of
        the data, at least 1 (gdeval: always 4); the other metrics use `rel`.
    ties
        Documents with equal scores stay in input `"order"`, count by the exact `"mean"` over all their orders, or are
        ranked in the `"worst"` order, lowest label first.
    empty
        What a query without positives counts: `"skip"` leaves it out (NaN), else 0 or 1.
    one_label
        Whether a query whose documents all have one label counts (`"count"`) or is left out (`"skip"`).
    p
        The persistence of `rbp`.
    rel
        The lowest label of a positive; None: labels above 0 are positive. Read by `map`, `mrr`, `p`, `recall`, `rbp`
        and `avg-p`.
    highest
        The highest grade of `err`; None: the highest label of the data, at least 1.
    spelling
        How the metric is written: as here, or as `"ir-measures"` writes it.

    Examples
    --------
    >>> metric = parse_metric("ndcg@10", empty=1)
    >>> metric.per_query([2, 0, 1, 0, 0], [0.1, 0.9, 0.8, 3.0, 2.0], [0, 3, 5]).round(4).tolist()
    [0.5869, 1.0]
    >>> metric.describe()
    'ndcg@10: gain 2^label-1, ties in input order, queries without positives count 1'
    """

    name: str
    k: int | None = None
    gain: str | tuple[float, ...] = "exp"
    ties: str = "order"
    empty: str | float = "skip"
    one_label: str = "count"
    p: float = 0.8
    rel: float | None = None
    highest: float | None = None
    spelling: str = "ranksieve"

    def __post_init__(self) -> None:
        if isinstance(self.gain, list | np.ndarray):
            object.__setattr__(self, "gain", tuple(float(value) for value in self.gain))
        known = known_metric(self.name)
        for option, (is_valid, expected) in VALID.items():
            if not is_valid(getattr(self, option)):
                raise ParameterError(f"{option} of {self.name} is {getattr(self, option)!r}; expected {expected}")
        for option, gain in _ONLY_FOR.items():
            if getattr(self, option) is not None and known.gain is not gain:
                able = ", ".join(name for name, other in METRICS.items() if other.gain is gain)
                raise ParameterError(f"{self.name} has no option {option}; it is for {able}")
        if known.needs_k and self.k is None:
            name = self._name
            raise ParameterError(f"{name} needs a cut-off; write it as in '{name}@10'")
        if self.ties == "mean" and not known.mean_ties:
            able = ", ".join(name for name, other in METRICS.items() if other.mean_ties)
            raise ParameterError(f"{self.name} has no mean over orders of ties; use ties='order' or 'worst', or {able}")

    def __str__(self) -> str:
        options = [f"p={self.p:g}"] if self.name == "rbp" and self.p != 0.8 else []
        if self.rel != (1 if self.spelling == "ir-measures" and known_metric(self.name).gain is positive else None):
            options.append(f"rel={self.rel:g}")
        if self.spelling == "ir-measures" and self.name == "ndcg":
            if isinstance(self.gain, tuple):
                options.append(f"gains={{{','.join(f'{label}:{gain:g}' for label, gain in enumerate(self.gain))}}}")
            elif self.gain == "exp":
                options.append("dcg='exp-log2'")
        written = f"({','.join(options)})" if options else ""
        return f"{self._name}{written}" + ("" if self.k is None else f"@{self.k}")

    @property
    def _name(self) -> str:
        return self.name if self.spelling == "ranksieve" else IR_NAMES.get(self.name, self.name)

    @property
    def depends_on_top_k(self) -> bool:
        """True if the value depends on the k best-scored documents only, not on the order below them."""
        return self.k is not None and self.ties == "order" and known_metric(self.name).mean_ties

    def with_highest(self, label: float) -> Metric:
        """The metric for a part of a data set. ERR depends on `label`, the highest label of the whole set."""
        depends = known_metric(self.name).gain is stop_chances and self.highest is None
        return replace(self, highest=max(1.0, label)) if depends else self

    def per_query(self, labels: Any, scores: Any, offsets: Any) -> np.ndarray:
        """One number per query, whose documents are rows `offsets[q]:offsets[q + 1]`; NaN where it is left out."""
        labels, scores, offsets = checked_lists(labels, scores, offsets)
        if self.ties == "worst":
            query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            order = np.lexsort((labels, query))
            labels, scores = labels[order], scores[order]
        return self.finished(measure(self, labels, scores, offsets), labels, offsets)

    def finished(self, values: np.ndarray, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Apply the options `empty` and `one_label` to values per query, in place."""
        if self.empty != "skip":
            values[np.isnan(values)] = float(self.empty)
        if self.one_label == "skip":
            values[label_counts(labels, offsets)[1]] = np.nan
        return values

    @property
    def relevance(self) -> str:
        """How the metric uses labels, in words; the tables of results show it below the name."""
        gain = known_metric(self.name).gain
        if gain is graded:
            return f"gain table {self.gain}" if isinstance(self.gain, tuple) else _GAINS[self.gain]
        if gain is positive:
            return "label > 0 is positive" if self.rel is None else f"label >= {self.rel:g} is positive"
        if gain is stop_chances:
            return f"stop chance (2^label-1)/2^{'highest label' if self.highest is None else format(self.highest, 'g')}"
        return "own function"

    def describe(self, ties: str | None = None) -> str:
        """The conventions behind the number, as one sentence; `ties` are words to use for equal scores."""
        left_out = "left out" if self.empty == "skip" else f"count {float(self.empty):g}"
        parts = [self.relevance, ties or _TIES[self.ties], f"queries without positives {left_out}"]
        if self.spelling == "ir-measures":
            parts.insert(0, "as in ir-measures")
        if self.one_label == "skip":
            parts.append("queries with one label left out")
        return f"{self}: {', '.join(parts)}"


def parse_metric(text: str | Metric | UserMetric, **options: Any) -> Metric:
    """A metric from a name such as `ndcg@10`, `map`, `rbp(p=0.5)`, or as ir-measures writes it: `nDCG@10`, `AP(rel=2)`.

    Any name takes `ties`, as in `ndcg(ties=mean)@10`.

    Parameters
    ----------
    text
        The name with an optional cut-off after `@`. Names in lower case are ours. The names of ir-measures (nDCG, AP,
        RR, P, R, RBP, ERR) follow its definitions: the gain of nDCG is the label, positives have a label of at least
        `rel` (1), the highest grade of ERR is 4, queries without positives count 0. Other spellings, such as NDCG, are
        refused: they can mean either. A `Metric` is taken as it is; a function of yours is registered by its own name
        (see `register_metric`).
    **options
        Any other field of `Metric`.

    Examples
    --------
    >>> [str(parse_metric(text)) for text in ("ndcg@10", "nDCG@10", "AP", "RR@10", "AP(rel=2)", "RBP(p=0.5)")]
    ['ndcg@10', 'nDCG@10', 'AP', 'RR@10', 'AP(rel=2)', 'RBP(p=0.5)']
    >>> parse_metric("ndcg@10").relevance, parse_metric("nDCG@10").relevance
    ('gain 2^label-1', 'gain = label')
    """
    if callable(text):
        text = own_name(text)
    if not isinstance(text, str | Metric):
        raise ParameterError(
            f"a metric is a text like 'ndcg@10', a Metric or a function of yours, not {type(text).__name__}"
        )
    unknown = [option for option in options if option not in VALID]
    if unknown:
        raise ParameterError(f"metrics have no option {unknown[0]!r}; known: {', '.join(VALID)}")
    if isinstance(text, Metric):
        if options:
            raise ParameterError(f"{text} is a Metric already; give its options where it is made, or pass its name")
        return text
    name, defaults, written = read_name(text)
    twice = sorted(written.keys() & options.keys())
    if twice:
        raise ParameterError(f"{twice[0]} of {text!r} is given twice; leave it out of the name or of the options")
    return Metric(name, **{**defaults, **written, **options})


class RankedMetric:
    """The metric of every query, given its best documents; what does not depend on the ranking is computed once.

    Examples
    --------
    >>> labels, offsets = np.array([2, 0, 1, 0, 1], np.float32), np.array([0, 3, 5])
    >>> ranked = RankedMetric(parse_metric("ndcg@2"), labels, offsets)
    >>> ranked.per_query(np.array([1, 2, 4, 3])).round(4).tolist()  # two documents of each query, best first
    [0.1738, 1.0]
    """

    @staticmethod
    def can_measure(metric: Metric) -> bool:
        """Whether the metric is a sum over the k best documents, with ties in their order."""
        return metric.k is not None and metric.depends_on_top_k and METRICS[metric.name].is_sum

    def __init__(self, metric: Metric, labels: np.ndarray, offsets: np.ndarray) -> None:
        gain = METRICS[metric.name].gain
        assert gain is not None
        self._metric, self._labels, self._gain = metric, labels, gain(metric, labels)
        self.starts = np.concatenate([[0], np.cumsum(counts_of(metric, offsets))]).astype(np.int64)
        self._ends = np.arange(1, self.starts[-1] + 1) - np.repeat(self.starts[:-1], np.diff(self.starts))
        self._weights, self._norms = rank_weights(metric, offsets), norms(metric, labels, offsets)
        self._norms[count_positives(metric, labels, offsets) == 0] = 0.0
        self._offsets = offsets

    def per_query(self, rows: np.ndarray) -> np.ndarray:
        """One number per query, whose best documents are `rows[starts[q]:starts[q + 1]]`."""
        ranking = Ranking(self._gain(self._labels[rows]), self.starts, self._ends)
        values = divide(sums_of(self._metric, ranking, self._weights), self._norms)
        return self._metric.finished(values, self._labels, self._offsets)


def metric_of(params: Params) -> Metric:
    """The metric that training watches, with the gains that training uses.

    Examples
    --------
    >>> metric_of(Params(metric="ndcg@5", gains=(0, 1, 3))).describe()
    'ndcg@5: gain table (0.0, 1.0, 3.0), ties in input order, queries without positives left out'
    """
    if params.gains == AUTO:
        return parse_metric(params.metric)
    metric = parse_metric(params.metric, gain=read_gains(params.gains))
    if not known_metric(metric.name).is_graded and not params.uses_gains:
        raise ParameterError(
            param("gains"),
            f" is {params.gains}, and neither the metric {metric} nor the objective of ",
            param("algo", params.algo),
            " uses gains; leave it out, or use ndcg",
        )
    return metric


def mean(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Mean over the queries that count, by their weights where given; NaN if none does.

    Examples
    --------
    >>> mean(parse_metric("p@1").per_query([1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0], [0, 1, 2, 4]))
    0.5
    """
    values = np.asarray(values, dtype=SCORE)
    counts = ~np.isnan(values)
    counted = values[counts]
    if weights is not None and len(counted):
        weights = np.asarray(weights, dtype=SCORE)[counts]
        return float(np.average(counted, weights=weights)) if weights.any() else float("nan")
    return float(counted.mean()) if len(counted) else float("nan")


def checked_lists(labels: Any, scores: Any, offsets: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three arrays in their dtypes; an error if they do not fit each other."""
    with np.errstate(over="ignore"):  # a label beyond float32 is infinite, and refused below
        labels = np.ascontiguousarray(labels, dtype=LABEL)
    scores = np.ascontiguousarray(scores, dtype=SCORE)
    offsets = np.ascontiguousarray(offsets, dtype=OFFSET)
    if labels.ndim != 1 or scores.shape != labels.shape:
        raise DataError(f"got scores of shape {scores.shape} for labels of shape {labels.shape}; give one per document")
    if np.isnan(scores).any():
        raise DataError(f"the score of row {int(np.argmax(np.isnan(scores)))} is NaN; every document needs a number")
    fine = np.isfinite(labels) & (labels >= 0)
    if not fine.all():
        row = int(np.argmin(fine))
        raise DataError(f"the label of row {row} is {labels[row]}; labels are finite grades from 0 upwards")
    if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != len(labels):
        raise DataError(f"offsets must run from 0 to the number of documents, {len(labels)}; got {offsets}")
    if (np.diff(offsets) < 0).any():
        raise DataError(f"offsets fall after query {int(np.argmax(np.diff(offsets) < 0))}; they must never fall")
    return labels, scores, offsets
