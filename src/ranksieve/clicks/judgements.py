"""Judgements from a click model: grades of documents, and their confidence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from ranksieve.clicks.fitted import FittedModel
from ranksieve.clicks.posterior import COVERAGE, posterior
from ranksieve.errors import DataError, ParameterError, check_whole, param
from ranksieve.files import atomic_text
from ranksieve.text_formats import AUTO, counted

HIGHEST = 0.99  # quantile of the relevance that has the highest grade
COLUMNS = ("query", "document", "relevance", "low", "high", "confidence", "shown", "clicked", "grade")


@dataclass(frozen=True, eq=False, repr=False)
class Judgements:
    """Relevance of documents for queries, estimated from clicks; one entry per pair, sorted by query.

    Attributes
    ----------
    queries, documents
        Ids.
    relevance
        Chance of a (satisfying) click if the document is examined; rare documents are near the mean of all.
    low, high
        95% interval of the relevance.
    confidence
        Share of the estimate that comes from clicks and not from the mean: n / (n + shrinkage) for n examinations; with
        shrinkage "auto" 1 - the document's variance / the variance over all documents.
    shown, clicked
        Impressions and clicks.
    grades
        Whole numbers from 0, in steps of equal width from 0 to the relevance of the best hundredth; None for grades
        that are the relevance itself.

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 30)
    >>> rs.clicks.judge(rs.clicks.fit(log, "ctr")).confidence.tolist()
    [0.75, 0.75]
    """

    queries: np.ndarray
    documents: np.ndarray
    relevance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    grades: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        return f"Judgements({counted(query=len(set(self.queries.tolist())), document=len(self))})"

    def as_dict(self, *, least_confidence: float = 0.0) -> dict[str, dict[str, float]]:
        """Grades by query and document, as `ranksieve.retrieval` takes them."""
        found: dict[str, dict[str, float]] = {}
        values = self.relevance if self.grades is None else self.grades
        for number in np.flatnonzero(self.confidence >= least_confidence).tolist():
            found.setdefault(str(self.queries[number]), {})[str(self.documents[number])] = float(values[number])
        return found

    def columns(self) -> dict[str, Any]:
        """All columns by name, for a DataFrame."""
        grades = self.relevance if self.grades is None else self.grades
        values = (self.queries, self.documents, self.relevance, self.low, self.high, self.confidence)
        return dict(zip(COLUMNS, (*values, self.shown, self.clicked, grades), strict=True))

    def write_qrels(
        self,
        path: str | os.PathLike[str],
        *,
        queries: str | os.PathLike[str] | None = None,
        least_confidence: float = 0.0,
    ) -> int:
        """Write TREC qrels, `query 0 document grade`; returns how many lines.

        Parameters
        ----------
        path
            File to write.
        queries
            File for `id TAB text` of the queries, whose texts then have ids q1, q2, … in the qrels. Without it the
            texts are the ids and must not have spaces.
        least_confidence
            Leave out documents with less confidence.
        """
        judged = self.as_dict(least_confidence=least_confidence)
        ids = {text: f"q{number}" for number, text in enumerate(judged, 1)} if queries is not None else {}
        for text in [] if queries is not None else judged:
            if text.split() != [text]:
                raise DataError(
                    f"the query {text!r} has spaces, which qrels cannot hold; give a file for the texts, ",
                    param("queries", "queries.tsv"),
                )
        if queries is not None:
            with atomic_text(queries) as file:
                file.writelines(f"{id}\t{' '.join(text.split())}\n" for text, id in ids.items())
        with atomic_text(path) as file:
            for text, grades in judged.items():
                file.writelines(f"{ids.get(text, text)} 0 {doc} {grade:.6g}\n" for doc, grade in grades.items())
        return sum(map(len, judged.values()))


def judge(model: FittedModel, *, shrinkage: float | str = 10.0, levels: int | None = None) -> Judgements:
    """Judgements of all pairs of query and document that a click model has seen.

    The relevance of models of users who read from the top is attraction times satisfaction ("sdbn", "dbn"), of others
    the attraction.

    Parameters
    ----------
    model
        From `fit`.
    shrinkage
        Examinations that the mean over all documents counts for. "auto" estimates the distribution of the relevance
        over all documents from the log (nonparametric maximum likelihood), and takes the mean of each document's
        posterior distribution: where most clicks are noise, few clicks say little, and many say much.
    levels
        Number of grades; None for relevance as the grade.

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 30)
    >>> rs.clicks.judge(rs.clicks.fit(log, "ctr"), levels=3).as_dict()
    {'wine': {'a': 2.0, 'b': 0.0}}
    """
    if shrinkage != AUTO and (isinstance(shrinkage, str) or not 0 <= shrinkage < np.inf):
        raise ParameterError(param("shrinkage"), f" is {shrinkage!r}; expected a finite number from 0, or 'auto'")
    if levels is not None:
        check_whole("levels", levels, 2)
    if model.name == "rctr":
        raise ParameterError("the click model 'rctr' says nothing about documents; fit 'pbm', 'sdbn' or another")
    successes, trials, mean = model.clicked, model.examined, model.mean_attraction
    if model.satisfied is not None and model.name != "cascade":
        successes, mean = model.satisfied, mean * model.mean_satisfaction
    if isinstance(shrinkage, str):
        found = posterior(successes, trials, limited=model.name != "coec")
        relevance, low, high, confidence = found.mean, found.low, found.high, found.confidence
    else:
        relevance = (successes + shrinkage * mean) / np.maximum(trials + shrinkage, 1e-300)
        low, high = _interval(relevance, trials + shrinkage)
        confidence = trials / np.maximum(trials + shrinkage, 1e-300)
    grades = None
    if levels is not None:
        top = max(float(np.quantile(relevance, HIGHEST)), 1e-300)
        grades = np.minimum(np.floor(relevance / top * levels), levels - 1).astype(int)
    n_docs = len(model.doc_ids)
    return Judgements(
        queries=model.query_ids[model.keys // n_docs],
        documents=model.doc_ids[model.keys % n_docs],
        relevance=relevance,
        low=low,
        high=high,
        confidence=confidence,
        shown=model.shown,
        clicked=model.clicked,
        grades=grades,
    )


def _interval(mean: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The interval of a Beta distribution with this mean, and as many trials; relevance beyond 1 (COEC) has none."""
    inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
    tail = (1.0 - COVERAGE) / 2
    low, high = (
        scipy.special.betaincinv(np.maximum(inside * weight, 1e-6), np.maximum((1 - inside) * weight, 1e-6), share)
        for share in (tail, 1.0 - tail)
    )
    beyond = mean > 1.0
    return np.where(beyond, mean, low), np.where(beyond, mean, high)
