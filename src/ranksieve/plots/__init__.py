"""Figures: every function takes axes to draw on, or makes some, and returns them. Needs the extra `plots`."""

from ranksieve.plots.clicks import position_biases
from ranksieve.plots.curves import (
    combination_curve,
    difference_by_size,
    learning_curves,
    share_curves,
    time_against_quality,
    tree_steps,
)
from ranksieve.plots.pruning import phase_costs, removed_trees, rounds, tree_weights
from ranksieve.plots.selections import rank_distribution, rank_heat_map, shared_leaves
from ranksieve.plots.trees import tree

__all__ = [
    "combination_curve",
    "difference_by_size",
    "learning_curves",
    "phase_costs",
    "position_biases",
    "rank_distribution",
    "rank_heat_map",
    "removed_trees",
    "rounds",
    "share_curves",
    "shared_leaves",
    "time_against_quality",
    "tree",
    "tree_steps",
    "tree_weights",
]
