"""Ranking metrics as functions of plain arrays, one value per query: `ndcg(labels, scores, qid=qid, k=10)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksieve.data.lists import lists_from_runs, runs_of
from ranksieve.dtypes import OFFSET
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metric_names import register_metric
from ranksieve.evaluation.metrics import Metric, parse_metric

__all__ = [
    "Metric",
    "average_precision",
    "dcg",
    "err",
    "ndcg",
    "parse_metric",
    "precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "register_metric",
]

_DOC = """{title} of every query, one number per query in the order of their first rows.

Parameters
----------
labels, scores
    One grade and one score per document.
offsets, qid, group
    Which documents belong together: rows `offsets[q]:offsets[q + 1]`, or a query id per row (rows of a query may lie
    apart), or the sizes of consecutive queries. At most one of them; without any, all documents are one list.
k
    The cut-off; None for the whole list.
**options
    The conventions of `Metric`: gain, ties, empty, one_label, p.

Returns
-------
numpy.ndarray
    float64; NaN for queries left out, by default those without positives.

Examples
--------
>>> {name}([1, 0, 0, 2], [0.3, 0.9, 0.2, 0.8], qid=["a", "a", "b", "b"], k=2).round(4).tolist()
{example}
"""


def query_lists(
    labels: Any, scores: Any, offsets: Any = None, *, qid: Any = None, group: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and scores with the rows of each query side by side, and the offsets of the queries."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    given = [name for name, value in (("offsets", offsets), ("qid", qid), ("group", group)) if value is not None]
    if len(given) > 1:
        raise ParameterError(f"got {' and '.join(given)}; give one of offsets, qid and group")
    if labels.ndim != 1 or labels.shape != scores.shape:
        raise DataError(f"got scores of shape {scores.shape} for labels of shape {labels.shape}; give one per document")
    if offsets is not None:
        return labels, scores, np.asarray(offsets)
    if qid is not None:
        qid = np.asarray(qid)
        if qid.shape != labels.shape:
            raise DataError(f"got query ids of shape {qid.shape} for {len(labels)} documents; give one per document")
        run_ids, run_lengths = runs_of(qid)
    else:
        run_lengths = np.asarray([len(labels)] if group is None else group, dtype=OFFSET)
        run_ids = np.arange(len(run_lengths))
    lists = lists_from_runs(labels, run_ids, run_lengths)
    return lists.labels, lists.ordered(scores), lists.offsets


def _function(
    name: str, metric: str, title: str, example: str, default_k: int | None = 10
) -> Callable[..., np.ndarray]:
    def measure(
        labels: Any,
        scores: Any,
        offsets: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        k: int | None = default_k,
        **options: Any,
    ) -> np.ndarray:
        return parse_metric(metric, k=k, **options).per_query(
            *query_lists(labels, scores, offsets, qid=qid, group=group)
        )

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = _DOC.format(name=name, title=title, example=example)
    return measure


ndcg = _function("ndcg", "ndcg", "Normalised discounted cumulative gain", "[0.6309, 1.0]")
dcg = _function("dcg", "dcg", "Discounted cumulative gain", "[0.6309, 3.0]")
average_precision = _function("average_precision", "map", "Average precision", "[0.5, 1.0]", default_k=None)
reciprocal_rank = _function("reciprocal_rank", "mrr", "Reciprocal rank of the first positive", "[0.5, 1.0]", None)
precision = _function("precision", "p", "Share of positives in the first k ranks", "[0.5, 0.5]")
recall = _function("recall", "recall", "Share of the positives found in the first k ranks", "[1.0, 1.0]")
err = _function("err", "err", "Expected reciprocal rank", "[0.125, 0.75]")
rbp = _function("rbp", "rbp", "Rank-biased precision", "[0.16, 0.2]", default_k=None)
