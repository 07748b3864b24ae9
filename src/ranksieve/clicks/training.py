"""From a log to a model in one step."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ranksieve.clicks.interventions import propensities as harvested
from ranksieve.clicks.lists import page_lists, rated_lists
from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.propensity import Propensities
from ranksieve.clicks.rates import RateLambdas
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, RanksieveWarning
from ranksieve.forest.forest import Forest
from ranksieve.models.blend import Blend
from ranksieve.parameter_table import canonical
from ranksieve.rankers.combination import combine
from ranksieve.rankers.train import train as train_lists
from ranksieve.text_formats import counted

ALL: dict[str, Any] = {
    "algo": "lambdamart", "trees": 100, "leaves": 10, "learning_rate": 0.1, "early_stopping": 0, "valid_fraction": 0.0,
}  # fmt: skip
BALANCE = 10.0  # impressions
BY_PAGE: dict[str, Any] = {"min_docs": 50, "l2": 100.0}
BY_QUERY: dict[str, Any] = {"min_docs": 20, "l2": 20.0, "row_fraction": 0.5, "feature_fraction": 0.5}
STOPPED: dict[str, Any] = {"trees": 400, "early_stopping": 100}  # where queries are left out to stop by
FORESTS = 5  # parts of the queries; a forest is trained without each
LEAST_QUERIES = 10  # with clicks, that a forest stops by
PAGE_SHARE = 1 / 3  # weight of the forest of pages in the mean


def train(log: ClickLog, dataset: Dataset, propensities: Propensities | None = None, **params: Any) -> Forest | Blend:
    """Train a model on a log of clicks, with propensities of the places.

    The model is a mean of two kinds of forests:

    - five of lists of queries, with clicks per exposure as labels (`rated_lists`), the objective `RateLambdas`, and for
      each tree another half of the documents and of the features. Each leaves out another fifth of the queries that
      have clicks, and stops by NDCG@10 of their rates: how many trees are best depends on the data. They count two
      thirds;
    - one of lists of pages, with the logarithms of the propensities as fixed biases, and with weights that make
      documents count alike, however often they were shown (`page_lists` with `balance` 10).

    The scores of each forest are divided by their standard deviation over the documents of the data.

    Parameters
    ----------
    log, dataset
        As for `page_lists`.
    propensities
        Given or estimated ones; None for those that can be harvested from the log.
    **params
        Parameters of `train` for all forests. Some have other defaults here: λ-MART with 10 leaves. For pages 100 trees
        without early stopping, `min_docs` 50 and `l2` 100. For queries up to 400 trees with `early_stopping` 100,
        `min_docs` 20, `l2` 20, `row_fraction` 0.5 and `feature_fraction` 0.5. Where fewer than 50 queries have clicks,
        with `early_stopping=0` and with `valid`, none are left out: 100 trees, no early stopping unless it is given.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=0.5), pages=500)
    >>> rs.clicks.train(log, data, trees=5).n_trees
    30
    """
    propensities = harvested(log) if propensities is None else propensities
    params = canonical(params)
    rated = rated_lists(log, dataset, propensities)
    if rated.labels.min() == rated.labels.max():
        raise DataError(
            f"all {counted(document=rated.n_docs)} shown have the same relevance by their clicks, so there is nothing "
            "to learn from; use more pages"
        )
    fixed = {"position_biases": propensities.biases, "position_rate": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RanksieveWarning)  # documents without features: rated_lists has warned of them
        paged = page_lists(log, dataset, balance=BALANCE)
    models = [train_lists(paged, **{**ALL, **BY_PAGE, **fixed, **params})]
    objective = RateLambdas(params["truncation"]) if "truncation" in params else RateLambdas()
    first = params.get("seed", 0)
    stops = "valid" not in params and params.get("early_stopping", STOPPED["early_stopping"]) > 0
    for number, held_out in enumerate(_held_out(rated, first, stops=stops)):
        stopped = {**STOPPED, "valid": rated.take_queries(held_out)} if len(held_out) else {}
        chosen = {**ALL, **BY_QUERY, **stopped, "objective": objective, **params, "seed": first + number}
        models.append(train_lists(rated.take_queries(np.delete(np.arange(rated.n_queries), held_out)), **chosen))
    shares = [PAGE_SHARE] + [(1.0 - PAGE_SHARE) / FORESTS] * FORESTS
    spreads = [float(np.std(model.predict(dataset))) or 1.0 for model in models]
    return combine(models, weights=[share / spread for share, spread in zip(shares, spreads, strict=True)])


def _held_out(rated: Dataset, seed: int, *, stops: bool) -> list[np.ndarray]:
    """The queries that each forest leaves out, all with clicks; none where these are few, or where it does not stop."""
    clicked = np.flatnonzero(np.add.reduceat(rated.labels, rated.offsets[:-1]) > 0)
    if not stops or len(clicked) < FORESTS * LEAST_QUERIES:
        clicked = clicked[:0]
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(clicked), FORESTS)]
