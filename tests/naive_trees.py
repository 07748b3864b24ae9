"""Trees on bins, plainly: gradients to fit, histograms, the leaf of a row, the levels of an oblivious tree."""

import numpy as np

from ranksieve.kernels.histograms import LANES


def gradients(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) * np.exp(rng.standard_normal(n)), rng.random(n)


def walk(tree, bins: np.ndarray) -> np.ndarray:
    """Leaf of each row, by walking."""
    leaves = np.zeros(len(bins), np.int64)
    for i, row in enumerate(bins):
        node = 0 if len(tree.splits) else -1
        while node >= 0:
            feature, split_bin, missing_left, left, right = tree.splits[node]
            goes_left = missing_left == 1 if row[feature] == 255 else row[feature] <= split_bin
            if split_bin < 0:
                goes_left = tree.sets[~split_bin, row[feature]]
            node = left if goes_left else right
        leaves[i] = ~node
    return leaves


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
