"""Best-first growth from nodes that a GPU divided and searched, in another order."""

import numpy as np

from ranksieve.kernels.category_splits import SET
from ranksieve.kernels.growing import next_split, start_tree
from ranksieve.kernels.histograms import Columns
from ranksieve.kernels.jit import njit


@njit(cache=True, nogil=True)
def grow_searched(found, cuts, children, totals, signs, rules, sums, state):
    """A tree grown by `next_split`: its splits, their gains, the limits of its leaves and the node of each leaf.

    For each node, `cuts` has its best cut, `found` the gain of this cut, and `children` its left child, which the right
    child follows, or 0 if it is not divided. Node 0 is the root, with these totals. The `sums` of divided nodes are set
    to those of their children. `state` is a new one. If the tree splits a node that is not divided, an empty array is
    returned in place of the nodes of leaves.
    """
    for node in range(len(children) - 1, -1, -1):
        if children[node] > 0:
            for k in range(2):
                sums[node, k] = sums[children[node], k] + sums[children[node] + 1, k]
    nodes, nothing = np.zeros(len(state.gains), np.int64), np.zeros(0, np.int64)
    columns = Columns(nothing, np.zeros(0, np.int8), signs, nothing, 0.0, 0.0, 0, 0, 0)
    start_tree(state, rules, totals[0], totals[1])
    leaf = 0
    while leaf >= 0:
        for side in range(2):
            node = nodes[state.pair[side]]
            state.found_gains[side] = found[node]
            for k in range(SET):
                state.found_cuts[side, k] = cuts[node, k]
        leaf = next_split(state, columns, rules)
        if leaf >= 0:
            child = children[nodes[leaf]]
            if child == 0:
                return state.splits, state.split_gains, state.limits, nothing
            nodes[leaf], nodes[state.n_leaves[0] - 1] = child, child + 1
    n = state.n_leaves[0]
    return state.splits[: n - 1], state.split_gains[: n - 1], state.limits[:n], nodes[:n]
