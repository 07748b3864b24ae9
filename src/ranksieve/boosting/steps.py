"""Steps: how far to go with a new tree. A step is a function of the tree that returns the factor of its leaf values."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.boosting.grower import Leaves
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import Tree

# the tree, where every training document ended in it (None: not known yet), and the scores before it
Step = Callable[[Tree, "Leaves | None", Scores], float]


def shrinkage(rate: float) -> Step:
    """The same small step with every tree (Friedman 2001)."""
    return lambda tree, leaves, scores: rate
