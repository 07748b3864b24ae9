"""Growth from nodes that were searched before, against taking the best leaf again and again."""

import numpy as np
import pytest

from naive_trees import split_best_first
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.growing import new_state
from ranksieve.kernels.searched_tree import grow_searched

BITS = 10
RULES = SplitRules(BITS, 0, 1.0, min_docs=1, min_hess=0.0, l2=0.0, newton=False, max_depth=0)


def searched_nodes(seed):
    """A complete tree of 15 nodes, the children of node i at 2 i + 1: sums, gains of nodes, and cuts."""
    rng = np.random.default_rng(seed)
    grad, count = np.zeros(15, np.int64), np.zeros(15, np.int64)
    grad[7:], count[7:] = rng.integers(-30, 30, 8), rng.integers(2, 9, 8)
    for node in range(6, -1, -1):
        for sums in (grad, count):
            sums[node] = sums[2 * node + 1] + sums[2 * node + 2]
    gains, cuts = grad**2 / count, np.zeros((15, 5), np.int64)
    found, children = np.zeros(15), np.zeros(15, np.int64)
    cuts[7:, 0] = -1
    for node in range(7):
        children[node] = 2 * node + 1
        cuts[node] = node, 0, 0, (grad[2 * node + 1] << BITS) + count[2 * node + 1], 0
        found[node] = gains[2 * node + 1] + gains[2 * node + 2]
    sums = np.stack([(grad << BITS) + count, np.zeros(15, np.int64)], axis=1)
    return gains, found, cuts, children, sums


@pytest.mark.parametrize("max_leaves", [2, 4, 8])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_node_is_split_first(seed, max_leaves):
    gains, found, cuts, children, sums = searched_nodes(seed)
    expected, leaves = split_best_first(gains, found, max_leaves)
    given = sums.copy()
    given[:7] = 0
    signs = np.zeros(0, np.int8)
    splits, split_gains, _, nodes = grow_searched(
        found, cuts, children, sums[0], signs, RULES, given, new_state(max_leaves)
    )
    assert splits[:, 0].tolist() == expected and nodes.tolist() == leaves
    assert split_gains == pytest.approx(found[expected] - gains[expected])
    assert given.tolist() == sums.tolist()  # those of divided nodes are those of their children


def test_a_split_of_a_node_that_is_not_divided_leaves_no_nodes():
    _, found, cuts, children, sums = searched_nodes(1)
    children[1:] = 0
    signs = np.zeros(0, np.int8)
    assert len(grow_searched(found, cuts, children, sums[0], signs, RULES, sums, new_state(8))[3]) == 0
