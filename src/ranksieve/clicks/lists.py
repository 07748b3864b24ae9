"""Training data from clicks: lists of pages, and lists with judgements as labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ranksieve.boosting.objectives.lambdas import ALL_RANKS, all_ideals, discounts_by_rank
from ranksieve.clicks.judgements import Judgements
from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.propensity import Propensities
from ranksieve.clicks.simulation import document_ids
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists, starts_of
from ranksieve.dtypes import LABEL, MAX_POSITION, OFFSET, POSITION, SCORE
from ranksieve.errors import (
    DataError,
    ParameterError,
    RanksieveWarning,
    caller_level,
    check_choice,
    check_number,
    param,
)
from ranksieve.kernels.metric_kinds import WEIGHTED

LIST_WEIGHTS = ("ideal", "confidence", "none")


def inverse_propensity_weights(
    log: ClickLog, propensities: Propensities, *, clip: float = 0.05, self_normalize: bool = True
) -> np.ndarray:
    """The weight of each row of a log: for a click one over the propensity of its place, else 0.

    With trust bias (`Propensities.irrelevant_clicks`) a click counts by the chance that the document is relevant, too:
    ε+ / (ε+ + ε-) for the chances of a click on relevant and other documents at the place (Agarwal et al. 2019,
    Bayes-IPS).

    Parameters
    ----------
    log
        Result pages with clicks.
    propensities
        Given or estimated ones.
    clip
        Lowest propensity that is used. Fewer clicks with huge weights; a small bias.
    self_normalize
        Divide the weights by their mean over clicks.

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [n % 2]} for n in range(8)])
    >>> rs.clicks.inverse_propensity_weights(log, rs.clicks.Propensities([1, 0.5]), self_normalize=False)[:4].tolist()
    [1.0, 0.0, 0.0, 2.0]
    """
    check_number("clip", clip, 0, 1)
    rows = np.flatnonzero(log.clicks)
    places = log.places[rows]
    values = 1.0 / np.maximum(propensities.at(places), clip)
    irrelevant = propensities.irrelevant_clicks
    if irrelevant is not None:
        relevant = propensities.at(places)
        values *= relevant / (relevant + irrelevant[np.minimum(places, len(irrelevant) - 1)])
    if self_normalize and len(values):
        values /= values.mean()
    weights = np.zeros(len(log.clicks))
    weights[rows] = values
    return weights


def page_lists(
    log: ClickLog,
    dataset: Dataset,
    propensities: Propensities | None = None,
    *,
    clip: float = 0.05,
    self_normalize: bool = True,
    only_clicked: bool = True,
    balance: float | None = None,
) -> Dataset:
    """Training data with one list per page: the documents shown, labels 1 for clicks, and positions from 1.

    With `propensities` each pair of a clicked and another document counts by the inverse propensity of the click: the
    label of a click is log2(1 + its weight), whose gain is the weight, and all documents of a page have the page's
    ideal DCG as weight, which undoes the division by it in NDCG.

    Parameters
    ----------
    log
        Result pages with clicks.
    dataset
        Features of the documents, by query id and document id. Labels are not used.
    propensities
        Given or estimated ones; None for plain clicks, as for training that learns the bias from the positions.
    clip, self_normalize
        As for `inverse_propensity_weights`.
    only_clicked
        Leave out pages without clicks, which have no pairs.
    balance
        Weight each document by 1 / (balance + how often it was shown for the query), so that documents that the old
        ranker showed on every page do not count more than all others together; None for weights of 1.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, pages=50)
    >>> lists = rs.clicks.page_lists(log, data)
    >>> lists.n_features == data.n_features, sorted(set(lists.labels.tolist()))
    (True, [0.0, 1.0])
    """
    if balance is not None:
        check_number("balance", balance)
    labels, weights = log.clicks.astype(LABEL), None
    if propensities is not None:
        gains = inverse_propensity_weights(log, propensities, clip=clip, self_normalize=self_normalize)
        labels = _of_each(math.log2, 1.0 + gains).astype(LABEL)
        weights = np.repeat(_ideal_dcg(gains, log.offsets), log.sizes)
    rows = _rows_of(dataset, log.query_ids[log.pairs.queries], log.doc_ids[log.pairs.documents])[log.pairs.of_rows]
    kept = rows >= 0
    if only_clicked:
        kept &= np.repeat(np.add.reduceat(log.clicks, log.offsets[:-1]) > 0, log.sizes)
    if not kept.any():
        _check_known(rows, log.query_ids[log.pairs.queries], log.doc_ids[log.pairs.documents], dataset)
        raise DataError("no page with a click shows a document of the data; use more pages")
    if balance is not None:
        shown = np.bincount(log.pairs.of_rows)[log.pairs.of_rows]
        weights = (1.0 if weights is None else weights) / (balance + shown)
    _warn_of_missing(rows)
    pages = np.repeat(np.arange(log.n_pages), log.sizes)[kept]
    numbers, sizes = np.unique(pages, return_counts=True)
    if weights is not None:
        weights = weights[kept] / max(float(weights[kept].mean()), 1e-300)
    lists = Lists(
        stored_labels=labels[kept],
        offsets=starts_of(sizes),
        query_ids=numbers,
        doc_ids=log.doc_ids[log.documents[kept]],
        weights=weights,
        positions=np.minimum(log.places[kept] + 1, MAX_POSITION).astype(POSITION),
    )
    return dataset.with_rows(lists, rows[kept])


def rated_lists(log: ClickLog, dataset: Dataset, propensities: Propensities, *, balance: float = 1.0) -> Dataset:
    """Training data with one list per query: the documents shown, with click rates as labels.

    The exposure of a document is the sum of the propensities of the places where it was shown, and its rate is clicks /
    exposure, at most 1. Documents that were rarely shown are not drawn to the mean, which would rank them above
    irrelevant ones that were shown often; they have little weight instead. The limit makes rates too low on average
    where the exposure is small. `RateLambdas` is the objective for such lists.

    Parameters
    ----------
    log, dataset
        As for `page_lists`.
    propensities
        Given or estimated ones.
    balance
        Documents have the weight exposure / (balance + exposure).

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=0.5), pages=500)
    >>> rs.clicks.rated_lists(log, data, rs.clicks.propensities(log)).n_queries
    20
    """
    check_number("balance", balance)
    pairs = log.pairs
    ids = log.query_ids[pairs.queries], log.doc_ids[pairs.documents]
    found = _rows_of(dataset, *ids)
    _check_known(found, *ids, dataset)
    _warn_of_missing(found[pairs.of_rows])
    kept = found >= 0
    exposure, rates = np.zeros(dataset.n_docs), np.zeros(dataset.n_docs)
    exposure[found[kept]] = pairs.sums(propensities.at(log.places))[kept]
    rates[found[kept]] = pairs.sums(log.clicks)[kept]
    rows = np.flatnonzero(exposure)
    rates, weights = np.minimum(rates[rows] / exposure[rows], 1.0), exposure[rows] / (balance + exposure[rows])
    lists = dataset.lists.take_rows(rows)
    lists = replace(lists, stored_labels=rates.astype(LABEL), weights=weights, positions=None)
    return dataset.with_rows(lists, rows)


def judged_lists(
    judgements: Judgements,
    dataset: Dataset,
    *,
    least_confidence: float = 0.0,
    weights: str = "ideal",
    others: bool = False,
) -> Dataset:
    """Training data with one list per query: the judged documents.

    Grades are labels. Without grades the label is log2(1 + relevance / highest relevance), whose gain, 2^label - 1, is
    proportional to the relevance.

    Parameters
    ----------
    judgements
        From `judge`.
    dataset
        Features of the documents, by query id and document id. Labels are not used.
    least_confidence
        Leave out documents with less.
    weights
        - "ideal": documents of a query have the ideal DCG of its list as weight, which undoes the division by it in
          NDCG. Otherwise queries without relevant documents, whose clicks are noise, count as much as others;
        - "confidence": documents have the confidence of their judgement. That favours what the old ranker showed most;
        - "none".
    others
        Also the other documents of these queries, which were never shown, with the lowest label of all. Not with the
        weights "confidence", which are 0 for them.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> judged = rs.clicks.judge(rs.clicks.fit(rs.clicks.simulate(data, pages=500), "coec"))
    >>> rs.clicks.judged_lists(judged, data).n_queries
    20
    """
    check_choice("weights", weights, LIST_WEIGHTS)
    if others and weights == "confidence":
        raise ParameterError(
            param("weights", "confidence"), " gives documents that were never shown the weight 0, so ", param("others"),
            " has no effect; use ", param("weights", "ideal"), " or ", param("weights", "none"),
        )  # fmt: skip
    top = max(float(judgements.relevance.max(initial=0.0)), 1e-300)
    labels = judgements.grades
    if labels is None:
        labels = _of_each(math.log2, 1.0 + judgements.relevance / top)
    rows = _rows_of(dataset, judgements.queries, judgements.documents)
    kept = np.flatnonzero((rows >= 0) & (judgements.confidence >= least_confidence))
    if not len(kept):
        _check_known(rows, judgements.queries, judgements.documents, dataset)
        raise DataError(
            f"no judgement has a confidence of {least_confidence} or more; lower ", param("least_confidence")
        )
    values, confidence = np.full(dataset.n_docs, labels[kept].min(), LABEL), np.zeros(dataset.n_docs)
    values[rows[kept]], confidence[rows[kept]] = labels[kept], judgements.confidence[kept]
    chosen = np.zeros(dataset.n_docs, bool)
    chosen[rows[kept]] = True
    if others:
        chosen = np.repeat(np.logical_or.reduceat(chosen, dataset.offsets[:-1]), dataset.lists.sizes)
    rows = np.flatnonzero(chosen)
    lists = replace(dataset.lists.take_rows(rows), stored_labels=values[rows], weights=None)
    if weights == "confidence":
        lists = replace(lists, weights=confidence[rows])
    elif weights == "ideal":
        gains = _of_each(lambda label: 2.0**label - 1.0, lists.labels)
        ideal = np.repeat(_ideal_dcg(gains, lists.offsets), lists.sizes)
        lists = replace(lists, weights=ideal / max(float(ideal.mean()), 1e-300))
    return dataset.with_rows(lists, rows)


def _rows_of(dataset: Dataset, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """The row of each pair of ids in the data, -1 where the data does not have it."""
    own = np.repeat(dataset.query_ids.astype(str).astype(object), dataset.lists.sizes), document_ids(dataset)
    numbers = {pair: row for row, pair in enumerate(zip(*(ids.tolist() for ids in own), strict=True))}
    pairs = zip(queries.tolist(), documents.tolist(), strict=True)
    return np.array([numbers.get(pair, -1) for pair in pairs], dtype=OFFSET)


def _warn_of_missing(rows: np.ndarray) -> None:
    """Say how many of the documents shown the data does not have."""
    missing = int(np.count_nonzero(rows < 0))
    if missing:
        warnings.warn(
            RanksieveWarning(f"{missing:,} of {len(rows):,} documents shown have no features and are left out"),
            stacklevel=caller_level(),
        )


def _check_known(rows: np.ndarray, queries: np.ndarray, documents: np.ndarray, dataset: Dataset) -> None:
    """Refuse pairs of ids of which the data has none."""
    if len(rows) and (rows < 0).all():
        known = str(dataset.query_ids[0]), str(document_ids(dataset)[0])
        raise DataError(
            f"the data has none of the documents shown: got ids like query {str(queries[0])!r} with document "
            f"{str(documents[0])!r}, expected ids like query {known[0]!r} with document {known[1]!r}"
        )


def _ideal_dcg(gains: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """DCG of the best order of each list."""
    return all_ideals(WEIGHTED, gains, offsets, discounts_by_rank(offsets, ALL_RANKS))


def _of_each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """A function of each value. Those of `math` have the same bits on every CPU, which those of NumPy do not."""
    distinct, places = np.unique(values, return_inverse=True)
    return np.array([function(value) for value in distinct.tolist()], SCORE)[places]
