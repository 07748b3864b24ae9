"""`evaluate_run`: metrics of runs by judgements, as trec_eval and ir-measures compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.dtypes import LABEL
from ranksieve.errors import DataError, ParameterError, param
from ranksieve.evaluation.evaluate import Evaluation, wanted_metrics
from ranksieve.evaluation.metric_table import METRICS, count_positives, norms, sums
from ranksieve.evaluation.metrics import Metric
from ranksieve.retrieval.runs import Judgements, Run, as_judgements, as_run
from ranksieve.text_formats import some_of

TIES = "equal scores by descending document id as in trec_eval"
UNRETRIEVED = "relevant documents that a run does not have count as not found"
Lists = tuple[np.ndarray, np.ndarray]  # labels, and the offsets of the queries
_NOTHING = (np.empty(0, object), np.empty(0))
MISSING_QUERIES = {0: "counted as 0", "skip": "left out"}  # judged queries that a run does not have


def evaluate_run(
    runs: Mapping[str, Run | Any],
    judgements: Judgements | Any,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10",),
    *,
    missing_queries: int | str = 0,
) -> Evaluation:
    """Measure runs on the judged queries; relevant documents that a run does not have count as not found.

    Lists are ordered by score, equal scores by descending document id, as trec_eval orders them.

    Parameters
    ----------
    runs
        Runs by name: `Run`s, DataFrames, or TREC files.
    judgements
        Grades of documents, per query; or a DataFrame, or a file.
    metrics
        Names as `parse_metric` reads them, or `Metric`s; their `ties` must be left as they are.
    missing_queries
        Judged queries that a run does not have: 0 counts them as 0, as `trec_eval -c` does; "skip" leaves them out of
        the mean of this run, as trec_eval does without `-c`.

    Examples
    --------
    >>> run = Run.from_rows([("q", "a", 2.0), ("q", "b", 1.0)])
    >>> evaluate_run({"mine": run}, {"q": {"b": 1, "c": 1}}, ["p@2", "map"]).table()
    name  p@2     map
    mine  0.5000  0.2500
    >>> judgements = {"q": {"b": 1, "c": 1}, "r": {"a": 1}}
    >>> [evaluate_run({"mine": run}, judgements, "p@2", missing_queries=way).mean() for way in (0, "skip")]
    [0.25, 0.5]
    """
    if isinstance(missing_queries, bool) or missing_queries not in tuple(MISSING_QUERIES):
        raise ParameterError(param("missing_queries"), f" is {missing_queries!r}; expected 0 or 'skip'")
    runs = {name: as_run(run) for name, run in runs.items()}
    judgements = as_judgements(judgements)
    if not runs or not judgements:
        raise DataError("got no runs or no judgements to measure; give at least one of each")
    for name, run in runs.items():
        if run is None:
            raise DataError(f"the run {name} is None; expected a Run, a DataFrame or a file")
        if run.n_queries and judgements.keys().isdisjoint(run.query_ids):
            raise DataError(
                f"no query of the run {name} is judged: it has {some_of(run.query_ids, 3)}, the judgements have "
                f"{some_of(list(judgements), 3)}; query ids must be the same"
            )
    wanted = wanted_metrics(metrics)
    for metric in wanted:
        if metric.ties != "order":
            raise ParameterError(f"{metric} has ties={metric.ties!r}, but runs have {TIES}; leave out ties")
    ids = np.array(list(judgements), dtype=object)
    judged = _joined([np.array(list(grades.values()), dtype=LABEL) for grades in judgements.values()])
    highest = float(judged[0].max(initial=0))  # the same for all runs, whatever they retrieve
    values = {}
    for name, run in runs.items():
        found = {id: (docs, scores) for id, docs, scores in run.lists()}
        retrieved = _joined([_labels(*found.get(id, _NOTHING), judgements[id]) for id in judgements])
        values[name] = {str(metric): _measure(metric.with_highest(highest), retrieved, judged) for metric in wanted}
        if missing_queries == "skip":
            for numbers in values[name].values():
                numbers[[id not in found for id in judgements]] = np.nan
    notes = [
        f"{name}: {note}"
        for name, run in runs.items()
        for note in (_counts(run, judgements, missing_queries), unjudged_documents(run, judgements))
        if note
    ]
    if missing_queries == "skip" and len(runs) > 1:
        notes.append("each mean is over the queries of its run; differences and p-values are over queries of both runs")
    return Evaluation(ids, values, wanted, ties=TIES, notes=(f"runs: {UNRETRIEVED}", *notes))


def _counts(run: Run, judgements: Judgements, missing_queries: int | str) -> str:
    """How many queries are in the run alone, and how many in the judgements alone; empty where both have the same."""
    found, missing = set(run.query_ids), f"judged queries not in the run, {MISSING_QUERIES[missing_queries]}"
    counts = {
        "queries without judgements, left out": len(found - judgements.keys()),
        missing: len(judgements.keys() - found),
    }
    return "; ".join(f"{what}: {count:,}" for what, count in counts.items() if count)


def unjudged_documents(run: Run, judgements: Judgements) -> str:
    """A note if no document of the run is judged: their ids may be of another collection. Else empty."""
    found = [(id, docs) for id, docs, _ in run.lists() if id in judgements and len(docs)]
    if not found or any(not judgements[id].keys().isdisjoint(docs) for id, docs in found):
        return ""
    id, docs = found[0]
    return (
        f"none of its documents is judged for its query; query {id} has {some_of(list(docs), 2)}, judged are "
        f"{some_of(list(judgements[id]), 2)}; document ids must be the same"
    )


def _labels(docs: np.ndarray, scores: np.ndarray, grades: Mapping[str, float]) -> np.ndarray:
    """Labels of a list in trec_eval's order."""
    order = sorted(range(len(docs)), key=lambda k: (scores[k], docs[k]), reverse=True)
    return np.array([grades.get(docs[k], 0.0) for k in order], dtype=LABEL)


def _measure(metric: Metric, retrieved: Lists, judged: Lists) -> np.ndarray:
    """The metric of every query.

    A metric of the retrieved lists alone does not count relevant documents that are missing from them, so what it
    divides by is taken from the judgements.
    """
    if metric.name == "avg-ndcg" and metric.k is not None:
        parts = [_measure(replace(metric, name="ndcg", k=k), retrieved, judged) for k in range(1, metric.k + 1)]
        return np.asarray(np.mean(parts, axis=0))
    labels, offsets = retrieved
    scores = -np.arange(len(labels), dtype=float)
    if METRICS[metric.name].is_sum:
        by = norms(metric, *judged)
        values = np.divide(sums(metric, labels, scores, offsets), by, out=np.zeros(len(by)), where=by > 0)
    else:
        values = np.zeros(len(offsets) - 1)
        filled = np.diff(offsets) > 0
        plain = replace(metric, empty=0, one_label="count")
        if filled.any():
            values[filled] = plain.per_query(labels, scores, np.append(0, offsets[1:][filled]))
    values[count_positives(metric, *judged) == 0] = np.nan
    return metric.finished(values, *judged)


def _joined(lists: list[np.ndarray]) -> Lists:
    """The labels of several lists, and where each begins."""
    return np.concatenate(lists), starts_of(np.array([len(labels) for labels in lists]))
