"""XE-NDCG: cross entropy of a distribution of gains and of the scores (Bruch 2021), as LightGBM's `rank_xendcg`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.boosting.objectives.lambdas import sparse_gains
from ranksieve.rules import OBJECTIVES, Traits

if TYPE_CHECKING:
    from ranksieve.boosting.views import Gradients, ObjectiveView


@OBJECTIVES.register("xendcg")
@dataclass(frozen=True)
class XeNdcg:
    """Cross entropy between softmax(scores) and the gains (Bruch 2021), as LightGBM's `rank_xendcg`.

    A document's target is its gain plus 1 minus a uniform random number, new for each tree, divided by the list's sum.
    """

    traits: ClassVar[Traits] = Traits(needs_pairs=True, uses_gains=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        from ranksieve.kernels.counter_random import step_key
        from ranksieve.kernels.xendcg import all_gradients

        if self not in view.cache:
            view.cache[self] = sparse_gains(view.labels, view.metric)
        grad, hess = np.empty(len(view.labels)), np.empty(len(view.labels))
        key = np.uint64(step_key(view.seed, view.step))
        all_gradients(view.cache[self], view.scores, view.offsets, view.rows, key, grad, hess)
        return grad, hess
