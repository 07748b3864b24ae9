"""Inverse propensity estimates of how good a new ranking is, from a log of an old one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from ranksieve.clicks.lists import inverse_propensity_weights
from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.propensity import Propensities
from ranksieve.clicks.simulation import document_ids, scores_of
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, RanksieveWarning, caller_level, check_choice, check_whole, param
from ranksieve.evaluation.metric_table import log2_discounts
from ranksieve.retrieval.runs import Run, as_run

FEW = 100.0  # a smaller effective number of clicks is warned of
METRICS = ("dcg", "clicks", "mrr")


@dataclass(frozen=True)
class Estimate:
    """What a ranking would have reached on the pages of a log.

    Attributes
    ----------
    metric
        What is estimated, per page.
    ips, ips_interval
        Inverse propensity estimate of the metric, and its 95% interval.
    snips, snips_interval
        Self-normalised: the mean over relevant documents in place of the sum; less variance, a small bias.
    logged
        The same as `ips` for the rankings that were shown.
    clicks
        Clicks of the log.
    effective_clicks
        The effective number of clicks, (Σ w)² / Σ w² of their weights w.
    not_ranked
        Clicks on documents that the ranking does not have; they count 0.

    Examples
    --------
    >>> print(Estimate("dcg@10", 0.8, (0.7, 0.9), 0.5, (0.45, 0.55), 0.6, 400, 250.0, 0))
    dcg@10 0.8000 in [0.7000, 0.9000], logged 0.6000, self-normalised 0.5000 (effective clicks 250 of 400)
    """

    metric: str
    ips: float
    ips_interval: tuple[float, float]
    snips: float
    snips_interval: tuple[float, float]
    logged: float
    clicks: int
    effective_clicks: float
    not_ranked: int

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.ips:.4f} in [{self.ips_interval[0]:.4f}, {self.ips_interval[1]:.4f}], logged "
            f"{self.logged:.4f}, self-normalised {self.snips:.4f} (effective clicks {self.effective_clicks:,.0f} of "
            f"{self.clicks:,})"
        )


def ranking_of(model: Any, dataset: Dataset) -> Run:
    """The ranking of a data set by a model or scores, for `estimate`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(5)
    >>> rs.clicks.ranking_of(data.features[:, 0], data)
    Run(5 queries, 250 documents)
    """
    scores, ids, offsets = scores_of(model, dataset), document_ids(dataset), dataset.offsets
    orders = (
        offsets[query] + np.argsort(-scores[offsets[query] : offsets[query + 1]], kind="stable")
        for query in range(dataset.n_queries)
    )
    return Run.from_lists(
        (id, ids[order], scores[order]) for id, order in zip(dataset.query_ids.tolist(), orders, strict=True)
    )


def estimate(
    log: ClickLog,
    ranking: Any,
    propensities: Propensities,
    *,
    metric: str = "dcg",
    k: int = 10,
    clip: float = 0.05,
    condensed: bool = True,
) -> Estimate:
    """Estimate from a log of an old ranker how good a new ranking is (Joachims et al. 2017).

    A click at a place with propensity p shows a relevant document and counts for 1 / p of them. The new ranking gets
    the discount of the rank that it gives to the document.

    Parameters
    ----------
    log
        Pages of the old ranker, with clicks.
    ranking
        A `Run`, a DataFrame with `qid`, `docno` and `score`, or a TREC run file; `ranking_of` makes one of a model.
    propensities
        Propensities of the places of the log.
    metric
        "dcg": 1 / log2(1 + rank); "clicks": the propensity of the rank, that is the expected clicks; "mrr": 1 / rank,
        summed over relevant documents.
    k
        Ranks beyond count nothing.
    clip
        Lowest propensity that is used.
    condensed
        Rank the documents of each page alone, in the order of the new ranking: users have not seen others. Else ranks
        are those of the whole new ranking, as if each page had shown all documents.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(50)
    >>> log = rs.clicks.simulate(data, pages=2000)
    >>> new = rs.clicks.ranking_of(data.labels, data)
    >>> found = rs.clicks.estimate(log, new, rs.clicks.Propensities.power(1, 10))
    >>> found.ips > found.logged
    True
    """
    check_choice("metric", metric, METRICS)
    check_whole("k", k)
    run = as_run(ranking)
    if run is None:
        raise DataError("there is no ranking to estimate; give a run, such as rs.clicks.ranking_of(model, data)")
    rows = np.flatnonzero(log.clicks)
    if not len(rows):
        raise DataError("the log has no clicks; use a log with clicks")
    weights = inverse_propensity_weights(log, propensities, clip=clip, self_normalize=False)[rows]
    ranks = _ranks(log, run, condensed)[rows]
    if not ranks.any():
        shown, ranked = (", ".join(map(str, ids[:3])) for ids in (log.query_ids, run.query_ids))
        raise DataError(
            f"the ranking has none of the documents that were clicked; its queries are {ranked}, …, the log's are "
            f"{shown}, …; give a ranking of the log's queries and documents, with the same ids"
        )
    pages = np.searchsorted(log.offsets, rows, side="right") - 1
    values = [_discounts(one, metric, k, propensities) * weights for one in (ranks, log.places[rows] + 1)]
    by_page, totals = (np.bincount(pages, weights=one, minlength=log.n_pages) for one in (values[0], weights))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    if effective < FEW:
        warnings.warn(
            RanksieveWarning(
                f"the effective number of clicks is {effective:.0f}, below {FEW:.0f}, so the estimate is rough; "
                "use more pages, or a higher ", param("clip"),
            ),
            stacklevel=caller_level(),
        )  # fmt: skip
    ips, snips = float(by_page.mean()), float(by_page.sum() / totals.sum())
    rest = (by_page - snips * totals) / totals.mean()  # the delta method
    return Estimate(
        f"{metric}@{k}",
        ips,
        _interval(ips, by_page),
        snips,
        _interval(snips, rest),
        float(values[1].sum() / log.n_pages),
        len(rows),
        effective,
        int((ranks == 0).sum()),
    )


def _interval(center: float, values: np.ndarray) -> tuple[float, float]:
    reach = scipy.special.ndtri(0.975) * float(values.std(ddof=1) if len(values) > 1 else np.nan) / np.sqrt(len(values))
    return center - float(reach), center + float(reach)


def _ranks(log: ClickLog, run: Run, condensed: bool) -> np.ndarray:
    """The rank, from 1, of each row's document in the new ranking; 0 where it has none."""
    found = {id: {doc: rank for rank, doc in enumerate(docs.tolist(), 1)} for id, docs, _ in run.lists()}
    pairs = zip(log.query_ids[log.pairs.queries].tolist(), log.doc_ids[log.pairs.documents].tolist(), strict=True)
    ranks: np.ndarray = np.array([found.get(query, {}).get(doc, 0) for query, doc in pairs])[log.pairs.of_rows]
    if not condensed:
        return ranks
    pages = np.repeat(np.arange(log.n_pages), log.sizes)
    order = np.lexsort((np.where(ranks == 0, np.iinfo(np.int64).max, ranks), pages))
    within = np.empty(len(ranks), np.int64)
    within[order] = log.places + 1
    return np.where(ranks == 0, 0, within)


def _discounts(ranks: np.ndarray, metric: str, k: int, propensities: Propensities) -> np.ndarray:
    inside = (ranks >= 1) & (ranks <= k)
    at = np.maximum(ranks, 1)
    if metric == "dcg":
        depth = min(k, int(at.max(initial=1)))
        values = log2_discounts(range(1, depth + 1))[np.minimum(at, depth) - 1]
    elif metric == "mrr":
        values = 1.0 / at
    else:
        values = propensities.at(at - 1)
    return np.where(inside, values, 0.0)
