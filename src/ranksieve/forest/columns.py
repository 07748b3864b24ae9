"""A forest's thresholds, sorted into columns; and its nodes, laid out for walking."""

from __future__ import annotations

import numpy as np

from ranksieve.forest.forest import Forest
from ranksieve.forest.singles import floor_single, to_single
from ranksieve.kernels.quantize import Columns, heaps_of
from ranksieve.kernels.traverse_raw import SIDE_BY_SIDE, Walks, lay_out

MOST = 254  # thresholds in a column: ranks 0..254, and 255 for missing


def make_columns(forest: Forest) -> tuple[Columns, Columns, np.ndarray, np.ndarray]:
    """Columns for float32 documents and for float64 ones, and of every split the column and its threshold's rank there.

    A feature with more than 254 thresholds gets several columns, and so does one that treats zeros as missing in some
    splits and not in others.
    """
    feature, threshold, zero = forest.feature, forest.threshold, forest.zero_missing
    order = np.lexsort((threshold, zero, feature))
    feature, threshold, zero = feature[order], threshold[order], zero[order]
    new_group = _changes(feature) | _changes(zero)
    new_value = new_group | _changes(threshold)
    number = np.cumsum(new_value) - 1
    first_of_group = np.maximum.accumulate(np.where(new_group, number, 0)) if len(number) else number
    number -= first_of_group
    new_column = new_group | (new_value & (number % MOST == 0))
    column, cut = np.empty(len(order), np.int32), np.empty(len(order), np.int32)
    column[order] = np.cumsum(new_column) - 1
    cut[order] = number % MOST
    values = threshold[new_value]
    starts = np.append(np.flatnonzero(new_column[new_value]), len(values)).astype(np.int64)
    shared = (feature[new_column], zero[new_column], values, starts)
    return (
        Columns(*shared, *heaps_of(floor_single(values), starts)),
        Columns(*shared, *heaps_of(to_single(values), starts)),
        column,
        cut,
    )


def _changes(values: np.ndarray) -> np.ndarray:
    changes = np.ones(len(values), dtype=bool)
    changes[1:] = values[1:] != values[:-1]
    return changes


def make_walks(forest: Forest) -> Walks:
    """The forest's nodes for walking from root to leaf."""
    n_padding = -forest.n_trees % SIDE_BY_SIDE
    sizes = np.diff(forest.split_offsets) + np.diff(forest.leaf_offsets)
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    padding = roots[-1]  # one more leaf, the root of every tree that is not there
    n_nodes = int(padding) + 1
    walks = Walks(
        places=np.zeros(n_nodes, np.int32),
        thresholds=np.full(n_nodes, np.inf),
        children=np.full(2 * n_nodes, padding, np.int32),
        values=np.zeros(n_nodes),
        leaves=np.zeros(n_nodes, np.int32),
        roots=np.concatenate([roots[:-1], np.full(n_padding, padding, np.int32)]),
        depths=np.zeros((forest.n_trees + n_padding) // SIDE_BY_SIDE, np.int64),
        copies=np.zeros(4, np.bool_),
    )
    splits = np.arange(len(forest.feature)) + np.repeat(forest.leaf_offsets[:-1], np.diff(forest.split_offsets))
    leaves = np.arange(len(forest.leaf_values)) + np.repeat(forest.split_offsets[1:], forest.n_leaves)
    walks.thresholds[splits], walks.values[leaves] = forest.threshold, forest.scaled_leaf_values()
    lay_out(
        forest.feature,
        forest.left,
        forest.right,
        forest.default_left,
        forest.zero_missing,
        forest.n_features,
        forest.split_offsets,
        forest.leaf_offsets,
        walks,
    )
    return walks
