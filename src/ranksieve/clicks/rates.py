"""λ-gradients of click rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve.boosting.objectives.lambdas import discounts_by_rank
from ranksieve.boosting.views import Gradients, ObjectiveView
from ranksieve.errors import DataError
from ranksieve.kernels.rate_lambdas import all_rate_lambdas
from ranksieve.rules import Traits, integer


@dataclass(frozen=True)
class RateLambdas:
    """λ-gradients of NDCG for labels that are rates: chances to be relevant, from 0 to 1, as `rated_lists` makes them.

    A document i is above j with the chance r_i (1 - r_j), and below it with r_j (1 - r_i). Each pair counts with both,
    by how much the discounts of their ranks differ and by the weights of both documents, so that errors of rare
    documents count little. λ are normalised as those of LightGBM, but not divided by the ideal DCG of a list, which is
    not known.

    It has no name, as `objective="ndcg"` has: only `rated_lists` makes such labels.

    Parameters
    ----------
    truncation
        Each pair has a document in these top ranks.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(temperature=0.5), pages=500)
    >>> lists = rs.clicks.rated_lists(log, data, rs.clicks.propensities(log))
    >>> rs.train(lists, objective=rs.clicks.RateLambdas(), trees=5).n_trees
    5
    """

    truncation: int = integer(30, "Truncation level of λ: only pairs with a document in these top ranks count", 1)

    traits: ClassVar[Traits] = Traits(needs_pairs=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        n_docs = len(view.labels)
        if self not in view.cache:
            least, most = view.labels.min(initial=1), view.labels.max(initial=0)
            if least < 0 or most > 1:
                raise DataError(
                    f"labels from {least:g} to {most:g}; RateLambdas expects rates from 0 to 1, as "
                    "rs.clicks.rated_lists makes them; train on grades with another objective"
                )
            weights = np.ones(n_docs) if view.weights is None else view.weights.astype(np.float64)
            by_rank = discounts_by_rank(view.offsets, self.truncation)
            view.cache[self] = view.labels.astype(np.float64), weights, by_rank
        rates, weights, by_rank = view.cache[self]
        grad, hess = np.empty(n_docs), np.empty(n_docs)
        all_rate_lambdas(rates, weights, view.scores, view.offsets, by_rank, grad, hess)
        return grad, hess
