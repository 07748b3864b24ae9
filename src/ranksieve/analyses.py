"""Analyses of results beyond one mean: by list size, by share of the data, by first-stage rank, by shared leaves."""

from ranksieve.evaluation.analyses import (
    SizeBuckets,
    difference_by_size,
    list_ranks,
    rank_distribution,
    rank_heat_map,
    shared_leaves,
    smallest_shares,
)

__all__ = [
    "SizeBuckets",
    "difference_by_size",
    "list_ranks",
    "rank_distribution",
    "rank_heat_map",
    "shared_leaves",
    "smallest_shares",
]
