"""From a log to a model in one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.clicks.interventions import propensities as harvested
from ranksieve.clicks.judgements import judge
from ranksieve.clicks.lists import judged_lists, page_lists
from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.models import fit
from ranksieve.clicks.propensity import Propensities
from ranksieve.data.dataset import Dataset
from ranksieve.forest.forest import Forest
from ranksieve.rankers.combination import combine
from ranksieve.rankers.train import train as train_lists

BOTH: dict[str, Any] = {
    "algo": "lambdamart", "trees": 100, "leaves": 10, "learning_rate": 0.1, "early_stopping": 0,
}  # fmt: skip
BALANCE = 10.0  # impressions
BY_PAGE: dict[str, Any] = {"min_docs": 50, "l2": 100.0}
BY_QUERY: dict[str, Any] = {"min_docs": 20, "l2": 20.0}


def train(log: ClickLog, dataset: Dataset, propensities: Propensities | None = None, **params: Any) -> Forest:
    """Train a model on a log of clicks, with propensities of the places.

    The model is the mean of two, which err in different ways. One is trained on lists of pages with the logarithms of
    the propensities as fixed biases, and with weights of documents (`page_lists` with `balance` 10). The other is trained
    on one list per query with judgements as labels (`judged_lists`). Each is divided by the standard deviation of its
    scores on the documents.

    Parameters
    ----------
    log
        Result pages with clicks.
    dataset
        Features of the documents, by query id and document id. Labels are not used.
    propensities
        Given or estimated ones; None for those that can be harvested from the log.
    **params
        Parameters of `train` for both models. Some have other defaults here: λ-MART with 100 trees of 10 leaves,
        without early stopping; `min_docs` 50 and `l2` 100 for pages, 20 and 20 for queries.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, pages=500, temperature=0.5)
    >>> rs.clicks.train(log, data, trees=5).n_trees
    10
    """
    if propensities is None:
        propensities = harvested(log)
    pages = page_lists(log, dataset, balance=BALANCE)
    fixed = {"position_biases": propensities.biases, "position_rate": 0.0}
    judged = judge(fit(log, "pbm", propensities=propensities), shrinkage="auto")
    models = [
        train_lists(pages, **{**BOTH, **BY_PAGE, **fixed, **params}),
        train_lists(judged_lists(judged, dataset), **{**BOTH, **BY_QUERY, **params}),
    ]
    spreads = [float(np.std(model.predict(dataset))) or 1.0 for model in models]
    return combine(models, weights=[0.5 / spread for spread in spreads])
