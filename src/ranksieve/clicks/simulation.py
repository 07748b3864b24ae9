"""Simulated logs: users who click on lists with known labels, the usual protocol of unbiased learning to rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.clicks.log import ClickLog
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import starts_of
from ranksieve.dtypes import ROW
from ranksieve.errors import DataError, ParameterError, check_choice, check_number, check_whole, param
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.rankers.train import train

USERS = ("pbm", "trust", "cascade", "dbn")
POOL = 5  # times the depth: best documents of a ranker that randomised rankings are drawn from
PAGES_AT_ONCE = 20_000
RELEVANT_CLICKED = 0.98  # share of examined relevant documents that are clicked, trust bias (Agarwal et al. 2019)
SATISFIED = 0.9  # share of relevance that satisfies, of users who read from the top


@dataclass(frozen=True)
class Users:
    """How simulated users click.

    Parameters
    ----------
    model
        "pbm": the document at rank r is examined with chance (1/r)^η; "trust": the same, and documents that are not
        relevant are clicked with chance `trust` / r if examined; "cascade": from the top to the first click; "dbn":
        from the top until satisfied, going on with chance `continuation` otherwise.
    eta
        Strength of position bias ("pbm", "trust"); 0 is none.
    noise
        Chance of a click on an examined document with label 0 (not "trust").
    trust
        Chance of a click on an examined document that is not relevant, at the first rank ("trust").
    continuation
        Chance to go on ("dbn").

    Examples
    --------
    >>> import numpy as np
    >>> Users("cascade", noise=0.0).click(np.array([[0.0, 1.0, 1.0]]), np.random.default_rng(0)).tolist()
    [[False, True, False]]
    """

    model: str = "pbm"
    eta: float = 1.0
    noise: float = 0.1
    trust: float = 0.65
    continuation: float = 0.9

    def __post_init__(self) -> None:
        check_choice("model", self.model, USERS)
        for name in ("noise", "trust", "continuation"):
            check_number(name, getattr(self, name), 0, 1)
        check_number("eta", self.eta)

    def click(self, relevance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Clicks on pages: one row per page, one column per rank; relevance is NaN where there is no document."""
        ranks = np.arange(1.0, relevance.shape[1] + 1)
        relevance, exists = np.nan_to_num(relevance), ~np.isnan(relevance)
        draws = rng.random(relevance.shape)
        if self.model == "trust":
            attraction = RELEVANT_CLICKED * relevance + self.trust / ranks * (1.0 - relevance)
        else:
            attraction = self.noise + (1.0 - self.noise) * relevance
        if self.model in ("pbm", "trust"):
            return np.asarray(exists & (draws < attraction * ranks**-self.eta))
        clicks, reading = np.zeros(relevance.shape, bool), np.ones(len(relevance), bool)
        for rank in range(relevance.shape[1]):
            clicks[:, rank] = exists[:, rank] & reading & (draws[:, rank] < attraction[:, rank])
            if self.model == "cascade":
                reading &= ~clicks[:, rank]
            else:
                satisfied = clicks[:, rank] & (rng.random(len(relevance)) < SATISFIED * relevance[:, rank])
                reading &= ~satisfied & (rng.random(len(relevance)) < self.continuation)
        return clicks


@dataclass(frozen=True)
class LoggingPolicy:
    """What ranks the pages of a log.

    Parameters
    ----------
    ranker
        A model, or one score per document; a list of several, of which each page has one at random; None for the order
        of the data. `logging_ranker` trains a weak one.
    temperature
        Randomness of rankings: noise of this size is added to standardised scores of the best documents
        (Plackett-Luce); 0 for none.
    swaps
        Share of the pages on which the first document and another one are exchanged with probability one half.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> rs.clicks.simulate(data, LoggingPolicy(data.features[:, 0], swaps=0.5), pages=50).swaps.shape
    (50, 2)
    """

    ranker: Any = None
    temperature: float = 0.0
    swaps: float = 0.0

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature)
        check_number("swaps", self.swaps, 0, 1)

    def best(self, dataset: Dataset, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best rows of each ranker and query, -1 beyond the end of a list, and their standardised scores."""
        rankers = self.ranker if isinstance(self.ranker, list | tuple) else [self.ranker]
        rows = np.full((len(rankers), dataset.n_queries, depth if self.temperature == 0 else POOL * depth), -1)
        keys = np.full(rows.shape, -np.inf)
        for number, ranker in enumerate(rankers):
            scores = scores_of(ranker, dataset)
            for query in range(dataset.n_queries):
                start, stop = dataset.offsets[query], dataset.offsets[query + 1]
                own = scores[start:stop]
                order = np.argsort(-own, kind="stable")[: rows.shape[2]]
                rows[number, query, : len(order)] = start + order
                keys[number, query, : len(order)] = own[order] / (own.std() or 1.0)
        return rows, keys

    def draw(self, rows: np.ndarray, keys: np.ndarray, depth: int, rng: np.random.Generator) -> np.ndarray:
        """The rows of pages, from the top."""
        if self.temperature == 0:
            return rows[:, :depth]
        order = np.argsort(-(keys / self.temperature + rng.gumbel(size=keys.shape)), axis=1, kind="stable")[:, :depth]
        return np.take_along_axis(rows, order, axis=1)


def simulate(
    dataset: Dataset,
    policy: LoggingPolicy | Any = None,
    users: Users | str = "pbm",
    *,
    pages: int = 10_000,
    depth: int = 10,
    seed: int = 0,
) -> ClickLog:
    """Simulate result pages of a data set and clicks on them.

    Relevance is (2^label - 1) / (2^highest - 1). Queries of pages are drawn at random. Documents without ids have their
    place in the query's list as the id, from "0".

    Parameters
    ----------
    dataset
        Lists with true labels.
    policy
        What ranks the pages: a `LoggingPolicy`, or just its `ranker`.
    users
        How users click: a `Users`, or just its `model`.
    pages
        Number of pages.
    depth
        Documents of a page.
    seed
        Random seed.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> policy = rs.clicks.LoggingPolicy(data.features[:, 0], temperature=0.5)
    >>> log = rs.clicks.simulate(data, policy, rs.clicks.Users(eta=2.0), pages=500, seed=1)
    >>> log.n_pages, log.n_places
    (500, 10)
    """
    policy = policy if isinstance(policy, LoggingPolicy) else LoggingPolicy(policy)
    users = users if isinstance(users, Users) else Users(users)
    check_whole("pages", pages)
    check_whole("depth", depth)
    rng = np.random.default_rng(seed)
    rows, keys = policy.best(dataset, depth)
    labels = dataset.labels
    relevance = np.append((2.0 ** labels.astype(float) - 1.0) / (2.0 ** highest_grade(labels) - 1.0), np.nan)
    parts = []
    for start in range(0, pages, PAGES_AT_ONCE):
        n = min(PAGES_AT_ONCE, pages - start)
        queries, chosen = rng.integers(0, dataset.n_queries, n), rng.integers(0, len(rows), n)
        shown = policy.draw(rows[chosen, queries], keys[chosen, queries], depth, rng)
        swapped = _swapped(shown, policy.swaps, rng)
        parts.append((queries, shown, users.click(relevance[shown], rng), swapped))
    queries, shown, clicks, swapped = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _log(dataset, queries, shown, clicks, swapped if policy.swaps else None)


def scores_of(ranker: Any, dataset: Dataset) -> np.ndarray:
    """Scores of a model or given ones, in list order; without a ranker they fall in the order of the data."""
    if ranker is None:
        return -np.arange(dataset.n_docs, dtype=float)
    if hasattr(ranker, "predict"):
        ranker = ranker.predict(dataset)
    scores = np.asarray(ranker, dtype=float).ravel()
    if len(scores) != dataset.n_docs:
        raise DataError(f"the ranker has {len(scores)} scores for {dataset.n_docs} documents; give one per document")
    order = dataset.lists.order
    return scores if order is None else scores[order]


def _swapped(shown: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Exchange documents of some pages in place; returns the two places of each page, -1 without."""
    n = len(shown)
    swaps = np.full((n, 2), -1)
    if not share:
        return swaps
    sizes = (shown >= 0).sum(axis=1)
    others = 1 + (rng.random(n) * (sizes - 1)).astype(int)
    pages = np.flatnonzero((rng.random(n) < share) & (sizes > 1))
    swaps[pages, 0], swaps[pages, 1] = 0, others[pages]
    pages = pages[rng.random(len(pages)) < 0.5]
    shown[pages, 0], shown[pages, others[pages]] = shown[pages, others[pages]], shown[pages, 0].copy()
    return swaps


def _log(
    dataset: Dataset, queries: np.ndarray, shown: np.ndarray, clicks: np.ndarray, swaps: np.ndarray | None
) -> ClickLog:
    exists = shown >= 0
    rows = shown[exists]
    ids = document_ids(dataset)
    different, numbers = np.unique(rows, return_inverse=True)
    texts, of_rows = np.unique(ids[different].astype(str), return_inverse=True)
    return ClickLog(
        starts_of(exists.sum(axis=1)),
        queries.astype(ROW),
        of_rows.ravel()[numbers.ravel()].astype(ROW),
        clicks[exists],
        dataset.query_ids.astype(str).astype(object),
        texts.astype(object),
        swaps=None if swaps is None else swaps.astype(ROW),
    )


def document_ids(dataset: Dataset) -> np.ndarray:
    """The id of each document as text; its place in the query's list where it has none."""
    lists = dataset.lists
    if lists.doc_ids is not None:
        return lists.doc_ids.astype(str).astype(object)
    places = np.arange(lists.n_docs) - np.repeat(lists.offsets[:-1], lists.sizes)
    return np.asarray(places.astype(str).astype(object))


def logging_ranker(dataset: Dataset, *, share: float = 0.01, seed: int = 0, **params: Any) -> Any:
    """A weak ranker: a RankSVM trained on a few queries, 1% of them by default.

    Parameters
    ----------
    dataset
        Lists with true labels.
    share
        Share of the queries to train on; at least one with documents of two grades.
    seed
        Random seed.
    **params
        Other parameters of `train`, such as `algo`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> type(rs.clicks.logging_ranker(rs.synth.cubic(100))).__name__
    'Linear'
    """
    if not 0 < share <= 1:
        raise ParameterError(param("share"), f" is {share!r}; expected a share from 0 to 1")
    labels, starts = dataset.labels, dataset.offsets[:-1]
    graded = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
    if not graded.any():
        raise DataError("no query has documents of two grades, so no ranker can be trained")
    order = np.random.default_rng(seed).permutation(np.flatnonzero(graded))
    chosen = order[: max(1, round(share * dataset.n_queries))]
    return train(dataset.take_queries(np.sort(chosen)), **{"algo": "ranksvm", **params})
