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
from ranksieve.errors import DataError
from ranksieve.forest.forest import Forest
from ranksieve.models.blend import Blend
from ranksieve.parameter_table import canonical
from ranksieve.rankers.combination import combine
from ranksieve.rankers.train import train as train_lists
from ranksieve.text_formats import counted

ALL: dict[str, Any] = {
    "algo": "lambdamart", "trees": 100, "leaves": 10, "learning_rate": 0.1, "early_stopping": 0,
}  # fmt: skip
BALANCE = 10.0  # impressions
BY_PAGE: dict[str, Any] = {"min_docs": 50, "l2": 100.0}
BY_QUERY: dict[str, Any] = {"min_docs": 20, "l2": 20.0}


def train(log: ClickLog, dataset: Dataset, propensities: Propensities | None = None, **params: Any) -> Forest | Blend:
    """Train a model on a log of clicks, with propensities of the places.

    The model is the mean of three, which err in different ways:

    - of lists of pages, with the logarithms of the propensities as fixed biases, and with weights that make documents
      count alike, however often they were shown (`page_lists` with `balance` 10);
    - of lists of queries, with judgements of the documents shown as labels (`judged_lists`);
    - of the same lists with all other documents of the data, which were never shown, as the least relevant ones.

    The scores of each are divided by their standard deviation over the documents of the data.

    Parameters
    ----------
    log
        Result pages with clicks.
    dataset
        Features of the documents, by query id and document id. Labels are not used.
    propensities
        Given or estimated ones; None for those that can be harvested from the log.
    **params
        Parameters of `train` for all three. Some have other defaults here: λ-MART with 100 trees of 10 leaves,
        without early stopping; `min_docs` 50 and `l2` 100 for pages, 20 and 20 for queries.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, pages=500, temperature=0.5)
    >>> rs.clicks.train(log, data, trees=5).n_trees
    15
    """
    params = canonical(params)
    if propensities is None:
        propensities = harvested(log)
    pages = page_lists(log, dataset, balance=BALANCE)
    fixed = {"position_biases": propensities.biases, "position_rate": 0.0}
    judged = judge(fit(log, "pbm", propensities=propensities), shrinkage="auto")
    by_query = [judged_lists(judged, dataset, others=others) for others in (False, True)]
    if by_query[0].labels.min() == by_query[0].labels.max():
        raise DataError(
            f"all {counted(document=by_query[0].n_docs)} shown have the same relevance by their clicks, so there is "
            "nothing to learn from; use more pages"
        )
    models = [train_lists(pages, **{**ALL, **BY_PAGE, **fixed, **params})]
    models += [train_lists(lists, **{**ALL, **BY_QUERY, **params}) for lists in by_query]
    spreads = [float(np.std(model.predict(dataset))) or 1.0 for model in models]
    return combine(models, weights=[1.0 / (len(models) * spread) for spread in spreads])
