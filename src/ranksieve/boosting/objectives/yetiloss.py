"""YetiLoss: λ-gradients of NDCG averaged over noisy orders of each list (Gulin et al. 2011; Lyzhin et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.boosting.objectives.lambdas import ALL_RANKS, Truncated, all_ideals, discounts_by_rank, sparse_gains
from ranksieve.kernels.metric_kinds import WEIGHTED
from ranksieve.rules import OBJECTIVES, Traits, integer

if TYPE_CHECKING:
    from ranksieve.boosting.views import Gradients, ObjectiveView


@OBJECTIVES.register("yetiloss")
@dataclass(frozen=True, kw_only=True)
class YetiLoss(Truncated):
    """λ-gradients of NDCG averaged over noisy orders of each list, as CatBoost's YetiLoss.

    Each list is ordered `permutations` times by score plus logistic noise. In each order the ranks p up to `truncation`
    pair with the next `neighbors` ranks, and a pair of different labels counts by its change of NDCG divided by the
    number of permutations. Gradients are those of the logistic pair loss on the scores without noise.
    """

    permutations: int = integer(10, "Number of noisy orders of each list", 1)
    neighbors: int = integer(5, "Pair each document with those at most this many ranks below it", 1)

    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        from ranksieve.kernels.counter_random import step_key
        from ranksieve.kernels.yetiloss import all_gradients

        n_docs = len(view.labels)
        if self not in view.cache:
            gains, by_rank = sparse_gains(view.labels, view.metric), discounts_by_rank(view.offsets, ALL_RANKS)
            view.cache[self] = gains, all_ideals(WEIGHTED, gains, view.offsets, by_rank), by_rank
        gains, ideals, by_rank = view.cache[self]
        depth = min(self.depth(view.metric), n_docs)
        grad, hess, key = np.empty(n_docs), np.empty(n_docs), np.uint64(step_key(view.seed, view.step))
        shape = np.array([depth, self.neighbors, self.permutations])
        all_gradients(gains, view.scores, view.offsets, view.rows, ideals, by_rank, key, shape, grad, hess)
        return grad, hess
