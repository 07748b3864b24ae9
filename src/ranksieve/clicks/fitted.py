"""`FittedModel`: the parameters of a click model, what it predicts, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.propensity import Propensities
from ranksieve.dtypes import OFFSET
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels import click_models as kernels
from ranksieve.text_formats import counted

NOT_SEEN = -1  # the pair number of a document that the fitted log does not show


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A click model fitted to a log; pairs are those of a query and a document.

    Attributes
    ----------
    name
        As in `fit`.
    keys, query_ids, doc_ids
        Which pairs there are: key // number of documents is the query, the rest the document.
    shown
        Impressions of each pair.
    clicked, examined
        Clicks that count, and expected examinations, of each pair.
    satisfied
        Expected clicks that satisfied, of each pair ("cascade", "sdbn", "dbn").
    examination
        Chance that each place is examined, relative to the first one ("pbm"); clicks per impression of each place
        ("rctr", "coec"); chance of a click on a relevant document ("trust").
    irrelevant_clicks
        Chance of a click on a document that is not relevant at each place ("trust").
    continuation
        Chance to go on after a document that did not satisfy ("dbn"; 1 for "cascade" and "sdbn").
    prior
        Examinations that the mean counts for.
    steps
        Steps of expectation maximisation.

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 8)
    >>> rs.clicks.fit(log, "sdbn")
    FittedModel('sdbn', 2 pairs of query and document)
    """

    name: str
    keys: np.ndarray
    query_ids: np.ndarray
    doc_ids: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    examined: np.ndarray
    prior: float
    satisfied: np.ndarray | None = None
    examination: np.ndarray | None = None
    irrelevant_clicks: np.ndarray | None = None
    continuation: float = 1.0
    steps: int = 0

    def __repr__(self) -> str:
        return f"FittedModel({self.name!r}, {counted(pair=len(self.keys))} of query and document)"

    @property
    def mean_attraction(self) -> float:
        return float(self.clicked.sum() / max(self.examined.sum(), 1e-300))

    @property
    def mean_satisfaction(self) -> float:
        return 0.0 if self.satisfied is None else float(self.satisfied.sum() / max(self.clicked.sum(), 1e-300))

    @cached_property
    def attraction(self) -> np.ndarray:
        """Chance of a click on each pair if it is examined; of "trust" the chance that it is relevant."""
        prior = 0.0 if self.irrelevant_clicks is not None else self.prior  # chances have a prior already
        return (self.clicked + prior * self.mean_attraction) / np.maximum(self.examined + prior, 1e-300)

    @cached_property
    def satisfaction(self) -> np.ndarray:
        """Chance that a clicked document satisfies; only of models of users who read from the top."""
        if self.satisfied is None:
            raise ParameterError(f"the click model {self.name!r} has no satisfaction; fit 'sdbn' or 'dbn'")
        more = self.prior * self.mean_satisfaction
        return (self.satisfied + more) / np.maximum(self.clicked + self.prior, 1e-300)

    def propensities(self) -> Propensities:
        """How likely each place is examined, relative to the first one."""
        if self.examination is None:
            raise ParameterError(
                f"the click model {self.name!r} has no examination probabilities; fit 'pbm', 'trust' or 'rctr'"
            )
        if not (self.examination > 0).all():
            rank = 1 + int(np.argmin(self.examination > 0))
            raise DataError(f"rank {rank} has no clicks, so it has no propensity; use more pages, or a smaller depth")
        if self.irrelevant_clicks is None:
            return Propensities(self.examination / self.examination[0], self.name)
        first = self.examination[0]
        return Propensities(self.examination / first, self.name, self.irrelevant_clicks / first)

    def click_chances(self, log: ClickLog) -> tuple[np.ndarray, np.ndarray]:
        """Chance of a click on each row of a log: before the page is shown, and given the clicks above the row.

        Documents that the model has not seen have the mean attraction, and places it has not seen the last one.
        """
        numbers = self._pairs_of(log)
        attraction = np.append(self.attraction, self.mean_attraction)[numbers]
        if self.satisfied is not None:
            satisfaction = np.append(self.satisfaction, self.mean_satisfaction)[numbers]
            full, conditional = np.empty(len(numbers)), np.empty(len(numbers))
            kernels.browsing_clicks(
                log.offsets, log.clicks, attraction, satisfaction, self.continuation, full, conditional
            )
            return full, conditional
        if self.examination is not None:
            places = np.minimum(log.places, len(self.examination) - 1)
            chances = attraction * self.examination[places]
            if self.irrelevant_clicks is not None:
                chances += (1.0 - attraction) * self.irrelevant_clicks[places]
        else:
            chances = attraction
        chances = np.clip(chances, kernels.SMALLEST, 1.0 - kernels.SMALLEST)
        return chances, chances

    def evaluate(self, log: ClickLog) -> ModelScores:
        """How well the model predicts the clicks of a log, best one that it was not fitted to.

        Examples
        --------
        >>> import ranksieve as rs
        >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [n % 2]} for n in range(8)])
        >>> rs.clicks.fit(log, "ctr").evaluate(log).perplexity
        2.0
        """
        full, conditional = self.click_chances(log)
        sizes, n = log.by_place()[0], log.n_places
        logs = [np.where(log.clicks, np.log(one), np.log1p(-one)) for one in (full, conditional)]
        surprise, likelihood = (np.bincount(log.places, weights=one, minlength=n) / sizes for one in logs)
        by_page = np.add.reduceat(logs[1], log.offsets[:-1]) / log.sizes
        return ModelScores(self.name, log.n_pages, float(by_page.mean()), likelihood, np.exp(-surprise))

    def _pairs_of(self, log: ClickLog) -> np.ndarray:
        """The pair number of each row of a log."""
        if log.query_ids is self.query_ids and log.doc_ids is self.doc_ids:
            keys = log.pair_keys
        else:
            queries, documents = _translation(log.query_ids, self.query_ids), _translation(log.doc_ids, self.doc_ids)
            of_rows, docs = np.repeat(queries[log.queries], log.sizes), documents[log.documents]
            keys = np.where((of_rows < 0) | (docs < 0), -1, of_rows * len(self.doc_ids) + docs)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, NOT_SEEN)


def _translation(given: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each text its number among the known ones, -1 if it is not known."""
    numbers = {text: number for number, text in enumerate(known.tolist())}
    return np.array([numbers.get(text, -1) for text in given.tolist()], dtype=OFFSET)


@dataclass(frozen=True, eq=False)
class ModelScores:
    """How well a click model predicts a log, with PyClick's definitions.

    Attributes
    ----------
    model, n_pages
        Name of the model, and pages of the log.
    log_likelihood
        Mean over the pages of the mean log-likelihood of a document, given the clicks above it.
    likelihood_by_place
        Mean log-likelihood at each place, given the clicks above it.
    perplexity_by_place
        2 to the mean surprise in bits at each place, without knowing clicks above it: 1 is perfect, 2 is a coin.

    Examples
    --------
    >>> ModelScores("ctr", 8, -0.7, np.array([-0.7, -0.7]), np.array([2.0, 1.5])).perplexity
    1.75
    """

    model: str
    n_pages: int
    log_likelihood: float
    likelihood_by_place: np.ndarray
    perplexity_by_place: np.ndarray

    @property
    def perplexity(self) -> float:
        """The mean over the places."""
        return float(self.perplexity_by_place.mean())
