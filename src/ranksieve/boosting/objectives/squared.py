"""Squared error: regression on the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.boosting.training_rows import Gradients, ObjectiveView
from ranksieve.rules import OBJECTIVES


@OBJECTIVES.register("squared")
@dataclass(frozen=True)
class SquaredError:
    """Residuals of the labels: MART."""

    starts_at_mean = True  # regression starts at the best constant

    def __call__(self, view: ObjectiveView) -> Gradients:
        return view.labels - view.scores, np.ones(len(view.labels))
