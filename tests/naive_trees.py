"""Trees on bins, plainly: gradients to fit, histograms, cuts, growth, the leaf of a row."""

import itertools
from fractions import Fraction

import numpy as np

from ranksieve.kernels import compile_trees
from ranksieve.kernels.category_splits import SET, fill_goes_left
from ranksieve.kernels.growing import new_state, next_split, search_sums, start_tree, sum_members
from ranksieve.kernels.histograms import LANES, sum_leaf


def gradients(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) * np.exp(rng.standard_normal(n)), rng.random(n)


def leaves_of_rows(tree, bins: np.ndarray) -> np.ndarray:
    """Leaf of each row, by traversal."""
    return np.array([leaf_of(tree.splits, row, tree.sets) for row in bins], np.int64)


def leaf_of(splits, row, sets=None):
    """The leaf of a row in a tree, given as the splits of a `Tree`."""
    node = 0 if len(splits) else ~0
    while node >= 0:
        feature, split_bin, missing_left, left, right = splits[node]
        if split_bin < 0:
            goes_left = sets[~split_bin, row[feature]]
        else:
            goes_left = missing_left == 1 if row[feature] == 255 else row[feature] <= split_bin
        node = left if goes_left else right
    return ~node


def leaves_of(splits, split_offsets, row, sets=None):
    """The leaf of a row in each of several trees."""
    return [leaf_of(splits[start:stop], row, sets) for start, stop in itertools.pairwise(split_offsets)]


def scores_of_trees(trees, bins: np.ndarray) -> np.ndarray:
    """Sum of the leaf values of each row."""
    scores = np.zeros(len(bins))
    for tree in trees:
        scores += tree.leaf_values[leaves_of_rows(tree, bins)]
    return scores


def exact_gains(column, count_bits, *, min_docs, min_hess, newton, l2):
    """The gain of each allowed cut of a column of a histogram, by bin, and of no cut, as fractions.

    The column has two rows, packed sums of gradients and counts, and sums of second derivatives.
    """

    def sums(bins):
        total, hess = column[:, bins].sum(axis=1).tolist()
        return total >> count_bits, total & ((1 << count_bits) - 1), hess

    grad, n_docs, all_hess = sums(slice(None))
    gains = {}
    for b in range(column.shape[1]):
        g, n, h = sums(slice(b + 1))
        x, y = (h + l2, all_hess - h + l2) if newton else (n, n_docs - n)
        if min(n, n_docs - n) >= min_docs and min(h, all_hess - h) >= min_hess and min(x, y) > 0:
            gains[b] = Fraction(g * g, x) + Fraction((grad - g) ** 2, y)
    return gains, Fraction(grad**2, all_hess + 2 * l2 if newton else n_docs)


def naive_set(bins, n_bins, grad, hess, params):
    """The gain of the best set of a column's categories, as LightGBM looks for it, and the set; None: none gains."""
    newton, l2 = params.newton_gain, params.l2

    def part(rows, more):
        weight = hess[rows].sum() + l2 + more if newton else rows.sum() + more
        return grad[rows].sum() ** 2 / weight

    def value(b):
        rows = bins == b
        return grad[rows].sum() / ((hess[rows].sum() if newton else rows.sum()) + params.cat_smooth)

    best = 0.0, None
    if n_bins <= params.max_cat_to_onehot:
        tried = [([b], 0.0) for b in range(n_bins)]
    else:
        order = [b for b in range(n_bins) if (bins == b).sum() >= max(1, params.cat_smooth)]
        order.sort(key=value, reverse=True)
        tried = []
        for ordered in (order, order[::-1]):
            added = 0
            for size in range(1, min(params.max_cat_threshold, (len(order) + 1) // 2) + 1):
                added += (bins == ordered[size - 1]).sum()
                if (~np.isin(bins, ordered[:size])).sum() >= params.min_docs_per_group <= added:
                    added = 0
                    tried.append((ordered[:size], params.cat_l2))
    for chosen, more in tried:
        left = np.isin(bins, chosen)
        if min(left.sum(), (~left).sum()) >= params.min_docs:
            gain = part(left, more) + part(~left, more)
            if gain > best[0]:
                best = gain, sorted(chosen)
    return best


def naive_levels(bins, n_bins, grad, hess, *, depth, min_docs, newton, l2):
    """The test of every level: (feature, bin, missing left) with the largest gain summed over the level's leaves."""

    def part(rows):
        weight = hess[rows].sum() + l2 if newton else len(rows)
        return grad[rows].sum() ** 2 / weight if weight > 0 else 0.0

    leaves, tests = [np.arange(len(bins))], []
    for _ in range(depth):
        best = (sum(map(part, leaves)) * (1 + 1e-9), None)
        for feature, limit in enumerate(n_bins):
            column = bins[:, feature]
            for missing_left in (False, True) if (column == 255).any() else (False,):
                for b in range(limit):
                    left = (column <= b) & (column != 255) | ((column == 255) & missing_left)
                    gain = 0.0
                    for rows in leaves:
                        sides = rows[left[rows]], rows[~left[rows]]
                        enough = min(map(len, sides)) >= min_docs
                        gain += sum(map(part, sides)) if enough else part(rows)
                    if gain > best[0] * (1 + 1e-12):
                        best = (gain, (feature, b, missing_left), left)
        if best[1] is None:
            break
        tests.append(best[1])
        leaves = [side for rows in leaves for side in (rows[best[2][rows]], rows[~best[2][rows]])]
    return tests, leaves


def naive_histogram(bins: np.ndarray, packed: np.ndarray, hess: np.ndarray) -> np.ndarray:
    """Sums of rows for every bin of every column, as `kernels.histograms` has them, in two planes."""
    hist = np.zeros((bins.shape[1] // LANES, 2, 256, LANES), np.int64)
    for row, grad, second in zip(bins, packed, hess, strict=True):
        for column, bin_ in enumerate(row):
            hist[column // LANES, :, bin_, column % LANES] += grad, second
    return hist


def whole_gradients(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and second derivatives that are exact in fixed point."""
    return rng.integers(-40, 40, n), rng.integers(1, 4, n)


def grow_with_all_histograms(rows, columns, rules, hist, spare):
    """The tree of `growing.grow_tree`, with a histogram of each leaf; `hist` has as many as the tree has leaves."""
    state, members = new_state(len(hist)), {0: rows.members.copy()}
    start_tree(state, rules, *sum_members(rows, 0, len(rows.members)))
    while True:
        if state.searched.any():
            smaller = state.pair[0]
            own = rows._replace(members=members[smaller])
            sum_leaf(own, columns, 0, len(own.members), hist, spare, state.slots[smaller], -1)
            search_sums(state, columns, rules, hist)
        leaf = next_split(state, columns, rules)
        if leaf < 0:
            return state
        new = state.n_leaves[0] - 1
        split, goes_left = state.splits[new - 1], np.empty(256, np.bool_)
        fill_goes_left(split[1], split[2] == 1, split[1 + SET :], goes_left)
        left = goes_left[rows.bins[members[leaf], split[0]]]
        members[leaf], members[new] = members[leaf][left], members[leaf][~left]


def split_best_first(gains, found, max_leaves):
    """The nodes that are split, best first, and the leaves; the children of node i are 2 i + 1 and 2 i + 2.

    `gains` are those of the nodes, `found` those of their children together.
    """
    split, leaves = [], [0]
    while len(leaves) < max_leaves:
        best = max(leaves, key=lambda node: found[node] - gains[node])
        if found[best] - gains[best] <= 1e-9 * found[best]:
            break
        split.append(best)
        leaves[leaves.index(best)] = 2 * best + 1
        leaves.append(2 * best + 2)
    return split, leaves


def outcomes(compiled, row):
    """Every test of compiled trees for a row: true is right."""
    found = []
    for u, column in enumerate(compiled.columns):
        for missing_left in range(2):
            shifted = (int(row[column]) + missing_left) % 256
            first, last = compiled.test_starts[2 * u + missing_left], compiled.test_starts[2 * u + missing_left + 1]
            found += [shifted > limit for limit in compiled.limits[first:last]]
    return found


def leaves_by_lines(compiled, row):
    """The leaf of a row in each of compiled trees, one line after the other."""
    tests, words, together = outcomes(compiled, row), compile_trees.WORDS_PER_ROW, compile_trees.TOGETHER
    room, n_trees = compile_trees.rows_per_tree(compiled.leaf_starts), len(compiled.levels)
    found = []
    for group in range(len(compiled.line_starts) - 1):
        first = together * group
        beyond = np.zeros(together * room, bool)
        beyond[::room] = True
        lines = compiled.lines.reshape(-1, 4)[compiled.line_starts[group] : compiled.line_starts[group + 1]]
        for test, low, high, middle in lines // words:
            beyond[middle] = beyond[high] or (beyond[low] and tests[test])
        for tree in range(first, min(first + together, n_trees)):
            n_bits, start = compiled.levels[tree, 0], compiled.leaf_starts[tree]
            if n_bits:
                place = sum(
                    tests[test // words] << bit for bit, test in enumerate(compiled.levels[tree, 1 : 1 + n_bits])
                )
            else:
                n_leaves, base = compiled.leaf_starts[tree + 1] - start, (tree - first) * room
                place = max(j for j in range(n_leaves) if beyond[base + j])
            found.append(start + place)
    return found
