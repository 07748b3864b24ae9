"""Collapsing the deepest leaves of a tree, for trees that are shallow and balanced (Asadi and Lin, ECIR 2013)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.growing import GrowState


class GrownTree(NamedTuple):
    """The splits and leaves of a tree, as kernels grow it; see `kernels.growing.grow_tree`."""

    splits: np.ndarray  # column, bin, missing left, left child, right child, count
    gains: np.ndarray  # per split
    bounds: np.ndarray  # per leaf: where its rows are
    totals: np.ndarray  # per leaf: sum of gradients and count, packed
    limits: np.ndarray  # per leaf: bounds on its value

    @classmethod
    def of(cls, state: GrowState, bounds: np.ndarray) -> GrownTree:
        """What has been grown."""
        n = int(state.n_leaves[0])
        return cls(state.splits[: n - 1], state.split_gains[: n - 1], bounds[:n], state.totals[:n], state.limits[:n])


def collapse(grown: GrownTree, tolerance: float) -> GrownTree:
    """Merge the deepest pairs of leaves until the tree is no deeper than 1 + tolerance times log2(leaves).

    The deepest pair is merged first; ties go to the split with the smallest gain, then to the newest. The rows of two
    sibling leaves are adjacent, and their limits together are those of the split above them.

    Examples
    --------
    A chain of four leaves, depth 3, becomes one of three, depth 2 > 1.9, and then a stump:

    >>> chain = np.array([[0, 1, 0, ~0, 1, 9], [0, 2, 0, ~1, 2, 8], [0, 3, 0, ~2, ~3, 7]])
    >>> bounds, limits = np.array([[0, 1], [1, 2], [2, 5], [5, 9]]), np.tile([-np.inf, np.inf], (4, 1))
    >>> stump = collapse(GrownTree(chain, np.ones(3), bounds, np.array([1, 1, 3, 4]), limits), 0.2)
    >>> stump.splits[:, 3:5].tolist(), stump.bounds.tolist(), stump.totals.tolist()
    ([[-1, -2]], [[0, 1], [1, 9]], [1, 8])
    """
    splits, gains, bounds, totals, limits = (array.copy() for array in grown)
    depths, parents = _depths(splits)
    alive = np.ones(len(splits), np.bool_)
    leaf_alive = np.ones(len(bounds), np.bool_)
    while True:
        pairs = np.flatnonzero(alive & (splits[:, 3] < 0) & (splits[:, 4] < 0))
        deepest = depths[alive].max(initial=0)
        if deepest <= (1 + tolerance) * np.log2(leaf_alive.sum()):
            break
        gone = pairs[np.lexsort((-pairs, gains[pairs], -depths[pairs]))[0]]
        left, right = ~splits[gone, 3], ~splits[gone, 4]
        bounds[left, 1], leaf_alive[right], alive[gone] = bounds[right, 1], False, False
        totals[left] += totals[right]
        limits[left] = min(limits[left, 0], limits[right, 0]), max(limits[left, 1], limits[right, 1])
        parent = parents[gone]
        splits[parent, 3 if splits[parent, 3] == gone else 4] = ~left
    split_number, leaf_number = np.cumsum(alive) - 1, np.cumsum(leaf_alive) - 1
    splits = splits[alive]
    for side in (3, 4):
        child = splits[:, side]
        splits[:, side] = np.where(child >= 0, split_number[np.maximum(child, 0)], ~leaf_number[np.maximum(~child, 0)])
    return GrownTree(splits, gains[alive], bounds[leaf_alive], totals[leaf_alive], limits[leaf_alive])


def _depths(splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The depth of the children of each split, and its parent; parents come before children."""
    depths, parents = np.ones(len(splits), np.int64), np.full(len(splits), -1)
    for number, children in enumerate(splits[:, 3:5]):
        for child in children[children >= 0]:
            depths[child], parents[child] = depths[number] + 1, number
    return depths, parents
