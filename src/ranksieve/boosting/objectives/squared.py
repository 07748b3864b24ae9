"""Squared error: regression on the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.rules import OBJECTIVES, Traits

if TYPE_CHECKING:
    from ranksieve.boosting.views import Gradients, ObjectiveView


@OBJECTIVES.register("squared")
@dataclass(frozen=True)
class SquaredError:
    """Residuals of the labels, the gradients of the squared error: MART."""

    traits: ClassVar[Traits] = Traits(starts_at_mean=True)

    def __call__(self, view: ObjectiveView) -> Gradients:
        return view.labels - view.scores, np.ones(len(view.labels))
